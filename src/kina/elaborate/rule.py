"""The elaborator's side of `ops.base.Rule`: demands of type rules become obligations and worded errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from kina.diagnostics import form_errors, shape_errors
from kina.diagnostics.diagnostic import Edit
from kina.diagnostics.shapes import Row
from kina.dims.dim import Dim
from kina.dims.proposition import Proposition, at_most, equal
from kina.elaborate.context import Context
from kina.elaborate.guesses import guess, parenthesised
from kina.elaborate.obligations import oblige, propose_requires, sizes_that_differ, where_declared, worth_requiring
from kina.elaborate.regrouping import regroup
from kina.elaborate.suggestions import cast_help, convert, suggest
from kina.ops.base import DTypeClass, Entry
from kina.source import Span
from kina.types import DType, Shape, Tensor


@dataclass(slots=True)
class CallRule:
    """One call of an operation: where it stands, where its operands stand, what they are.

    `shown` is the operation as its author wrote it: `matmul`, or `+`. `unchecked` are the operands, by number, whose
    numbers have to be positions along axes of these sizes and are not known to be.
    """

    context: Context
    entry: Entry
    shown: str
    span: Span
    operands: tuple[Tensor, ...]
    spans: tuple[Span, ...]
    unchecked: dict[int, Dim] = field(default_factory=dict)

    def same_size(self, first: tuple[int, int], second: tuple[int, int], symbol: str) -> None:
        (i, a), (j, b) = first, second
        x, y = self.operands[i], self.operands[j]
        left, right = x.shape[a], y.shape[b]
        goal = equal(left, right)
        verdict = self.context.settle(goal, self.span, f"{self.shown} needs one {symbol}")
        if verdict.status.proved:
            return
        rows = tuple(
            Row(self.spans[n].text.split("\n")[0], t.shape, frozenset({axis % t.rank}))
            for n, t, axis in ((i, x, a), (j, y, b))
        )
        help_ = suggest(self.context, self.entry, self.span, self.spans, self.operands)
        raise self.context.report(
            shape_errors.sizes_differ(
                self.span,
                shown=self.shown,
                symbol=symbol,
                rows=rows,
                places=((self.spans[i], x), (self.spans[j], y)),
                clash=(left, right),
                counterexample=sizes_that_differ(verdict, left, right),
                facts=self.context.facts.hypotheses,
                help=help_ or (propose_requires(self.context, goal) if worth_requiring(goal) else ()),
                binders=where_declared(self.context, left, right),
            )
        )

    def same_dtype(self, first: int, second: int) -> None:
        x, y = self.operands[first].dtype, self.operands[second].dtype
        if x is not y:
            places = self.spans[first], self.spans[second]
            help_ = convert(places, (x, y))
            raise self.context.report(shape_errors.dtypes_differ(self.span, self.shown, x, y, *places, help_))

    def dtype(self, operand: int, wanted: DTypeClass) -> None:
        got = self.operands[operand].dtype
        if not wanted.holds(got):
            at = self.spans[operand]
            help_ = (cast_help(at, DType.F32),) if wanted is DTypeClass.FLOAT else ()
            if wanted is DTypeClass.BOOL:
                text = f"({parenthesised(at)} != {'0.0' if got.is_float else '0'})"
                help_ = (guess("true where it is not zero", Edit(at, text)),)
            raise self.context.report(shape_errors.wrong_dtype(at, self.shown, wanted.value, got, help_))

    def same_rank(self, first: int, second: int) -> None:
        x, y = self.operands[first], self.operands[second]
        if x.rank != y.rank:
            places = (self.spans[first], x), (self.spans[second], y)
            help_ = suggest(self.context, self.entry, self.span, self.spans, self.operands)
            raise self.context.report(shape_errors.ranks_differ(self.span, self.shown, *places, help_))

    def rank(self, operand: int, at_least: int) -> None:
        x = self.operands[operand]
        if x.rank < at_least:
            name = self.entry.operand_names[min(operand, len(self.entry.operand_names) - 1)]
            help_ = suggest(self.context, self.entry, self.span, self.spans, self.operands)
            at = self.spans[operand]
            raise self.context.report(shape_errors.rank_too_small(at, self.shown, name, at_least, x, help_))

    def index(self, operand: int, size: Dim) -> None:
        self.dtype(operand, DTypeClass.INT)
        bound = self.operands[operand].bound
        goal = None if bound is None else at_most(bound, size)
        if goal is None or not self.context.settle(goal, self.span, f"{self.shown} reads inside").status.proved:
            self.unchecked[operand] = size

    def require(self, goal: Proposition, why: str) -> None:
        help_ = suggest(self.context, self.entry, self.span, self.spans, self.operands)
        oblige(self.context, goal, self.span, why, help_)

    def regroups(self, source: Shape, target: Shape) -> None:
        regroup(self.context, self.span, self.spans[0], source, target)

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        span = self.span if operand is None else self.spans[operand]
        raise self.context.report(form_errors.refused(span, message, help))
