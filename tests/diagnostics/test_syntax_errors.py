"""Every way a text can be wrong, as a person sees it."""

from __future__ import annotations

import pytest

from kina.diagnostics.pages import all_codes, page
from kina.diagnostics.render import render
from kina.source import Source
from kina.syntax.parser import parse

F = "let f [N] (x : F32[N]) : F32[N] = "

CASES = {
    "K0101": [
        (F + "x ** 2.0", "`**` is not an operator of Kina", "help: write `^`", f" 1│ {F}x ^ 2.0"),
        (F + "x # twice", "`#` means nothing here", "help: a comment starts with `//`"),
        (F + "x € y", "`€` means nothing here"),
    ],
    "K0102": [(F + 'g "abc', "this string has no end", '^^^^ no `"` before the end of the line', '"abc"')],
    "K0103": [(F + "x /* a /* b */", "this comment has no end", "^^ opened here", "comments nest")],
    "K0104": [(F + "0.5f", "this is not a number", "^^^^ a name cannot begin with a digit")],
    "K0105": [(F + r'g "a\qb"', r"`\q` is not an escape", "^^", "the escapes are")],
    "K0106": [
        (F + "x + in", "expected an expression, found `in`"),
        (F + "for i in N yield x", "expected `<`, found `in`", "help: write `<`", "for i < N yield x"),
        (F + "if x : 1 else 2", "expected `then`, found `:`", "-- for this `if`", "help: write `then`"),
        (F + "g fun y -> y", "found `fun`", "help: as an argument or an operand it needs parentheses"),
        (F + "{ a : 1 }", "expected `=`, found `:`", "{ a = 1 }"),
        (F + "x in x", "expected the end of the declaration, found `in`", "only a `let` inside"),
        ("let f (x = 3) = x", "expected `:` and the parameter's type, found `=`"),
        ("test adds = 1", "expected the name of the test in quotes, found `adds`"),
        ("let f = [1 : 2]", "expected `,` or `]`, found `:`", "- inside this"),
        ("import std. (f)", "expected the name of a module, found `(`"),
        (F, "expected an expression, found the end of the file"),
    ],
    "K0107": [
        (F + "g (x + 1", "`(` is never closed", "expected `)`, found the end of the file", "- opened here"),
        ("let f [N] (x : F32[N) = x", "`[` is never closed", "expected `]`, found `)`"),
    ],
    "K0108": [(F + "(x))", "`)` closes nothing", "^ no bracket is open here")],
    "K0109": [
        ("let f (in : F32) = 1", "`in` is a keyword, not the name of a parameter", "help: `in_` is a name"),
        ("let type = 1", "`type` is a keyword"),
        (F + "match x", "`match` is a keyword"),
    ],
    "K0110": [(F + "g (a < b <= c)", "comparisons do not chain", "^^ a second comparison", "< b && b <=")],
    "K0111": [(F + "x = x", "`=` gives a name to a value", "help: to compare, write `==`", f"{F}x == x")],
    "K0112": [
        (F + "\n  let y = x\n", "this `let` has nothing after it", "found the end of the file", "--- the `let`"),
        (F + "\n  let y = x in\n", "this `let` has nothing after it"),
        (F + "(let y = x)", "this `let` has nothing after it", "found `)`"),
    ],
    "K0113": [
        ("x + 1", "expected a declaration, found `x`", "`let`, `type`, `import` or `test` begins one"),
        ("foo = 3", "help: a function or a constant begins with `let`", " 1│ let foo = 3"),
        ("let dim N = 4", "found `let dim`", "at the top level a constant is `let N = 4`"),
        (F + "x\n  let g = 1", "a declaration starts in column 1", "^^^ this is indented"),
    ],
    "K0114": [("let f = " + "(" * 200 + "x" + ")" * 200, "this is nested too deeply", "more than 100 levels")],
    "K0115": [
        (F + "reduce [sum, axis=0] x", "an attribute in a bracket after a space", f" 1│ {F}reduce[sum, axis=0] x"),
        (F + "x [1:2]", "a slice in a bracket after a space", f" 1│ {F}x[1:2]"),
        (F + "einsum [i j -> j i] x", "an axis pattern in a bracket after a space", "einsum[i j -> j i] x"),
    ],
    "K0116": [
        (F + "for i < N with (a, b) = (1, 2, 3) do a", "2 states need 2 initial values", "^^^^^^^^^ this is 3 values"),
        (F + "for i < N with (a, b) = x do a", "^ this is one expression"),
    ],
    "K0117": [(F + "if c then x", "this `if` has no `else`", "expected `else`, found the end of the file")],
    "K0118": [(F + "for i < N do x", "this `for` makes nothing", "^^ expected `with` or `yield`")],
    "K0119": [(F + "a == not b", "`not` needs parentheses here", f" 1│ {F}a == (not b)")],
    "K0120": [
        ("def f(x): return x", "`def` is not a word of Kina", "help: a function is `let f"),
        (F + "if a then b elif c then d else e", "`elif` is not a word of Kina", "write `else if`"),
    ],
}  # fmt: skip


