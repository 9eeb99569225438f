"""The micro-kernels of gemm: a small tile of C kept in registers while K runs.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), in the form of BLIS
(Van Zee and van de Geijn, 2015): an outer product a step, `rows` broadcasts of A times `vectors` vectors of B.
One kernel is emitted for every tile shape up to the full one, so that edges cost what they hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from kina.native.build import (
    F32,
    F64,
    I64,
    PTR,
    Builder,
    Type,
    Value,
    at,
    choose,
    int_,
    load_vector,
    loop,
    mask_below,
    multiply_add,
    scaled,
    splat,
    store_vector,
    zeros,
)
from kina.native.machine import KIB, MIB, Machine

ACCUMULATE = 1  # flag: C holds the sum over the blocks of K before this one
LAST = 2  # flag: this is the last block of K, so the epilogue applies


@dataclass(frozen=True, slots=True)
class Store:
    """Where a vector of C is about to be stored: the place of its first lane, and which lanes exist.

    An epilogue that loads (a bias, a residual) must load under `mask` where it is not None.
    """

    context: Value
    row: Value
    column: Value
    mask: Value | None


Epilogue = Callable[[Builder, Store, Value], Value]
"""Emits IR that turns a finished vector of A @ B into what is stored in C."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """Sizes of the register tile and of the cache blocks, in elements.

    `block_k` is fixed by the machine alone: sums are then split at the same places whatever the
    number of threads and the shape of the operands.
    """

    element: Type
    bytes: int
    lanes: int
    rows: int
    vectors: int
    block_k: int
    block_n: int

    @staticmethod
    def of(machine: Machine, dtype: str) -> Tiling:
        """The tiling for `dtype` ("f32" or "f64")."""
        element, size = {"f32": (F32, 4), "f64": (F64, 8)}[dtype]
        lanes = machine.lanes(size)
        vectors = 4 if machine.vector_registers >= 32 else 2
        block_k = (512 if machine.l2 >= MIB else 256) * 4 // size
        width = vectors * lanes
        # The packed block of B fills about half of L2; the rest is for A, C and the next block.
        columns = min(machine.l2, 2 * MIB) // 2 // (block_k * size)
        return Tiling(element, size, lanes, 6, vectors, block_k, max(width, columns // width * width))

    @property
    def width(self) -> int:
        """Columns of a full tile."""
        return self.lanes * self.vectors

    @property
    def vector(self) -> Type:
        """The vector type."""
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
        return -(-(self.rows * self.block_k + 8) * self.bytes // 64) * 64

    @property
    def scratch_bytes(self) -> int:
        """Bytes of scratch a thread needs: packed B, packed A, one tile of C; a multiple of 4 KiB and a bit, so
        that the blocks of threads do not fall on the same cache sets."""
        tile = self.rows * self.width * self.bytes
        return -(-(self.packed_b_bytes + self.packed_a_bytes + tile) // (4 * KIB)) * 4 * KIB + 256


TILE_ARGUMENTS = (
    *("k", "a", "a_row", "a_step", "b", "b_row", "c", "c_row", "columns"),
    *("flags", "row", "column", "context", "pack"),
)
TILE_TYPE = ir.FunctionType(
    ir.VoidType(),
    [PTR if name in ("a", "b", "c", "context", "pack") else I64 for name in TILE_ARGUMENTS],
)


def emit_tile(
    module: ir.Module, tiling: Tiling, name: str, rows: int, vectors: int, epilogue: Epilogue | None, packs: bool
) -> ir.Function:
    """A kernel for a tile of `rows` x `vectors`: C (+)= A @ B over `k` steps.

    Its arguments, strides in bytes: A's element (r, s) at `a + r*a_row + s*a_step`; B's row s at `b + s*b_row`,
    contiguous; C's row r at `c + r*c_row`, contiguous, of which `columns` are stored. If `packs`,
    it also writes the rows of B it reads to `pack`, one full tile width apart.
    """
    function = ir.Function(module, TILE_TYPE, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    arg = dict(zip(TILE_ARGUMENTS, function.args, strict=True))
    sums = _accumulate(b, tiling, rows, vectors, arg, packs)
    _store(b, tiling, rows, vectors, arg, sums, epilogue)
    b.ret_void()
    return function


def _accumulate(
    b: Builder, tiling: Tiling, rows: int, vectors: int, arg: dict[str, Value], packs: bool
) -> list[Value]:
    """The sums over k, row by row."""
    twice = b.add(arg["a_row"], arg["a_row"])
    bases = [at(b, arg["a"], b.mul(arg["a_row"], int_(r))) for r in range(0, rows, 3)]
    n = len(bases)

    def step(_: Value, carried: list[Value]) -> list[Value]:
        heads, b_at, pack_at, sums = carried[:n], carried[n], carried[n + 1], carried[n + 2 :]
        loaded = [load_vector(b, at(b, b_at, v * tiling.vector_bytes), tiling.vector) for v in range(vectors)]
        if packs:
            for v, vector in enumerate(loaded):
                store_vector(b, vector, at(b, pack_at, v * tiling.vector_bytes), align=tiling.vector_bytes)
        results = []
        for r in range(rows):
            offset: Value | int = (0, arg["a_row"], twice)[r % 3]
            head = heads[r // 3] if r % 3 == 0 else at(b, heads[r // 3], offset)
            scalar = splat(b, b.load(head, typ=tiling.element, align=tiling.bytes), tiling.lanes)
            results += [multiply_add(b, scalar, loaded[v], sums[r * vectors + v]) for v in range(vectors)]
        heads = [at(b, head, arg["a_step"]) for head in heads]
        pack_at = at(b, pack_at, tiling.width * tiling.bytes) if packs else pack_at
        return [*heads, at(b, b_at, arg["b_row"]), pack_at, *results]

    zero = zeros(tiling.vector)
    start = [*bases, arg["b"], arg["pack"], *([zero] * (rows * vectors))]
    return loop(b, int_(0), arg["k"], 1, start, step)[n + 2 :]


def _store(
    b: Builder,
    tiling: Tiling,
    rows: int,
    vectors: int,
    arg: dict[str, Value],
    sums: list[Value],
    epilogue: Epilogue | None,
) -> None:
    """Adds what C holds if asked, applies the epilogue after the last block of K, stores. Only the last vector of
    a row can be partial, so only that one has a mask."""
    tail = mask_below(b, tiling.lanes, b.sub(arg["columns"], int_((vectors - 1) * tiling.lanes)))
    row_at = [arg["c"]]
    for _ in range(1, rows):
        row_at.append(at(b, row_at[-1], arg["c_row"]))

    def places() -> list[tuple[int, int, Value, Value | None]]:
        return [
            (r, v, at(b, row_at[r], v * tiling.vector_bytes), tail if v == vectors - 1 else None)
            for r in range(rows)
            for v in range(vectors)
        ]

    def add_c() -> list[Value]:
        return [
            b.fadd(load_vector(b, place, tiling.vector, mask=mask), total)
            for (_, _, place, mask), total in zip(places(), sums, strict=True)
        ]

    accumulates = b.icmp_signed("!=", b.and_(arg["flags"], int_(ACCUMULATE)), int_(0))
    totals = choose(b, accumulates, add_c, lambda: sums)
    if epilogue is not None:
        apply = epilogue

        def finish() -> list[Value]:
            done = []
            for (r, v, _, mask), total in zip(places(), totals, strict=True):
                row, column = b.add(arg["row"], int_(r)), b.add(arg["column"], int_(v * tiling.lanes))
                done.append(apply(b, Store(arg["context"], row, column, mask), total))
            return done

        last = b.icmp_signed("!=", b.and_(arg["flags"], int_(LAST)), int_(0))
        unfinished = totals
        totals = choose(b, last, finish, lambda: unfinished)
    for (_, _, place, mask), total in zip(places(), totals, strict=True):
        store_vector(b, total, place, mask=mask)


def emit_tile_dispatch(module: ir.Module, tiling: Tiling, name: str, epilogue: Epilogue | None) -> ir.Function:
    """All kernels, and a function in front that picks one: the arguments of a kernel, then the tile's rows, vectors,
    and whether to pack (which only full-width tiles of more than half the rows can)."""
    function_type = ir.FunctionType(ir.VoidType(), [*TILE_TYPE.args, I64, I64, I64])
    function = ir.Function(module, function_type, name)
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))
    *arguments, rows, vectors, packs = function.args
    # Shapes are numbered (rows - 1) * (vectors + 1) + vectors - 1; the last of each row of shapes packs.
    choices = tiling.vectors + 1
    column = b.select(b.icmp_signed("!=", packs, int_(0)), int_(tiling.vectors), b.sub(vectors, int_(1)))
    shape = b.add(scaled(b, b.sub(rows, int_(1)), choices), column)
    impossible = b.append_basic_block("impossible")
    switch = b.switch(shape, impossible)
    for r in range(1, tiling.rows + 1):
        for v in range(1, choices + 1):
            packing = v == choices
            if packing and 2 * r <= tiling.rows:
                continue
            shown = f"{name}.{r}x{tiling.vectors if packing else v}" + (".pack" if packing else "")
            kernel = emit_tile(module, tiling, shown, r, min(v, tiling.vectors), epilogue, packing)
            block = b.append_basic_block()
            switch.add_case(int_((r - 1) * choices + v - 1), block)
            b.position_at_end(block)
            b.call(kernel, arguments, tail="tail")
            b.ret_void()
    b.position_at_end(impossible)
    b.unreachable()
    return function
