"""Matrix multiplication, emitted as LLVM IR: C = A @ B for f32 and f64 with any strides.

Operands are brought into one form, then one of four loops runs: a single row and a few rows of A stream through B, a
few rows with B transposed are dot products (`gemv`), everything else is Goto's algorithm (`gemm_blocks`).
Transposed operands are turned while packing, never copied as a whole; a transposed C swaps the roles of A and B.

Threads split C, never K, and share nothing: each packs what it needs into its own scratch, so no
barrier is needed, and a result is the same to the last bit for every number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from kina.native.build import I64, PTR, Builder, Value, at, int_
from kina.native.gemm_blocks import Matrix, Parts, Problem, emit_blocks, share
from kina.native.gemm_finish import Finish
from kina.native.gemm_pack import emit_copy_tile, emit_pack_a, emit_pack_b
from kina.native.gemm_tiles import emit_tile_dispatch
from kina.native.gemv import emit_axpy, emit_dot, emit_few
from kina.native.machine import Machine
from kina.native.tiling import Tiling

GEMM_ARGUMENTS = (
    *("m", "n", "k", "a", "a_row", "a_column", "b", "b_row", "b_column", "c", "c_row", "c_column"),
    *("scratch", "tid", "threads", "finish", "context"),
)
_POINTERS = ("a", "b", "c", "scratch", "finish", "context")
_STRIDES = ("a_row", "a_column", "b_row", "b_column", "c_row", "c_column")

GEMM_TYPE = ir.FunctionType(ir.VoidType(), [PTR if name in _POINTERS else I64 for name in GEMM_ARGUMENTS])
"""The type of every gemm: strides count elements, `finish` may be null (see `gemm_finish`)."""

DOT_ROWS = 4  # up to as many rows of A go to the dot form: with more, packing B pays
COLUMN_UNIT = 16  # streams split columns among threads in multiples of this

_SWAPPED_PAIRS = (("m", "n"), ("a", "b"), ("c_row", "c_column"), ("a_row", "b_column"), ("a_column", "b_row"))
_SWAP = dict(_SWAPPED_PAIRS) | {y: x for x, y in _SWAPPED_PAIRS}


def emit_gemm(module: ir.Module, machine: Machine, dtype: str) -> ir.Function:
    """Emits `void kina_gemm_<dtype>(GEMM_ARGUMENTS)` into `module`: this thread's part of C = A @ B.

    `dtype` is "f32" or "f64". Sizes are >= 0 (K = 0 gives zeros); strides count elements and may be
    0 or negative for A and B; elements of C are distinct and overlap neither A nor B. `scratch`, aligned to 64
    bytes, is shared by all `threads` threads and holds `tiling.scratch_bytes`. All threads call with the same arguments
    but `tid`, and C is complete when all have returned. `finish`, if not null, is called with `context`
    for every part of C when its sums are complete.
    """
    tiling = Tiling.of(machine, dtype)
    parts = Parts(
        tile=emit_tile_dispatch(module, tiling, f"kina.tile.{dtype}"),
        pack_a=emit_pack_a(module, tiling, f"kina.pack_a.{dtype}"),
        pack_b=emit_pack_b(module, tiling, f"kina.pack_b.{dtype}"),
        copy_tile=emit_copy_tile(module, tiling, f"kina.copy_tile.{dtype}"),
    )
    axpy = emit_axpy(module, tiling, f"kina.axpy.{dtype}")
    few = emit_few(module, tiling, f"kina.few.{dtype}")
    dot = emit_dot(module, tiling, f"kina.dot.{dtype}")
    function = ir.Function(module, GEMM_TYPE, f"kina_gemm_{dtype}")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    p = _normalise(b, tiling, dict(zip(GEMM_ARGUMENTS, function.args, strict=True)))
    _emit_streams(b, machine, tiling, p, axpy, few)
    _emit_dots(b, tiling, p, dot)
    emit_blocks(b, tiling, parts, p)
    b.ret_void()
    return function


def _normalise(b: Builder, tiling: Tiling, x: dict[str, Value]) -> Problem:
    """Swaps the roles of A and B where that makes C's rows contiguous, or its only column a row; strides to bytes."""
    one = int_(1)
    single_column = b.icmp_signed("==", x["n"], one)
    transposed = b.and_(b.icmp_signed("!=", x["c_column"], one), b.icmp_signed("==", x["c_row"], one))
    swapped = b.and_(b.or_(single_column, transposed), b.icmp_signed("!=", x["m"], one))
    x = x | {k: b.select(swapped, x[other], x[k]) for k, other in _SWAP.items()}
    x = x | {stride: b.mul(x[stride], int_(tiling.bytes)) for stride in _STRIDES}
    a, b_, c = (Matrix(x[name], x[f"{name}_row"], x[f"{name}_column"]) for name in "abc")
    scratch = at(b, x["scratch"], b.mul(x["tid"], int_(tiling.scratch_bytes)))
    finish = Finish(x["finish"], x["context"], swapped)
    return Problem(x["m"], x["n"], x["k"], a, b_, c, scratch, x["tid"], x["threads"], finish)


def _emit_streams(
    b: Builder, machine: Machine, tiling: Tiling, p: Problem, axpy: ir.Function, few: ir.Function
) -> None:
    """One row, or a few with a B from beyond L2: B is read in long streams. Returns if so."""
    size = int_(tiling.bytes)
    straight = b.and_(b.icmp_signed("==", p.c.column, size), b.icmp_signed("==", p.b.column, size))

    def one_row(c: Value, matrix: Value, count: Value) -> None:
        b.call(axpy, [count, p.k, p.a.start, p.a.column, matrix, p.b.row, c])

    with b.if_then(b.and_(straight, b.icmp_signed("==", p.m, int_(1)))):
        _emit_columns(b, p, one_row)
    # Tiles read B in short pieces of many rows: well from L2, badly from beyond.
    far = b.icmp_signed(">", b.mul(b.mul(p.n, p.k), size), int_(machine.l2 * 3 // 4))

    def few_rows(c: Value, matrix: Value, count: Value) -> None:
        b.call(few, [p.m, count, p.k, *p.a, matrix, p.b.row, c, p.c.row, p.scratch])

    with b.if_then(b.and_(b.and_(straight, far), b.icmp_signed("<=", p.m, int_(tiling.tall_rows)))):
        _emit_columns(b, p, few_rows)


def _emit_dots(b: Builder, tiling: Tiling, p: Problem, dot: ir.Function) -> None:
    """A few rows with B transposed: columns of B are read as they are. Returns if so."""
    size = int_(tiling.bytes)
    turned = b.and_(b.icmp_signed("==", p.b.row, size), b.icmp_signed("==", p.a.column, size))

    def dots(c: Value, matrix: Value, count: Value) -> None:
        b.call(dot, [p.m, count, p.k, p.a.start, p.a.row, matrix, p.b.column, c, p.c.row, p.c.column])

    with b.if_then(b.and_(turned, b.icmp_signed("<=", p.m, int_(DOT_ROWS)))):
        _emit_columns(b, p, dots)


def _emit_columns(b: Builder, p: Problem, compute: Callable[[Value, Value, Value], None]) -> None:
    """`compute(start of C, start of B, number of columns)` for this thread's columns, then the finish; returns."""
    start, stop = share(b, p.n, int_(COLUMN_UNIT), p.tid, p.threads)
    count = b.sub(stop, start)
    c = p.c.at(b, int_(0), start)
    compute(c, p.b.at(b, int_(0), start), count)
    p.finish.call(b, (int_(0), p.m), (start, count), c, (p.c.row, p.c.column))
    b.ret_void()