def findings(text):
    return parse(Source("t.kina", text)).diagnostics


@pytest.mark.parametrize(("code", "case"), [(code, case) for code, cases in CASES.items() for case in cases])
def test_each_error_says_what_is_wrong_where_and_what_would_help(code, case):
    text, *said = case
    found = findings(text)
    assert [d.code for d in found] == [code]
    shown = render(found)
    assert shown.startswith(f"error[{code}]: ")
    assert "┌─ t.kina:" in shown
    for words in said:
        assert words in shown, shown


def test_every_code_has_a_case_and_a_page():
    codes = [code for code in all_codes() if code.startswith("K01")]
    assert sorted(CASES) == codes
    for code in codes:
        assert page(code).startswith(f"# {code}: ")


HELPFUL = [
    (text, code)
    for code, cases in CASES.items()
    for text, *_ in cases
    if any(h.edits for d in parse(Source("t.kina", text)).diagnostics for h in d.help)
]


@pytest.mark.parametrize(("text", "code"), HELPFUL)
def test_help_that_can_be_applied_removes_the_error(text, code):
    (d,) = findings(text)
    for edit in sorted(d.help[0].edits, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    again = findings(text)
    assert code not in [e.code for e in again] or again[0].span.start > d.span.start


def test_one_error_a_place_and_all_of_a_file():
    text = (
        "let a [N] (x : F32[N) : F32[N] = x\n"
        "let b [N] (x : F32[N]) : F32[N] =\n"
        "  let y = x + ) in\n"
        "  let z = (y * 2.0 in\n"
        "  let w = z in\n"
        "  w +\n"
        "\n"
        "def d(x): return x\n"
        "let e = 1\n"
        "let g = if e then 2\n"
    )
    parsed = parse(Source("t.kina", text))
    assert [(d.code, d.span.line) for d in parsed.diagnostics] == [
        ("K0107", 1), ("K0108", 3), ("K0107", 4), ("K0106", 6), ("K0120", 8), ("K0117", 10),
    ]  # fmt: skip
    assert [d.name for d in parsed.module.declarations] == ["a", "b", "e", "g"]


def test_what_did_not_parse_gives_no_errors_in_checking(check):
    error = check("""
        let broken [N (x : F32[N]) : F32[N] = x

        let whole [N] (x : F32[N]) : F32[N] =
          broken x
    """).rejects("K0106")
    assert error.span.line == 1
    broken = check("""
        let f [N] (x : F32[N]) : F32[N] =
          let y = x + * in
          let dim M = N + * in
          reshape y [M]
    """)
    assert [(d.code, d.span.line) for d in broken.errors] == [("K0106", 2), ("K0106", 3)]


def test_checking_goes_on_after_an_error_of_syntax(check):
    program = check("""
        let f [N] (x : F32[N]) : F32[N] =
          let y = x + * in
          let z = missing in
          y + z
    """)
    assert [d.code for d in program.errors] == ["K0106", "K0201"]
