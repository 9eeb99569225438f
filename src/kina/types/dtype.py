"""Element types."""

from __future__ import annotations

from enum import Enum
from functools import cache

import numpy as np
import numpy.typing as npt


class DType(Enum):
    """An element type: its name in Kina and the NumPy type that holds it."""

    F64 = "F64"
    F32 = "F32"
    F16 = "F16"
    BF16 = "BF16"
    I64 = "I64"
    I32 = "I32"
    I16 = "I16"
    I8 = "I8"
    U8 = "U8"
    BOOL = "Bool"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return _bfloat16() if self is DType.BF16 else _NUMPY[self]

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @property
    def is_number(self) -> bool:
        return self is not DType.BOOL

    @property
    def accumulator(self) -> DType:
        """The type in which sums and products of this one are kept (language.md, Numerics)."""
        return DType.F32 if self in (DType.F16, DType.BF16) else self

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.numpy.itemsize

    def __str__(self) -> str:
        return self.value

    @classmethod
    def of_numpy(cls, dtype: npt.DTypeLike) -> DType | None:
        """The Kina type that a NumPy type is, or None where there is none."""
        dtype = np.dtype(dtype)
        found = _FROM_NUMPY.get(dtype)
        if found is None and dtype.name == "bfloat16" and dtype == _bfloat16():
            return cls.BF16
        return found


@cache
def _bfloat16() -> np.dtype[np.generic]:
    # Imported when first asked for: it takes longer to load than checking a program does.
    import ml_dtypes

    dtype: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
    return dtype


_FLOATS = frozenset({DType.F64, DType.F32, DType.F16, DType.BF16})
_INTEGERS = frozenset({DType.I64, DType.I32, DType.I16, DType.I8, DType.U8})
_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.I64: np.dtype(np.int64),
    DType.I32: np.dtype(np.int32),
    DType.I16: np.dtype(np.int16),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {numpy: dtype for dtype, numpy in _NUMPY.items()}
