"""Element types."""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from kina.lazy import np
from kina.types.blocks import BLOCK_FORMATS, NUMBERS, BlockFormat

if TYPE_CHECKING:
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
    Q8_0 = "Q8_0"
    Q4_0 = "Q4_0"
    Q4_1 = "Q4_1"
    Q5_0 = "Q5_0"
    Q5_1 = "Q5_1"

    @property
    def block(self) -> int | None:
        """Numbers a block of a quantised type, which are stored together; None for a type that is not quantised."""
        return NUMBERS if self.value in BLOCK_FORMATS else None

    @property
    def block_format(self) -> BlockFormat:
        """How the blocks of a quantised type lie in memory."""
        return BLOCK_FORMATS[self.value]

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """What holds it: for a quantised type a structure, one for each block."""
        return _bfloat16() if self is DType.BF16 else _numpy_types()[self]

    def shape_of(self, array: npt.NDArray[np.generic]) -> tuple[int, ...]:
        """The shape of the numbers that an array of this type holds. A quantised one's last axis counts blocks."""
        if self.block is None or array.ndim == 0:
            return array.shape
        return (*array.shape[:-1], array.shape[-1] * self.block)

    def array_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array that holds numbers of this shape."""
        return shape if self.block is None else (*shape[:-1], shape[-1] // self.block)

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        return self in _INTEGERS

    @property
    def is_number(self) -> bool:
        return self in _FLOATS or self in _INTEGERS

    @property
    def accumulator(self) -> DType:
        """The type in which sums and products of this one are kept (language.md, Numerics)."""
        return DType.F32 if self in (DType.F16, DType.BF16) else self

    @property
    def itemsize(self) -> int:
        """Bytes an element of an array: of a quantised type, a block."""
        return _BYTES[self] if self.block is None else self.block_format.bytes

    @property
    def integer_range(self) -> tuple[int, int]:
        """The least and the greatest number that an integer type holds."""
        bits = 8 * self.itemsize
        return (0, 2**bits - 1) if self is DType.U8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    @property
    def too_large(self) -> float:
        """The least positive number that a float type rounds to infinity."""
        return _TOO_LARGE[self]

    def __str__(self) -> str:
        return self.value

    @classmethod
    def of_numpy(cls, dtype: npt.DTypeLike) -> DType | None:
        """The Kina type that a NumPy type is, or None where there is none."""
        dtype = np.dtype(dtype)
        found = _kina_types().get(dtype)
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
_BYTES = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8, DType.I32: 4, DType.I16: 2, DType.I8: 1,
    DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip
_TOO_LARGE = {
    DType.F64: float("inf"),
    DType.F32: (2 - 2.0**-24) * 2.0**127,
    DType.F16: (2 - 2.0**-11) * 2.0**15,
    DType.BF16: (2 - 2.0**-8) * 2.0**127,
}
_NAMES = {
    DType.F64: "float64", DType.F32: "float32", DType.F16: "float16", DType.I64: "int64", DType.I32: "int32",
    DType.I16: "int16", DType.I8: "int8", DType.U8: "uint8", DType.BOOL: "bool",
}  # fmt: skip


@cache
def _numpy_types() -> dict[DType, np.dtype[np.generic]]:
    plain = {dtype: np.dtype(name) for dtype, name in _NAMES.items()}
    blocks = {dtype: np.dtype(dtype.block_format.fields) for dtype in DType if dtype.block is not None}
    return {**plain, **blocks}


@cache
def _kina_types() -> dict[np.dtype[np.generic], DType]:
    return {numpy: dtype for dtype, numpy in _numpy_types().items()}
