"""Scans: each element combined with all before it along an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from kina.dims.dim import variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Element, Index, Reduce, Reduction, Scalar
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


@operation("cumprod", family="scan", torch="x.cumprod(axis)")
class CumProd(Scan):
    """Products up to and with each element: `[a, b, c] -> [a, a * b, a * b * c]`. Integers wrap."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "cumprod[axis=0] [1, 2, 3]  // [1, 2, 6]"

    axis: int = attribute(Kind.AXIS)
    combines = "prod"


@operation("cummax", family="scan", torch="x.cummax(axis).values")
class CumMax(Scan):
    """The greatest so far: `[a, b, c] -> [a, max a b, ...]`. From a NaN on, NaN."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "cummax[axis=0] [1, 3, 2]  // [1, 3, 3]"

    axis: int = attribute(Kind.AXIS)
    combines = "max"
