"""`grad`, `value_and_grad`, `vjp` and `jvp`: a function is inlined where they stand, and its core differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from kina import autodiff
from kina.autodiff import Builder, Unsupported
from kina.core.copying import Copy, Naming
from kina.core.ir import Apply, Statement, Tree, Value, leaves, made_by, rename_tree, statements_within, tree_type
from kina.core.names import made_up
from kina.diagnostics import Diagnostic, derivative_errors, form_errors
from kina.dims.proposition import Proposition
from kina.elaborate.builtins import function_for
from kina.elaborate.closures import as_argument, partial
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dispatch import as_value, builtin, check, value
from kina.elaborate.trees import new_tree
from kina.elaborate.type_expressions import read_type
from kina.ops.base import has_tangent
from kina.passes.simplify import needed_for
from kina.source import Span
from kina.syntax import ast
from kina.types import Type, tensors

_USAGE = {
    "grad": ("f", "x"),
    "value_and_grad": ("f", "x"),
    "vjp": ("f", "x", "cotangent"),
    "jvp": ("f", "x", "tangent"),
}
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Derivative:
    """One of them, as a function whose first argument is a function."""

    name: str

    def misuse(self, span: Span) -> Diagnostic:
        return form_errors.function_where_value(span, self.name, _USAGE[self.name])

    def describe(self) -> str:
        return f"`{self.name}`, which takes {', '.join(_USAGE[self.name])}"

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        wanted, count = _USAGE[self.name], len(arguments)
        usage = " ".join((self.name, *wanted))
        if brackets:
            raise context.report(form_errors.bad_attribute(e.span, f"`{self.name}` takes nothing in a bracket", usage))
        if count < len(wanted):
            return partial(context, self, self.name, (), arguments, wanted[count:])
        if self.name in ("grad", "value_and_grad"):
            return _gradient(context, self.name, e, arguments, expected)
        if count > len(wanted):
            raise context.report(form_errors.wrong_argument_count(e.span, self.name, wanted, count, usage))
        return (_pushed if self.name == "jvp" else _pulled)(context, e, arguments)


def _register(name: str) -> None:
    @builtin(name)
    def _(
        context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, result: str | None,
    ) -> Meaning:  # fmt: skip
        return _Derivative(name).apply(context, e, brackets, arguments, expected, result)


for _name in _USAGE:
    _register(_name)


# ---------------------------------------------------------------- each of them


def _gradient(
    context: Context, what: str, e: ast.Expr, arguments: tuple[ast.Expr, ...], expected: Type | None
) -> Tree:
    """`grad f x ...`: the derivative of a scalar by the first argument, of that one's type; or the scalar and that."""
    body = _applied(context, what, arguments[0], arguments[1:], expected if what == "grad" else None)
    y = body.result
    if not isinstance(y, Value) or y.type.rank or not has_tangent(y.type):
        raise context.report(derivative_errors.no_scalar(arguments[0].span, what, tree_type(y)))
    builder = Builder(body.naming)
    pullback = _supported(context, e, lambda: autodiff.pull(builder, body.statements, body.changing, (y,)))
    seed = builder.term(y).full(1, ()).value
    gradient = _filled(builder, body.inside, pullback([seed]))
    at, found = _placed(context, body, builder, (y, gradient))
    return found if what == "grad" else (at, found)


def _pulled(context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...]) -> Tree:
    """`vjp f x ct`: f's value, and the cotangent of x for one of that value."""
    body = _applied(context, "vjp", arguments[0], arguments[1:2], None)
    cotangent = check(context, arguments[2], _moving(context, arguments[0], body.result), "the cotangent", None)
    builder = Builder(body.naming)
    outputs = _changing(body.result)
    pullback = _supported(context, e, lambda: autodiff.pull(builder, body.statements, body.changing, outputs))
    found = _filled(builder, body.inside, pullback(_changing(cotangent)))
    return _placed(context, body, builder, (body.result, found))


def _pushed(context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...]) -> Tree:
    """`jvp f x dx`: f's value, and its tangent for one of x."""
    body = _applied(context, "jvp", arguments[0], arguments[1:2], None)
    tangent = check(context, arguments[2], tree_type(body.given), "the tangent", None)
    _moving(context, arguments[0], body.result)
    builder = Builder(body.naming)
    tangents = dict(zip(body.changing, _changing(tangent), strict=True))
    outputs = _changing(body.result)
    found = _supported(context, e, lambda: autodiff.push(builder, body.statements, tangents, outputs))
    return _placed(context, body, builder, (body.result, _filled(builder, body.result, found)))


# ---------------------------------------------------------------- the function, applied


