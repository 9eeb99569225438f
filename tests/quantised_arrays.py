"""Arrays of blocks, made and read by the gguf package, whose values the quantised types mean."""

from __future__ import annotations

import gguf
import numpy as np

from kina.types import DType

QUANTISED = tuple(d for d in DType if d.block is not None)


def quantised(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Floats `[..., K]` rounded to an array of blocks `[..., K / 32]`."""
    if values.size == 0:
        return np.zeros(dtype.array_shape(values.shape), dtype.numpy)
    kind = gguf.GGMLQuantizationType[str(dtype)]
    return gguf.quants.quantize(values.astype(np.float32), kind).view(dtype.numpy)


def numbers_of(blocks: np.ndarray, dtype: DType) -> np.ndarray:
    """What an array of blocks holds, F32."""
    if blocks.size == 0:
        return np.zeros(dtype.shape_of(blocks), np.float32)
    rows = np.ascontiguousarray(blocks).view(np.uint8).reshape(*blocks.shape[:-1], -1)
    return gguf.quants.dequantize(rows, gguf.GGMLQuantizationType[str(dtype)])


def extreme_blocks(dtype: DType, count: int, seed: int) -> np.ndarray:
    """Blocks of random bytes: every code and bit pattern, with scales that are finite."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype.numpy)
    for scale in [name for name in ("d", "m") if name in (blocks.dtype.names or ())]:
        blocks[scale] = rng.standard_normal(count) * rng.choice([1e-7, 1e-3, 1.0, 1000.0], count)
    return blocks
