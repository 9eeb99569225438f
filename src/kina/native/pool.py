"""Memory for results and arenas, recycled: fresh memory costs a page fault every 4 KiB.

A result's memory comes back when the last array that views it is gone. Small blocks are left to NumPy.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from typing import Any

import numpy as np

from kina.types import DType

ALIGNMENT = 64
SMALL = 64 * 1024
"""Bytes below which recycling does not pay."""
MOST_KEPT = 1 << 30
"""Bytes of free blocks that are kept at most."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Pool:
    """Free blocks by size class (a power of two and its half steps). Safe from several threads."""

    def __init__(self) -> None:
        self._free: dict[int, list[Bytes]] = defaultdict(list)
        self._kept = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """An aligned block of at least `size` bytes; contents undefined."""
        capacity = _size_class(size)
        with self._lock:
            blocks = self._free.get(capacity)
            if blocks:
                self._kept -= capacity
                return blocks.pop()
        raw = np.empty(capacity + ALIGNMENT, np.uint8)
        start = -int(raw.ctypes.data) % ALIGNMENT
        return raw[start : start + capacity]

    def give(self, block: Bytes) -> None:
        """A block back, for the next taker of its class."""
        with self._lock:
            if self._kept + block.nbytes <= MOST_KEPT:
                self._kept += block.nbytes
                self._free[block.nbytes].append(block)


def _size_class(size: int) -> int:
    if size <= ALIGNMENT:
        return ALIGNMENT
    power = 1 << (size - 1).bit_length()
    half_step = power - power // 4
    return half_step if size <= half_step else power


POOL = Pool()


class _Lease:
    """Keeps a block while arrays view it. NumPy arrays made from it hold it as their base."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: Bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.ctypes.data, False),
            "strides": None,
        }

    def __del__(self) -> None:
        POOL.give(self._block)


def result_array(shape: tuple[int, ...], dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    """An uninitialised row-major array on recycled memory."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL:
        return np.empty(shape, dtype.numpy)
    if dtype is DType.BF16:
        return np.asarray(_Lease(POOL.take(size), shape, np.dtype(np.uint16))).view(dtype.numpy)
    return np.asarray(_Lease(POOL.take(size), shape, dtype.numpy))
