"""`split[axis=1] x [m, n]`: sugar for a slice for each size."""

from __future__ import annotations

from kina.diagnostics import form_errors
from kina.dims.dim import constant
from kina.dims.proposition import equal
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dispatch import builtin, infer
from kina.elaborate.obligations import oblige
from kina.elaborate.operations import form, name_in, operate, read_call
from kina.ops.base import Kind, Parameter
from kina.syntax import ast
from kina.types import Type

_SPLIT = form("split", ("x",), (Parameter("axis", Kind.AXIS, True), Parameter("sizes", Kind.SHAPE, False)))


@builtin("split")
def _split(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """The parts of these sizes that an axis is made of, as a tuple. They have to add up to the whole."""
    target = name_in(e, "split")
    (x,), (span,), static = read_call(context, e, target, _SPLIT, brackets, arguments, infer, None)
    if context.home.strict:
        raise context.report(form_errors.sugar(e.span, "`split`", "slice[axis=...] x start stop for each part"))
    axis, sizes = static["axis"], static["sizes"]
    size = x.type.shape[axis]
    total = sum(sizes, constant(0))
    oblige(context, equal(total, size), arguments[-1].span, f"the parts of axis {axis} add up to its size, {size}")
    parts = []
    start = constant(0)
    for part in sizes:
        bounds = {"axis": axis, "start": start, "stop": start + part}
        parts.append(operate(context, "slice", bounds, "split", e.span, (x,), (span,), None))
        start = start + part
    return tuple(parts)
