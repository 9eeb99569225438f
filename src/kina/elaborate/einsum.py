"""`einsum[b h s d, b h t d -> b h s t] q k`: sugar for `matmul` where something is summed, else for a product.

Arguments are combined from the left. A letter that neither the result nor a later argument needs is summed on the way.
Of the letters that only one of two arguments has, the last is an axis of the matrices and the others are batch axes,
along which the other argument stretches: nothing is copied for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kina.core.ir import Value
from kina.diagnostics import pattern_errors
from kina.dims.dim import Dim, constant
from kina.dims.proposition import equal
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dispatch import builtin, tensor
from kina.elaborate.literals import adapts, dtype_of
from kina.elaborate.obligations import propose_requires, sizes_that_differ, worth_requiring
from kina.elaborate.operations import operate
from kina.elaborate.patterns import Letter, Steps, as_function, named, once, read_axis, read_bracket, side_span
from kina.elaborate.rule import CallRule
from kina.ops import lookup
from kina.ops.base import DTypeClass
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Type

_ZERO, _ONE = constant(0), constant(1)


@builtin("einsum")
def _einsum(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """Products of elements, summed over the letters that the result does not have."""
    if not arguments:
        return as_function(context, "einsum", _einsum, brackets)
    pattern, items = read_bracket(context, e, "einsum", brackets, arguments)
    if items:
        raise context.report(pattern_errors.pattern_wanted(items[0].span, "einsum", "it takes a pattern and no more"))
    values = _operands(context, e, arguments, expected)
    work = _Einsum(Steps(context, "einsum", e.span), pattern, tuple(a.span for a in arguments))
    return named(context, work.run(values), name)


def _operands(
    context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...], expected: Type | None
) -> tuple[Value, ...]:
    """Numbers of one dtype: a literal takes that of the others."""
    known = dtype_of(expected)
    values: dict[int, Value] = {}
    for n in sorted(range(len(arguments)), key=lambda n: adapts(context, arguments[n])):
        values[n] = tensor(context, arguments[n], known)
        known = dtype_of(values[n].type)
    ordered = tuple(values[n] for n in range(len(arguments)))
    entry = lookup("matmul")
    assert entry is not None
    types = tuple(v.type for v in ordered)
    rule = CallRule(context, entry, "einsum", e.span, types, tuple(a.span for a in arguments))
    for n in range(len(ordered)):
        rule.dtype(n, DTypeClass.NUM)
        rule.same_dtype(0, n)
    return ordered


@dataclass(frozen=True, slots=True)
class _Term:
    """A tensor whose axes have names."""

    value: Value
    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a letter got its size: its place in the pattern, the axis, the argument."""

    letter: Span
    axis: int
    argument: Span
    size: Dim


