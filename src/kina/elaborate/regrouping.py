"""`reshape` in the elaborator: the regrouping proved, or an error that says what it would do."""

from __future__ import annotations

from itertools import combinations

from kina.diagnostics import shape_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.diagnostics.shapes import Row
from kina.dims.dim import Dim, product
from kina.dims.proposition import equal
from kina.dims.prover import Facts, Status, Verdict
from kina.dims.regroup import AxesMix, Unsettled, VolumesDiffer
from kina.dims.regroup import regroup as regroup_shapes
from kina.elaborate.context import Context
from kina.elaborate.guesses import parenthesised
from kina.elaborate.obligations import propose_requires, worth_requiring
from kina.source import Span
from kina.types import Shape, shape_text


def regroup(context: Context, span: Span, operand: Span, source: Shape, target: Shape) -> None:
    """Obliges `target` to merge and split neighbouring axes of `source`."""
    facts = context.facts
    volume = equal(product(source), product(target))
    outcome = regroup_shapes(source, target, facts)
    marks = frozenset[int]()
    match outcome:
        case tuple():
            verdict = context.settle(volume, span, "reshape keeps the number of elements")
            if not verdict.status.proved:
                context.record(volume, span, "reshape keeps the number of elements", Verdict(Status.FACTS))
        case AxesMix(axes, into, order):
            rows = (Row("from", source, frozenset(axes)), Row("to", target, frozenset(into)))
            help_ = _transpose_before(operand, order) or _transpose_after(span, source, target, facts)
            raise context.report(shape_errors.reshape_mixes_axes(span, operand, rows, _reason(source, axes), help_))
        case VolumesDiffer(left, right, sizes):
            rows = (Row("from", source, marks), Row("to", target, marks))
            claim = equal(*map(product, _without_common(source, target)))
            help_ = propose_requires(context, claim) if worth_requiring(claim) else ()
            raise context.report(
                shape_errors.reshape_changes_volume(span, rows, (left, right), sizes, facts.hypotheses, help_)
            )
        case Unsettled(missing):
            rows = (Row("from", source, marks), Row("to", target, marks))
            help_ = propose_requires(context, missing)
            raise context.report(shape_errors.reshape_undecided(span, rows, missing, facts.hypotheses, help_))


def _reason(source: Shape, axes: tuple[int, ...]) -> str:
    names = [str(source[axis]) for axis in axes]
    if len(names) < 2:
        return f"the axes of {shape_text(source)} do not merge and split into these"
    return f"it would mix the axes {', '.join(names[:-1])} and {names[-1]}"


def _without_common(source: Shape, target: Shape) -> tuple[list[Dim], list[Dim]]:
    """The sizes of both shapes that are not in both."""
    left, right = list(source), list(target)
    for size in source:
        if size in right:
            left.remove(size)
            right.remove(size)
    return left, right


_REINTERPRET = Help("if the row-major order is meant, say `reinterpret`")


def _transpose_before(operand: Span, order: tuple[int, ...] | None) -> tuple[Help, ...]:
    if order is None:
        return ()
    edit = Edit(operand, f"(transpose {parenthesised(operand)} {list(order)})")
    return (Help("a transpose was probably forgotten", (edit,)), _REINTERPRET)


def _transpose_after(span: Span, source: Shape, target: Shape, facts: Facts) -> tuple[Help, ...]:
    """`[S, H * D] -> [H, S, D]`: splitting into `[S, H, D]` fits, and then two axes are to be exchanged."""
    for i, j in combinations(range(len(target)), 2):
        order = list(range(len(target)))
        order[i], order[j] = j, i
        split = tuple(target[axis] for axis in order)
        head, _, written = span.text.rpartition("[")
        if written.count(",") == len(target) - 1 and isinstance(regroup_shapes(source, split, facts), tuple):
            edit = Edit(span, f"(transpose ({head}{shape_text(split)}) {order})")
            return (Help("split the axis first, then transpose", (edit,)), _REINTERPRET)
    return (_REINTERPRET,)
