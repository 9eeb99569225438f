"""Single elements of tensors in memory, and loops over several axes: what kernels of their own kind are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from kina.kernels.ir import Loop
from kina.native.code import Code, Operand, memory_type
from kina.ops.scalar import Index
from kina.types import DType


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor in memory: where it begins, and its strides in elements ("1" where that is known)."""

    pointer: str
    dtype: DType
    strides: tuple[str, ...]


def address(code: Code, buffer: Buffer, index: Index) -> str:
    """Where an element is."""
    offset = "0"
    for i, stride in zip(index, buffer.strides, strict=True):
        step = code.let(f"mul nsw i64 {code.dim(i)}, {stride}")
        offset = code.let(f"add nsw i64 {offset}, {step}")
    return code.let(f"getelementptr inbounds {memory_type(buffer.dtype)}, ptr {buffer.pointer}, i64 {offset}")


def load(code: Code, buffer: Buffer, index: Index) -> Operand:
    """An element in a register."""
    dtype = buffer.dtype
    text = code.let(f"load {memory_type(dtype)}, ptr {address(code, buffer, index)}, align {dtype.itemsize}")
    if dtype is DType.BOOL:
        text = code.let(f"icmp ne {memory_type(dtype)} {text}, 0")
    return Operand(text, dtype)


def store(code: Code, value: Operand, buffer: Buffer, index: Index) -> None:
    """An element into memory."""
    dtype, text = buffer.dtype, value.text
    if dtype is DType.BOOL:
        text = code.let(f"zext {value} to {memory_type(dtype)}")
    code.do(f"store {memory_type(dtype)} {text}, ptr {address(code, buffer, index)}, align {dtype.itemsize}")


@contextmanager
def loops_over(code: Code, loops: Sequence[Loop]) -> Iterator[None]:
    """A nest of loops, the last one innermost."""
    with ExitStack() as nest:
        for loop in loops:
            at = nest.enter_context(code.loop("0", code.dim(loop.extent)))
            nest.enter_context(code.variable(loop.variable, at))
        yield