@dataclass(frozen=True, slots=True)
class _Einsum:
    steps: Steps
    pattern: ast.AxisPattern
    spans: tuple[Span, ...]

    def run(self, values: tuple[Value, ...]) -> Value:
        inputs = [self._letters(axes) for axes in self.pattern.inputs]
        output = self._letters(self.pattern.output)
        wanted = once(self.steps.context, "einsum", output, "in the result")
        self._known_in_result(inputs, wanted)
        hidden = [self._hidden(n, letters, values[n]) for n, letters in enumerate(inputs)]
        shown = [_shown(letters, count) for letters, count in zip(inputs, hidden, strict=True)]
        result = tuple(letter.name for letter in _shown(output, max(hidden)))
        sizes = self._sizes(shown, values)
        terms = []
        for letters, value, span in zip(shown, values, self.spans, strict=True):
            term = self._without_ones(_Term(value, tuple(x.name for x in letters), span), sizes)
            terms.append(self._diagonals(term))
        return self._combined(terms, result)

    # ------------------------------------------------------------ the pattern

    def _letters(self, axes: Sequence[ast.PatternAxis]) -> list[Letter]:
        context = self.steps.context
        letters: list[Letter] = []
        for axis in axes:
            if axis.group:
                raise context.report(pattern_errors.group_in_einsum(axis.span))
            letters += read_axis(context, "einsum", axis).letters
        once(context, "einsum", (x for x in letters if x.name == "..."), "in one list of axes")
        return letters

    def _known_in_result(self, inputs: list[list[Letter]], wanted: dict[str, Letter]) -> None:
        context = self.steps.context
        known = {letter.name: letter for letters in inputs for letter in letters}
        for name, letter in wanted.items():
            if name not in known:
                raise context.report(pattern_errors.only_in_result(letter.span, "einsum", name, known))
        if "..." in known and "..." not in wanted:
            raise context.report(pattern_errors.not_in_result(known["..."].span, "einsum", "..."))

    def _hidden(self, n: int, letters: list[Letter], value: Value) -> int:
        """How many axes of an argument `...` stands for."""
        dots = any(letter.name == "..." for letter in letters)
        count, rank = len(letters) - dots, value.type.rank
        if count > rank or (count < rank and not dots):
            at = side_span(self.pattern, self.pattern.inputs[n])
            shape = value.type.shape
            raise self.steps.context.report(
                pattern_errors.wrong_number_of_axes(at, "einsum", count, dots, self.spans[n], shape)
            )
        return rank - count

    def _sizes(self, inputs: list[list[Letter]], values: tuple[Value, ...]) -> dict[str, Dim]:
        """One size for each letter. Of axes that are not named, one of size 1 stretches."""
        found: dict[str, _Place] = {}
        for letters, value, span in zip(inputs, values, self.spans, strict=True):
            for axis, (letter, size) in enumerate(zip(letters, value.type.shape, strict=True)):
                place = _Place(letter.span, axis, span, size)
                first = found.setdefault(letter.name, place)
                if letter.name.startswith("...") and _ONE in (first.size, size):
                    found[letter.name] = place if first.size is _ONE else first
                else:
                    self._one_size(letter.name, first, place)
        return {name: place.size for name, place in found.items()}

    def _one_size(self, name: str, first: _Place, place: _Place) -> None:
        context = self.steps.context
        claim = equal(first.size, place.size)
        verdict = context.settle(claim, place.letter, f"einsum needs one size for {name}")
        if verdict.status.proved:
            return
        raise context.report(
            pattern_errors.sizes_differ(
                place.letter, "einsum", name,
                places=[(p.letter, p.axis, p.argument, p.size) for p in (first, place)],
                counterexample=sizes_that_differ(verdict, first.size, place.size),
                help=propose_requires(context, claim) if worth_requiring(claim) else (),
            )
        )  # fmt: skip

    # ------------------------------------------------------------ one argument

    def _without_ones(self, term: _Term, sizes: dict[str, Dim]) -> _Term:
        """Without the axes of size 1 that stretch to another argument's."""
        value, names = term.value, term.names
        for axis in reversed(range(len(names))):
            if value.type.shape[axis] is _ONE and sizes[names[axis]] is not _ONE:
                value = self.steps.squeeze(value, term.span, axis)
                names = (*names[:axis], *names[axis + 1 :])
        return _Term(value, names, term.span)

    def _diagonals(self, term: _Term) -> _Term:
        """Each letter once: of two axes of one letter, the elements where both positions are the same.

        In the `n * n` elements of a square, those are `n + 1` apart: the first column of `n` rows of `n + 1`.
        """
        steps, at = self.steps, term.span
        value, names = term.value, term.names
        while len(set(names)) < len(names):
            name = next(n for n in names if names.count(n) > 1)
            first, second = [axis for axis, n in enumerate(names) if n == name][:2]
            others = [axis for axis in range(len(names)) if axis not in (first, second)]
            names = (*(names[axis] for axis in others), name)
            value = steps.transpose(value, at, [*others, first, second])
            axis, size = len(others), value.type.shape[-1]
            value = steps.apply("flatten_pair", value, at, axis=axis)
            value = steps.apply("pad", value, at, axis=axis, lo=_ZERO, hi=size)
            value = steps.apply("unflatten", value, at, axis=axis, sizes=(size, size + 1))
            value = steps.apply("slice", value, at, axis=axis + 1, start=_ZERO, stop=_ONE)
            value = steps.squeeze(value, at, axis + 1)
        return _Term(value, names, at)

    def _summed(self, term: _Term, needed: set[str]) -> _Term:
        """Summed over the letters that nothing else needs."""
        axes = tuple(axis for axis, name in enumerate(term.names) if name not in needed)
        if not axes:
            return term
        value = self.steps.apply("reduce", term.value, term.span, kind="sum", axes=axes)
        return _Term(value, tuple(n for n in term.names if n in needed), term.span)

    def _ordered(self, term: _Term, names: Sequence[str]) -> Value:
        """The tensor with its axes in the order of `names`."""
        return self.steps.transpose(term.value, term.span, [term.names.index(n) for n in names])

    # ------------------------------------------------------------ several arguments

    def _combined(self, terms: list[_Term], result: tuple[str, ...]) -> Value:
        total, *rest = terms
        total = self._summed(total, {*result}.union(*(t.names for t in rest)))
        for n, term in enumerate(rest):
            needed = {*result}.union(*(t.names for t in rest[n + 1 :]))
            term = self._summed(term, needed | {*total.names})
            order = [*result, *(name for t in rest[n + 1 :] for name in t.names)]
            total = self._pair(total, term, needed, order)
        return self._ordered(total, result)

    def _pair(self, x: _Term, y: _Term, needed: set[str], order: list[str]) -> _Term:
        """The product of two, summed over the letters that are not needed; `order` is that of the result's letters."""
        summed = [n for n in x.names if n in y.names and n not in needed]
        kept = sorted({n for n in (*x.names, *y.names) if n in needed}, key=order.index)
        alone = [n for n in kept if n not in x.names or n not in y.names]
        if not summed:
            return self._product(x, y, kept)
        if not alone and x.value.type.dtype not in (DType.F16, DType.BF16):
            # As a matrix product these would be products of a row and a column. Halves are, for a sum in F32.
            return self._summed(self._product(x, y, [*kept, *summed]), needed)
        if alone and alone[-1] in x.names and not {*alone} <= {*x.names}:
            x, y = y, x  # the last letter is that of the columns, and nothing has to be exchanged afterwards
        return self._contraction(x, y, kept, summed)

    def _product(self, x: _Term, y: _Term, names: list[str]) -> _Term:
        sizes = _sizes_of(x, y)
        shape = tuple(sizes[n] for n in names)
        left, right = (self._stretched(t, names, shape) for t in (x, y))
        steps = self.steps
        value = operate(steps.context, "mul", {}, "einsum", steps.span, (left, right), (x.span, y.span), None)
        return _Term(value, tuple(names), steps.span)

    def _contraction(self, x: _Term, y: _Term, kept: list[str], summed: list[str]) -> _Term:
        rows = [n for n in kept if n not in y.names][-1:]
        columns = [n for n in kept if n not in x.names][-1:]
        batch = [n for n in kept if n not in (*rows, *columns)]
        left = self._matrices(x, y, batch, rows, summed)
        right = self._matrices(y, x, batch, summed, columns)
        steps = self.steps
        value = operate(steps.context, "matmul", {}, "einsum", steps.span, (left, right), (x.span, y.span), None)
        for axis, letters in ((len(batch) + 1, columns), (len(batch), rows)):
            if not letters:
                value = steps.squeeze(value, steps.span, axis)
        return _Term(value, (*batch, *rows, *columns), steps.span)

    def _matrices(self, x: _Term, other: _Term, batch: list[str], rows: list[str], columns: list[str]) -> Value:
        """The axes `[batch..., rows, columns]`, where rows and columns are several letters merged, or none."""
        steps, sizes = self.steps, _sizes_of(x, other)
        value = self._ordered(x, [n for n in (*batch, *rows, *columns) if n in x.names])
        own = sum(n in x.names for n in batch)
        value = steps.merge(value, x.span, own + len(rows), len(columns))
        value = steps.merge(value, x.span, own, len(rows))
        names = [*batch, "", ""]
        return self._spread(value, x, names, (*(sizes[n] for n in batch), *value.type.shape[-2:]), matrix=2)

    def _stretched(self, x: _Term, names: list[str], shape: tuple[Dim, ...]) -> Value:
        """The axes `names`, all of the sizes in `shape`."""
        return self._spread(self._ordered(x, [n for n in names if n in x.names]), x, names, shape)

    def _spread(self, value: Value, x: _Term, names: list[str], shape: tuple[Dim, ...], matrix: int = 0) -> Value:
        """Stretched along the letters that a tensor lacks; its axes are in order, the last `matrix` ones stay."""
        present = [n in x.names for n in names[: len(names) - matrix]] + [True] * matrix
        if all(present):
            return value
        leading = present.index(True) if True in present else len(present)
        for axis, own in enumerate(present[leading:]):
            if not own:
                value = self.steps.expand(value, x.span, axis)
        return self.steps.apply("broadcast", value, x.span, shape=shape)


def _sizes_of(*terms: _Term) -> dict[str, Dim]:
    return {name: size for term in terms for name, size in zip(term.names, term.value.type.shape, strict=True)}


def _shown(letters: list[Letter], hidden: int) -> list[Letter]:
    """The letters with one for each axis that `...` stands for, numbered from the right."""
    made: list[Letter] = []
    for letter in letters:
        dots = letter.name == "..."
        made += [Letter(f"...{n}", letter.span) for n in reversed(range(hidden))] if dots else [letter]
    return made
