"""Matrix multiplication, emitted as LLVM IR: C = A @ B for f32 and f64 with any strides.

The loops are Goto's (see `gemm_tiles`), with B packed and A mostly not: blocks of N outermost, then blocks of K, then
row tiles, then panels. With only one row tile, B is read in place. Transposed operands are turned while
packing, never copied as a whole; a transposed C swaps the roles of A and B. One row, or a few with B transposed, go
to `gemv`.

Threads split C, never K, and share nothing: each packs what it needs into its own scratch, so no
barrier is needed, and a result is the same to the last bit for every number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from kina.native.build import I1, I64, PTR, Builder, Value, at, ceil_div, each, int_, loop, minimum, when
from kina.native.gemm_pack import emit_pack_a, emit_pack_b, emit_scatter
from kina.native.gemm_tiles import ACCUMULATE, LAST, Epilogue, Store, Tiling, emit_tile_dispatch
from kina.native.gemv import emit_axpy, emit_dot, emit_few, emit_finish
from kina.native.machine import Machine

__all__ = ["GEMM_ARGUMENTS", "Epilogue", "Store", "emit_gemm", "scratch_bytes"]

GEMM_ARGUMENTS = (
    *("m", "n", "k", "a", "a_row", "a_column", "b", "b_row", "b_column", "c", "c_row", "c_column"),
    *("scratch", "tid", "threads", "context"),
)
DOT_ROWS = 4  # up to as many rows of A go to the dot form: with more, packing B pays
COLUMN_UNIT = 16  # gemv splits columns among threads in multiples of this
PACKING_ROWS = 4  # packing a panel costs a thread about as much as computing this many rows of it

_POINTERS = ("a", "b", "c", "scratch", "context")
_STRIDES = ("a_row", "a_column", "b_row", "b_column", "c_row", "c_column")
_TYPE = ir.FunctionType(ir.VoidType(), [PTR if name in _POINTERS else I64 for name in GEMM_ARGUMENTS])
_SWAPPED_PAIRS = (("m", "n"), ("a", "b"), ("c_row", "c_column"), ("a_row", "b_column"), ("a_column", "b_row"))
_SWAP = dict(_SWAPPED_PAIRS) | {y: x for x, y in _SWAPPED_PAIRS}


def scratch_bytes(machine: Machine, dtype: str, threads: int) -> int:
    """The scratch that `threads` threads need together, whatever the sizes; to be aligned to 64 bytes."""
    return Tiling.of(machine, dtype).scratch_bytes * threads


def emit_gemm(
    module: ir.Module, machine: Machine, dtype: str, *, name: str | None = None, epilogue: Epilogue | None = None
) -> ir.Function:
    """Emits (once a name) `void name(GEMM_ARGUMENTS)` into `module`: this thread's part of C = A @ B.

    `dtype` is "f32" or "f64". Sizes are >= 0 (K = 0 gives zeros); strides count elements and may be
    0 or negative for A and B; elements of C are distinct and overlap neither A nor B. `scratch`, aligned to 64
    bytes, is shared by all `threads` threads and holds `scratch_bytes`. All threads call with the same arguments
    but `tid`, and C is complete when all have returned. The epilogue, with `context`, is applied to each
    finished element once; give every epilogue its own `name`.
    """
    name = name or f"kina_gemm_{dtype}"
    found = module.globals.get(name)
    if found is not None:
        return found
    tiling = Tiling.of(machine, dtype)
    parts = _Parts(
        tiles=emit_tile_dispatch(module, tiling, f"{name}.tile", epilogue),
        pack_a=_shared(module, f"kina.pack_a.{dtype}", emit_pack_a, tiling),
        pack_b=_shared(module, f"kina.pack_b.{dtype}", emit_pack_b, tiling),
        scatter=_shared(module, f"kina.scatter.{dtype}", emit_scatter, tiling),
        axpy=_shared(module, f"kina.axpy.{dtype}", emit_axpy, tiling),
        few=_shared(module, f"kina.few.{dtype}", emit_few, tiling),
        dot=_shared(module, f"kina.dot.{dtype}", emit_dot, tiling),
        finish=emit_finish(module, tiling, f"{name}.finish", epilogue) if epilogue is not None else None,
    )
    blocks = _emit_blocks(module, tiling, parts, f"{name}.blocks")
    return _emit_entry(module, machine, tiling, parts, blocks, name)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The functions a gemm is put together from."""

    tiles: ir.Function
    pack_a: ir.Function
    pack_b: ir.Function
    scatter: ir.Function
    axpy: ir.Function
    few: ir.Function
    dot: ir.Function
    finish: ir.Function | None


