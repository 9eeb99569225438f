"""Half-precision values are computed in F32 and rounded once, at the end of each operation."""

from __future__ import annotations

from kina.ops.scalar import Cast, Scalar
from kina.types import DType


def widened(x: Scalar, dtype: DType) -> Scalar:
    """`x` in the type in which it accumulates."""
    return x if dtype.accumulator is dtype else Cast(x, dtype.accumulator)


def narrowed(x: Scalar, dtype: DType) -> Scalar:
    """The accumulated value rounded back."""
    return x if dtype.accumulator is dtype else Cast(x, dtype)
