"""Scans: each element combined with all before it along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from kina.dims.dim import constant, variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.creation import Iota
from kina.ops.indexing import ToIdx
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Element, Index, Reduce, Reduction, Scalar
from kina.ops.terms import Term
from kina.types import DType, Tensor


class Scan(Operation):
    """What the scans share. Native code keeps one total along the axis; `lower` is what it gives for one element."""

    axis: int
    combines: ClassVar[Reduction]

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.dtype(0, DTypeClass.NUM)
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        wide = x.astype(dtype.accumulator.numpy)
        with np.errstate(all="ignore"):
            found: Array = np.asarray(_REFERENCE[self.combines](wide, self.axis)).astype(x.dtype)
        return found

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        (x,) = operands
        along = (*index[: self.axis], variable("%s"), *index[self.axis + 1 :])
        element = widened(Element(0, along), x.dtype)
        return narrowed(Reduce(self.combines, "%s", index[self.axis] + 1, element), x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        a, b, c = map(variable, "ABC")
        found = [Sample(cls(axis), (Tensor(DType.F32, (a, b, c)),)) for axis in (0, 1, 2)]  # type: ignore[call-arg]
        others = (DType.F64, DType.BF16, DType.F16, DType.I32, DType.I64, DType.U8)
        return found + [Sample(cls(1), (Tensor(d, (a, b)),)) for d in others]  # type: ignore[call-arg]


_REFERENCE: Mapping[str, Callable[[Array, int], Array]] = {
    "sum": lambda x, axis: np.cumsum(x, axis, dtype=x.dtype),
    "prod": lambda x, axis: np.cumprod(x, axis, dtype=x.dtype),
    "max": lambda x, axis: np.maximum.accumulate(x, axis),
}


def product_before(x: Term, axis: int) -> Term:
    """Of each element along the axis the product of all before it."""
    one = x.full(1, (*x.shape[:axis], constant(1), *x.shape[axis + 1 :]))
    return CumProd(axis)(one.concat(axis, x)).slice(axis, constant(0), x.shape[axis])


@operation("cumsum", family="scan", torch="x.cumsum(axis)")
class CumSum(Scan):
    """Sums up to and with each element: `[a, b, c] -> [a, a + b, a + b + c]`.

    Halves are summed in F32; integers wrap.
    """

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "cumsum[axis=0] [1, 2, 3]  // [1, 3, 6]"

    axis: int = attribute(Kind.AXIS)
    combines = "sum"
    linear = True

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return self(cotangent.flip(self.axis)).flip(self.axis)


@operation("cumprod", family="scan", torch="x.cumprod(axis)")
class CumProd(Scan):
    """Products up to and with each element: `[a, b, c] -> [a, a * b, a * b * c]`. Integers wrap."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "cumprod[axis=0] [1, 2, 3]  // [1, 2, 6]"

    axis: int = attribute(Kind.AXIS)
    combines = "prod"

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term:
        """The sum over i of the tangent at i, the product before it and that from it on: nothing is divided, so that
        zeros are no exception. The products from each i on are a matrix: N times the work."""
        (x,), (tangent,) = operands, tangents
        assert tangent is not None
        to_last = [a for a in range(x.type.rank) if a != self.axis] + [self.axis]
        back = [to_last.index(a) for a in range(x.type.rank)]
        x, last = x.transpose(to_last), x.type.rank - 1
        scaled = tangent.transpose(to_last).zero_mul(product_before(x, last))
        size = x.shape[-1]
        square = (*x.shape, size)
        start, end = (x.create(Iota(DType.I64, size)).along(last + n, square) for n in (0, 1))
        after = (end > start).where(x.expand_dims(last).broadcast(square), 1, of=x.full(1, square))
        products = CumProd(last + 1)(after)
        parts = scaled.expand_dims(last + 1).broadcast(square).zero_mul(products)
        return (end >= start).where(parts, 0, of=parts).sum([last]).transpose(back)


@operation("cummax", family="scan", torch="x.cummax(axis).values")
class CumMax(Scan):
    """The greatest so far: `[a, b, c] -> [a, max a b, ...]`. From a NaN on, NaN."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "cummax[axis=0] [1, 3, 2]  // [1, 3, 3]"

    axis: int = attribute(Kind.AXIS)
    combines = "max"

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term:
        """The tangent of the element that is the greatest so far; of equals, of the last, as in PyTorch."""
        (x,), (tangent,) = operands, tangents
        assert tangent is not None
        size = x.shape[self.axis]
        places = x.create(Iota(DType.I64, size)).along(self.axis, x.shape)
        reaches = x.equals(result).either(x.is_nan())
        latest = CumMax(self.axis)(reaches.where(places, 0, of=places))
        return tangent.take_along(self.axis, ToIdx(size)(latest))
