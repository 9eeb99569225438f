"""Literals take the type that their use needs; with no use to tell, `I64` or `F32`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Edit
from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison
from kina.elaborate.context import Context
from kina.elaborate.guesses import guess
from kina.elaborate.obligations import oblige
from kina.ops.creation import Constant, Position
from kina.syntax import ast
from kina.types import DType, Tensor, Type

Number = float | int | bool


_NAMED: Mapping[str, float] = {"inf": math.inf, "nan": math.nan}
"""Numbers that have no digits. A program may give their names another meaning."""


def is_number_name(context: Context, e: ast.Expr) -> bool:
    """Whether an expression is `inf` or `nan`, and nothing in scope is called so."""
    if not isinstance(e, ast.Name) or e.text not in _NAMED:
        return False
    return e.text not in context.values and e.text not in context.dims and context.home.find(e) is None


def is_literal(context: Context, e: ast.Expr) -> bool:
    """Whether an expression is a number, maybe negated, a truth value, or a tensor literal of such."""
    match e:
        case ast.Number() | ast.Boolean():
            return True
        case ast.Name():
            return is_number_name(context, e)
        case ast.Unary(operator="-", operand=ast.Number() | ast.Name() as operand):
            return is_literal(context, operand)
        case ast.ListLiteral(items=items):
            return all(is_literal(context, item) for item in items)
    return False


def adapts(context: Context, e: ast.Expr) -> bool:
    """Whether an expression takes the dtype that its use needs: literals, and calculations with nothing but such."""
    match e:
        case ast.Number() | ast.Boolean():
            return True
        case ast.Name():
            return is_number_name(context, e)
        case ast.Unary(operator="-", operand=operand):
            return adapts(context, operand)
        case ast.Binary(operator="+" | "-" | "*" | "/" | "^" | "div" | "mod", left=left, right=right):
            return adapts(context, left) and adapts(context, right)
        case ast.ListLiteral(items=items) | ast.Apply(function=ast.Name(), arguments=items):
            return all(adapts(context, item) for item in items)
    return False


def dtype_of(type_: Type | None) -> Type | None:
    """A type as a hint for operands: they are of its dtype. Its shape and bound say nothing of them."""
    return Tensor(type_.dtype, _OPEN) if isinstance(type_, Tensor) else type_


_OPEN = (variable("?"),)
"""The shape of a hint that says nothing of shapes: no program can mean it, and it is not settled (see `is_settled`)."""


def literal(context: Context, e: ast.Expr, wanted: Tensor | None, name: str | None) -> Value:
    """The constant that a literal is, of the dtype of `wanted` where its use says so."""
    if wanted is not None and wanted.bound is not None and isinstance(e, ast.Number) and isinstance(e.value, int):
        if context.home.strict:
            instead = f"position {e.value} {wanted.bound.factor_text()}"
            raise context.report(form_errors.sugar(e.span, "a number as an index", instead))
        return _index(context, e, constant(e.value), wanted.bound, name)
    dtype = wanted.dtype if wanted is not None else None
    sizes = _sizes(context, e)
    items = list(_scalars(e))
    chosen = dtype or _default(items)
    values = tuple(_number(context, item, chosen) for item in items)
    type_ = Tensor(chosen, tuple(map(constant, sizes)))
    if context.home.strict and e is not context.stated:
        typed = f"let t : {type_} = {e.span.text} in, and t here"
        raise context.report(form_errors.sugar(e.span, "a literal whose type its use says", typed))
    return context.apply(Constant(chosen, sizes, values), (), type_, e.span, name)


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
        case ast.Name(text=name):
            return _NAMED.get(name)
        case ast.Unary(operator="-", operand=operand):
            positive = _value(operand)
            return None if positive is None else -positive
    return None


def _number(context: Context, e: ast.Expr, dtype: DType) -> Number:
    """The literal as a number of that dtype, if it is one: nothing is cut off in silence."""
    value = _value(e)
    assert value is not None, "a literal is made of numbers"
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
        if abs(wide) >= dtype.too_large and not _is_named(e):
            raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, f"it is too large for {dtype}"))
        return wide
    if dtype.is_integer:
        if not isinstance(value, int):
            whole = math.isfinite(value) and value == int(value)
            help_ = (guess(f"as a whole number it is {int(value)}", Edit(e.span, str(int(value)))),) if whole else ()
            why = f"the operation needs {dtype} here"
            raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, why, help_))
        least, greatest = dtype.integer_range
        if not least <= value <= greatest:
            bounds = f"{dtype} holds {least} to {greatest}"
            raise context.report(form_errors.literal_does_not_fit(e.span, text, dtype, bounds))
    return value


def _is_named(e: ast.Expr) -> bool:
    return isinstance(e.operand if isinstance(e, ast.Unary) else e, ast.Name)
