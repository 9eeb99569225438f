"""Goto's loops around the micro-kernels, over one thread's part of C.

Blocks of N outermost, then blocks of K, then row tiles, then panels. A block of B is packed once and then read from
L2 by every row tile; a row tile of A stays in L1 while the panels pass. With only one row tile, B is read in place
instead, as packing would cost more than it saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from llvmlite import ir

from kina.native.build import I1, I64, Builder, Value, at, ceil_div, choose, each, int_, loop, minimum, when
from kina.native.gemm_finish import Finish
from kina.native.tiling import Tiling
from kina.types.blocks import NUMBERS

PACKING_ROWS = 4  # packing a panel costs a thread about as much as computing this many rows of it


@dataclass(frozen=True, slots=True)
class Parts:
    """The functions a gemm is put together from.

    Where `a_in_place` (or `b_in_place`) says so, an operand is stored as what is computed with, and tiles may read it
    where it lies.
    """

    tile: ir.Function
    pack_a: ir.Function
    pack_b: ir.Function
    copy_tile: ir.Function
    a_in_place: bool = True
    b_in_place: bool = True


class Matrix(NamedTuple):
    """An operand or the result: its first element, and its strides in bytes."""

    start: Value
    row: Value
    column: Value

    def at(self, b: Builder, row: Value, column: Value) -> Value:
        """The address of an element."""
        return at(b, self.start, b.add(b.mul(row, self.row), b.mul(column, self.column)))


class BlockMatrix(NamedTuple):
    """A B in blocks of rows: its first block, and the strides from block to block in bytes, down and across."""

    start: Value
    row: Value
    column: Value

    def at(self, b: Builder, row: Value, column: Value) -> Value:
        """The address of the block that begins with this row."""
        block = b.udiv(row, int_(NUMBERS))
        return at(b, self.start, b.add(b.mul(block, self.row), b.mul(column, self.column)))


@dataclass(frozen=True, slots=True)
class Problem:
    """C = A @ B, and which thread of how many asks; `scratch` is this thread's own."""

    m: Value
    n: Value
    k: Value
    a: Matrix
    b: Matrix | BlockMatrix
    c: Matrix
    scratch: Value
    tid: Value
    threads: Value
    finish: Finish


def share(b: Builder, total: Value, unit: Value, index: Value, count: Value) -> tuple[Value, Value]:
    """The range of `total` elements that part `index` of `count` has, in multiples of `unit`."""
    units = ceil_div(b, total, unit)
    bounds = (b.mul(b.udiv(b.mul(units, i), count), unit) for i in (index, b.add(index, int_(1))))
    start, stop = (minimum(b, bound, total) for bound in bounds)
    return start, stop


def emit_blocks(b: Builder, tiling: Tiling, parts: Parts, problem: Problem) -> None:
    """Emits the loops at the builder's place."""
    p = problem
    across = _threads_across(b, tiling, p.m, p.n, p.threads)
    i0, i1 = share(b, p.m, int_(1), b.udiv(p.tid, across), b.udiv(p.threads, across))
    j0, j1 = share(b, p.n, int_(tiling.width), b.urem(p.tid, across), across)
    loops = _Loops(b, tiling, parts, p)
    when(b, b.icmp_signed("<", i0, i1), lambda: loops.part((i0, i1), (j0, j1)))


def _threads_across(b: Builder, tiling: Tiling, m: Value, n: Value, threads: Value) -> Value:
    """How many of the threads split the columns (the others split the rows): the divisor of `threads` with the least
    work for the thread that has most. Splitting rows costs more, as every thread then packs its own B."""
    panels = ceil_div(b, n, int_(tiling.width))

    def attempt(split: Value, best: list[Value]) -> list[Value]:
        rest = b.udiv(threads, split)
        divides = b.icmp_signed("==", b.mul(rest, split), threads)
        rows = b.add(ceil_div(b, m, rest), int_(PACKING_ROWS))
        cost = b.mul(ceil_div(b, panels, split), rows)
        better = b.and_(divides, b.icmp_signed("<", cost, best[1]))
        return [b.select(better, split, best[0]), b.select(better, cost, best[1])]

    most = int_(2**62)
    return loop(b, int_(1), b.add(threads, int_(1)), 1, [int_(1), most], attempt)[0]


class _Rows(NamedTuple):
    """How the rows of a thread are cut into tiles: tiles `0..taller` have one row more than `height`."""

    start: Value
    tiles: Value
    height: Value
    taller: Value


class _Block(NamedTuple):
    """A block of B: first column and number of columns, first step and number of steps along K; whether sums are
    added to C, and whether they are then complete."""

    column: Value
    columns: Value
    step: Value
    steps: Value
    accumulates: Value
    completes: Value


class _RowTile(NamedTuple):
    """A row tile of A for a block of K: first row, number of rows, and where its elements are."""

    start: Value
    rows: Value
    a: Matrix


