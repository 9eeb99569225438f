"""Blocks of quantised numbers unpacked in registers: what `types.blocks` describes, as LLVM IR.

Loads stay inside the block. Numbers are `d * code + m` with a rounding after each step, so that they are those of the
reference to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from kina.native.build import F32, I8, I32, I64, PTR, Builder, Value, at, int_, intrinsic, splat
from kina.native.forms import reader_name
from kina.native.machine import Machine
from kina.native.sources import I16, widened
from kina.types import DType
from kina.types.blocks import NIBBLES, SCALE_BYTES, BlockFormat


def scales(b: Builder, machine: Machine, form: BlockFormat, block: Value) -> tuple[Value, Value | None]:
    """The block's scale, and its minimum where it has one: F32."""
    found = [
        widened(b, machine, DType.F16, b.load(at(b, block, SCALE_BYTES * n), typ=I16, align=1))
        for n in range(2 if form.has_minimum else 1)
    ]
    return found[0], found[1] if form.has_minimum else None


def codes(b: Builder, form: BlockFormat, block: Value, first: Value | int, lanes: int) -> Value:
    """The codes from number `first` on, a multiple of `lanes` (or any number, for one), less the centre: F32."""
    if form.bits == 8:
        place = at(b, block, b.add(int_(form.codes_at), _value(first)))
        whole = b.sext(b.load(place, typ=_vector(I8, lanes), align=1), _vector(I32, lanes))
    else:
        whole = _nibbles(b, form, block, first, lanes)
        if form.bits == 5:
            whole = b.or_(whole, _fifth_bits(b, form, block, first, lanes))
        if form.centre:
            whole = b.sub(whole, _same(I32, form.centre, lanes))
    return b.sitofp(whole, _vector(F32, lanes))


def numbers(
    b: Builder, machine: Machine, form: BlockFormat, block: Value, first: Value | int, lanes: int
) -> Value:
    """The numbers from `first` on, as `codes` counts: F32."""
    scale, minimum = scales(b, machine, form, block)
    found = b.fmul(codes(b, form, block, first, lanes), _spread(b, scale, lanes))
    return found if minimum is None else b.fadd(found, _spread(b, minimum, lanes))


def has_tables(machine: Machine, form: BlockFormat) -> bool:
    """Whether all numbers that a block can hold fit in one register, to be looked up there."""
    return machine.architecture == "x86_64" and machine.vector_bytes == 64 and form.bits == 4


def table(b: Builder, machine: Machine, form: BlockFormat, block: Value) -> Value:
    """The numbers that the 16 codes of a block stand for."""
    scale, minimum = scales(b, machine, form, block)
    steps = ir.Constant(_vector(F32, 16), [float(code - form.centre) for code in range(16)])
    found = b.fmul(steps, splat(b, scale, 16))
    return found if minimum is None else b.fadd(found, splat(b, minimum, 16))


def looked_up(b: Builder, form: BlockFormat, block: Value, found: Value) -> list[Value]:
    """All 32 numbers of a block as two vectors, out of its table. The instruction reads four bits of a place."""
    packed = b.load(at(b, block, form.codes_at), typ=_vector(I8, 16), align=1)
    low = b.zext(packed, _vector(I32, 16))
    places = (low, b.lshr(low, _same(I32, 4, 16)))
    return [intrinsic(b, "x86.avx512.permvar.sf", found.type, [found, place], ["512"]) for place in places]


def emit_reader(module: ir.Module, machine: Machine, dtype: DType, lanes: int) -> ir.Function:
    """`read(block, first)`: `lanes` numbers of a block, for kernels that read few of each (see `codes`)."""
    type_ = ir.FunctionType(_vector(F32, lanes), [PTR, I64])
    function = ir.Function(module, type_, reader_name(dtype, lanes))
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    block, first = function.args
    b.ret(numbers(b, machine, dtype.block_format, block, first, lanes))
    return function


def readers_text(machine: Machine, dtypes: Sequence[DType]) -> list[str]:
    """Readers of these dtypes, for single numbers and for vectors as loops have them, as text."""
    module = ir.Module("readers")
    for dtype in dtypes:
        for lanes in (1, machine.lanes(8), machine.lanes(4)):
            emit_reader(module, machine, dtype, lanes)
    return [str(function) for function in module.functions]


# ---------------------------------------------------------------- small pieces


def _nibbles(b: Builder, form: BlockFormat, block: Value, first: Value | int, lanes: int) -> Value:
    """The lower four bits: of bytes in order the lower halves, then the upper ones."""
    if lanes > NIBBLES:
        raise AssertionError("a vector is at most half a block")
    if isinstance(first, int):
        byte, shift = first % NIBBLES, b.trunc(int_(first // NIBBLES * 4), I8)
    else:
        byte, shift = b.urem(first, int_(NIBBLES)), b.trunc(b.mul(b.udiv(first, int_(NIBBLES)), int_(4)), I8)
    place = at(b, block, b.add(int_(form.codes_at), _value(byte)))
    packed = b.load(place, typ=_vector(I8, lanes), align=1)
    low = b.and_(b.lshr(packed, _spread(b, shift, lanes)), _same(I8, 15, lanes))
    return b.zext(low, _vector(I32, lanes))


def _fifth_bits(b: Builder, form: BlockFormat, block: Value, first: Value | int, lanes: int) -> Value:
    bits = b.load(at(b, block, form.high_bits_at), typ=I32, align=1)
    start = b.trunc(_value(first), I32)
    if lanes == 1:
        place = start
    else:
        ramp = ir.Constant(_vector(I32, lanes), list(range(lanes)))
        place = b.add(splat(b, start, lanes), ramp)
    bit = b.and_(b.lshr(_spread(b, bits, lanes), place), _same(I32, 1, lanes))
    return b.shl(bit, _same(I32, 4, lanes))


def _vector(scalar: ir.Type, lanes: int) -> ir.Type:
    return scalar if lanes == 1 else ir.VectorType(scalar, lanes)


def _same(scalar: ir.Type, value: int, lanes: int) -> Value:
    return ir.Constant(scalar, value) if lanes == 1 else ir.Constant(ir.VectorType(scalar, lanes), [value] * lanes)


def _spread(b: Builder, scalar: Value, lanes: int) -> Value:
    return scalar if lanes == 1 else splat(b, scalar, lanes)


def _value(n: Value | int) -> Value:
    return int_(n) if isinstance(n, int) else n
