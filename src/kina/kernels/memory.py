"""The memory plan: where values between kernels lie, and where threads wait for each other.

All of them lie in one arena, in places whose sizes are polynomials. A place is used again once the last kernel that
reads its value is through. Sizes are compared as polynomials: a place is given to a value of the same size if there
is one, else to any value, and is then as large as the largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kina.core.ir import Value
from kina.dims.dim import Dim, maximum, product
from kina.kernels.ir import KernelProgram


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the arena, and the values that lie there one after the other."""

    size: Dim
    """In bytes."""
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The arena, and the kernels (by number) before which all threads wait for each other."""

    places: tuple[Place, ...]
    waits: frozenset[int]


def bytes_of(value: Value) -> Dim:
    """What a value takes in memory, row-major."""
    return product(list(value.type.shape)) * value.type.dtype.itemsize


def plan_memory(program: KernelProgram) -> MemoryPlan:
    """A place for each of the program's temporaries.

    After: values that are ever needed at once lie apart, and no kernel runs into what another thread still reads
    or writes: there is a wait between them.
    """
    places = _places(program)
    where = {value: number for number, place in enumerate(places) for value in place.values}
    return MemoryPlan(places, _waits(program, where))


def _places(program: KernelProgram) -> tuple[Place, ...]:
    temporaries = set(program.temporaries)
    last_read: dict[Value, int] = {}
    for number, kernel in enumerate(program.kernels):
        last_read.update((value, number) for value in kernel.inputs)
    places: list[Place] = []
    where: dict[Value, int] = {}
    free: list[int] = []
    for number, kernel in enumerate(program.kernels):
        if kernel.output in temporaries and kernel.output not in where:
            where[kernel.output] = _take(places, free, kernel.output)
        for value in dict.fromkeys(kernel.inputs):
            if value in where and last_read[value] == number:
                free.append(where[value])
    return tuple(places)


def _take(places: list[Place], free: list[int], value: Value) -> int:
    """The number of a place for a value: a free one of its size, any free one, or a new one."""
    size = bytes_of(value)
    if not free:
        places.append(Place(size, (value,)))
        return len(places) - 1
    number = next((n for n in free if places[n].size is size), free[-1])
    free.remove(number)
    found = places[number]
    larger = found.size if found.size is size else maximum(found.size, size)
    places[number] = Place(larger, (*found.values, value))
    return number


def _waits(program: KernelProgram, where: Mapping[Value, int]) -> frozenset[int]:
    """The kernels that read what was written since the last wait, or write where another value was used since."""
    waits: set[int] = set()
    written: set[Value] = set()
    used: set[Value] = set()
    for number, kernel in enumerate(program.kernels):
        place = where.get(kernel.output)
        others = (v for v in used if v is not kernel.output and v in where)
        if written & {*kernel.inputs} or (place is not None and any(where[v] == place for v in others)):
            waits.add(number)
            written, used = set(), set()
        written.add(kernel.output)
        used.update((kernel.output, *kernel.inputs))
    return frozenset(waits)
