"""The elaborator's side of `ops.base.Rule`: demands of type rules become obligations and worded errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from kina.diagnostics import type_errors as errors
from kina.diagnostics.shapes import Row
from kina.dims.proposition import Proposition, equal
from kina.dims.prover import Status
from kina.elaborate.context import Context
from kina.elaborate.obligations import oblige, propose_requires
from kina.elaborate.suggestions import suggest_for_sizes
from kina.elaborate.regrouping import regroup_or_report
from kina.ops.base import DTypeClass, Entry
from kina.source import Span
from kina.types import Shape, Tensor


@dataclass(slots=True)
class CallRule:
    """One call of an operation: where it stands, where its operands stand, what they are."""

    context: Context
    entry: Entry
    span: Span
    operands: tuple[Tensor, ...]
    spans: tuple[Span, ...]
    shown: str
    """The operation as the reader wrote it: `matmul`, or `+`."""

    def same_size(self, first: tuple[int, int], second: tuple[int, int], symbol: str) -> None:
        (i, a), (j, b) = first, second
        left, right = self.operands[i].shape[a], self.operands[j].shape[b]
        goal = equal(left, right)
        verdict = self.context.settle(goal, self.span, f"{self.shown} needs one {symbol}")
        if verdict.status.proved:
            return
        shapes = [x.shape for x in self.operands]
        rows = tuple(
            Row(self.spans[n].text if n < len(self.spans) else self.operand_name(n), shape, marks={axis % len(shape)})
            for n, shape, axis in ((i, shapes[i], a), (j, shapes[j], b))
        )
        raise self.context.report(
            errors.sizes_differ(
                self.span,
                shown=self.shown,
                symbol=symbol,
                rows=rows,
                places=tuple((self.spans[n], self.operands[n]) for n in (i, j) if n < len(self.spans)),
                clash=(left, right),
                verdict=verdict,
                facts=self.context.facts.hypotheses,
                help=(
                    *suggest_for_sizes(self.context, self.entry.name, self.operands, self.spans, (i, a), (j, b)),
                    *(propose_requires(self.context, goal) if verdict.status is Status.UNDECIDED or _may_hold(goal) else ()),
                ),
            )
        )

    def same_dtype(self, first: int, second: int) -> None:
        x, y = self.operands[first], self.operands[second]
        if x.dtype is not y.dtype:
            raise self.context.report(
                errors.dtypes_differ(self.span, self.shown, x, y, self._span(first), self._span(second))
            )

    def dtype(self, operand: int, wanted: DTypeClass) -> None:
        x = self.operands[operand]
        if not wanted.holds(x.dtype):
            raise self.context.report(errors.wrong_dtype(self._span(operand), self.shown, wanted.value, x.dtype))

    def rank(self, operand: int, at_least: int) -> None:
        x = self.operands[operand]
        if x.rank < at_least:
            raise self.context.report(
                errors.rank_too_small(self._span(operand), self.shown, self.operand_name(operand), at_least, x)
            )

    def require(self, goal: Proposition, why: str) -> None:
        oblige(self.context, goal, self.span, f"{self.shown}: {why}")

    def regroups(self, source: Shape, target: Shape) -> None:
        regroup_or_report(self.context, self.span, self._span(0), source, target)

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        span = self.span if operand is None else self._span(operand)
        raise self.context.report(errors.refused(span, message, help))

    # ------------------------------------------------------------ words

    def operand_name(self, number: int) -> str:
        names = self.entry.operand_names
        return names[min(number, len(names) - 1)] if names else f"operand {number + 1}"

    def _span(self, operand: int) -> Span:
        return self.spans[operand] if operand < len(self.spans) else self.span


def _may_hold(goal: Proposition) -> bool:
    """Whether demanding the goal of callers makes sense: some sizes satisfy it."""
    from kina.dims.proposition import Comparison

    return isinstance(goal, Comparison) and bool(goal.left.variables | goal.right.variables)
