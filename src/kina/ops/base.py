"""What an operation is: one declaration that holds everything the system knows of it.

An operation is a frozen dataclass whose fields are its static parameters; operands are given to its
methods. From the declaration come the type checker's call rule, the interpreter, the native
lowering, the documentation page and the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar, dataclass_transform

from kina.dims.dim import Dim
from kina.dims.proposition import Proposition
from kina.lazy import np
from kina.ops.scalar import Index, Scalar
from kina.types import DType, Shape, Tensor

if TYPE_CHECKING:
    from kina.ops.terms import Term

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any


class Kind(Enum):
    """What a static parameter is, and so how the checker reads it from the source."""

    AXIS = "an axis"
    NEW_AXIS = "the place of a new axis"
    AXES = "an axis, or axes in a list"
    SIZE = "a dimension, used as a size"
    DIM = "a dimension"
    SHAPE = "a shape"
    PERMUTATION = "a permutation of the axes"
    DTYPE = "a dtype"
    CHOICE = "one of a few words"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A static parameter: in the tight bracket, or (`bracket` false) an argument after the operands."""

    name: str
    kind: Kind
    bracket: bool
    choices: tuple[str, ...] = ()
    default: str | None = None
    """What it is where it is not given; None for one that has to be."""


def attribute(kind: Kind, choices: tuple[str, ...] = (), *, default: str | None = None) -> Any:
    """A field given in the tight bracket: `reduce[sum, axis=2]`."""
    metadata = {"parameter": (kind, True, choices, default)}
    return field(metadata=metadata) if default is None else field(metadata=metadata, default=default)


def argument(kind: Kind) -> Any:
    """A field given after the operands: `reshape x [B, S]`."""
    return field(metadata={"parameter": (kind, False, (), None)})


class DTypeClass(Enum):
    """The dtype classes of binders, as demands on an operand."""

    FLOAT = "Float"
    INT = "Int"
    NUM = "Num"
    BOOL = "Bool"
    ANY = "Any"
    WEIGHT = "Weight"
    """What the weights of a model are stored as: floats, or blocks that `cast` reads as floats."""

    def holds(self, dtype: DType) -> bool:
        match self:
            case DTypeClass.FLOAT:
                return dtype.is_float
            case DTypeClass.INT:
                return dtype.is_integer
            case DTypeClass.NUM:
                return dtype.is_number
            case DTypeClass.BOOL:
                return dtype is DType.BOOL
            case DTypeClass.ANY:
                return dtype.block is None
            case DTypeClass.WEIGHT:
                return dtype.is_float or dtype.block is not None


class Rule(Protocol):
    """What a type rule may demand. The elaborator words the errors; the verifier just refuses.

    Operands are named by their number; axes may be negative.
    """

    def same_size(self, first: tuple[int, int], second: tuple[int, int], symbol: str) -> None:
        """Two (operand, axis) places must have one size, called `symbol` in the operation's documentation."""

    def same_dtype(self, first: int, second: int) -> None: ...

    def dtype(self, operand: int, wanted: DTypeClass) -> None: ...

    def same_rank(self, first: int, second: int) -> None: ...

    def rank(self, operand: int, at_least: int) -> None: ...

    def index(self, operand: int, size: Dim) -> None:
        """The operand's numbers are positions along an axis of that size.

        The elaborator has numbers that are not known to be (`Idx[V]`) checked when the program runs, by `to_idx`.
        """

    def require(self, goal: Proposition, why: str) -> None:
        """An obligation; `why` completes "this needs ... because"."""

    def regroups(self, source: Shape, target: Shape) -> None:
        """`reshape`'s obligation: target merges and splits neighbouring axes of source."""

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        """The call is wrong in a way that is particular to the operation."""


class Fault(Exception):
    """What ends a program: a value that an operation cannot take, found when it runs. The text says all but where."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An instance with operand types (symbolic sizes) on which every backend is tested."""

    operation: Operation
    operands: tuple[Tensor, ...]
    positive: bool = False
    """Draw operands from (0.1, 3) instead of around 0."""
    below: Dim | None = None
    """Draw integers from [0, below), though their type does not say so."""