class _Loops:
    """The loops, one method each; what does not change between them is held here."""

    def __init__(self, b: Builder, tiling: Tiling, parts: Parts, problem: Problem) -> None:
        self.b, self.tiling, self.parts, self.problem = b, tiling, parts, problem
        self.size = int_(tiling.bytes)
        self.tile_row = int_(tiling.width * tiling.bytes)
        self.packed_b = problem.scratch
        self.packed_a = at(b, self.packed_b, tiling.packed_b_bytes)
        self.tile = Matrix(at(b, self.packed_a, tiling.packed_a_bytes), self.tile_row, self.size)

    def part(self, row_range: tuple[Value, Value], column_range: tuple[Value, Value]) -> None:
        """All of this thread's part of C."""
        b, tiling, k = self.b, self.tiling, self.problem.k
        count = b.sub(row_range[1], row_range[0])
        readable = self._readable(self.problem.b, self.parts.b_in_place)
        most = b.select(readable, int_(tiling.tall_rows), int_(tiling.rows))
        single = b.icmp_signed("<=", count, most)
        tiles = b.select(single, int_(1), ceil_div(b, count, int_(tiling.rows)))
        # Tiles of equal height, or one row less: better than full ones and a low rest.
        rows = _Rows(row_range[0], tiles, b.udiv(count, tiles), b.urem(count, tiles))
        in_place = b.and_(single, readable)
        tall = b.icmp_signed(">", rows.height, int_(tiling.rows))
        panel = b.select(tall, int_(tiling.tall_vectors * tiling.lanes), int_(tiling.width))
        # One round at least: K = 0 stores zeros.
        k_stop = b.select(b.icmp_signed(">", k, int_(0)), k, int_(1))

        def block(column: Value, step: Value) -> None:
            columns = minimum(b, int_(tiling.block_n), b.sub(column_range[1], column))
            steps = minimum(b, int_(tiling.block_k), b.sub(k, step))
            later = b.icmp_signed(">", step, int_(0))
            last = b.icmp_signed(">=", b.add(step, int_(tiling.block_k)), k)
            self.block(rows, _Block(column, columns, step, steps, later, last), in_place, panel)

        def columns(column: Value) -> None:
            each(b, int_(0), k_stop, tiling.block_k, lambda step: block(column, step))

        each(b, *column_range, tiling.block_n, columns)

    def block(self, rows: _Rows, block: _Block, in_place: Value, panel: Value) -> None:
        """All row tiles times one block of B."""
        b = self.b
        when(b, b.not_(in_place), lambda: self.pack_b(block, int_(0), block.columns))

        def row_tile(t: Value, carried: list[Value]) -> list[Value]:
            height = b.add(rows.height, b.zext(b.icmp_signed("<", t, rows.taller), I64))
            tile = _RowTile(carried[0], height, self.a_tile(block, carried[0], height))
            each(b, int_(0), block.columns, panel, lambda offset: self.panel(tile, block, in_place, panel, offset))
            return [b.add(carried[0], height)]

        loop(b, int_(0), rows.tiles, 1, [rows.start], row_tile)

    def _readable(self, matrix: Matrix | BlockMatrix, in_place: bool) -> Value:
        """Whether tiles can read a matrix where it lies: its rows are contiguous."""
        return self.b.icmp_signed("==", matrix.column, self.size) if in_place else ir.Constant(I1, 0)

    def pack_b(self, block: _Block, offset: Value, columns: Value) -> None:
        """Packs `columns` columns of a block of B, from `offset` on, to the start of the scratch."""
        matrix = self.problem.b
        source = matrix.at(self.b, block.step, self.b.add(block.column, offset))
        self.b.call(self.parts.pack_b, [block.steps, columns, source, matrix.row, matrix.column, self.packed_b])

    def a_tile(self, block: _Block, start: Value, rows: Value) -> Matrix:
        """A row tile of A for a block of K: in place if its steps are contiguous, else packed."""
        b, a = self.b, self.problem.a
        source = a.at(b, start, block.step)

        def pack() -> list[Value]:
            b.call(self.parts.pack_a, [rows, block.steps, source, a.row, a.column, self.packed_a])
            return [self.packed_a, self.size, b.mul(rows, self.size)]

        if not self.parts.a_in_place:
            return Matrix(*pack())
        readable = self._readable(a, in_place=True)
        return Matrix(*choose(b, readable, lambda: [source, a.row, self.size], pack))

    def panel(self, tile: _RowTile, block: _Block, in_place: Value, panel: Value, offset: Value) -> None:
        """One row tile times one panel. A partial panel of a B that is read in place is packed now: kernels read
        whole vectors."""
        b, matrix = self.b, self.problem.b
        width = minimum(b, panel, b.sub(block.columns, offset))
        partial = b.icmp_signed("!=", width, panel)
        when(b, b.and_(in_place, partial), lambda: self.pack_b(block, offset, width))
        reads = b.and_(in_place, b.not_(partial))
        place = b.mul(offset, int_(self.tiling.block_k * self.tiling.bytes))
        packed = at(b, self.packed_b, b.select(in_place, int_(0), place))
        column = b.add(block.column, offset)
        start = b.select(reads, matrix.at(b, block.step, column), packed)
        row = b.select(reads, matrix.row, self.tile_row)
        c = self.problem.c._replace(start=self.problem.c.at(b, tile.start, column))
        contiguous = b.icmp_signed("==", c.column, self.size)

        def into_c() -> list[Value]:
            self.compute(tile, block, start, row, width, c, column)
            return []

        def into_tile() -> list[Value]:
            shape = [tile.rows, width]
            when(b, block.accumulates, lambda: b.call(self.parts.copy_tile, [*shape, *c, *self.tile]))
            self.compute(tile, block, start, row, width, self.tile, column)
            b.call(self.parts.copy_tile, [*shape, *self.tile, *c])
            return []

        choose(b, contiguous, into_c, into_tile)

    def compute(
        self, tile: _RowTile, block: _Block, start: Value, row: Value, width: Value, c: Matrix, column: Value
    ) -> None:
        """Calls the kernel, with C's tile at `c`, and finishes the tile if its sums are complete."""
        b = self.b
        accumulates = b.zext(block.accumulates, I64)
        operands = [block.steps, *tile.a, start, row, c.start, c.row, width, accumulates]
        b.call(self.parts.tile, [*operands, tile.rows])
        rows, columns = (tile.start, tile.rows), (column, width)
        finish = self.problem.finish
        when(b, block.completes, lambda: finish.call(b, rows, columns, c.start, (c.row, c.column)))
