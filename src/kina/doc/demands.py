"""What an operation demands of its operands: its type rule, run on its samples by a rule that only takes notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from kina.dims.dim import Dim, variable
from kina.dims.proposition import Proposition
from kina.ops.base import DTypeClass, Entry, Kind, Sample, result_type
from kina.types import DType, Shape, Tensor


@dataclass(frozen=True, slots=True)
class Demand:
    """What an error says, and its codes."""

    text: str
    codes: tuple[str, ...]


class _Refused(Exception):
    pass


@dataclass(slots=True)
class _Notes:
    """A `Rule` that grants everything and writes down what was asked for."""

    names: tuple[str, ...]
    demands: dict[Demand, None] = field(default_factory=dict)
    classes: dict[int, DTypeClass] = field(default_factory=dict)
    positions: dict[int, Dim] = field(default_factory=dict)
    alike: list[tuple[int, int]] = field(default_factory=list)

    def _name(self, operand: int) -> str:
        return f"`{self.names[min(operand, len(self.names) - 1)]}`"

    def _note(self, text: str, *codes: str) -> None:
        self.demands[Demand(text, codes)] = None

    def same_size(self, first: tuple[int, int], second: tuple[int, int], symbol: str) -> None:
        self._note(f"sizes of {self._name(first[0])} and {self._name(second[0])} that belong together differ", "K0301")

    def same_dtype(self, first: int, second: int) -> None:
        self.alike.append((first, second))
        self._note(f"{self._name(first)} and {self._name(second)} have different dtypes", "K0303")

    def dtype(self, operand: int, wanted: DTypeClass) -> None:
        self.classes.setdefault(operand, wanted)
        if wanted is not DTypeClass.ANY:
            self._note(f"{self._name(operand)} is not {wanted.value}", "K0303")

    def same_rank(self, first: int, second: int) -> None:
        self._note(f"{self._name(first)} and {self._name(second)} have different numbers of axes", "K0304")

    def rank(self, operand: int, at_least: int) -> None:
        self._note(f"{self._name(operand)} has fewer than {at_least} axes", "K0304")

    def index(self, operand: int, size: Dim) -> None:
        self.positions.setdefault(operand, size)
        self._note(f"{self._name(operand)} holds no integers", "K0303")

    def require(self, goal: Proposition, why: str) -> None:
        self._note(f"refuted, or not decided: {why}", "K0305", "K0306")

    def regroups(self, source: Shape, target: Shape) -> None:
        self._note("axes would be mixed", "K0307")
        self._note("the number of elements changes", "K0308")

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        raise _Refused(message)


@dataclass(frozen=True, slots=True)
class TypeRule:
    """What is known of an operation's type rule: demands in order, dtype classes and positions by operand, results."""

    demands: tuple[Demand, ...]
    classes: dict[int, DTypeClass]
    by_choice: dict[str, DTypeClass]
    """Of an operation of several kinds, what its first operand has to be for each: `mean` takes floats only."""
    positions: dict[int, Dim]
    alike: tuple[tuple[int, int], ...]
    results: tuple[tuple[Sample, Tensor], ...]
    """Samples with the types of their results, one for each way of giving shapes and parameters."""


def type_rule(entry: Entry) -> TypeRule:
    """Runs the type rule on the samples. Demands of the first sample stand for those of all."""
    first: _Notes | None = None
    choice = next((p.name for p in entry.parameters if p.kind is Kind.CHOICE), None)
    by_choice: dict[str, DTypeClass] = {}
    results: dict[tuple[object, ...], tuple[Sample, Tensor]] = {}
    for sample in entry.samples() or _invented(entry):
        notes = _Notes(entry.operand_names or ("",))
        try:
            result = result_type(notes, sample.operation, sample.operands)
        except _Refused:
            continue
        first = first or notes
        if choice is not None:
            kind = str(sample.operation.arguments().get(choice, ""))
            by_choice.setdefault(kind, notes.classes.get(0, DTypeClass.ANY))
        key = (tuple(x.shape for x in sample.operands), *sample.operation.arguments().values())
        results.setdefault(key, (sample, result))
    found = first or _Notes(())
    return TypeRule(
        tuple(found.demands), found.classes, by_choice if len(set(by_choice.values())) > 1 else {}, found.positions,
        tuple(found.alike), tuple(results.values()),
    )  # fmt: skip


def _invented(entry: Entry) -> list[Sample]:
    """For an operation without samples an instance, with operands of the dtypes that its own rule asks for."""
    static = {p.name: _INVENTED[p.kind] for p in entry.parameters if p.default is None}
    operation = entry.build(**static)
    shape = (variable("A"), variable("B"))
    notes = _Notes(entry.operand_names or ("",))
    result_type(notes, operation, tuple(Tensor(DType.F32, shape) for _ in entry.operand_names))
    wanted = {second: notes.classes[first] for first, second in notes.alike if first in notes.classes} | notes.classes
    dtypes = [_LIKELY.get(wanted.get(n, DTypeClass.ANY), DType.F32) for n in range(len(entry.operand_names))]
    return [Sample(operation, tuple(Tensor(dtype, shape) for dtype in dtypes))]


_INVENTED = {Kind.AXIS: 0, Kind.SIZE: variable("N"), Kind.DIM: variable("N"), Kind.DTYPE: DType.F32}
_LIKELY = {DTypeClass.INT: DType.I64, DTypeClass.BOOL: DType.BOOL}