class Operation:
    """The base of all operations. Subclasses are frozen dataclasses registered with `@operation`."""

    name: ClassVar[str]
    family: ClassVar[str]
    torch: ClassVar[str]
    shapes: ClassVar[str] = ""
    """The operands' shapes and the result's, for reading: `[...B, M, K], [...B, K, N] -> [...B, M, N]`."""
    example: ClassVar[str] = ""
    """An expression in Kina with its value behind it, both tested: `flip[axis=0] [1, 2]  // [2, 1]`."""
    operand_names: ClassVar[tuple[str, ...]] = ("x",)
    variadic: ClassVar[bool] = False
    """Whether the last operand may repeat (`concat a b c`)."""
    linear: ClassVar[bool] = False
    """Whether it is linear in all operands that have tangents together, the others fixed: `concat`, `gather`."""
    multilinear: ClassVar[bool] = False
    """Whether it is linear in each operand that has a tangent, the others fixed: `matmul`."""
    flat: ClassVar[bool] = False
    """Whether its result has no tangent though operands and result are floats: `stop_gradient`."""
    keeps_dtype: ClassVar[bool] = True
    """Whether the result has the operands' dtype, so that a dtype wanted of it is one wanted of literal operands."""
    moves: ClassVar[bool] = False
    """Whether the result's elements are elements of the operands, so that numbers with one bound keep it."""
    reads_bounds: ClassVar[bool] = False
    """Whether the type rule asks for the bounds of its operands' numbers (`Idx[V]`), and says what the result's are."""
    reads_quantised: ClassVar[bool] = False
    """Whether operands may be of quantised dtypes, which hold blocks and no elements."""
    positions: ClassVar[int | None] = None
    """The number of the operand that holds positions, where there is one: its literals are integers."""
    may_end: ClassVar[bool] = False
    """Whether it may end the program (raise Fault), so that it stays even if nothing needs its result."""
    fusible: ClassVar[bool] = True
    """Whether `lower` says what an element is; without it, native code needs a kernel made for the operation."""

    # What a subclass gives -----------------------------------------------------------------

    def takes_apart(self, operand: Tensor) -> bool:
        """Whether it needs the numbers of a quantised operand one by one: the surface then reads them (`cast[F32]`)."""
        return False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        """The result's type; demands go through `rule`."""
        raise NotImplementedError

    def reference(self, *operands: Array) -> Array:
        """What the operation means, in NumPy. All dimension parameters are constants here."""
        raise NotImplementedError

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        """The element of the result at `index`."""
        raise NotImplementedError

    def demands(self, operands: tuple[Tensor, ...], index: Index) -> Scalar | None:
        """What has to hold, as a Bool, lest the element at `index` ends the program; only where it `may_end`."""
        return None

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term | None:
        """The result's tangent for those of the operands, of which at least one is given; None is zero.

        It is linear in the tangents, and computed from them by operations that are (`transpose` is their adjoint), so
        that it serves both directions. To be declared where it does not follow from linearity.
        """
        if self.flat:
            return None
        if self.linear:
            given = zip(tangents, operands, strict=True)
            return self(*(t or (x.zeros() if has_tangent(x.type) else x) for t, x in given))
        if self.multilinear:
            return total(self(*operands[:n], t, *operands[n + 1 :]) for n, t in enumerate(tangents) if t is not None)
        raise NotImplementedError(f"{self.name} declares no derivative")

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term | None:
        """For a linear operation: what of the result's cotangent the operand of that number gets; None is zero.

        Of operands that it is linear in together, nothing but the types may be used.
        """
        raise NotImplementedError(f"{self.name} declares no transpose")

    def decompose(self, *operands: Term) -> Term | None:
        """The same by simpler operations, for reading; None where there are none. It may round more often."""
        return None

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        raise NotImplementedError

    # What follows from the declaration ------------------------------------------------------

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """The static parameters in order of declaration."""
        found = []
        for f in fields(cls):  # type: ignore[arg-type]
            kind, bracket, choices, default = f.metadata["parameter"]
            found.append(Parameter(f.name, kind, bracket, choices, default))
        return tuple(found)

    def arguments(self) -> Mapping[str, Any]:
        """The static parameters' values by name."""
        return {p.name: getattr(self, p.name) for p in self.parameters()}

    def substitute(self, replacement: Mapping[str, Dim]) -> Operation:
        """The operation with dimension variables replaced in its parameters."""
        changes: dict[str, Any] = {}
        for p in self.parameters():
            value = getattr(self, p.name)
            if p.kind in (Kind.SIZE, Kind.DIM):
                changes[p.name] = value.substitute(replacement)
            elif p.kind is Kind.SHAPE:
                changes[p.name] = tuple(d.substitute(replacement) for d in value)
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    def __call__(self, *operands: Term) -> Term:
        """The operation in an expression."""
        return operands[0].builder.apply(self, operands)

    def __str__(self) -> str:
        return self.name


