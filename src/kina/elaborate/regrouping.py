"""`reshape` in the elaborator: the regrouping proved, or an error that says what it would do."""

from __future__ import annotations

from kina.diagnostics import shape_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.diagnostics.shapes import Row
from kina.dims.dim import product
from kina.dims.proposition import equal
from kina.dims.prover import Status, Verdict
from kina.dims.regroup import AxesMix, Unsettled, VolumesDiffer
from kina.dims.regroup import regroup as regroup_shapes
from kina.elaborate.context import Context
from kina.elaborate.obligations import propose_requires
from kina.elaborate.suggestions import parenthesised
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
            raise context.report(
                shape_errors.reshape_mixes_axes(span, operand, rows, _reason(source, axes), _transpose(operand, order))
            )
        case VolumesDiffer(left, right, sizes):
            rows = (Row("from", source, marks), Row("to", target, marks))
            help_ = propose_requires(context, volume)
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


def _transpose(operand: Span, order: tuple[int, ...] | None) -> tuple[Help, ...]:
    advice = Help("if the row-major order is meant, say `reinterpret`")
    if order is None:
        return (advice,)
    edit = Edit(operand, f"(transpose {parenthesised(operand)} {list(order)})")
    return (Help("a transpose was probably forgotten", (edit,)), advice)
