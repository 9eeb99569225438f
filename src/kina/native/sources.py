"""What operands of gemm are stored as, and how their numbers come into registers as those that it computes with.

A plain source is an array of F32 or F64, or of halves (F16, BF16) that are widened as they are loaded; a source of
blocks is quantised, and unpacked there (`blocks`). Rows of blocks lie along K.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from kina.native.build import F32, F64, I32, Builder, Value, load_vector
from kina.native.machine import Machine
from kina.types import DType
from kina.types.blocks import BLOCK_FORMATS, BlockFormat

I16 = ir.IntType(16)


@dataclass(frozen=True, slots=True)
class Plain:
    """Numbers that lie one by one: `dtype` is F32, F64, F16 or BF16."""

    dtype: DType
    machine: Machine

    @property
    def bytes(self) -> int:
        """What a number takes."""
        return self.dtype.itemsize

    @property
    def is_half(self) -> bool:
        """Whether numbers are widened as they are loaded."""
        return self.bytes == 2

    def offset(self, b: Builder, computed: Value) -> Value:
        """Bytes here, for bytes of the numbers that are computed with."""
        return b.ashr(computed, ir.Constant(computed.type, 1)) if self.is_half else computed

    def load(self, b: Builder, place: Value) -> Value:
        """The number at an address."""
        if not self.is_half:
            return b.load(place, typ=F64 if self.bytes == 8 else F32, align=self.bytes)
        return widened(b, self.machine, self.dtype, b.load(place, typ=I16, align=2))

    def load_vector(self, b: Builder, place: Value, type_: ir.VectorType, *, mask: Value | None = None) -> Value:
        """A vector of the type that is computed with; zeros where the mask is false."""
        if not self.is_half:
            return load_vector(b, place, type_, mask=mask)
        bits = load_vector(b, place, ir.VectorType(I16, type_.count), mask=mask)
        return widened(b, self.machine, self.dtype, bits)


Source = Plain | BlockFormat


def source_of(name: str, machine: Machine) -> Source:
    """The source of a name: `f32`, `bf16`, `q4_1`."""
    upper = name.upper()
    return BLOCK_FORMATS[upper] if upper in BLOCK_FORMATS else Plain(DType[upper], machine)


def widened(b: Builder, machine: Machine, dtype: DType, bits: Value) -> Value:
    """F16 or BF16, given as i16 or a vector of them, as F32."""

    def like(scalar: ir.Type) -> ir.Type:
        return ir.VectorType(scalar, bits.type.count) if isinstance(bits.type, ir.VectorType) else scalar

    def number(value: float, scalar: ir.Type = I32) -> Value:
        type_ = like(scalar)
        return ir.Constant(type_, [value] * type_.count if isinstance(type_, ir.VectorType) else value)

    if dtype is DType.BF16:
        return b.bitcast(b.shl(b.zext(bits, like(I32)), number(16)), like(F32))
    if machine.vector_bytes >= 32 or machine.architecture in ("aarch64", "arm64"):
        return b.fpext(b.bitcast(bits, like(ir.HalfType())), like(F32))
    # Without an instruction for it: the exponent is moved and scaled, which is right for subnormal numbers too.
    whole = b.zext(bits, like(I32))
    magnitude = b.shl(b.and_(whole, number(0x7FFF)), number(13))
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, like(F32)), number(2.0**112, F32)), like(I32))
    special = b.or_(magnitude, number(0x7F800000))
    is_special = b.icmp_unsigned(">=", magnitude, number(0x7C00 << 13))
    sign = b.shl(b.and_(whole, number(0x8000)), number(16))
    return b.bitcast(b.or_(b.select(is_special, special, scaled), sign), like(F32))
