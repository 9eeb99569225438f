"""What each form of the language means as a tree, and where layout ends things."""

from __future__ import annotations

import pytest

from kina.source import Source
from kina.syntax import ast
from kina.syntax.parser import parse
from kina.syntax.printer import print_expr


def module(text):
    parsed = parse(Source("t.kina", text))
    assert not parsed.diagnostics, parsed.diagnostics
    return parsed.module


def expression(text):
    (d,) = module(f"let it = {text}\n").declarations
    return d.body


def grouped(text):
    """An expression with every operator in parentheses."""

    def show(e):
        match e:
            case ast.Binary(operator=o, left=left, right=right):
                return f"({show(left)} {o} {show(right)})"
            case ast.Unary(operator=o, operand=operand):
                return f"({o} {show(operand)})"
            case ast.Apply(function=f, arguments=a):
                return f"({' '.join(map(show, (f, *a)))})"
            case _:
                return print_expr(e)

    return show(expression(text))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b mod c div d @ e", "((((a / b) mod c) div d) @ e)"),
        ("-a ^ b", "(- (a ^ b))"),
        ("-a * b", "((- a) * b)"),
        ("a * -b", "(a * (- b))"),
        ("a ^ b ^ c", "(a ^ (b ^ c))"),
        ("a ^ -b", "(a ^ (- b))"),
        ("a ^ -b ^ c * d", "((a ^ (- (b ^ c))) * d)"),
        ("not a == b && c", "((not (a == b)) && c)"),
        ("a || b && c", "(a || (b && c))"),
        ("a |> f x |> g", "((a |> (f x)) |> g)"),
        ("a || b |> f", "((a || b) |> f)"),
        ("f x + g y z", "((f x) + (g y z))"),
        ("f x[0] y.z", "(f x[0] y.z)"),
        ("f -x", "(f - x)"),
        ("f !r x", "(f (! r) x)"),
        ("r := !r + 1 |> f", "(r := (((! r) + 1) |> f))"),
        ("a divides b && c < d", "((a divides b) && (c < d))"),
        ("cdiv(a, b) + 1", "((cdiv (a, b)) + 1)"),
        ("f g(x) y", "(f (g x) y)"),
        ("f(x) y", "(f x y)"),
        ("(f x) y", "((f x) y)"),
        ("f(x)(y)", "(f x y)"),
    ],
)
def test_operators_group_as_the_table_says(text, meaning):
    assert grouped(text) == meaning


def test_a_bracket_that_touches_is_an_index_and_one_after_a_space_an_argument():
    assert isinstance(expression("f[x]"), ast.Bracket)
    assert isinstance(expression("f [x]"), ast.Apply)
    assert isinstance(expression("f\n  [x]"), ast.Apply)


def test_brackets_hold_names_slices_holes_and_spreads():
    e = expression("x[axis=-1, 2:n, ..., :, ::2, ...S, dim=1]")
    named, part, hole, everything, stepped, spread, keyword = e.items
    assert (named.name, keyword.name) == ("axis", "dim")
    assert (part.start.value, part.stop.text, part.step) == (2, "n", None)
    assert hole == ast.Hole(None, span=hole.span)
    assert (everything.start, everything.stop) == (None, None)
    assert (stepped.start, stepped.step.value) == (None, 2)
    assert spread.name == "S"


def test_an_axis_pattern_has_operands_groups_and_sizes():
    e = expression("rearrange[b s (h d) ... 1 -> b h s d, h=H] x").function
    pattern, named = e.items
    assert [[a.names for a in operand] for operand in pattern.inputs] == [[("b",), ("s",), ("h", "d"), ("...",), (1,)]]
    assert [a.names for a in pattern.output] == [("b",), ("h",), ("s",), ("d",)]
    assert named.name == "h"
    assert len(expression("einsum[i j, j -> i] a b").function.items[0].inputs) == 2


def test_tuples_units_and_parentheses():
    assert expression("()").items == ()
    assert len(expression("(a, b)").items) == 2
    assert isinstance(expression("(a)"), ast.Name)
    assert len(expression("(a,)").items) == 1


def test_records_and_updates():
    assert [f.name for f in expression("{ a = 1, b = 2, }").fields] == ["a", "b"]
    update = expression("{ f x with a = 1 }")
    assert isinstance(update.base, ast.Apply)
    assert expression("{}").fields == ()


def test_equals_compares_in_parentheses_conditions_and_requirements():
    assert expression("(a = b)").operator == "="
    assert expression("if a = b then c else d").condition.operator == "="
    (f,) = module("let f [N] requires (N mod 2 = 0) (x : F32) requires (N > 0) : F32 requires (N < 9) = x").declarations
    assert [p.operator for p in f.requires] == ["=", ">", "<"]


def test_equals_inside_a_let_inside_parentheses_names_first_and_compares_in_the_body():
    e = expression("(let x = a in x = b)")
    assert isinstance(e.value, ast.Name)
    assert e.body.operator == "="


def test_arrows_group_to_the_right_and_the_innermost_has_the_effects():
    e = expression("A -> (B, C) -> D ! {rand, io}")
    assert e.effects is None
    assert e.result.effects == ("rand", "io")


def test_a_result_with_effects():
    (f,) = module("let f (x : F32) : F32 ! {rand} = x").declarations
    assert f.effects == ("rand",)
    (g,) = module("let g (x : F32) : F32 -> F32 ! {rand} = x").declarations
    assert (g.effects, g.result.effects) == (None, ("rand",))


def test_existential_types():
    (f,) = module("let f [N] (x : F32[N]) : exists [n, m] requires (n <= N). (F32[n], F32[m]) = x").declarations
    assert [b.name for b in f.result.names] == ["n", "m"]
    assert len(f.result.requires) == 1


