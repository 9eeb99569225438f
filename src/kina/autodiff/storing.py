"""What the linear half of a block needs from its first half: made again where that is free, else stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kina.autodiff.builder import Builder
from kina.autodiff.dependence import dimensions_made, free_values
from kina.autodiff.errors import Unsupported
from kina.core.ir import Apply, Statement, Value, made_by, statements_within
from kina.dims.atoms import Variable
from kina.dims.dim import Dim, constant, maximum, variable
from kina.ops.arranging import Pad
from kina.ops.creation import Full
from kina.ops.indexing import ToIdx
from kina.ops.shape import Broadcast
from kina.ops.terms import Term
from kina.passes.sink import is_free
from kina.source import Span
from kina.types import Tensor, sizes

_ZERO = constant(0)


@dataclass(frozen=True, slots=True)
class Part:
    """A block in two halves. `stored` are the values of `first` that `linear` reads; `results` are linear."""

    first: tuple[Statement, ...]
    linear: tuple[Statement, ...]
    results: tuple[Value, ...]
    stored: tuple[Value, ...]


def part(
    first: Sequence[Statement], linear: Sequence[Statement], results: Sequence[Value], states: Iterable[Value],
    span: Span | None,
) -> Part:  # fmt: skip
    """The halves of a block, whose own are what `first` makes and the loop's `states`."""
    made = {v: s for s in first for v in made_by(s)}
    own = {*made, *states}
    again: dict[Value, Statement] = {}
    stored: dict[Value, None] = {}

    def free(value: Value) -> bool:
        """Whether it is a constant, or a view of what is there outside the block."""
        if value not in own:
            return True
        made_it = made.get(value)
        return isinstance(made_it, Apply) and is_free(made_it) and all(map(free, made_it.arguments))

    def bring(value: Value) -> None:
        if value not in own or value in again or value in stored:
            return
        made_it = made.get(value)
        if isinstance(made_it, Apply) and (isinstance(made_it.operation, Broadcast | Full) or free(value)):
            for argument in made_it.arguments:
                bring(argument)
            again[value] = made_it
        else:
            stored[value] = None

    for value in free_values(linear, results):
        bring(value)
    whole = (*again.values(), *linear)
    _in_scope(first, whole, span)
    return Part(tuple(first), whole, tuple(results), tuple(stored))


def _in_scope(first: Sequence[Statement], linear: Sequence[Statement], span: Span | None) -> None:
    """Refuses sizes that are made in a block and would be needed after it."""
    made = dimensions_made(first)
    types = (v.type for s in statements_within(tuple(linear)) for v in made_by(s))
    if made and any(not made.isdisjoint(d.variables) for type_ in types for d in sizes(type_)):
        raise Unsupported("the derivative in reverse of a loop or branch in which a size comes from a value", span)


# ---------------------------------------------------------------- one item of many


@dataclass(frozen=True, slots=True)
class Item:
    """A value of a loop's step, stored for each: sizes that depend on the step are padded to the largest."""

    value: Value
    index: str
    sizes: tuple[Dim, ...]

    @classmethod
    def of(cls, value: Value, index: str, bound: Dim, span: Span | None) -> Item:
        return cls(value, index, tuple(_largest(d, index, bound, span) for d in value.type.shape))

    @property
    def type(self) -> Tensor:
        """Of what is stored."""
        bound = self.value.type.bound
        kept = bound is not None and self.index not in bound.variables and self.sizes == self.value.type.shape
        return Tensor(self.value.type.dtype, self.sizes, bound if kept else None)

    def padded(self, builder: Builder) -> Value:
        term = builder.term(self.value)
        for axis, (size, whole) in enumerate(zip(self.value.type.shape, self.sizes, strict=True)):
            if size is not whole:
                term = Pad(axis, _ZERO, whole - size)(term)
        return term.value  # type: ignore[no-any-return]

    def read(self, stack: Term, step: Dim) -> Value:
        """The value of a step, from the stack of all."""
        now = {self.index: step}
        term = stack.slice(0, step, step + 1).squeeze(0)
        for axis, (size, whole) in enumerate(zip(self.value.type.shape, self.sizes, strict=True)):
            if size is not whole:
                term = term.slice(axis, _ZERO, size.substitute(now))
        bound = self.value.type.bound
        return bounded(term, None if bound is None else bound.substitute(now))


def bounded(term: Term, bound: Dim | None) -> Value:
    """Positions again, whose bound was lost where they were stored."""
    if bound is not None and term.type.bound is not bound:
        term = ToIdx(bound)(term)
    return term.value  # type: ignore[no-any-return]


def _largest(size: Dim, index: str, bound: Dim, span: Span | None) -> Dim:
    """The largest value of a size that depends on the step, if it only grows or only shrinks."""
    if index not in size.variables:
        return size
    growth = size.substitute({index: variable(index) + 1}) - size
    signs = {number > 0 for _, number in growth.terms}
    if len(signs) != 1 or not all(isinstance(atom, Variable) for atom in growth.atoms()):
        raise Unsupported(f"the derivative in reverse of a loop in which the size {size} goes up and down", span)
    most = size.substitute({index: bound if True in signs else _ZERO})
    sure = all(number > 0 for _, number in most.terms) and all(isinstance(a, Variable) for a in most.atoms())
    return most if sure else maximum(most, _ZERO)  # no step may be taken at all
