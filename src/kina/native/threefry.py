"""Threefry-2x32 as LLVM IR, in lanes of 32 bits; `ops.random` says what it is."""

from __future__ import annotations

from kina.native.code import Code, Operand, register_type
from kina.ops.random import PARITY, ROTATIONS
from kina.types import DType


def emit_threefry(code: Code, key: Operand, counter: Operand) -> Operand:
    """The 64 bits that a key makes of a counter; both are I64, of as many lanes."""
    lanes = counter.lanes
    word, wide = register_type(DType.I32, lanes), register_type(DType.I64, lanes)

    def number(value: int, type_: str) -> str:
        scalar = type_ if lanes == 1 else type_.rpartition(" ")[2].removesuffix(">")
        return str(value) if lanes == 1 else "<" + ", ".join([f"{scalar} {value}"] * lanes) + ">"

    def words(x: Operand) -> tuple[str, str]:
        upper = code.let(f"lshr {x}, {number(32, wide)}")
        return code.let(f"trunc {wide} {upper} to {word}"), code.let(f"trunc {x} to {word}")

    def add(x: str, y: str) -> str:
        return code.let(f"add {word} {x}, {y}")

    def xor(x: str, y: str) -> str:
        return code.let(f"xor {word} {x}, {y}")

    def turned(x: str, by: int) -> str:
        name = "i32" if lanes == 1 else f"v{lanes}i32"
        return code.let(f"call {word} @llvm.fshl.{name}({word} {x}, {word} {x}, {word} {number(by, word)})")

    first, second = words(key)
    keys = (first, second, xor(xor(first, second), number(PARITY, word)))
    x, y = (add(a, b) for a, b in zip(words(counter), keys, strict=False))
    for group in range(5):
        for by in ROTATIONS[group % 2]:
            x = add(x, y)
            y = xor(turned(y, by), x)
        x = add(x, keys[(group + 1) % 3])
        y = add(add(y, keys[(group + 2) % 3]), number(group + 1, word))
    upper = code.let(f"shl {wide} {code.let(f'zext {word} {x} to {wide}')}, {number(32, wide)}")
    return Operand(code.let(f"or {wide} {upper}, {code.let(f'zext {word} {y} to {wide}')}"), DType.I64, lanes)