def _shared(module: ir.Module, name: str, emit: object, tiling: Tiling) -> ir.Function:
    """A part that all gemms of a dtype in a module share."""
    assert callable(emit)
    return module.globals.get(name) or emit(module, tiling, name)


def _new_function(module: ir.Module, name: str) -> tuple[ir.Function, Builder, dict[str, Value]]:
    function = ir.Function(module, _TYPE, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    return function, builder, dict(zip(GEMM_ARGUMENTS, function.args, strict=True))


def _emit_entry(
    module: ir.Module, machine: Machine, tiling: Tiling, parts: _Parts, blocks: ir.Function, name: str
) -> ir.Function:
    """Brings the operands into the form the loops like, and picks the loops by the number of rows."""
    function, b, x = _new_function(module, name)
    one = int_(1)
    if parts.finish is None:  # an epilogue wants its vectors along rows of C as given
        vector = b.and_(b.icmp_signed("==", x["n"], one), b.icmp_signed("!=", x["m"], one))
        transposed = b.and_(b.icmp_signed("!=", x["c_column"], one), b.icmp_signed("==", x["c_row"], one))
        swap = b.or_(vector, b.and_(transposed, b.icmp_signed("!=", x["m"], one)))
        x |= {k: b.select(swap, x[other], x[k]) for k, other in _SWAP.items()}
    size = int_(tiling.bytes)
    x |= {stride: b.mul(x[stride], size) for stride in _STRIDES}
    start, stop = _share(b, x["n"], int_(COLUMN_UNIT), x["tid"], x["threads"])
    c_contiguous = b.icmp_signed("==", x["c_column"], size)
    origin = at(b, x["c"], b.mul(start, x["c_column"]))

    def finish() -> None:
        if parts.finish is not None:
            b.call(parts.finish, [x["m"], start, stop, x["c"], x["c_row"], x["context"]])
        b.ret_void()

    straight = b.and_(c_contiguous, b.icmp_signed("==", x["b_column"], size))
    count, matrix = b.sub(stop, start), at(b, x["b"], b.mul(start, x["b_column"]))
    with b.if_then(b.and_(b.icmp_signed("==", x["m"], one), straight)):
        b.call(parts.axpy, [count, x["k"], x["a"], x["a_column"], matrix, x["b_row"], origin])
        finish()
    # Tiles read B in short pieces of many rows: well from L2, badly from beyond.
    far = b.icmp_signed(">", b.mul(b.mul(x["n"], x["k"]), size), int_(machine.l2 * 3 // 4))
    streams = b.and_(b.and_(straight, far), b.icmp_signed("<=", x["m"], int_(tiling.tall_rows)))
    with b.if_then(streams):
        block = at(b, x["scratch"], b.mul(x["tid"], int_(tiling.scratch_bytes)))
        operands = [x["a"], x["a_row"], x["a_column"], matrix, x["b_row"], origin, x["c_row"], block]
        b.call(parts.few, [x["m"], count, x["k"], *operands])
        finish()
    turned = b.and_(b.icmp_signed("==", x["b_row"], size), b.icmp_signed("==", x["a_column"], size))
    few = b.icmp_signed("<=", x["m"], int_(DOT_ROWS))
    simple = c_contiguous if parts.finish is not None else ir.Constant(I1, 1)
    with b.if_then(b.and_(b.and_(turned, few), simple)):
        operands = [x["a"], x["a_row"], matrix, x["b_column"], origin, x["c_row"], x["c_column"]]
        b.call(parts.dot, [x["m"], count, x["k"], *operands])
        finish()
    b.call(blocks, [x[argument] for argument in GEMM_ARGUMENTS])
    b.ret_void()
    return function


def _share(b: Builder, total: Value, unit: Value, index: Value, count: Value) -> tuple[Value, Value]:
    """The range of `total` elements that part `index` of `count` has, in multiples of `unit`."""
    units = ceil_div(b, total, unit)
    bounds = (b.mul(b.udiv(b.mul(units, i), count), unit) for i in (index, b.add(index, int_(1))))
    start, stop = (minimum(b, bound, total) for bound in bounds)
    return start, stop


def _grid(b: Builder, tiling: Tiling, m: Value, n: Value, threads: Value) -> Value:
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


def _emit_blocks(module: ir.Module, tiling: Tiling, parts: _Parts, name: str) -> ir.Function:
    """Goto's loops over this thread's part of C. Strides are in bytes here."""
    function, b, x = _new_function(module, name)
    across = _grid(b, tiling, x["m"], x["n"], x["threads"])
    down = b.udiv(x["threads"], across)
    i0, i1 = _share(b, x["m"], int_(1), b.udiv(x["tid"], across), down)
    j0, j1 = _share(b, x["n"], int_(tiling.width), b.urem(x["tid"], across), across)
    rows = b.sub(i1, i0)
    with b.if_then(b.icmp_signed("==", rows, int_(0))):
        b.ret_void()
    x["packed_b"] = at(b, x["scratch"], b.mul(x["tid"], int_(tiling.scratch_bytes)))
    x["packed_a"] = at(b, x["packed_b"], tiling.packed_b_bytes)
    x["tile"] = at(b, x["packed_a"], tiling.packed_a_bytes)
    # With one row tile, B is read in place if it can be; only a last, partial panel is packed then.
    readable = b.icmp_signed("==", x["b_column"], int_(tiling.bytes))
    most = b.select(readable, int_(tiling.tall_rows), int_(tiling.rows))
    single = b.icmp_signed("<=", rows, most)
    count = b.select(single, int_(1), ceil_div(b, rows, int_(tiling.rows)))
    # Row tiles of equal height, or one row less: better than full ones and a low rest.
    height, taller = b.udiv(rows, count), b.urem(rows, count)
    in_place = b.and_(single, readable)
    tall = b.icmp_signed(">", height, int_(tiling.rows))
    step = b.select(tall, int_(tiling.tall_vectors * tiling.lanes), int_(tiling.width))
    k_stop = b.select(b.icmp_signed(">", x["k"], int_(0)), x["k"], int_(1))

    def block_n(j: Value) -> None:
        columns = minimum(b, int_(tiling.block_n), b.sub(j1, j))

        def block_k(s: Value) -> None:
            steps = minimum(b, int_(tiling.block_k), b.sub(x["k"], s))
            later = b.icmp_signed(">", s, int_(0))
            last = b.icmp_signed(">=", b.add(s, int_(tiling.block_k)), x["k"])
            flags = b.or_(b.select(later, int_(ACCUMULATE), int_(0)), b.select(last, int_(LAST), int_(0)))
            matrix = at(b, x["b"], b.add(b.mul(s, x["b_row"]), b.mul(j, x["b_column"])))
            block = _Block(j, columns, step, s, steps, matrix, in_place, flags)
            strides = x["b_row"], x["b_column"]
            when(
                b,
                b.not_(in_place),
                lambda: b.call(parts.pack_b, [steps, columns, matrix, *strides, x["packed_b"]]),
            )

            def row_tile(t: Value, carried: list[Value]) -> list[Value]:
                i = carried[0]
                rows = b.add(height, b.zext(b.icmp_signed("<", t, taller), I64))
                _emit_row_tile(b, tiling, parts, x, block, i, rows)
                return [b.add(i, rows)]

            loop(b, int_(0), count, 1, [i0], row_tile)

        each(b, int_(0), k_stop, tiling.block_k, block_k)

    each(b, j0, j1, tiling.block_n, block_n)
    b.ret_void()
    return function


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of B: its columns (first, count, how many a panel), its steps along K (first, count), where it
    starts, whether it is read there or packed, and the flags for the kernels."""

    column: Value
    columns: Value
    panel: Value
    step: Value
    steps: Value
    matrix: Value
    in_place: Value
    flags: Value


def _emit_row_tile(
    b: Builder, tiling: Tiling, parts: _Parts, x: dict[str, Value], block: _Block, start: Value, rows: Value
) -> None:
    """`rows` rows of A from `start` times all panels of a block of B."""
    size = int_(tiling.bytes)
    source = at(b, x["a"], b.add(b.mul(start, x["a_row"]), b.mul(block.step, x["a_column"])))
    in_place = b.icmp_signed("==", x["a_column"], size)
    when(
        b,
        b.not_(in_place),
        lambda: b.call(parts.pack_a, [rows, block.steps, source, x["a_row"], x["a_column"], x["packed_a"]]),
    )
    a = b.select(in_place, source, x["packed_a"])
    a_row = b.select(in_place, x["a_row"], size)
    a_step = b.select(in_place, size, b.mul(rows, size))

    def panel(offset: Value) -> None:
        width = minimum(b, block.panel, b.sub(block.columns, offset))
        panel_at, panel_row = _emit_panel(b, tiling, parts, x, block, offset, width)
        column = b.add(block.column, offset)
        c = at(b, x["c"], b.add(b.mul(start, x["c_row"]), b.mul(column, x["c_column"])))
        before = [block.steps, a, a_row, a_step, panel_at, panel_row]
        after = [width, block.flags, start, column, x["context"], rows]
        _emit_tile_call(b, tiling, parts, x, c, (rows, width), before, after, block.flags)

    each(b, int_(0), block.columns, block.panel, panel)


def _emit_panel(
    b: Builder, tiling: Tiling, parts: _Parts, x: dict[str, Value], block: _Block, offset: Value, width: Value
) -> tuple[Value, Value]:
    """Where a panel's rows are, and how far apart. A partial panel of a block that is read in place is packed here:
    kernels read whole vectors."""
    partial = b.icmp_signed("!=", width, block.panel)
    matrix = at(b, block.matrix, b.mul(offset, x["b_column"]))
    strides = x["b_row"], x["b_column"]
    when(
        b,
        b.and_(block.in_place, partial),
        lambda: b.call(parts.pack_b, [block.steps, width, matrix, *strides, x["packed_b"]]),
    )
    place = b.mul(offset, int_(tiling.block_k * tiling.bytes))
    packed = at(b, x["packed_b"], b.select(block.in_place, int_(0), place))
    reads = b.and_(block.in_place, b.not_(partial))
    return b.select(reads, matrix, packed), b.select(reads, x["b_row"], int_(tiling.width * tiling.bytes))


def _emit_tile_call(
    b: Builder,
    tiling: Tiling,
    parts: _Parts,
    x: dict[str, Value],
    c: Value,
    shape: tuple[Value, Value],
    before: list[Value],
    after: list[Value],
    flags: Value,
) -> None:
    """Computes a tile into C, or, if C's rows are not contiguous, into a tile of our own that is then copied there."""
    tile_row = int_(tiling.width * tiling.bytes)
    size = int_(tiling.bytes)
    with b.if_else(b.icmp_signed("==", x["c_column"], size)) as (contiguous, scattered):
        with contiguous:
            b.call(parts.tiles, [*before, c, x["c_row"], *after])
        with scattered:
            accumulates = b.icmp_signed("!=", b.and_(flags, int_(ACCUMULATE)), int_(0))
            outside, inside = (c, x["c_row"], x["c_column"]), (x["tile"], tile_row, size)
            when(b, accumulates, lambda: b.call(parts.scatter, [*shape, *outside, *inside]))
            b.call(parts.tiles, [*before, x["tile"], tile_row, *after])
            b.call(parts.scatter, [*shape, *inside, *outside])