def test_binders_of_every_kind():
    (f,) = module("let f [B, ...S, T : Float] (x : Tensor[T, [...S]]) = x").declarations
    assert [(b.name, b.segment, b.kind) for b in f.binders] == [
        ("B", False, None),
        ("S", True, None),
        ("T", False, "Float"),
    ]


def test_lets_of_every_kind():
    e = expression(
        "let x : F32 = 1 in let (a, (b, _)) = x in let dim R = N / 2 in let assert (R > 0) in let assert_eq R 2 in "
        "let f [B] (y : F32[B]) = y in let g y = y in let [n] z = f x in let [m] = to_dim z in x"
    )
    found = []
    while not isinstance(e, ast.Name):
        found.append(e)
        e = e.body
    assert [type(e).__name__ for e in found] == [
        "Let", "Let", "LetDim", "LetAssert", "LetAssertEq", "LetFunction", "LetFunction", "Let", "Let",
    ]  # fmt: skip
    assert found[1].pattern.items[1].items[1].name == "_"
    assert found[8].pattern.name == "_"
    assert [b.name for b in found[8].opened] == ["m"]


def test_loops_of_every_kind():
    fold = expression("for i < N - 1 with s : F32[i] = x do s yield s + 1")
    assert (fold.index, fold.states[0].name, fold.bound.operator) == ("i", "s", "-")
    assert fold.yielded.operator == "+"
    several = expression("for i < N with (a : F32, b) = (x, y) do (b, a)")
    assert [(s.name, s.type is None) for s in several.states] == [("a", False), ("b", True)]
    assert expression("for i < N yield i").body is None
    bounded = expression("while [n < N] s < 1 with s = 0 do s")
    assert (bounded.index, bounded.bound.text) == ("n", "N")
    assert expression("while s < 1 with s = 0 do s").index is None


def test_the_yield_belongs_to_the_innermost_loop():
    e = expression("for i < N with s = x do for j < M with t = s do t yield t")
    assert e.yielded is None
    assert e.body.yielded is not None


def test_types_and_imports():
    m = module(
        'import std.nn (softmax, gelu as g)\nimport "a b.kina" as m\nimport std.test\n'
        "type L [D] = { a : F32[D], b : F32 }\n"
        "type P = (F32, F32)\n"
    )
    first, second, third, record, alias = m.declarations
    assert (first.path, [(n.name, n.alias) for n in first.names]) == ("std.nn", [("softmax", None), ("gelu", "g")])
    assert (second.path, second.quoted, second.alias, second.names) == ("a b.kina", True, "m", None)
    assert third.path == "std.test"
    assert [f.name for f in record.fields] == ["a", "b"]
    assert (alias.fields, isinstance(alias.definition, ast.TupleLiteral)) == (None, True)


def test_documentation_belongs_to_the_next_declaration_and_other_comments_to_the_module():
    m = module('// head\n\n/// One.\n///\n///   Two.\nlet f = 1  // tail\n/// Three.\ntest "t" = f\n/// nobody\'s\n')
    assert m.declarations[0].documentation == "One.\n\n  Two."
    assert m.declarations[1].documentation == "Three."
    assert [c.text for c in m.comments] == ["// head", "// tail", "/// nobody's"]


def test_spans_cover_the_text_of_each_form():
    e = expression("(a + b) * f[x] y")
    assert e.span.text == "(a + b) * f[x] y"
    assert e.left.span.text == "a + b"
    assert e.operator_span.text == "*"
    assert e.right.span.text == "f[x] y"
    (f,) = module("let f (x : F32) : F32 =\n  let y = x in\n  y\n\n\nlet g = 1\n").declarations[:1]
    assert f.span.text == "let f (x : F32) : F32 =\n  let y = x in\n  y"
    assert f.body.span.text == "let y = x in\n  y"


# ---------------------------------------------------------------- layout


SAME = [
    "let f (x : F32) : F32 = let y = x in let z = y in z\n",
    "let f (x : F32) : F32 =\n  let y = x\n  let z = y\n  z\n",
    "let f (x : F32) : F32 =\n  let y =\n    x\n  in let z = y in\n  z\n",
    "let f (x : F32) : F32 =\n  let y = x in\n\n  // why\n  let z =\n   y\n z\n",
    "let f (x : F32) : F32 =\n  let y = (x\n  )\n  let z = y\n  z\n",
    "let f\n  (x : F32)\n : F32\n =\n  let y = x in let z = y\n  z\n",
    "let f (x : F32) : F32 =\r\n\tlet y = x\r\n\tlet z = y\r\n\tz\r\n",
    "\ufefflet f (x : F32) : F32 =\f\n  let y = x\n  let z = y\n  z",
]


@pytest.mark.parametrize("text", SAME)
def test_layouts_that_say_the_same(text):
    assert module(text) == module(SAME[0])


def test_a_nested_let_ends_at_the_line_of_the_outer_one():
    assert module("let f =\n  let a =\n    let b = 1\n    b\n  a\n") == module("let f = let a = let b = 1 in b in a\n")


def test_the_column_of_a_let_in_the_middle_of_a_line_counts():
    assert module("let f = g (let a = 1\n           a)\n") == module("let f = g (let a = 1 in a)\n")


def test_a_value_goes_on_while_lines_are_to_the_right_of_its_let():
    assert module("let f =\n  let a = g\n    x\n    + y\n  a\n") == module("let f = let a = g x + y in a\n")


def test_a_closing_bracket_in_column_1_ends_nothing():
    assert module("type T = {\n  a : F32,\n}\nlet x = 1\n") == module("type T = { a : F32 }\nlet x = 1\n")


def test_a_token_in_column_1_ends_the_declaration():
    assert len(module('let a = 1\nlet b = 2\ntest "t" = a\n').declarations) == 3
