"""The memory plan: where values between kernels lie, and where threads wait for each other.

All of them lie in one arena, in places whose sizes are polynomials: the most that a value takes in any step. A place
is used again once the last kernel that reads its value is through. Sizes are compared as polynomials: a place is given
to a value of the same size if there is one, else to any value, and is then as large as the largest.

What a measured dimension says the size of cannot lie there: its place is made when that dimension is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kina.core.ir import Check, Open, Require, Value
from kina.dims.dim import Dim, constant, floor_div, maximum, product
from kina.kernels.ir import (
    BandKernel,
    Choice,
    GemmKernel,
    Kernel,
    KernelProgram,
    LoopKernel,
    OrderKernel,
    PlacesKernel,
    Repeat,
    ScatterKernel,
    Step,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the arena, and the values that lie there one after the other; or memory that is taken when the
    dimension `known_with` is read."""

    size: Dim
    """In bytes."""
    values: tuple[Value, ...]
    known_with: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The arena, and the kernels (by number) before which all threads wait for each other."""

    places: tuple[Place, ...]
    waits: frozenset[int]

    @property
    def early(self) -> tuple[Place, ...]:
        """What the arena is made of."""
        return tuple(place for place in self.places if place.known_with is None)

    @property
    def late(self) -> tuple[Place, ...]:
        """What is taken while the program runs."""
        return tuple(place for place in self.places if place.known_with is not None)


def bytes_of(value: Value) -> Dim:
    """What a value takes in memory, row-major."""
    dtype = value.type.dtype
    elements = product(list(value.type.shape))
    return (elements if dtype.block is None else floor_div(elements, constant(dtype.block))) * dtype.itemsize


def plan_memory(program: KernelProgram) -> MemoryPlan:
    """A place for each of the program's temporaries.

    After: values that are ever needed at once lie apart, and no kernel runs into what another thread still reads
    or writes: there is a wait between them.
    """
    places = _places(program)
    where = {value: number for number, place in enumerate(places) for value in place.values}
    for value in program.bindings:
        root = root_of(value, program.bindings)
        where[value] = where.setdefault(root, len(places) + len(where))
    waits = _Waits(where)
    waits.steps(program.steps)
    return MemoryPlan(places, frozenset(waits.found))


@dataclass(slots=True)
class _Lives:
    """When each place is needed: from the first moment to the last at which a value that lies there is touched."""

    bindings: Mapping[Value, Value]
    moments: list[list[Value]] = field(default_factory=list)
    first: dict[Value, int] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)

    def touch(self, values: Iterable[Value]) -> int:
        """The values are needed at a moment of their own; gives its number."""
        now = len(self.moments)
        touched = list(dict.fromkeys(root_of(v, self.bindings) for v in values))
        self.moments.append(touched)
        for value in touched:
            self.first.setdefault(value, now)
            self.last[value] = now
        return now

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case LoopKernel() | GemmKernel() | OrderKernel() | ScatterKernel() | PlacesKernel() | BandKernel():
                    self.touch((step.output, *step.inputs))
                case Require(condition=value) | Open(value=value):
                    self.touch((value,))
                case Choice(condition=condition, results=results, then=then, otherwise=otherwise):
                    self.touch((*(r for r, _, _ in results), *((condition,) if isinstance(condition, Value) else ())))
                    self.steps(then)
                    self.steps(otherwise)
                    # A thread may still have to read the condition when another is in the branch.
                    self.touch((*(r for r, _, _ in results), *((condition,) if isinstance(condition, Value) else ())))
                case Repeat():
                    self.repeat(step)
                case Check():
                    pass

    def repeat(self, loop: Repeat) -> None:
        """What is made before a loop and needed in it is needed until its last step."""
        carried = [v for s in loop.states for v in (s.last, s.state, s.following)]
        begin = self.touch((*carried, *(result for _, result in loop.yields)))
        self.steps((*loop.entry, *loop.test, *loop.body, *loop.leaving))
        if loop.condition is not None:
            self.touch((loop.condition,))  # here too: a thread may read it when another is in the body
        through = [v for v, moment in self.first.items() if moment <= begin and self.last[v] >= begin]
        end = self.touch(through)
        assert all(self.last[v] == end for v in through)


def root_of(value: Value, bindings: Mapping[Value, Value]) -> Value:
    """The value in whose memory this one lies."""
    while value in bindings:
        value = bindings[value]
    return value


def _places(program: KernelProgram) -> tuple[Place, ...]:
    outputs = {value for value in program.outputs if program.known_with(value) is not None}
    temporaries = {*program.temporaries, *outputs}
    lives = _Lives(program.bindings)
    lives.steps(program.steps)
    places: list[Place] = []
    where: dict[Value, int] = {}
    free: list[int] = []
    for moment, touched in enumerate(lives.moments):
        for value in touched:
            if value in temporaries and value not in where:
                usable = [] if value in outputs else free
                where[value] = _take(places, usable, value, program.most(bytes_of(value)), program.known_with(value))
        for value in (*touched[1:], *touched[:1]):
            if value in where and lives.last[value] == moment and value not in outputs:
                free.append(where[value])
    return tuple(places)


def _take(places: list[Place], free: list[int], value: Value, size: Dim, known_with: str | None) -> int:
    """The number of a place for a value: a free one of its size, any free one, or a new one; known as early as it."""
    usable = [n for n in free if places[n].known_with == known_with]
    if not usable:
        places.append(Place(size, (value,), known_with))
        return len(places) - 1
    number = next((n for n in usable if places[n].size is size), usable[-1])
    free.remove(number)
    found = places[number]
    larger = found.size if found.size is size else maximum(found.size, size)
    places[number] = Place(larger, (*found.values, value), known_with)
    return number


@dataclass(slots=True)
class _Waits:
    """The kernels that read what was written since the last wait, or write where another value was used since.

    All threads wait for each other before and after loops and branches, and after each step, whatever is in them.
    """

    where: Mapping[Value, int]
    found: set[int] = field(default_factory=set)
    number: int = 0
    written: set[Value] = field(default_factory=set)
    used: set[Value] = field(default_factory=set)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case LoopKernel() | GemmKernel() | OrderKernel() | ScatterKernel() | PlacesKernel() | BandKernel():
                    self.kernel(step)
                case Choice(then=then, otherwise=otherwise):
                    self.apart((), then, otherwise)
                case Repeat(entry=entry, test=test, body=body, leaving=leaving):
                    self.apart(entry, test, body, leaving)
                case Check():
                    pass
                case Require() | Open():
                    self.apart()

    def apart(self, *parts: Sequence[Step]) -> None:
        self.reset()
        for part in parts:
            self.steps(part)
            self.reset()

    def reset(self) -> None:
        self.written, self.used = set(), set()

    def kernel(self, kernel: Kernel) -> None:
        place = self.where.get(kernel.output)
        others = (v for v in self.used if v is not kernel.output and v in self.where)
        if self.written & {*kernel.inputs} or (place is not None and any(self.where[v] == place for v in others)):
            self.found.add(self.number)
            self.reset()
        self.written.add(kernel.output)
        self.used.update((kernel.output, *kernel.inputs))
        self.number += 1
