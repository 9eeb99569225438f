"""Values in a function that is being built, as expressions: derivatives are written in them.

    -x.sin()        Pad(axis=0, lo=start, hi=rest)(cotangent)        weight.zero_mul(tangent).sum(axes)

A rule says what to compute; the builder that its terms belong to emits it. Types follow from the type rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kina.dims.dim import Dim, constant
from kina.ops.base import Operation, lookup
from kina.types import DType, Shape, Tensor

Number = int | float
"""A literal in an expression, of the dtype and shape of what it meets."""


class Builder(Protocol):
    """What a function is built with."""

    def apply(self, operation: Operation, operands: Sequence[Term]) -> Term:
        """A new value: the operation's result."""


def named(name: str, **static: Any) -> Operation:
    """The operation of that name."""
    entry = lookup(name)
    assert entry is not None, name
    return entry.build(**static)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A tensor in a function that is being built. `value` is what the builder knows it by."""

    type: Tensor
    value: Any
    builder: Builder

    # ------------------------------------------------------------ what it is made into

    def _apply(self, name: str, *others: Term | Number, **static: Any) -> Term:
        return self.builder.apply(named(name, **static), (self, *map(self.like, others)))

    def create(self, operation: Operation) -> Term:
        """An operation without operands."""
        return self.builder.apply(operation, ())

    def like(self, other: Term | Number) -> Term:
        """A number as a tensor of this one's dtype and shape; a term is what it is."""
        return other if isinstance(other, Term) else self.full(other, self.type.shape)

    def full(self, number: Number, shape: Shape) -> Term:
        """A number everywhere in a shape, of this one's dtype."""
        from kina.ops.creation import Constant

        if number == 0:
            return self.create(named("zeros", dtype=self.type.dtype, shape=shape))
        scalar = self.create(Constant(self.type.dtype, (), (number,)))
        return scalar._apply("full", shape=shape) if shape else scalar

    def zeros(self) -> Term:
        """Zeros of this one's type."""
        return self.full(0, self.type.shape)

    def size(self, dim: Dim) -> Term:
        """A dimension as a tensor of this one's dtype and shape."""
        scalar = self.create(named("dim_value", dim=dim))._apply("cast", to=self.type.dtype)
        return scalar._apply("full", shape=self.type.shape) if self.type.shape else scalar

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Term | Number) -> Term:
        return self._apply("add", other)

    def __radd__(self, other: Number) -> Term:
        return self.like(other) + self

    def __sub__(self, other: Term | Number) -> Term:
        return self._apply("sub", other)

    def __rsub__(self, other: Number) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Term | Number) -> Term:
        return self._apply("mul", other)

    def __rmul__(self, other: Number) -> Term:
        return self.like(other) * self

    def __truediv__(self, other: Term | Number) -> Term:
        return self._apply("div", other)

    def __rtruediv__(self, other: Number) -> Term:
        return self.like(other) / self

    def __pow__(self, other: Term) -> Term:
        return self._apply("pow", other)

    def __neg__(self) -> Term:
        return self._apply("neg")

    def zero_mul(self, other: Term) -> Term:
        """The product in which 0 times anything is 0."""
        return self._apply("zero_mul", other)

    def exp(self) -> Term:
        return self._apply("exp")

    def log(self) -> Term:
        return self._apply("log")

    def sin(self) -> Term:
        return self._apply("sin")

    def cos(self) -> Term:
        return self._apply("cos")

    def tanh(self) -> Term:
        return self._apply("tanh")

    def erf(self) -> Term:
        return self._apply("erf")

    def sign(self) -> Term:
        return self._apply("sign")

    def sigmoid(self) -> Term:
        return self._apply("sigmoid")

    def softmax(self, axis: int) -> Term:
        return self._apply("softmax", axis=axis)

    # ------------------------------------------------------------ conditions

    def __lt__(self, other: Term | Number) -> Term:
        return self._apply("lt", other)

    def __le__(self, other: Term | Number) -> Term:
        return self._apply("le", other)

    def __gt__(self, other: Term | Number) -> Term:
        return self._apply("gt", other)

    def __ge__(self, other: Term | Number) -> Term:
        return self._apply("ge", other)

    def equals(self, other: Term | Number) -> Term:
        return self._apply("eq", other)

    def both(self, other: Term) -> Term:
        return self._apply("logical_and", other)

    def either(self, other: Term) -> Term:
        return self._apply("logical_or", other)

    def is_nan(self) -> Term:
        return self._apply("is_nan")

    def where(self, yes: Term | Number, no: Term | Number, of: Term) -> Term:
        """`select` by this condition; numbers are of the dtype and shape of `of`."""
        return self._apply("select", of.like(yes), of.like(no))

    def cast(self, dtype: DType) -> Term:
        return self if self.type.dtype is dtype else self._apply("cast", to=dtype)

    # ------------------------------------------------------------ shapes and axes

    @property
    def shape(self) -> Shape:
        return self.type.shape

    def broadcast(self, shape: Shape) -> Term:
        return self if self.shape == shape else self._apply("broadcast", shape=shape)

    def reinterpret(self, shape: Shape) -> Term:
        return self if self.shape == shape else self._apply("reinterpret", shape=shape)

    def transpose(self, order: Sequence[int]) -> Term:
        return self if list(order) == list(range(self.type.rank)) else self._apply("transpose", order=tuple(order))

    def expand_dims(self, *axes: int) -> Term:
        """New axes of size 1 at these places of the result, which ascend."""
        result = self
        for axis in axes:
            result = result._apply("expand_dims", axis=axis)
        return result

    def along(self, axis: int, shape: Shape) -> Term:
        """A row laid along one axis of a shape and repeated along all others."""
        after = (constant(1),) * (len(shape) - axis - 1)
        return self.reinterpret((*self.shape, *after)).broadcast(shape)

    def squeeze(self, axis: int) -> Term:
        return self._apply("squeeze", axis=axis)

    def unflatten(self, axis: int, sizes: Shape) -> Term:
        return self._apply("unflatten", axis=axis, sizes=sizes)

    def slice(self, axis: int, start: Dim, stop: Dim) -> Term:
        return self._apply("slice", axis=axis, start=start, stop=stop)

    def gather(self, axis: int, ids: Term) -> Term:
        return self._apply("gather", ids, axis=axis)

    def take_along(self, axis: int, ids: Term) -> Term:
        return self._apply("take_along", ids, axis=axis)

    def dynamic_slice(self, axis: int, start: Term, n: Dim) -> Term:
        return self._apply("dynamic_slice", start, axis=axis, n=n)

    def update_slice(self, axis: int, part: Term, at: Term) -> Term:
        return self._apply("update_slice", part, at, axis=axis)

    def scatter(self, kind: str, axis: int, ids: Term, updates: Term) -> Term:
        return self._apply("scatter", ids, updates, kind=kind, axis=axis)

    def flip(self, axis: int) -> Term:
        return self._apply("flip", axis=axis)

    def concat(self, axis: int, *others: Term) -> Term:
        return self._apply("concat", *others, axis=axis)

    def reduce(self, kind: str, axes: Sequence[int]) -> Term:
        return self._apply("reduce", kind=kind, axes=tuple(axes)) if axes else self

    def sum(self, axes: Sequence[int]) -> Term:
        return self.reduce("sum", axes)

    def sum_keep(self, axes: Sequence[int]) -> Term:
        return self.reduce_keep("sum", axes)

    def reduce_keep(self, kind: str, axes: Sequence[int]) -> Term:
        return self._apply("reduce_keep", kind=kind, axes=tuple(axes)) if axes else self

    def finite_top(self, axes: Sequence[int]) -> Term:
        """The maximum along these axes, kept; 0 where it is not finite, so that taking it off leaves infinities."""
        top = self.reduce_keep("max", axes)
        return (top - top).equals(0).where(top, 0, of=top)
