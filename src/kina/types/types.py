"""Types of values: tensors and tuples of them. Printed, a type is Kina."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kina.dims.dim import Dim
from kina.types.dtype import DType

Shape = tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """`Tensor[dtype, shape]`; a scalar has the empty shape."""

    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int:
        return len(self.shape)

    def with_shape(self, shape: Shape) -> Tensor:
        return Tensor(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> Tensor:
        return Tensor(dtype, self.shape)

    def with_axis(self, axis: int, size: Dim) -> Tensor:
        """The same with another size along one axis (`0 <= axis < rank`)."""
        return self.with_shape((*self.shape[:axis], size, *self.shape[axis + 1 :]))

    def __str__(self) -> str:
        return f"Tensor[{self.dtype}, {shape_text(self.shape)}]"


@dataclass(frozen=True, slots=True)
class Tuple:
    """`(A, B)`."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.items)) + ")"


Type = Tensor | Tuple


def shape_text(shape: Shape) -> str:
    """`[B, S + 1, D]`."""
    return "[" + ", ".join(map(str, shape)) + "]"


def tensors(type_: Type) -> Iterator[Tensor]:
    """The tensors of a type, left to right."""
    if isinstance(type_, Tensor):
        yield type_
    else:
        for item in type_.items:
            yield from tensors(item)


def substitute(type_: Type, replacement: Mapping[str, Dim]) -> Type:
    """The type with dimension variables replaced."""
    if isinstance(type_, Tensor):
        return substitute_tensor(type_, replacement)
    return Tuple(tuple(substitute(item, replacement) for item in type_.items))


def substitute_tensor(tensor: Tensor, replacement: Mapping[str, Dim]) -> Tensor:
    return tensor.with_shape(tuple(d.substitute(replacement) for d in tensor.shape))
