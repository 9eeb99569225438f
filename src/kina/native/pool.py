"""Memory for results and arenas, recycled: fresh memory costs a page fault every 4 KiB.

A result's memory comes back when the last array that views it is gone. Small blocks are left to NumPy.
"""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Sequence
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


# ---------------------------------------------------------------- memory taken by machine code


_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", ctypes.CDLL(None)))


class Reserved:
    """The memory that a run takes, by the slots of its report (an address and a size, see `runtime`).

    What no result became the owner of is given back when this is dropped, however the run ended.
    """

    __slots__ = ("_free", "_report", "_slots")

    def __init__(self, report: np.ndarray[Any, Any], slots: Sequence[int]) -> None:
        self._report = report
        self._slots = slots
        self._free = _free  # the module's names may be gone at the end of the process

    def result(self, slot: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
        """The memory of a slot as a row-major array, to which it then belongs."""
        memory = _Owned(int(self._report[slot]), shape, np.dtype(np.uint16) if dtype.kind == "V" else dtype)
        self._report[slot] = 0
        array = np.asarray(memory)
        return array.view(dtype) if dtype.kind == "V" else array

    def __del__(self) -> None:
        for slot in self._slots:
            self._free(int(self._report[slot]))


class _Owned:
    """Keeps memory that machine code took while arrays view it."""

    __slots__ = ("__array_interface__", "_address", "_free")

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._address = address
        self._free = _free
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (address, False)}

    def __del__(self) -> None:
        self._free(self._address)


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
