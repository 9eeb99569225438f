"""Normalising primitives: softmax and its logarithm, each defined by a stable decomposition."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.precision import narrowed, widened
from kina.ops.reductions import finite_shift, loop_variable
from kina.ops.scalar import Call, Element, Index, Reduce, Scalar
from kina.ops.terms import Term
from kina.types import DType, Tensor


class _Softmax(Operation):
    axis: int
    linear = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.dtype(0, DTypeClass.FLOAT)
        return operands[0]

    def _parts(self, x: Tensor, index: Index) -> tuple[Scalar, Scalar]:
        """`x - shift` at the index, and the row's sum of `exp (x - shift)`."""
        wide = x.dtype.accumulator
        name = loop_variable(self.axis)
        along = (*index[: self.axis], variable(name), *index[self.axis + 1 :])
        element = widened(Element(0, along), x.dtype)
        size = x.shape[self.axis]
        shift = finite_shift(Reduce("max", name, size, element), wide)
        total = Reduce("sum", name, size, Call("exp", (Call("sub", (element, shift)),)))
        return Call("sub", (widened(Element(0, index), x.dtype), shift)), total

    def _numpy_parts(self, x: Array) -> tuple[Array, Array]:
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        wide = x.astype(dtype.accumulator.numpy)
        top = np.max(wide, axis=self.axis, keepdims=True, initial=-np.inf)
        shifted = wide - np.where(np.isinf(top), 0, top).astype(wide.dtype)
        return shifted, np.sum(np.exp(shifted), axis=self.axis, keepdims=True)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        a, b, c = map(variable, "ABC")
        found = [Sample(cls(axis), (Tensor(DType.F32, (a, b, c)),)) for axis in (0, 1, 2)]  # type: ignore[call-arg]
        return found + [Sample(cls(1), (Tensor(d, (a, b)),)) for d in (DType.F64, DType.BF16, DType.F16)]  # type: ignore[call-arg]


def _shifted(x: Term, axis: int) -> Term:
    """`x` less the maximum of its row, in the dtype of sums."""
    wide = x.cast(x.type.dtype.accumulator)
    return wide - wide.finite_top([axis]).broadcast(x.shape)


@operation("softmax", family="normalising", torch="x.softmax(dim=axis)")
class Softmax(_Softmax):
    """`exp x / sum (exp x)` along an axis, computed from the row's maximum so that it never overflows.

    A row of all -inf gives NaN, as 0/0 does.
    """

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "softmax[axis=0] [0.0, 1.098612]  // [0.25, 0.75]"

    axis: int = attribute(Kind.AXIS)

    def reference(self, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            shifted, total = self._numpy_parts(operands[0])
            return np.asarray(np.exp(shifted) / total).astype(operands[0].dtype)

    def decompose(self, *operands: Term) -> Term:
        (x,) = operands
        parts = _shifted(x, self.axis).exp()
        total = parts.sum_keep([self.axis]).broadcast(x.shape)
        return (parts / total).cast(x.type.dtype)

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term:
        (tangent,) = tangents
        assert tangent is not None
        scaled = tangent.zero_mul(result)
        return scaled - scaled.sum_keep([self.axis]).broadcast(result.shape).zero_mul(result)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        shifted, total = self._parts(operands[0], index)
        return narrowed(Call("div", (Call("exp", (shifted,)), total)), operands[0].dtype)


@operation("log_softmax", family="normalising", torch="x.log_softmax(dim=axis)")
class LogSoftmax(_Softmax):
    """`log (softmax x)` along an axis without the loss of small probabilities."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "log_softmax[axis=0] [0.0, 0.0]  // [-0.693147, -0.693147]"

    axis: int = attribute(Kind.AXIS)

    def reference(self, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            shifted, total = self._numpy_parts(operands[0])
            return np.asarray(shifted - np.log(total)).astype(operands[0].dtype)

    def decompose(self, *operands: Term) -> Term:
        (x,) = operands
        shifted = _shifted(x, self.axis)
        total = shifted.exp().sum_keep([self.axis]).log()
        return (shifted - total.broadcast(x.shape)).cast(x.type.dtype)

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term:
        (tangent,) = tangents
        assert tangent is not None
        mean = tangent.zero_mul(result.exp()).sum_keep([self.axis])
        return tangent - mean.broadcast(result.shape)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        shifted, total = self._parts(operands[0], index)
        return narrowed(Call("sub", (shifted, Call("log", (total,)))), operands[0].dtype)
