"""What quantised numbers mean, in NumPy, and what operations do with tensors of them.

A quantised tensor is an array of blocks (`types.blocks`); its last axis cannot be cut. Three kinds of operations take
one: those that move whole rows give a quantised tensor again, `cast` and `gather` read numbers of it as F32, and the
surface puts a `cast[F32]` in front of those that need its numbers in another order or multiply them (`takes_apart`).
"""

from __future__ import annotations

from kina.lazy import np
from kina.ops.base import Array, Rule
from kina.types import DType, Tensor
from kina.types.blocks import NUMBERS

WEIGHTS = (DType.Q8_0, DType.Q4_0, DType.Q4_1, DType.Q5_0, DType.Q5_1)


def as_numbers(x: Array) -> Array:
    """The array itself, or of an array of blocks the numbers, F32: what the gguf package reads, to the last bit."""
    dtype = DType.of_numpy(x.dtype)
    if dtype is None or dtype.block is None:
        return x
    form = dtype.block_format
    codes = x["qs"]
    if form.bits < 8:
        codes = np.concatenate([codes & 15, codes >> 4], axis=-1)
    if form.bits == 5:
        high = x["qh"][..., None] >> np.arange(NUMBERS, dtype=np.uint32)
        codes = codes | ((high & 1) << 4).astype(np.uint8)
    numbers = codes.astype(np.float32) - np.float32(form.centre)
    numbers *= x["d"].astype(np.float32)[..., None]
    if form.has_minimum:
        numbers += x["m"].astype(np.float32)[..., None]
    found: Array = numbers.reshape(dtype.shape_of(x))
    return found


def keep_rows_whole(rule: Rule, x: Tensor, axis: int, what: str) -> None:
    """Refuses an operation along the last axis of a quantised operand, whose rows stay whole."""
    if x.dtype.block is not None and axis == x.rank - 1:
        rule.refuse(
            f"{what} would cut the blocks of {x.dtype}, which lie along the last axis",
            operand=0,
            help="read its numbers first: cast[F32]",
        )
