"""Divisions that cost more than they are worth, as products."""

from __future__ import annotations

from kina.kernels.expressions import COSTLY, free_variables, rebuild, result_dtype
from kina.ops.scalar import Call, Literal, Scalar
from kina.types import DType

_RANGE = {DType.F32: (-100, 100, 64), DType.F64: (-900, 900, 512)}
"""Powers of two: beyond the first two a divisor is scaled by the third, up or down."""


def with_reciprocals(e: Scalar, variable: str, dtypes: tuple[DType, ...]) -> Scalar:
    """Divisions of a function's value (`exp x`) by what a loop leaves the same, as products with its reciprocal.

    Nobody expects the last bit of such a quotient, and dividing takes longer than all of `exp`. Both sides are scaled
    where the divisor is near the ends of its range, so that its reciprocal is no denormal and no infinity.
    """
    e = rebuild(e, lambda child: with_reciprocals(child, variable, dtypes))
    match e:
        case Call("div", (Call(function, _) as above, below)) if function in COSTLY and variable in free_variables(e):
            dtype = result_dtype(e, dtypes)
            if variable in free_variables(below) or dtype not in _RANGE:
                return e
            size = Call("abs", (below,))
            near, far, factor = (Literal(2.0**n, dtype) for n in _RANGE[dtype])
            back = Literal(2.0 ** -_RANGE[dtype][2], dtype)
            small, large = Call("lt", (size, near)), Call("gt", (size, far))
            scale = Call("select", (small, factor, Call("select", (large, back, Literal(1.0, dtype)))))
            reciprocal = Call("div", (Literal(1.0, dtype), Call("mul", (below, scale))))
            return Call("mul", (Call("mul", (above, scale)), reciprocal))
    return e
