"""The argument block of a program: one 64-bit word for each size, address and stride that machine code needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kina.core.ir import Value
from kina.kernels.ir import KernelProgram
from kina.kernels.memory import MemoryPlan
from kina.native.code import Code


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each thing stands in the argument block, in words."""

    sizes: Mapping[str, int]
    """The function's dimensions, which are given."""
    made: Mapping[str, int]
    """The dimensions that loops make and that are read from values."""
    inputs: Mapping[Value, int]
    outputs: Mapping[Value, int]
    temporaries: Mapping[Value, int]
    scratch: int
    report: int
    """The address of the report, where all threads and the caller tell each other things: of programs with loops,
    branches or checks."""

    @property
    def words(self) -> int:
        return self.report + 1

    @property
    def places(self) -> Mapping[Value, int]:
        """Where the address of each value stands."""
        return {**self.temporaries, **self.outputs, **self.inputs}


@dataclass(frozen=True, slots=True)
class Report:
    """Where things stand in the report, in words: the outcome, what each dimension that was made is at last, then for
    each place of memory that was taken while the program ran its address and its size in bytes."""

    made: Mapping[str, int]
    places: tuple[int, ...]

    outcome = 0

    @property
    def words(self) -> int:
        return 1 + len(self.made) + 2 * len(self.places)


def report_of(program: KernelProgram, plan: MemoryPlan) -> Report:
    """The report of a program."""
    made = {name: 1 + n for n, name in enumerate(program.sizes)}
    return Report(made, tuple(1 + len(made) + 2 * n for n in range(len(plan.late))))


def layout_of(program: KernelProgram) -> Layout:
    """The argument block of a program: its order is that of the parameters."""
    sizes = {name: n for n, name in enumerate(program.function.dimensions)}
    at = len(sizes)
    inputs = {}
    for value in program.inputs:
        inputs[value] = at
        at += 1 + value.type.rank
    outputs = {value: at + n for n, value in enumerate(program.outputs)}
    at += len(outputs)
    stored = [v for v in program.stored if v not in outputs]
    temporaries = {value: at + n for n, value in enumerate((*stored, *program.between_stages))}
    at += len(temporaries)
    made = {name: at + n for n, name in enumerate(program.sizes)}
    at += len(made)
    return Layout(sizes, made, inputs, outputs, temporaries, at, at + 1)


def sizes_of(layout: Layout) -> dict[str, str]:
    """The registers that hold the sizes, once `load_sizes` stands in a function's entry block."""
    return {name: f"%size.{number}" for name, number in {**layout.sizes, **layout.made}.items()}


def load_sizes(layout: Layout, *, given: bool = False) -> list[str]:
    """Reads the sizes out of `%args`; or only those that are `given`."""
    lines = []
    for number in (*layout.sizes.values(), *(() if given else layout.made.values())):
        lines.append(f"  %at.{number} = getelementptr inbounds i64, ptr %args, i64 {number}")
        lines.append(f"  %size.{number} = load i64, ptr %at.{number}")
    return lines


def word(code: Code, number: int | str, type_: str, stem: str) -> str:
    """A word of the argument block, read in the entry block; `number` may be a register."""
    place = code.at_entry(f"getelementptr inbounds i64, ptr %args, i64 {number}", "at")
    return code.at_entry(f"load {type_}, ptr {place}", stem)
