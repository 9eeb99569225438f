"""Runs random programs whose every array ends at a page that may not be touched.

`python guarded.py FIRST LAST` runs the programs of these seeds. A read or write outside an array kills the process:
the test that starts it sees that, and the seed on its output.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import random
import sys
from typing import Any

import numpy as np
from random_programs import LAYOUTS, Builder, draw_array, draw_sizes, lay_out

from kina import native
from kina.core.interpreter import run
from kina.kernels import fuse
from kina.native import calling
from kina.native.pool import Pool
from kina.native.runtime import set_threads
from kina.types import DType

_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(shape: tuple[int, ...], dtype: Any, *, at_start: bool = False) -> np.ndarray:
    """An array that ends at a forbidden page, or, `at_start`, begins after one."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    pages = -(-size // _PAGE)
    memory = mmap.mmap(-1, (pages + 2) * _PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if _libc.mprotect(ctypes.c_void_p(address + page * _PAGE), ctypes.c_size_t(_PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect failed")
    offset = _PAGE if at_start else (pages + 1) * _PAGE - size
    flat: np.ndarray = np.frombuffer(memory, np.uint8, size, offset)
    return flat.view(dtype).reshape(shape)


class GuardedPool(Pool):
    """Results and arenas on guarded memory."""

    def take(self, size: int) -> np.ndarray:
        return guarded((-(-size // 64) * 64,), np.uint8)

    def give(self, block: np.ndarray) -> None:
        pass

    def result(self, shape: tuple[int, ...], dtype: Any, size: int) -> np.ndarray:
        return guarded(shape, dtype)


def main(first: int, last: int) -> None:
    calling.SMALL = 0  # results of every size come from the pool
    set_threads(2)
    machine = native.Machine.host()
    for seed in range(first, last):
        print(seed, flush=True)
        generator = random.Random(seed)

        def choose(options: Any, generator: random.Random = generator) -> Any:
            return generator.choice(list(options))

        function = Builder(choose, bool(seed % 2)).build(1 + seed % 9)
        program = native.Executable(fuse(function), machine, pool=GuardedPool(), worth_a_thread=0)
        rng = np.random.default_rng(seed)
        for at_start in (False, True):
            sizes = draw_sizes(choose, function)

            def empty(shape: tuple[int, ...], dtype: Any, at_start: bool = at_start) -> np.ndarray:
                return guarded(shape, dtype, at_start=at_start)

            inputs = [lay_out(draw_array(v.type, sizes, rng), choose(LAYOUTS), empty) for v in function.inputs]
            got = program.run(sizes, inputs)
            for value, x, y in zip(function.outputs, got, run(function, sizes, inputs), strict=True):
                if value.type.dtype.is_integer or value.type.dtype is DType.BOOL:
                    np.testing.assert_array_equal(x, y)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
