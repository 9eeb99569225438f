"""Types of values: tensors, and tuples, records and lists of them; functions; sizes known only at run time.

Printed, a type is Kina.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kina.dims import proposition
from kina.dims.dim import Dim, variable
from kina.dims.proposition import Proposition
from kina.types.dtype import DType

Shape = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """`Tensor[dtype, shape]`; a scalar has the empty shape.

    With a `bound` V its numbers are I64 known to lie in [0, V), and it prints as `Idx[V]`.
    """

    dtype: DType
    shape: Shape
    bound: Dim | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element(self) -> str:
        """The element type as it is written."""
        return str(self.dtype) if self.bound is None else f"Idx[{self.bound}]"

    def with_shape(self, shape: Shape) -> Tensor:
        return Tensor(self.dtype, shape, self.bound)

    def with_dtype(self, dtype: DType) -> Tensor:
        return Tensor(dtype, self.shape)

    def with_bound(self, bound: Dim | None) -> Tensor:
        return Tensor(self.dtype, self.shape, bound)

    def with_axis(self, axis: int, size: Dim) -> Tensor:
        """The same with another size along one axis (`0 <= axis < rank`)."""
        return self.with_shape((*self.shape[:axis], size, *self.shape[axis + 1 :]))

    def __str__(self) -> str:
        return f"Tensor[{self.element}, {shape_text(self.shape)}]"


@dataclass(frozen=True, slots=True)
class Tuple:
    """`(A, B)`."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


Argument = Dim | DType | Shape
"""What a declared type is given in its bracket: for `D`, for `T : Float`, for `...S`."""


@dataclass(frozen=True, slots=True)
class Record:
    """`Layer[D, H]`: named fields. Two records are of one type if they have the same name and fields."""

    name: str
    arguments: tuple[Argument, ...]
    fields: tuple[tuple[str, Type], ...]

    def field(self, name: str) -> Type | None:
        """The type of a field, or None where there is none."""
        return next((type_ for field, type_ in self.fields if field == name), None)

    def __str__(self) -> str:
        return self.name + (f"[{', '.join(map(_argument_text, self.arguments))}]" if self.arguments else "")


@dataclass(frozen=True, slots=True)
class List:
    """`List[N, T]`: N values of one type."""

    size: Dim
    item: Type

    def __str__(self) -> str:
        return f"List[{self.size}, {self.item}]"


@dataclass(frozen=True, slots=True)
class Arrow:
    """`A -> B ! {rand}`."""

    parameter: Type
    result: Type
    effects: frozenset[str] = frozenset()

    def __str__(self) -> str:
        left = f"({self.parameter})" if isinstance(self.parameter, Arrow | Exists) else str(self.parameter)
        return f"{left} -> {self.result}{effects_text(self.effects)}"


@dataclass(frozen=True, slots=True)
class Exists:
    """`exists [n] requires (n <= N). T`: sizes that are known only at run time, and what is known of them."""

    names: tuple[str, ...]
    requires: tuple[Proposition, ...]
    body: Type

    def __str__(self) -> str:
        requires = "".join(f" requires ({p})" for p in self.requires)
        return f"exists [{', '.join(self.names)}]{requires}. {self.body}"


Type = Tensor | Tuple | Record | List | Arrow | Exists

EFFECTS = ("rand", "io", "state", "fail", "diverge")
"""What a function may do besides giving a result."""


def effects_text(effects: Iterable[str]) -> str:
    """` ! {fail, rand}`, or nothing."""
    listed = ", ".join(sorted(effects))
    return f" ! {{{listed}}}" if listed else ""


def shape_text(shape: Shape) -> str:
    """`[B, S + 1, D]`."""
    return "[" + ", ".join(map(str, shape)) + "]"


def _argument_text(argument: Argument) -> str:
    return shape_text(argument) if isinstance(argument, tuple) else str(argument)


