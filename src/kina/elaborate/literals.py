"""Literals take the type that their use needs; with no use to tell, `I64` or `F32`."""

from __future__ import annotations

from collections.abc import Iterator

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Edit
from kina.dims.dim import Dim, constant
from kina.dims.proposition import Comparison
from kina.elaborate.context import Context
from kina.elaborate.guesses import guess
from kina.elaborate.obligations import oblige
from kina.ops.creation import Constant, Position
from kina.syntax import ast
from kina.types import DType, Tensor

Number = float | int | bool


def is_literal(e: ast.Expr) -> bool:
    """Whether an expression is a number, maybe negated, or a tensor literal of such."""
    match e:
        case ast.Number():
            return True
        case ast.Unary(operator="-", operand=ast.Number()):
            return True
        case ast.ListLiteral(items=items):
            return bool(items) and all(map(is_literal, items))
    return False


def adapts(e: ast.Expr) -> bool:
    """Whether an expression takes the dtype that its use needs: literals, and calculations with nothing but such."""
    match e:
        case ast.Number() | ast.Boolean():
            return True
        case ast.Unary(operator="-", operand=operand):
            return adapts(operand)
        case ast.Binary(operator="+" | "-" | "*" | "/" | "^" | "div" | "mod", left=left, right=right):
            return adapts(left) and adapts(right)
        case ast.ListLiteral(items=items) | ast.Apply(function=ast.Name(), arguments=items):
            return all(map(adapts, items))
    return False


def literal(context: Context, e: ast.Expr, wanted: Tensor | None, name: str | None) -> Value:
    """The constant that a literal is, of the dtype of `wanted` where its use says so."""
    if wanted is not None and wanted.bound is not None and isinstance(e, ast.Number) and isinstance(e.value, int):
        return _index(context, e, constant(e.value), wanted.bound, name)
    dtype = wanted.dtype if wanted is not None else None
    sizes = _sizes(context, e)
    items = list(_scalars(e))
    chosen = dtype or _default(items)
    values = tuple(_number(context, item, chosen) for item in items)
    operation = Constant(chosen, sizes, values)
    return context.apply(operation, (), Tensor(chosen, tuple(map(constant, sizes))), e.span, name)


def _index(context: Context, e: ast.Expr, number: Dim, bound: Dim, name: str | None) -> Value:
    """A number where an index is wanted: it has to lie below the bound for all sizes."""
    oblige(context, Comparison("<", number, bound), e.span, f"it is an index into an axis of {bound}")
    return context.apply(Position(number, bound), (), Tensor(DType.I64, (), bound), e.span, name)


def _sizes(context: Context, e: ast.Expr) -> tuple[int, ...]:
    """The shape of a literal. Its rows have to be equally long."""
    if not isinstance(e, ast.ListLiteral):
        return ()
    rows = {_sizes(context, item) for item in e.items}
    if len(rows) > 1:
        raise context.report(form_errors.ragged_literal(e.span))
    return (len(e.items), *(rows.pop() if rows else ()))


def _scalars(e: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(e, ast.ListLiteral):
        for item in e.items:
            yield from _scalars(item)
    else:
        yield e


def _default(items: list[ast.Expr]) -> DType:
    values = [v for v in map(_value, items) if v is not None]
    if values and all(isinstance(v, bool) for v in values):
        return DType.BOOL
    return DType.F32 if not values or any(isinstance(v, float) for v in values) else DType.I64


def _value(e: ast.Expr) -> Number | None:
    match e:
        case ast.Number(value=value) | ast.Boolean(value=value):
            return value
        case ast.Unary(operator="-", operand=ast.Number(value=value)):
            return -value
    return None


def _number(context: Context, e: ast.Expr, dtype: DType) -> Number:
    """The literal as a number of that dtype, if it is one: nothing is cut off in silence."""
    value = _value(e)
    if value is None:
        raise context.report(form_errors.unsupported(e.span, "tensor literals of computed values"))
    text = e.span.text
    if isinstance(value, bool) != (dtype is DType.BOOL):
        wanted = "true or false" if dtype is DType.BOOL else "a number"
        written = {True: "1.0" if dtype.is_float else "1", False: "0.0" if dtype.is_float else "0"}
        other = written[value] if isinstance(value, bool) else {0.0: "false", 1.0: "true"}.get(float(value))
        help_ = (guess(f"write {other}", Edit(e.span, other)),) if other else ()
        why = f"{wanted} is wanted here"
        raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, why, help_))
    if dtype.is_float:
        try:
            wide = float(value)
        except OverflowError:
            wide = float("inf")
        if abs(wide) >= dtype.too_large:
            raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, f"it is too large for {dtype}"))
        return wide
    if dtype.is_integer:
        if not isinstance(value, int):
            raise context.report(
                form_errors.literal_does_not_fit(e.span, text, dtype, f"the operation needs {dtype} here")
            )
        least, greatest = dtype.integer_range
        if not least <= value <= greatest:
            bounds = f"{dtype} holds {least} to {greatest}"
            raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, bounds))
    return value
