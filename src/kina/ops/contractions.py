"""Contractions: sums of products over shared axes."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Operation, Rule, Sample, operation
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Call, Element, Index, Reduce, Scalar
from kina.ops.terms import Term
from kina.types import DType, Tensor


def turned(x: Term) -> Term:
    """The matrices of the last two axes, transposed."""
    *batch, row, column = range(x.type.rank)
    return x.transpose([*batch, column, row])


@operation("matmul", family="contraction", torch="x @ y")
class Matmul(Operation):
    """Matrix product over the last two axes: `[...B, M, K] @ [...B, K, N] -> [...B, M, N]`.

    The leading (batch) axes of both operands agree; the surface stretches the smaller one first.
    Half-precision operands accumulate in F32. A quantised operand is read as F32 (`cast[F32]`), and never stored so:
    native code unpacks its blocks as it multiplies. Native code recognises the operation and runs it as gemm.
    """

    shapes = "[...B, M, K], [...B, K, N] -> [...B, M, N]"
    example = "[[1.0, 2.0]] @ [[3.0], [4.0]]  // [[11.0]]"

    operand_names = ("x", "y")
    multilinear = True

    def takes_apart(self, operand: Tensor) -> bool:
        return True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        x, y = operands
        rule.rank(0, 2)
        rule.rank(1, 2)
        rule.dtype(0, DTypeClass.NUM)
        rule.same_dtype(0, 1)
        rule.same_size((0, -1), (1, -2), "K")
        if x.rank != y.rank:
            rule.refuse(f"the batch axes differ in number: {x.rank - 2} and {y.rank - 2}", operand=1)
        for axis in range(x.rank - 2):
            rule.same_size((0, axis), (1, axis), f"batch axis {axis}")
        return x.with_shape((*x.shape[:-1], y.shape[-1]))

    def reference(self, *operands: Array) -> Array:
        x, y = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        wide = dtype.accumulator.numpy
        with np.errstate(all="ignore"):
            found: Array = np.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)
        return found

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        x, _ = operands
        *batch, row, column = index
        k = variable("%k")
        left = widened(Element(0, (*batch, row, k)), x.dtype)
        right = widened(Element(1, (*batch, k, column)), x.dtype)
        return narrowed(Reduce("sum", "%k", x.shape[-1], Call("mul", (left, right))), x.dtype)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        x, y = operands
        return self(cotangent, turned(y)) if number == 0 else self(turned(x), cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        b, h, m, k, n = map(variable, "BHMKN")
        shapes = [((m, k), (k, n)), ((b, m, k), (b, k, n)), ((b, h, m, k), (b, h, k, n))]
        found = [Sample(cls(), (Tensor(DType.F32, x), Tensor(DType.F32, y))) for x, y in shapes]
        for dtype in (DType.F64, DType.BF16, DType.F16, DType.I32, DType.I64):
            found.append(Sample(cls(), (Tensor(dtype, (m, k)), Tensor(dtype, (k, n)))))
        return found