def has_tangent(type_: Tensor) -> bool:
    """Whether a tensor can change by little: integers, Bool and positions cannot."""
    return type_.dtype.is_float


def total(terms: Iterable[Term]) -> Term | None:
    """Their sum; None is zero."""
    result: Term | None = None
    for term in terms:
        result = term if result is None else result + term
    return result


def result_type(rule: Rule, operation: Operation, operands: tuple[Tensor, ...]) -> Tensor:
    """The type of an operation's result. Numbers that are indices (`Idx[V]`) are plain I64 to most operations; those
    that only move them keep their bound. Quantised operands are refused here for all that do not read them, and results
    that are not rows of an operand."""
    if not operation.reads_quantised:
        for number, x in enumerate(operands):
            if x.dtype.block is not None:
                message = f"{operation.name} takes numbers, and {x.dtype} holds blocks of {x.dtype.block}, quantised"
                rule.refuse(message, operand=number, help="read its numbers: cast[F32]")
    if operation.reads_bounds:
        return operation.type(rule, *operands)
    plain = operation.type(rule, *(x.with_bound(None) for x in operands))
    if plain.dtype.block is not None and all(x.dtype is not plain.dtype for x in operands):
        rule.refuse(f"{operation.name} makes numbers, and {plain.dtype} is only read: quantise them before, outside")
    bounds = {x.bound for x in operands}
    return plain.with_bound(bounds.pop()) if operation.moves and len(bounds) == 1 else plain


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in the registry: how to make the operation from its static parameters."""

    name: str
    family: str
    torch: str
    documentation: str
    operand_names: tuple[str, ...]
    variadic: bool
    parameters: tuple[Parameter, ...]
    build: Callable[..., Operation]
    samples: Callable[[], Sequence[Sample]]
    keeps_dtype: bool = True
    condition: bool = False
    """Whether the first operand is a Bool beside the others (`select`)."""
    positions: int | None = None
    """The operand that holds positions, where there is one."""
    shapes: str = ""
    example: str = ""


_registry: dict[str, Entry] = {}
OperationType = TypeVar("OperationType", bound=type[Operation])


@dataclass_transform(frozen_default=True, field_specifiers=(attribute, argument))
def operation(name: str, *, family: str, torch: str) -> Callable[[OperationType], OperationType]:
    """Registers an operation class under its surface name."""

    def register(cls: OperationType) -> OperationType:
        declared = dataclass(frozen=True, slots=True)(cls)
        declared.name, declared.family, declared.torch = name, family, torch
        parameters = declared.parameters()
        documentation = declared.__doc__ or ""
        operands, variadic, keeps = declared.operand_names, declared.variadic, declared.keeps_dtype
        samples, places = declared.samples, declared.positions
        declare(
            Entry(
                name, family, torch, documentation, operands, variadic, parameters, declared, samples, keeps,
                positions=places, shapes=declared.shapes, example=declared.example,
            )
        )  # fmt: skip
        return declared  # type: ignore[return-value]

    return register


def declare(entry: Entry) -> None:
    """Adds a name; each name is declared once."""
    if entry.name in _registry:
        raise ValueError(f"operation {entry.name} is declared twice")
    _registry[entry.name] = entry


def lookup(name: str) -> Entry | None:
    """The operation of that name, or None."""
    return _registry.get(name)


def all_operations() -> tuple[Entry, ...]:
    """Every declared operation, in order of declaration."""
    return tuple(_registry.values())
