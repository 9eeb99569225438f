"""Whether a value has the type that its place wants, up to what the prover knows of sizes."""

from __future__ import annotations

from collections.abc import Sequence

from kina.core.ir import Tree, tree_type
from kina.diagnostics import shape_errors
from kina.diagnostics.shapes import Row
from kina.dims.proposition import equal
from kina.elaborate.context import Context
from kina.elaborate.obligations import propose_requires, sizes_that_differ, worth_requiring
from kina.source import Span
from kina.types import Tensor, Tuple, Type


def conform(
    context: Context, tree: Tree, wanted: Type, span: Span, what: str, declared: Span | None, origin: Sequence[str] = ()
) -> None:
    """Obliges the type of a value to be `wanted`; an error shows both, axis by axis."""
    conform_types(context, tree_type(tree), wanted, span, what, declared, origin)


def conform_types(
    context: Context, got: Type, wanted: Type, span: Span, what: str, declared: Span | None, origin: Sequence[str] = ()
) -> None:
    match got, wanted:
        case Tensor(), Tensor():
            _tensors(context, got, wanted, span, what, declared, origin)
        case Tuple(items), Tuple(others) if len(items) == len(others):
            for number, (item, other) in enumerate(zip(items, others, strict=True)):
                conform_types(context, item, other, span, f"item {number} of {what}", declared, origin)
        case _:
            raise context.report(
                shape_errors.type_mismatch(span, what=what, wanted=wanted, got=got, declared=declared, origin=origin)
            )


def _tensors(
    context: Context, got: Tensor, wanted: Tensor, span: Span, what: str, declared: Span | None, origin: Sequence[str]
) -> None:
    if got.dtype is not wanted.dtype or got.rank != wanted.rank:
        rows = () if got.rank == wanted.rank else _rows(got, wanted, None)
        raise context.report(
            shape_errors.type_mismatch(
                span, what=what, wanted=wanted, got=got, rows=rows, declared=declared, origin=origin
            )
        )
    for axis, (left, right) in enumerate(zip(wanted.shape, got.shape, strict=True)):
        goal = equal(right, left)
        verdict = context.settle(goal, span, f"axis {axis} of {what}")
        if not verdict.status.proved:
            raise context.report(
                shape_errors.type_mismatch(
                    span,
                    what=what,
                    wanted=wanted,
                    got=got,
                    rows=_rows(got, wanted, axis),
                    declared=declared,
                    clash=(left, right),
                    counterexample=sizes_that_differ(verdict, left, right),
                    origin=origin,
                    facts=context.facts.hypotheses,
                    help=propose_requires(context, goal) if worth_requiring(goal) else (),
                )
            )


def _rows(got: Tensor, wanted: Tensor, axis: int | None) -> tuple[Row, ...]:
    marks = frozenset() if axis is None else frozenset({axis})
    return (Row("wanted", wanted.shape, marks), Row("got", got.shape, marks))
