"""A few words on top of llvmlite's `IRBuilder`: byte addresses, loops that carry values, choices, vectors with masks.

Loop-carried values are phis from the start, never stack slots: the code is fast without any IR pass. All
integers are `i64` unless said otherwise; all addresses are `ptr` plus bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

Value = Any  # llvmlite has no types of its own: an ir.Value
Type = Any  # an ir.Type
Builder = Any  # an ir.IRBuilder

PTR = ir.PointerType()
I1 = ir.IntType(1)
I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
F32 = ir.FloatType()
F64 = ir.DoubleType()


def int_(n: int) -> Value:
    """The constant `n`, an i64."""
    return ir.Constant(I64, n)


def at(b: Builder, pointer: Value, offset: Value | int) -> Value:
    """The address `offset` bytes after `pointer`."""
    return b.gep(pointer, [int_(offset) if isinstance(offset, int) else offset], source_etype=I8)


def scaled(b: Builder, value: Value, factor: int) -> Value:
    """`value * factor`."""
    return b.mul(value, int_(factor))


def minimum(b: Builder, x: Value, y: Value) -> Value:
    """The smaller of two signed integers."""
    return b.select(b.icmp_signed("<", x, y), x, y)


def ceil_div(b: Builder, x: Value, y: Value) -> Value:
    """`x / y` rounded up, for `x >= 0`, `y > 0`."""
    return b.udiv(b.add(x, b.sub(y, int_(1))), y)


def loop(
    b: Builder,
    start: Value,
    stop: Value,
    step: Value | int,
    carried: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
) -> list[Value]:
    """`for i in range(start, stop, step)`, `step > 0`; `body(i, values)` gives the values for the next round.

    Gives the values after the last round (`carried` itself if there is none). The test is at the bottom.
    """
    before = b.block
    head, end = b.append_basic_block("loop"), b.append_basic_block("end")
    b.cbranch(b.icmp_signed("<", start, stop), head, end)
    b.position_at_end(head)
    index = b.phi(I64, name="i")
    values = [b.phi(value.type) for value in carried]
    index.add_incoming(start, before)
    for value, first in zip(values, carried, strict=True):
        value.add_incoming(first, before)
    results = list(body(index, list(values)))
    following = b.add(index, int_(step) if isinstance(step, int) else step)
    latch = b.block
    b.cbranch(b.icmp_signed("<", following, stop), head, end)
    index.add_incoming(following, latch)
    for value, result in zip(values, results, strict=True):
        value.add_incoming(result, latch)
    b.position_at_end(end)
    finals = []
    for first, result in zip(carried, results, strict=True):
        final = b.phi(first.type)
        final.add_incoming(first, before)
        final.add_incoming(result, latch)
        finals.append(final)
    return finals


def each(b: Builder, start: Value, stop: Value, step: Value | int, body: Callable[[Value], None]) -> None:
    """`loop` with nothing carried."""

    def once(index: Value, _: list[Value]) -> list[Value]:
        body(index)
        return []

    loop(b, start, stop, step, [], once)


def choose(
    b: Builder, condition: Value, then: Callable[[], Sequence[Value]], otherwise: Callable[[], Sequence[Value]]
) -> list[Value]:
    """The values of the branch that `condition` takes; only that branch runs."""
    yes, no, end = (b.append_basic_block(name) for name in ("then", "else", "join"))
    b.cbranch(condition, yes, no)
    arms = []
    for block, arm in ((yes, then), (no, otherwise)):
        b.position_at_end(block)
        arms.append((list(arm()), b.block))
        b.branch(end)
    b.position_at_end(end)
    joined = []
    for first, second in zip(arms[0][0], arms[1][0], strict=True):
        phi = b.phi(first.type)
        phi.add_incoming(first, arms[0][1])
        phi.add_incoming(second, arms[1][1])
        joined.append(phi)
    return joined


def when(b: Builder, condition: Value, then: Callable[[], None]) -> None:
    """Runs `then` if `condition` holds."""
    yes, end = b.append_basic_block("then"), b.append_basic_block("end")
    b.cbranch(condition, yes, end)
    b.position_at_end(yes)
    then()
    b.branch(end)
    b.position_at_end(end)


def intrinsic(b: Builder, name: str, result: Type, arguments: Sequence[Value], suffixes: Sequence[str]) -> Value:
    """Calls `llvm.<name>.<suffixes>`, declared at first use."""
    full = ".".join(["llvm", name, *suffixes])
    found = b.module.globals.get(full)
    if found is None:
        found = ir.Function(b.module, ir.FunctionType(result, [value.type for value in arguments]), full)
    return b.call(found, arguments)


def type_suffix(type_: Type) -> str:
    """The part of an intrinsic's name that tells a type: `f32`, `v16f32`, `i64`."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{type_suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return "f32" if type_ == F32 else "f64"


def multiply_add(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """`x * y + z`, rounded once where the CPU has FMA, twice elsewhere (never a call of libm)."""
    return intrinsic(b, "fmuladd", x.type, [x, y, z], [type_suffix(x.type)])


def splat(b: Builder, scalar: Value, lanes: int) -> Value:
    """A vector of `lanes` copies of `scalar`."""
    one = b.insert_element(ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined), scalar, ir.Constant(I32, 0))
    return b.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def zeros(type_: Type) -> Value:
    """Zero, or a vector of zeros."""
    zero = 0 if isinstance(_scalar(type_), ir.IntType) else 0.0
    return ir.Constant(type_, [zero] * type_.count if isinstance(type_, ir.VectorType) else zero)


def mask_below(b: Builder, lanes: int, count: Value) -> Value:
    """A mask that is true in the lanes below `count` (any integer: none if negative, all if large)."""
    bounded = b.trunc(minimum(b, count, int_(lanes)), I32)
    iota = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    return b.icmp_signed("<", iota, splat(b, bounded, lanes))


def load_vector(b: Builder, pointer: Value, type_: Type, *, mask: Value | None = None, align: int = 0) -> Value:
    """A vector from memory, aligned as one element unless said otherwise; zeros where the mask is false."""
    align = align or element_bytes(type_)
    if mask is None:
        return b.load(pointer, typ=type_, align=align)
    arguments = [pointer, ir.Constant(I32, align), mask, zeros(type_)]
    return intrinsic(b, "masked.load", type_, arguments, [type_suffix(type_), "p0"])


def store_vector(b: Builder, value: Value, pointer: Value, *, mask: Value | None = None, align: int = 0) -> None:
    """A vector to memory, aligned as one element unless said otherwise; only lanes where the mask is true."""
    align = align or element_bytes(value.type)
    if mask is None:
        b.store(value, pointer, align=align)
    else:
        arguments = [value, pointer, ir.Constant(I32, align), mask]
        intrinsic(b, "masked.store", ir.VoidType(), arguments, [type_suffix(value.type), "p0"])


def element_bytes(type_: Type) -> int:
    """The size of an element, of a scalar type or of a vector's."""
    scalar = _scalar(type_)
    if isinstance(scalar, ir.IntType):
        return max(1, int(scalar.width) // 8)
    return 4 if scalar == F32 else 8


def _scalar(type_: Type) -> Type:
    return type_.element if isinstance(type_, ir.VectorType) else type_
