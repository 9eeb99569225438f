"""Values from nothing: literals, fills, counts, the identity matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kina.dims.dim import Dim, constant, floor_div, variable
from kina.dims.proposition import Comparison
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Parameter, Rule, Sample, argument, attribute, operation
from kina.ops.scalar import Call, Cast, Element, Index, Literal, Pieces, Scalar, SizeValue
from kina.ops.terms import Term
from kina.types import DType, Shape, Tensor


@dataclass(frozen=True, slots=True)
class Constant(Operation):
    """A literal scalar or a rectangular tensor literal. `values` are in row-major order."""

    dtype: DType
    sizes: tuple[int, ...]
    values: tuple[float | int | bool, ...]

    name = "constant"
    family = "creation"
    operand_names = ()

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(self.dtype, tuple(map(constant, self.sizes)))

    def reference(self, *operands: Array) -> Array:
        wide = np.float64 if self.dtype.is_float else self.dtype.numpy
        return np.array(self.values, dtype=wide).astype(self.dtype.numpy).reshape(self.sizes)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        if not self.sizes:
            return Literal(self.values[0], self.dtype)
        position = constant(0)
        for i, size in zip(index, self.sizes, strict=True):
            position = position * size + i
        literals = tuple((constant(n + 1), Literal(v, self.dtype)) for n, v in enumerate(self.values))
        return Pieces(position, literals) if literals else Literal(0, self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(DType.F32, (), (2.5,)), ()),
            Sample(cls(DType.F32, (2, 3), (1.0, 2.0, 3.0, -1.0, 0.5, 1e-6)), ()),
            Sample(cls(DType.I64, (4,), (1, 2, 3, 4)), ()),
            Sample(cls(DType.BOOL, (), (True,)), ()),
        ]


_A, _B = variable("A"), variable("B")


class _Fill(Operation):
    """What `zeros` and `ones` share."""

    dtype: DType
    shape: Shape
    value = 0
    operand_names = ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(self.dtype, self.shape)

    def reference(self, *operands: Array) -> Array:
        return np.full(tuple(map(int, self.shape)), self.value, self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Literal(bool(self.value) if self.dtype is DType.BOOL else self.value, self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(dtype, (_A, _B)), ()) for dtype in (DType.F32, DType.BF16, DType.I64, DType.BOOL)]  # type: ignore[call-arg]


@operation("zeros", family="creation", torch="torch.zeros(shape)")
class Zeros(_Fill):
    """A tensor of zeros (`false` for Bool): `zeros[F32] [B, D]`."""

    shapes = "shape"
    example = "zeros[F32] [2]  // [0.0, 0.0]"

    dtype: DType = attribute(Kind.DTYPE)
    shape: Shape = argument(Kind.SHAPE)
    operand_names = ()


@operation("ones", family="creation", torch="torch.ones(shape)")
class Ones(_Fill):
    """A tensor of ones (`true` for Bool): `ones[F32] [B, D]`."""

    shapes = "shape"
    example = "ones[Bool] [2]  // [true, true]"

    dtype: DType = attribute(Kind.DTYPE)
    shape: Shape = argument(Kind.SHAPE)
    operand_names = ()
    value = 1


@operation("full", family="creation", torch="torch.full(shape, value)")
class Full(Operation):
    """A scalar in every place: `full value [B, D]`."""

    shapes = "[] -> shape"
    example = "full 7.0 [2]  // [7.0, 7.0]"

    shape: Shape = argument(Kind.SHAPE)
    operand_names = ("value",)
    linear = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        if operands[0].rank != 0:
            rule.refuse("full takes a scalar; `broadcast` stretches a tensor", operand=0)
        return operands[0].with_shape(self.shape)

    def reference(self, *operands: Array) -> Array:
        return np.broadcast_to(operands[0], tuple(map(int, self.shape)))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, ())

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.sum(range(cotangent.type.rank))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls((_A, _B)), (Tensor(dtype, ()),)) for dtype in (DType.F32, DType.I64, DType.BOOL)]


@operation("iota", family="creation", torch="torch.arange(n)")
class Iota(Operation):
    """`0, 1, ..., n - 1`: `iota[I64] n`, whose numbers are indices (`Idx[n]`).

    In half precision, numbers beyond its exact range are rounded.
    """

    shapes = "[n]"
    example = "iota[I64] 4  // [0, 1, 2, 3]"

    dtype: DType = attribute(Kind.DTYPE)
    n: Dim = argument(Kind.SIZE)
    operand_names = ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        if not DTypeClass.NUM.holds(self.dtype):
            rule.refuse(f"iota counts in numbers, not in {self.dtype}")
        return Tensor(self.dtype, (self.n,), self.n if self.dtype is DType.I64 else None)

    def reference(self, *operands: Array) -> Array:
        return np.arange(int(self.n)).astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Cast(SizeValue(index[0]), self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(dtype, _A), ()) for dtype in (DType.I64, DType.F32, DType.I32, DType.U8)]


@operation("eye", family="creation", torch="torch.eye(n)")
class Eye(Operation):
    """The identity matrix: `eye[F32] n`."""

    shapes = "[n, n]"
    example = "eye[F32] 2  // [[1.0, 0.0], [0.0, 1.0]]"

    dtype: DType = attribute(Kind.DTYPE)
    n: Dim = argument(Kind.SIZE)
    operand_names = ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(self.dtype, (self.n, self.n))

    def reference(self, *operands: Array) -> Array:
        return np.eye(int(self.n)).astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Cast(Call("eq", (SizeValue(index[0]), SizeValue(index[1]))), self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(dtype, _A), ()) for dtype in (DType.F32, DType.I64, DType.BOOL)]


@operation("dim_value", family="creation", torch="x.shape[axis]")
class DimValue(Operation):
    """A dimension as a scalar: `dim_value (N - m)`. It is a number like others, and may be negative."""

    shapes = "[]"
    example = "dim_value (2 * 3 + 1)  // 7"

    dim: Dim = argument(Kind.DIM)
    operand_names = ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(DType.I64, ())

    def reference(self, *operands: Array) -> Array:
        return np.asarray(int(self.dim), np.int64)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return SizeValue(self.dim)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(d), ()) for d in (_A, _A - 2 * _B, floor_div(_A * _B, constant(2)))]


@operation("position", family="creation", torch="i")
class Position(Operation):
    """A dimension as an index into an axis of n: `position i n`, of type `Idx[n]`; `i < n` is an obligation."""

    shapes = "Idx[n][]"
    example = "gather[axis=0] [10, 20, 30] (position 1 3)  // 20"

    dim: Dim = argument(Kind.DIM)
    n: Dim = argument(Kind.SIZE)
    operand_names = ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.require(Comparison(">=", self.dim, constant(0)), "an index is not negative")
        rule.require(Comparison("<", self.dim, self.n), f"it is an index into an axis of {self.n}")
        return Tensor(DType.I64, (), self.n)

    def reference(self, *operands: Array) -> Array:
        return np.asarray(int(self.dim), np.int64)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return SizeValue(self.dim)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(_A, _A + 1), ()), Sample(cls(floor_div(_A + _B, constant(2)), _A + _B + 1), ())]