def tensors(type_: Type) -> Iterator[Tensor]:
    """The tensors of a value of that type, left to right; a list's are those of its item with an axis in front."""
    match type_:
        case Tensor():
            yield type_
        case Tuple(items):
            for item in items:
                yield from tensors(item)
        case Record(fields=fields):
            for _, item in fields:
                yield from tensors(item)
        case List(size, item):
            for tensor in tensors(item):
                yield tensor.with_shape((size, *tensor.shape))
        case Exists(body=body):
            yield from tensors(body)
        case Arrow():
            pass


def substitute(type_: Type, replacement: Mapping[str, Dim]) -> Type:
    """The type with dimension variables replaced."""
    match type_:
        case Tensor():
            return substitute_tensor(type_, replacement)
        case Tuple(items):
            return Tuple(tuple(substitute(item, replacement) for item in items))
        case Record(name, arguments, fields):
            given = tuple(_substitute_argument(a, replacement) for a in arguments)
            return Record(name, given, tuple((field, substitute(item, replacement)) for field, item in fields))
        case List(size, item):
            return List(size.substitute(replacement), substitute(item, replacement))
        case Arrow(parameter, result, effects):
            return Arrow(substitute(parameter, replacement), substitute(result, replacement), effects)
        case Exists():
            return _substitute_exists(type_, replacement)


def _substitute_exists(type_: Exists, replacement: Mapping[str, Dim]) -> Exists:
    """Under its names; one that what is put in mentions too gets primes."""
    outer = {n: d for n, d in replacement.items() if n not in type_.names}
    taken = frozenset[str]().union(*(d.variables for d in outer.values()))
    renamed = {name: _primed(name, taken) for name in type_.names}
    inner = {**outer, **{name: variable(new) for name, new in renamed.items() if new != name}}
    requires = tuple(proposition.substitute(p, inner) for p in type_.requires)
    return Exists(tuple(renamed.values()), requires, substitute(type_.body, inner))


def _primed(name: str, taken: frozenset[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _substitute_argument(argument: Argument, replacement: Mapping[str, Dim]) -> Argument:
    if isinstance(argument, Dim):
        return argument.substitute(replacement)
    if isinstance(argument, tuple):
        return tuple(d.substitute(replacement) for d in argument)
    return argument


def substitute_tensor(tensor: Tensor, replacement: Mapping[str, Dim]) -> Tensor:
    bound = None if tensor.bound is None else tensor.bound.substitute(replacement)
    return Tensor(tensor.dtype, tuple(d.substitute(replacement) for d in tensor.shape), bound)


def map_tensors(type_: Type, change: Callable[[Tensor], Tensor]) -> Type:
    """The type with each tensor in it changed; of a list, its item's tensors."""
    match type_:
        case Tensor():
            return change(type_)
        case Tuple(items):
            return Tuple(tuple(map_tensors(item, change) for item in items))
        case Record(name, arguments, fields):
            return Record(name, arguments, tuple((field, map_tensors(item, change)) for field, item in fields))
        case List(size, item):
            return List(size, map_tensors(item, change))
        case Exists(names, requires, body):
            return Exists(names, requires, map_tensors(body, change))
        case Arrow():
            return type_


def parts(type_: Type) -> tuple[tuple[str, Type], ...]:
    """What a value of that type is made of, by name: fields, or `0`, `1`, ... of a tuple. A list is made of what its
    item is made of, with an axis in front of each tensor; a tensor has no parts."""
    match type_:
        case Tuple(items):
            return tuple((str(n), item) for n, item in enumerate(items))
        case Record(fields=fields):
            return fields
        case List():
            return parts(in_one(type_))
        case Exists(body=body):
            return parts(body)
        case Tensor() | Arrow():
            return ()


def in_one(type_: List) -> Type:
    """A list as one value of its item's form, each tensor with the list's axis in front."""
    item = in_one(type_.item) if isinstance(type_.item, List) else type_.item
    return map_tensors(item, lambda tensor: tensor.with_shape((type_.size, *tensor.shape)))


def sizes(type_: Type) -> Iterator[Dim]:
    """The sizes that a type mentions, bounds of indices included."""
    for tensor in tensors(type_):
        yield from tensor.shape
        if tensor.bound is not None:
            yield tensor.bound
