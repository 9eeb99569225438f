"""`broadcast[axis=1] x [B, C, ...S]`: where the axes of x stand among those of the shape, said by the first of them."""

from __future__ import annotations

from kina.diagnostics import form_errors
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dispatch import builtin, infer
from kina.elaborate.literals import dtype_of
from kina.elaborate.operations import form, name_in, operate, read_call
from kina.ops.base import Kind, Parameter
from kina.syntax import ast
from kina.types import Type, shape_text

_BROADCAST = form("broadcast", ("x",), (Parameter("axis", Kind.DIM, True), Parameter("shape", Kind.SHAPE, False)))


@builtin("broadcast", bracketed=True)
def _broadcast(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """x with axes of size 1 behind its own, as many as the shape has there, then stretched.

    So `x * broadcast[axis=1] scale [B, C, ...S]` scales the channels of x whatever axes follow.
    """
    target, hint = name_in(e, "broadcast"), dtype_of(expected)
    (x,), spans, static = read_call(context, e, target, _BROADCAST, brackets, arguments, infer, hint)
    shape, rank, axis = static["shape"], x.type.rank, static["axis"].value
    if axis is not None and axis < 0:
        axis += len(shape)
    if axis is None or not 0 <= axis <= len(shape) - rank:
        why = f"`broadcast`: the {rank} axes of {x.type} do not stand in {shape_text(shape)} from axis {axis} on"
        raise context.report(form_errors.bad_attribute(brackets[0].span, why, "broadcast[axis=...] x [sizes]"))
    if context.home.strict:
        instead = "expand_dims for each axis that follows, then broadcast"
        raise context.report(form_errors.sugar(e.span, "`broadcast` from an axis", instead))
    for last in range(rank, len(shape) - axis):
        x = operate(context, "expand_dims", {"axis": last}, "broadcast", e.span, (x,), spans, None)
    return operate(context, "broadcast", {"shape": shape}, "broadcast", e.span, (x,), spans, name)