class _Body(NamedTuple):
    """A function applied to what is `given`, for which `inside` stands in the statements; they have no calls.

    It is not part of any function yet: its names are its own, and `facts` are what it found out about sizes in them.
    """

    given: Tree
    inside: Tree
    statements: tuple[Statement, ...]
    result: Tree
    naming: Naming
    facts: tuple[Proposition, ...]

    @property
    def changing(self) -> list[Value]:
        return _changing(self.inside)


def _changing(tree: Tree) -> list[Value]:
    return [v for v in leaves(tree) if has_tangent(v.type)]


def _applied(
    context: Context, what: str, function: ast.Expr, arguments: tuple[ast.Expr, ...], expected: Type | None
) -> _Body:
    """The function's core for a new value of the first argument's type, which nothing else uses."""
    given = value(context, arguments[0], expected or _parameter_type(context, function))
    others = [as_argument(context, value(context, a), a.span) for a in arguments[1:]]
    if not _changing(given):
        raise context.report(derivative_errors.nothing_moves(arguments[0].span, what, tree_type(given)))
    _moving(context, arguments[0], given)
    known, cells = len(context.facts.hypotheses), dict(context.cells)
    with _aside(context) as naming, context.block() as statements:
        inside = new_tree(context, tree_type(given), None)
        items = [as_argument(context, inside, arguments[0].span), *others]
        applied = function_for(context, function, items).apply(context, function, (), tuple(items), None, None)
        result = as_value(context, applied, function.span)
        if any(context.cells[cell] is not tree for cell, tree in cells.items()):
            what = f"`{what}` of a function that assigns to a ref outside it"
            raise context.report(form_errors.unsupported(function.span, what))
        facts = context.facts.hypotheses[known:]
        copy = Copy(naming)
        flat = copy.statements(tuple(statements))
        return _Body(given, inside, flat, copy.tree(result), naming, tuple(map(copy.claim, facts)))


@contextmanager
def _aside(context: Context) -> Iterator[Naming]:
    """For core that will be changed before it is part of the function: the names in it are not used up."""
    before = context.names, context.dimensions, context.opened, context.measured
    context.names, context.dimensions = context.names.copy(), context.dimensions.copy()
    context.opened, context.measured = list(context.opened), set(context.measured)
    try:
        yield Naming(context.names, context.dimensions)
    finally:
        context.names, context.dimensions, context.opened, context.measured = before


def _parameter_type(context: Context, function: ast.Expr) -> Type | None:
    """What a function says that its first argument is, if no binders are needed to say it: for literals there."""
    declared = context.home.find(function) if isinstance(function, ast.Name) else None
    parameters: tuple[ast.Parameter, ...] = ()
    if isinstance(function, ast.Lambda):
        parameters = function.parameters
    elif declared is not None and declared.home is context.home and not declared.declaration.binders:
        parameters = declared.declaration.parameters
    if not parameters or parameters[0].type is None:
        return None
    with context.trusted():
        return read_type(context, parameters[0].type)


def _moving(context: Context, e: ast.Expr, tree: Tree) -> Type:
    """The type of a value that tangents go beside; parts that are positions or quantised can have none, not even 0."""
    type_ = tree_type(tree)
    for part in tensors(type_):
        if part.bound is not None or part.dtype.block is not None:
            raise context.report(derivative_errors.part_without_tangent(e.span, part, type_))
    return type_


# ---------------------------------------------------------------- what is emitted


def _supported(context: Context, e: ast.Expr, differentiate: Callable[[], Result]) -> Result:
    try:
        return differentiate()
    except Unsupported as fault:
        span = fault.span if fault.span is not None and fault.span.source is e.span.source else e.span
        raise context.report(form_errors.unsupported(span, fault.what)) from None


def _filled(builder: Builder, like: Tree, found: Sequence[Value | None]) -> Tree:
    """A tree of tangents: zeros where one is zero, and beside integers and Bool, which have none."""
    supply = iter(found)

    def tangent(part: Value) -> Value:
        return (next(supply) if has_tangent(part.type) else None) or builder.zeros(part.type)

    return rename_tree(like, tangent)


def _placed(context: Context, body: _Body, builder: Builder, results: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """What was built as part of the function, in names of that, without what the results do not need."""
    statements = needed_for(builder.statements, leaves(results))
    several = {v for s in statements_within(statements) if not isinstance(s, Apply) for v in _several(made_by(s))}
    actual = dict(zip(leaves(body.inside), leaves(body.given), strict=True))
    copy = Copy(
        Naming(context.names, context.dimensions),
        actual,
        called=lambda v: None if made_up(v.name) or v in several else v.name,
    )
    context.statements += copy.statements(statements)
    context.opened += map(str, copy.dims.values())
    context.measured.update(map(str, copy.dims.values()))
    context.assume(*map(copy.claim, body.facts))
    return tuple(map(copy.tree, results))


def _several(made: tuple[Value, ...]) -> tuple[Value, ...]:
    """The results of a statement that has several, which have no names of their own in Kina."""
    return made if len(made) > 1 else ()
