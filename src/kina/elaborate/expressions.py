"""Surface expressions -> core statements: each construct in one function, dispatched by its node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from kina.core.ir import Tree, Value, tree_type
from kina.diagnostics import Diagnostic, form_errors
from kina.dims.dim import UnwieldySize
from kina.dims.proposition import equal
from kina.elaborate.calls import call_function
from kina.elaborate.context import POISON, Context, Meaning, Poison, Reported
from kina.elaborate.dimensions import read_claim, read_dim
from kina.elaborate.indexing import index
from kina.elaborate.literals import adapts, is_literal, literal
from kina.elaborate.matching import conform
from kina.elaborate.obligations import assert_
from kina.elaborate.operations import call_operation, operate
from kina.elaborate.spellings import kina_spelling
from kina.elaborate.type_expressions import read_type
from kina.ops import lookup
from kina.ops.elementwise import OPERATORS
from kina.source import Span
from kina.syntax import ast
from kina.types import Tensor, Tuple, Type


def infer(context: Context, e: ast.Expr, expected: Type | None = None, name: str | None = None) -> Tree:
    """The value of an expression, its statements appended to the context.

    `expected` is what the place wants: it types literals and holes, and is not enforced here (see
    `check`). `name` is what a new value should be called. Raises `Reported` once an error is recorded.
    """
    handler = _HANDLERS.get(type(e))
    if handler is None:
        raise context.report(form_errors.unsupported(e.span, _UNSUPPORTED.get(type(e), "this form")))
    try:
        return handler(context, e, expected, name)
    except UnwieldySize:
        raise context.report(form_errors.unwieldy_size(e.span)) from None


def check(
    context: Context, e: ast.Expr, wanted: Type, what: str, declared: Span | None, name: str | None = None
) -> Tree:
    """The value of an expression that has to be of the type `wanted`."""
    tree = infer(context, e, wanted, name)
    conform(context, tree, wanted, final(e).span, what, declared)
    return tree


def final(e: ast.Expr) -> ast.Expr:
    """The expression whose value a chain of lets has: where a mismatch is shown."""
    while isinstance(e, ast.Let | ast.LetDim | ast.LetAssert | ast.LetAssertEq | ast.LetFunction):
        e = e.body
    return e


def tensor(context: Context, e: ast.Expr, expected: Type | None = None) -> Value:
    """The value of an expression that has to be a tensor."""
    found = infer(context, e, expected)
    if not isinstance(found, Value):
        raise context.report(form_errors.not_a_value(e.span, "a tuple"))
    return found


# ---------------------------------------------------------------- names, literals, holes


def _name(context: Context, e: ast.Name, expected: Type | None, name: str | None) -> Tree:
    meaning: Meaning | None = context.values.get(e.text)
    if isinstance(meaning, Poison):
        raise Reported
    if meaning is not None:
        return meaning
    declaration = context.module.declarations.get(e.text)
    if declaration is not None:
        if declaration.parameters:
            names = [p.name for p in declaration.parameters]
            raise context.report(form_errors.function_where_value(e.span, e.text, names))
        return call_function(context, e, e.text, (), (), infer, expected, name)
    entry = lookup(e.text)
    if entry is not None:
        raise context.report(form_errors.function_where_value(e.span, e.text, entry.operand_names))
    if e.text in context.dims:
        raise context.report(form_errors.dimension_where_value(e.span, e.text))
    raise context.report(_unknown(context, e))


def _unknown(context: Context, e: ast.Name) -> Diagnostic:
    if e.text in _KNOWN_OPERATIONS:
        return form_errors.unsupported(e.span, f"the operation `{e.text}`")
    return form_errors.unknown_name(e.span, e.text, known_names(context), kina_spelling(e.text))


def known_names(context: Context) -> tuple[str, ...]:
    from kina.ops import all_operations

    return (*context.values, *context.module.declarations, *(entry.name for entry in all_operations()))


def _literal(context: Context, e: ast.Expr, expected: Type | None, name: str | None) -> Tree:
    return literal(context, e, expected.dtype if isinstance(expected, Tensor) else None, name)


def _hole(context: Context, e: ast.Hole, expected: Type | None, name: str | None) -> Tree:
    if e.name == "":
        raise context.unreadable()
    scope = [(n, tree_type(v)) for n, v in context.values.items() if not isinstance(v, Poison)]
    raise context.report(form_errors.hole(e.span, e.name, expected, scope))


# ---------------------------------------------------------------- tuples


def _tuple(context: Context, e: ast.TupleLiteral, expected: Type | None, name: str | None) -> Tree:
    wanted: tuple[Type | None, ...] = (None,) * len(e.items)
    if isinstance(expected, Tuple) and len(expected.items) == len(e.items):
        wanted = expected.items
    return tuple(infer(context, item, w) for item, w in zip(e.items, wanted, strict=True))


def _projection(context: Context, e: ast.Projection, expected: Type | None, name: str | None) -> Tree:
    target = infer(context, e.target)
    if not isinstance(target, tuple):
        target_type = tree_type(target)
        raise context.report(form_errors.wrong_tuple(e.span, f"`.{e.index}` takes a tuple apart", target_type))
    if e.index >= len(target):
        message = f"the tuple has {len(target)} items, numbered from 0"
        raise context.report(form_errors.wrong_tuple(e.span, message, tree_type(target)))
    return target[e.index]


def _field(context: Context, e: ast.FieldAccess, expected: Type | None, name: str | None) -> NoReturn:
    """Records are not supported yet; of a tensor, a field is a habit from PyTorch."""
    if isinstance(e.target, ast.Name) and e.target.text not in context.values:
        raise context.report(form_errors.unsupported(e.span, "records and module members"))
    infer(context, e.target)
    at = Span(e.span.source, e.span.end - len(e.name), e.span.end)
    raise context.report(form_errors.no_such_member(at, e.name, kina_spelling(e.name)))


# ---------------------------------------------------------------- let


def _let_chain(context: Context, e: ast.Expr, expected: Type | None, name: str | None) -> Tree:
    """A chain of lets, one after the other, then the value of the last body."""
    with context.scope():
        poisoned = False
        while True:
            try:
                match e:
                    case ast.Let():
                        _bind_let(context, e)
                    case ast.LetDim():
                        context.dims[e.name] = read_dim(context, e.value)
                    case ast.LetAssert():
                        for claim in read_claim(context, e.proposition):
                            assert_(context, claim, e.proposition.span)
                    case ast.LetAssertEq():
                        left, right = read_dim(context, e.left), read_dim(context, e.right)
                        assert_(context, equal(left, right), e.left.span.to(e.right.span))
                    case ast.LetFunction():
                        context.values[e.function.name] = POISON
                        raise context.report(form_errors.unsupported(e.function.name_span, "local functions"))
                    case _:
                        break
            except Reported:
                poisoned = True
                _poison(context, e)
            e = _body(e)
        result = infer(context, e, expected, name)
        if poisoned:
            raise Reported
        return result


def _body(e: ast.Expr) -> ast.Expr:
    assert isinstance(e, ast.Let | ast.LetDim | ast.LetAssert | ast.LetAssertEq | ast.LetFunction)
    return e.body


def _bind_let(context: Context, e: ast.Let) -> None:
    if e.opened:
        raise context.report(form_errors.unsupported(e.opened[0].span, "opening an existential (`let [n] x = ...`)"))
    name = e.pattern.name if e.pattern.name not in (None, "_") else None
    if e.type is not None:
        wanted = read_type(context, e.type)
        tree = check(context, e.value, wanted, f"`{name}`" if name else "this", e.type.span, name)
    else:
        tree = infer(context, e.value, None, name)
    _bind_pattern(context, e.pattern, tree)


def _bind_pattern(context: Context, pattern: ast.Pattern, tree: Tree) -> None:
    if pattern.name is not None:
        if pattern.name != "_":
            context.values[pattern.name] = tree
        return
    if not isinstance(tree, tuple):
        raise context.report(form_errors.wrong_tuple(pattern.span, "a tuple is taken apart here", tree_type(tree)))
    if len(tree) != len(pattern.items):
        message = f"{len(pattern.items)} names for a tuple of {len(tree)}"
        raise context.report(form_errors.wrong_tuple(pattern.span, message, tree_type(tree)))
    for item, part in zip(pattern.items, tree, strict=True):
        _bind_pattern(context, item, part)


def _poison(context: Context, e: ast.Expr) -> None:
    """After an error: what the let would have bound means nothing, and says nothing more."""
    if isinstance(e, ast.Let):
        for pattern_name in _pattern_names(e.pattern):
            context.values[pattern_name] = POISON
    elif isinstance(e, ast.LetDim):
        context.dims[e.name] = POISON


def _pattern_names(pattern: ast.Pattern) -> list[str]:
    if pattern.name is not None:
        return [pattern.name]
    return [n for item in pattern.items for n in _pattern_names(item)]


# ---------------------------------------------------------------- application and operators


def _apply(context: Context, e: ast.Apply, expected: Type | None, name: str | None) -> Tree:
    return _call(context, e, e.function, e.arguments, expected, name)


def _bracket(context: Context, e: ast.Bracket, expected: Type | None, name: str | None) -> Tree:
    """`constant[N]`; a bracket after a value is an index."""
    return _call(context, e, e, (), expected, name)


def _call(
    context: Context, e: ast.Expr, function: ast.Expr, arguments: tuple[ast.Expr, ...], expected: Type | None,
    name: str | None,
) -> Tree:  # fmt: skip
    brackets = function.items if isinstance(function, ast.Bracket) else None
    target = function.target if isinstance(function, ast.Bracket) else function
    if isinstance(target, ast.Apply) and brackets is None:
        return _call(context, e, target.function, (*target.arguments, *arguments), expected, name)
    if isinstance(target, ast.FieldAccess):
        _field(context, target, None, None)
    if isinstance(target, ast.Lambda):
        raise context.report(form_errors.unsupported(target.span, "function values (`fun`)"))
    if not isinstance(target, ast.Name):
        found = infer(context, target)
        if isinstance(function, ast.Bracket) and not arguments and isinstance(found, Value):
            return index(context, function, found, name)
        raise context.report(form_errors.not_a_function(target.span, tree_type(found)))
    if target.text in context.values:
        found = _name(context, target, None, None)
        if isinstance(function, ast.Bracket) and not arguments and isinstance(found, Value):
            return index(context, function, found, name)
        raise context.report(form_errors.not_a_function(target.span, tree_type(found)))
    if target.text in context.module.declarations:
        return call_function(context, e, target.text, brackets or (), arguments, infer, expected, name)
    entry = lookup(target.text)
    if entry is not None:
        return call_operation(context, e, target, entry, brackets or (), arguments, infer, expected, name)
    raise context.report(_unknown(context, target))


_KNOWN_OPERATIONS = frozenset(
    """
    split roll einsum rearrange conv max_pool avg_pool gather take_along scatter dynamic_slice update_slice
    argmax argmin one_hot top_k sort argsort nonzero compress
    uniform normal bernoulli categorical cumsum cumprod cummax stop_gradient grad value_and_grad vjp jvp jacobian
    hessian checkpoint custom_vjp map fold scan vmap print emit check with_seed ref dim_value to_dim
    """.split()  # noqa: SIM905
)
"""Operations of the language that this version lacks: named in the error, listed in docs/status.md."""


def _binary(context: Context, e: ast.Binary, expected: Type | None, name: str | None) -> Tree:
    operator = e.operator
    if operator in ("|>", "@") and context.module.strict:
        instead = "matmul x y" if operator == "@" else "f x"
        raise context.report(form_errors.sugar(e.operator_span, f"`{operator}`", instead))
    if operator == "|>":
        return _pipe(context, e, expected, name)
    if operator == "@":
        operands, spans = _operands(context, (e.left, e.right), expected)
        return operate(context, "matmul", {}, "@", e.span, operands, spans, name)
    if operator not in OPERATORS:
        what = {":=": "assignment (`:=`)"}.get(operator, f"`{operator}` on tensors")
        raise context.report(form_errors.unsupported(e.operator_span, what))
    gives_bool = operator in ("==", "=", "!=", "<", "<=", ">", ">=")
    operands, spans = _operands(context, (e.left, e.right), None if gives_bool else expected)
    return operate(context, OPERATORS[operator], {}, operator, e.span, operands, spans, name)


def _operands(
    context: Context, es: tuple[ast.Expr, ...], expected: Type | None
) -> tuple[tuple[Value, ...], tuple[Span, ...]]:
    """Operands of one dtype: a literal takes that of the others."""
    first, *others = sorted(range(len(es)), key=lambda n: adapts(es[n]))
    values = {first: tensor(context, es[first], expected)}
    for n in others:
        values[n] = tensor(context, es[n], values[first].type)
    return tuple(values[n] for n in range(len(es))), tuple(e.span for e in es)


def _pipe(context: Context, e: ast.Binary, expected: Type | None, name: str | None) -> Tree:
    """`x |> f a` is `f a x`; of an operation, x becomes the last operand, before shapes and the like."""
    match e.right:
        case ast.Apply(function=function, arguments=arguments):
            return _call(context, e, function, _with_piped(function, arguments, e.left), expected, name)
        case _:
            return _call(context, e, e.right, (e.left,), expected, name)


def _with_piped(function: ast.Expr, arguments: tuple[ast.Expr, ...], piped: ast.Expr) -> tuple[ast.Expr, ...]:
    target = function.target if isinstance(function, ast.Bracket) else function
    entry = lookup(target.text) if isinstance(target, ast.Name) else None
    trailing = sum(not p.bracket for p in entry.parameters) if entry else 0
    cut = len(arguments) - trailing
    return (*arguments[:cut], piped, *arguments[cut:])


def _unary(context: Context, e: ast.Unary, expected: Type | None, name: str | None) -> Tree:
    if is_literal(e):
        return _literal(context, e, expected, name)
    if e.operator == "!":
        raise context.report(form_errors.unsupported(e.span, "references (`!r`)"))
    operation = {"-": "neg", "not": "logical_not"}[e.operator]
    x = tensor(context, e.operand, expected)
    return operate(context, operation, {}, e.operator, e.span, (x,), (e.operand.span,), name)


Handler = Callable[[Context, Any, Type | None, str | None], Tree]
_HANDLERS: Mapping[type, Handler] = {
    ast.Name: _name,
    ast.Number: _literal,
    ast.Boolean: _literal,
    ast.ListLiteral: _literal,
    ast.Hole: _hole,
    ast.TupleLiteral: _tuple,
    ast.Projection: _projection,
    ast.FieldAccess: _field,
    ast.Let: _let_chain,
    ast.LetDim: _let_chain,
    ast.LetAssert: _let_chain,
    ast.LetAssertEq: _let_chain,
    ast.LetFunction: _let_chain,
    ast.Apply: _apply,
    ast.Bracket: _bracket,
    ast.Binary: _binary,
    ast.Unary: _unary,
}
_UNSUPPORTED: Mapping[type, str] = {
    ast.For: "loops (`for`)",
    ast.While: "loops (`while`)",
    ast.If: "`if`",
    ast.Lambda: "function values (`fun`)",
    ast.RecordLiteral: "records",
    ast.RecordUpdate: "records",
    ast.String: "strings outside imports and tests",
    ast.Spread: "shape segments (`...S`)",
}
