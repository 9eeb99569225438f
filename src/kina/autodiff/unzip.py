"""Splits a differentiated block in two: what does not depend on the tangents, and what is linear in them.

Loops and branches are split as well. What the linear half of one reads from the first half is stored: a branch gives it
as a result, a loop one item for each step. The linear half of a `while` is a `for`: how many steps there are is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kina.autodiff.builder import Builder
from kina.autodiff.dependence import reached
from kina.autodiff.errors import Unsupported
from kina.autodiff.storing import Item, Part, bounded, part
from kina.core.copying import Copy
from kina.core.ir import Block, For, If, Statement, Value, While, made_by
from kina.dims.dim import Dim, constant, variable
from kina.ops.shape import Concat, ExpandDims
from kina.source import Span
from kina.types import Tensor

_ZERO = constant(0)


@dataclass(frozen=True, slots=True)
class Halves:
    """`first` computes everything that `linear`, which is linear in the tangents, needs."""

    first: tuple[Statement, ...]
    linear: tuple[Statement, ...]


def unzip(statements: Sequence[Statement], tangents: Iterable[Value], builder: Builder) -> Halves:
    """The halves of statements as `forward` makes them; `tangents` are what the second is linear in."""
    return _Unzip(builder, reached(statements, tangents)).halves(statements)


@dataclass(slots=True)
class _Unzip:
    builder: Builder
    linear: set[Value]

    def halves(self, statements: Iterable[Statement]) -> Halves:
        first: list[Statement] = []
        rest: list[Statement] = []
        for statement in statements:
            if self.linear.isdisjoint(made_by(statement)):
                first.append(statement)
                continue
            if isinstance(statement, If | For | While):
                with self.builder.block() as emitted:
                    before, statement = self._branch(statement) if isinstance(statement, If) else self._loop(statement)
                first += (*emitted, before)
            rest.append(statement)
        return Halves(tuple(first), tuple(rest))

    def _part(self, block: Block, states: Sequence[Value], changing: Iterable[int], span: Span | None) -> Part:
        halves = self.halves(block.statements)
        return part(halves.first, halves.linear, [block.results[n] for n in changing], states, span)

    def _split(self, values: Sequence[Value]) -> tuple[list[int], list[int]]:
        """The numbers of those that are fixed, and of those that are linear."""
        numbers = range(len(values))
        return [n for n in numbers if values[n] not in self.linear], [n for n in numbers if values[n] in self.linear]

    def _linear_block(self, half: Part, read: Mapping[Value, Value], before: Iterable[Statement], copy: Copy) -> Block:
        """The linear half, with what is stored read from where it is."""
        copy.values.update(read)
        statements = (*before, *copy.statements(half.linear))
        return Block(statements, tuple(map(copy.known, half.results)))

    # ------------------------------------------------------------ branches

    def _branch(self, statement: If) -> tuple[If, If]:
        """Each block gives what its linear half needs; where the other one runs, zeros stand for it."""
        fixed, changing = self._split(statement.results)
        blocks = (statement.then, statement.otherwise)
        halves = [self._part(block, (), changing, statement.span) for block in blocks]
        kept = [[self._new(v.type.with_bound(None)) for v in half.stored] for half in halves]
        firsts, linears = [], []
        for n, (block, half) in enumerate(zip(blocks, halves, strict=True)):
            with self.builder.block() as zeros:
                items = [v if h is half else self.builder.zeros(v.type) for h in halves for v in h.stored]
            firsts.append(Block((*half.first, *zeros), (*_at(block.results, fixed), *items)))
            with self.builder.block() as reads:
                given = zip(half.stored, map(self.builder.term, kept[n]), strict=True)
                read = {v: bounded(k, v.type.bound) for v, k in given}
            linears.append(self._linear_block(half, read, reads, Copy(self.builder.names)))
        outer = (*_at(statement.results, fixed), *kept[0], *kept[1])
        first = replace(statement, results=outer, then=firsts[0], otherwise=firsts[1])
        results = _at(statement.results, changing)
        return first, replace(statement, results=results, then=linears[0], otherwise=linears[1])

    # ------------------------------------------------------------ loops

    def _loop(self, loop: For | While) -> tuple[For | While, For]:
        fixed, changing = self._split(loop.results)
        count = len(loop.states)
        states = [n for n in fixed if n < count]
        half = self._part(loop.body, _at(loop.states, states), changing, loop.span)
        bound = loop.bound if isinstance(loop, For) else variable(loop.steps)
        most = bound if loop.bound is None else loop.bound
        items = [Item.of(v, loop.index, most, loop.span) for v in half.stored]
        stacks = [self._new(i.type.with_shape((bound, *i.type.shape))) for i in items]
        fewer = replace(
            loop,
            results=_at(loop.results, fixed),
            states=_at(loop.states, states),
            initial=_at(loop.initial, states),
            body=Block(half.first, _at(loop.body.results, fixed)),
        )
        first = self._yielding(fewer, items, stacks) if isinstance(fewer, For) else self._growing(fewer, items, stacks)
        return first, self._linear_loop(loop, half, bound, items, stacks)

    def _yielding(self, loop: For, items: Sequence[Item], stacks: Sequence[Value]) -> For:
        """A loop that also gives each step's items."""
        with self.builder.block() as statements:
            padded = [item.padded(self.builder) for item in items]
        body = Block((*loop.body.statements, *statements), (*loop.body.results, *padded))
        return replace(loop, results=(*loop.results, *stacks), body=body)

    def _growing(self, loop: While, items: Sequence[Item], stacks: Sequence[Value]) -> While:
        """A loop that appends each step's items to states that grow."""
        if items and loop.bound is None:
            raise Unsupported("the derivative in reverse of a `while` without a bound", loop.span)
        step = variable(loop.index)
        states = [self._new(i.type.with_shape((step, *i.type.shape))) for i in items]
        initial = [self.builder.zeros(i.type.with_shape((_ZERO, *i.type.shape))) for i in items]
        with self.builder.block() as statements:
            longer = []
            for item, state in zip(items, states, strict=True):
                row = ExpandDims(0)(self.builder.term(item.padded(self.builder)))
                longer.append(Concat(0)(self.builder.term(state), row).value)
        return replace(
            loop,
            results=(*loop.results, *stacks),
            states=(*loop.states, *states),
            initial=(*loop.initial, *initial),
            body=Block((*loop.body.statements, *statements), (*loop.body.results, *longer)),
        )

    def _linear_loop(
        self, loop: For | While, half: Part, bound: Dim, items: Sequence[Item], stacks: Sequence[Value]
    ) -> For:
        changing = self._split(loop.results)[1]
        states = [n for n in changing if n < len(loop.states)]
        copy = Copy(self.builder.names)
        index = copy.dimension(loop.index)
        inner = tuple(copy.value(loop.states[n]) for n in states)
        with self.builder.block() as reads:
            read = {
                item.value: item.read(self.builder.term(stack), variable(index))
                for item, stack in zip(items, stacks, strict=True)
            }
        body = self._linear_block(half, read, reads, copy)
        return For(_at(loop.results, changing), index, bound, inner, _at(loop.initial, states), body, loop.span)

    def _new(self, type_: Tensor) -> Value:
        return self.builder.value("kept", type_)


def _at(values: Sequence[Value], numbers: Iterable[int]) -> tuple[Value, ...]:
    return tuple(values[n] for n in numbers)
