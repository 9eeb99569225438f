"""Operations that give positions in an order: of the elements of a row, of the true ones among flags.

There is one order of numbers: NaN is the greatest, equals stand as they stood. `sort`, `top_k`, `nonzero` and
`compress` are made of these (see `elaborate.picking`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import at_most
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Fault, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.types import DType, Tensor

_A, _B, _C, _N = map(variable, "ABCN")
_DTYPES = (DType.F32, DType.F64, DType.F16, DType.BF16, DType.I64, DType.I32, DType.I8, DType.U8, DType.BOOL)


def _ascending(x: Array, axis: int) -> Array:
    """Positions in ascending order, of equals the first one first."""
    dtype = DType.of_numpy(x.dtype)
    assert dtype is not None
    return np.argsort(x.astype(dtype.accumulator.numpy), axis=axis, kind="stable").astype(np.int64)


@operation("argsort", family="indexing", torch="x.argsort(dim=axis, stable=True)")
class ArgSort(Operation):
    """The positions of the elements along `axis` in ascending order: `take_along[axis] x` of them is sorted.

    `argsort[axis=1] x : [B, N] -> Idx[N][B, N]`. Stable: equal elements stay in their order. NaN is the greatest.
    """

    shapes = "[..., N, ...] -> Idx[N][..., N, ...]"
    example = "argsort[axis=0] [3.0, 1.0, 2.0]  // [1, 2, 0]"

    axis: int = attribute(Kind.AXIS)
    keeps_dtype = False
    fusible = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        return Tensor(DType.I64, x.shape, x.shape[self.axis])

    def reference(self, *operands: Array) -> Array:
        return _ascending(operands[0], self.axis)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        found = [Sample(cls(axis), (Tensor(DType.F32, (_A, _B, _C)),)) for axis in (0, 1, 2)]
        return [*found, *(Sample(cls(0), (Tensor(dtype, (_N,)),)) for dtype in _DTYPES)]


@operation("arg_top_k", family="indexing", torch="x.topk(k, dim=axis).indices")
class ArgTopK(Operation):
    """The positions of the `k` greatest elements along `axis`, the greatest first: `arg_top_k[axis=1] x k`.

    `[B, N] -> Idx[N][B, k]`; of equal elements the one at the lower position comes first. NaN is the greatest.
    """

    shapes = "[..., N, ...] -> Idx[N][..., k, ...]"
    example = "arg_top_k[axis=0] [3.0, 1.0, 2.0] 2  // [0, 2]"

    axis: int = attribute(Kind.AXIS)
    k: Dim = argument(Kind.SIZE)
    keeps_dtype = False
    fusible = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        size = x.shape[self.axis]
        rule.require(at_most(self.k, size), f"there are {size} elements along axis {self.axis}")
        return Tensor(DType.I64, x.with_axis(self.axis, self.k).shape, size)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        # Ascending from the end is descending from the start, equals included.
        last = x.shape[self.axis] - 1
        order = last - np.flip(_ascending(np.flip(x, self.axis), self.axis), self.axis)
        return np.take(order, np.arange(int(self.k)), axis=self.axis)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        found = [
            Sample(cls(1, _C), (Tensor(DType.F32, (_A, _B + _C)),)),
            Sample(cls(1, _B), (Tensor(DType.F32, (_A, _B)),)),
            Sample(cls(0, constant(1)), (Tensor(DType.F32, (_A + 1, _B)),)),
            Sample(cls(1, constant(2)), (Tensor(DType.F32, (_A, _B + 2, _C)),)),
        ]
        return [*found, *(Sample(cls(0, _A), (Tensor(dtype, (_A + _N,)),)) for dtype in _DTYPES)]


@operation("nonzero_along", family="indexing", torch="mask.nonzero(as_tuple=True)[axis]")
class NonzeroAlong(Operation):
    """Where along `axis` the `count` true elements of a mask stand, in row-major order: `nonzero_along[axis=0] mask K`.

    `nonzero` counts them and gives this for every axis. That `count` is their number is checked when the program runs.
    """

    shapes = "Bool[..., N, ...] -> Idx[N][count]"
    example = "nonzero_along[axis=0] [true, false, true] 2  // [0, 2]"

    axis: int = attribute(Kind.AXIS)
    count: Dim = argument(Kind.SIZE)
    operand_names = ("mask",)
    keeps_dtype = False
    may_end = True
    fusible = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.dtype(0, DTypeClass.BOOL)
        return Tensor(DType.I64, (self.count,), operands[0].shape[self.axis])

    def reference(self, *operands: Array) -> Array:
        found = np.nonzero(operands[0])[self.axis]
        if found.size != int(self.count):
            raise Fault(f"nonzero_along: {found.size} elements of the mask are true, not {self.count}")
        return found.astype(np.int64)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return []  # the count has to be that of the mask: `nonzero` itself is tested
