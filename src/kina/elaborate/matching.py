"""Whether a value has the type that its place wants, up to what the prover knows of sizes."""

from __future__ import annotations

from collections.abc import Sequence

from kina.core.ir import Tree, tree_type
from kina.diagnostics import shape_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.diagnostics.shapes import Row
from kina.dims.dim import Dim
from kina.dims.proposition import Proposition, at_most, equal
from kina.elaborate.context import Context
from kina.elaborate.guesses import conversions, guess
from kina.elaborate.obligations import propose_requires, sizes_that_differ, where_declared, worth_requiring
from kina.source import Span
from kina.types import List, Record, Tensor, Tuple, Type


def conform(
    context: Context, tree: Tree, wanted: Type, span: Span, what: str, declared: Span | None,
    origin: Sequence[str] = (), help: tuple[Help, ...] = (),
) -> None:  # fmt: skip
    """Obliges the type of a value to be `wanted`; an error shows both, axis by axis."""
    conform_types(context, tree_type(tree), wanted, span, what, declared, origin, help)


def conform_types(
    context: Context, got: Type, wanted: Type, span: Span, what: str, declared: Span | None,
    origin: Sequence[str] = (), help: tuple[Help, ...] = (),
) -> None:  # fmt: skip
    """`help` is what may mend a tensor of the wrong type besides what its type suggests."""
    match got, wanted:
        case Tensor(), Tensor():
            _tensors(context, got, wanted, span, what, declared, origin, help)
        case Tuple(items), Tuple(others) if len(items) == len(others):
            for number, (item, other) in enumerate(zip(items, others, strict=True)):
                conform_types(context, item, other, span, f"item {number} of {what}", declared, origin)
        case Record(name, _, fields), Record(other, _, other_fields) if name == other and len(fields) == len(
            other_fields
        ):
            for (label, item), (_, wanted_item) in zip(fields, other_fields, strict=True):
                conform_types(context, item, wanted_item, span, f"the field `{label}` of {what}", declared, origin)
        case List(size, item), List(wanted_size, other_item):
            _sizes(context, got, wanted, (wanted_size, size), span, what, declared, origin)
            conform_types(context, item, other_item, span, f"each item of {what}", declared, origin)
        case _:
            raise context.report(
                shape_errors.type_mismatch(span, what=what, wanted=wanted, got=got, declared=declared, origin=origin)
            )


def _sizes(
    context: Context, got: Type, wanted: Type, sizes: tuple[Dim, Dim], span: Span, what: str, declared: Span | None,
    origin: Sequence[str],
) -> None:  # fmt: skip
    """Two lists have one length."""
    left, right = sizes
    goal = equal(right, left)
    verdict = context.settle(goal, span, f"the length of {what}")
    if verdict.status.proved:
        return
    raise context.report(
        shape_errors.type_mismatch(
            span,
            what=what,
            wanted=wanted,
            got=got,
            declared=declared,
            clash=(left, right),
            counterexample=sizes_that_differ(verdict, left, right),
            origin=origin,
            facts=context.facts.hypotheses,
        )
    )


def _bounds(
    context: Context, got: Tensor, wanted: Tensor, span: Span, what: str, declared: Span | None, origin: Sequence[str]
) -> None:
    """`Idx[V]` may stand where `I64`, or `Idx[W]` with V <= W, is wanted."""
    if wanted.bound is None or got.bound is wanted.bound:
        return
    if got.bound is None:
        raise context.report(
            shape_errors.type_mismatch(
                span,
                what=what,
                wanted=wanted,
                got=got,
                declared=declared,
                origin=origin,
                help=_as_index(context, span, wanted, wanted.bound),
            )
        )
    goal = at_most(got.bound, wanted.bound)
    verdict = context.settle(goal, span, f"the indices of {what} lie in range")
    if not verdict.status.proved:
        raise context.report(
            shape_errors.type_mismatch(
                span,
                what=what,
                wanted=wanted,
                got=got,
                declared=declared,
                clash=(wanted.bound, got.bound),
                counterexample=verdict.counterexample,
                origin=origin,
                facts=context.facts.hypotheses,
                help=propose_requires(context, goal),
            )
        )


def _as_index(context: Context, span: Span, wanted: Tensor, bound: Dim) -> tuple[Help, ...]:
    """A plain number as an index: checked where it comes in, if it is a parameter."""
    declared = [
        guess(f"declare `{p.name}` so; then callers see that it lies in range", Edit(p.type.span, str(wanted)))
        for p in context.declaration.parameters
        if p.name == span.text and p.type is not None
    ]
    return (*declared, Help(f"`{wanted}` is a type of numbers known to lie in [0, {bound}); the host's are checked"))


def _tensors(
    context: Context, got: Tensor, wanted: Tensor, span: Span, what: str, declared: Span | None,
    origin: Sequence[str], help: tuple[Help, ...],
) -> None:  # fmt: skip
    if got.dtype is not wanted.dtype or got.rank != wanted.rank:
        rows = () if got.rank == wanted.rank else _rows(got, wanted, None)
        raise context.report(
            shape_errors.type_mismatch(
                span,
                what=what,
                wanted=wanted,
                got=got,
                rows=rows,
                declared=declared,
                origin=origin,
                help=(*help, *conversions(span, got, wanted)),
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
                    help=(*help, *conversions(span, got, wanted), *_requires(context, goal)),
                    binders=where_declared(context, left, right),
                )
            )
    _bounds(context, got, wanted, span, what, declared, origin)


def _requires(context: Context, goal: Proposition) -> tuple[Help, ...]:
    return propose_requires(context, goal) if worth_requiring(goal) else ()


def _rows(got: Tensor, wanted: Tensor, axis: int | None) -> tuple[Row, ...]:
    marks = frozenset() if axis is None else frozenset({axis})
    return (Row("wanted", wanted.shape, marks), Row("got", got.shape, marks))
