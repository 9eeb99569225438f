"""Memory for results and arenas, recycled: fresh memory costs a page fault every 4 KiB.

A result's memory comes back when the last array that views it is gone. Small blocks are left to NumPy.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any

import numpy as np

from kina.diagnostics import KinaError

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
        self.kept = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """An aligned block of at least `size` bytes; contents undefined."""
        capacity = _size_class(size)
        with self._lock:
            blocks = self._free.get(capacity)
            if blocks:
                self.kept -= capacity
                return blocks.pop()
        try:
            raw = np.empty(capacity + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):
            raise KinaError(f"there is no memory for {size} bytes") from None
        start = -int(raw.ctypes.data) % ALIGNMENT
        return raw[start : start + capacity]

    def give(self, block: Bytes) -> None:
        """A block back, for the next taker of its class."""
        with self._lock:
            if self.kept + block.nbytes <= MOST_KEPT:
                self.kept += block.nbytes
                self._free[block.nbytes].append(block)

    def result(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> np.ndarray[Any, np.dtype[Any]]:
        """An uninitialised row-major array of `size` bytes. Its memory comes back when no array views it."""
        block = self.take(size)
        if dtype.kind == "V":  # BF16, which NumPy's array interface does not know
            return np.asarray(_Lease(self, block, shape, np.dtype(np.uint16))).view(dtype)
        return np.asarray(_Lease(self, block, shape, dtype))


def _size_class(size: int) -> int:
    if size <= ALIGNMENT:
        return ALIGNMENT
    power = 1 << (size - 1).bit_length()
    half_step = power - power // 4
    return half_step if size <= half_step else power


POOL = Pool()


class _Lease:
    """Keeps a block while arrays view it. NumPy arrays made from it hold it as their base."""

    __slots__ = ("__array_interface__", "_block", "_pool")

    def __init__(self, pool: Pool, block: Bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._pool = pool
        self._block = block
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.ctypes.data, False),
        }

    def __del__(self) -> None:
        self._pool.give(self._block)
