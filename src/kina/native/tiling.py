"""The sizes that gemm is cut into, from the machine: register tiles and cache blocks.

After Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016): the tile
fills the registers, a row tile of A and a panel's steps fit in L1, a block of B in L2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kina.native.machine import KIB, MIB, Machine

DTYPES = {"f32": 4, "f64": 8}
"""The element types gemm is made for, with their sizes in bytes."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """Sizes of the register tile and of the cache blocks, in elements.

    `block_k` is fixed by the machine alone: sums are then split at the same places whatever the
    number of threads and the shape of the operands. The full tile is `rows` x `vectors`; the tall
    one `tall_rows` x `tall_vectors`.
    """

    dtype: str
    bytes: int
    lanes: int
    rows: int
    tall_rows: int
    vectors: int
    block_k: int
    block_n: int

    @staticmethod
    def of(machine: Machine, dtype: str) -> Tiling:
        """The tiling for `dtype` ("f32" or "f64")."""
        size = DTYPES[dtype]
        lanes = machine.lanes(size)
        vectors = 4 if machine.vector_registers >= 32 else 2
        block_k = (512 if machine.l2 >= MIB else 256) * 4 // size
        width = vectors * lanes
        # The packed block of B fills three eighths of L2; the rest is for A, C and what is read next.
        columns = min(machine.l2, 2 * MIB) * 3 // 8 // (block_k * size)
        return Tiling(dtype, size, lanes, 6, 8, vectors, block_k, max(width, columns // width * width))

    @property
    def width(self) -> int:
        """Columns of a full tile."""
        return self.lanes * self.vectors

    @property
    def tall_vectors(self) -> int:
        """Vectors of the tall tile, for matrices with a few rows more than the full tile has."""
        return self.vectors * 3 // 4

    def widths(self, rows: int) -> tuple[int, ...]:
        """The widths in vectors that kernels with `rows` rows exist for. Low tiles, which only matrices with few rows
        need, have fewer, to save compile time."""
        if rows > self.rows:
            return tuple(range(1, self.tall_vectors + 1))
        every = range(1, self.vectors + 1)
        return tuple(w for w in every if w != 3 or 2 * rows > self.rows)

    @property
    def element(self) -> Any:
        """The LLVM type of an element."""
        from llvmlite import ir

        return ir.FloatType() if self.dtype == "f32" else ir.DoubleType()

    @property
    def vector(self) -> Any:
        """The LLVM type of a vector."""
        from llvmlite import ir

        return ir.VectorType(self.element, self.lanes)

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return self.lanes * self.bytes

    @property
    def panel_bytes(self) -> int:
        """Bytes of a packed panel of B: `block_k` rows of a full tile's width."""
        return self.block_k * self.width * self.bytes

    @property
    def packed_b_bytes(self) -> int:
        """Bytes of a packed block of B."""
        return self.block_n // self.width * self.panel_bytes

    @property
    def packed_a_bytes(self) -> int:
        """Bytes of a packed row tile of A, with room for stores of 8 elements to run over its end."""
        return -(-(self.tall_rows * self.block_k + 8) * self.bytes // 64) * 64

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch a thread needs: packed B, packed A, one tile of C; a multiple of 4 KiB and a bit, so
        that the blocks of threads do not fall on the same cache sets."""
        tile = self.tall_rows * self.width * self.bytes
        return -(-(self.packed_b_bytes + self.packed_a_bytes + tile) // (4 * KIB)) * 4 * KIB + 256


def scratch_bytes(machine: Machine, dtype: str, threads: int) -> int:
    """The scratch that `threads` threads of gemm need together, whatever the sizes; to be aligned to 64 bytes."""
    return Tiling.of(machine, dtype).scratch_bytes * threads
