"""Matrix multiplication, emitted as LLVM IR: C = A @ B for f32 and f64 with any strides, and for f32 of operands that
are stored as halves or in quantised blocks, which are widened in registers (see `Form`).

Operands are brought into one form, then one of four loops runs: a single row and a few rows of A stream through B, a
few rows with B transposed are dot products (`gemv`), everything else is Goto's algorithm (`gemm_blocks`).
Transposed operands are turned while packing, never copied as a whole; a transposed C swaps the roles of A and B.

Threads split C, never K, and share nothing: each packs what it needs into its own scratch, so no
barrier is needed, and a result is the same to the last bit for every number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from kina.native.build import I1, I64, PTR, Builder, Value, at, int_
from kina.native.forms import Form, tile_name
from kina.native.gemm_blocks import BlockMatrix, Matrix, Parts, Problem, emit_blocks, share
from kina.native.gemm_finish import Finish
from kina.native.gemm_pack import emit_copy_tile, emit_pack_a, emit_pack_b, emit_pack_blocks
from kina.native.gemm_tiles import TILE_DISPATCH_TYPE, emit_tile_dispatch
from kina.native.gemv import emit_axpy, emit_dot, emit_few
from kina.native.gemv_blocks import emit_block_dot
from kina.native.machine import Machine
from kina.native.sources import Plain, Source, source_of
from kina.native.tiling import Tiling
from kina.types import DType
from kina.types.blocks import BlockFormat

GEMM_ARGUMENTS = (
    *("m", "n", "k", "a", "a_row", "a_column", "b", "b_row", "b_column", "c", "c_row", "c_column"),
    *("scratch", "tid", "threads", "finish", "context"),
)
_POINTERS = ("a", "b", "c", "scratch", "finish", "context")

GEMM_TYPE = ir.FunctionType(ir.VoidType(), [PTR if name in _POINTERS else I64 for name in GEMM_ARGUMENTS])
"""The type of every gemm: strides count elements, `finish` may be null (see `gemm_finish`)."""

DOT_ROWS = 4  # up to as many rows of A go to the dot form: with more, packing B pays
BLOCK_DOT_ROWS = 3  # the same, where each row unpacks B again
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
    tiling, plain = Tiling.of(machine, dtype), Plain(DType[dtype.upper()], machine)
    parts = Parts(
        tile=emit_tile_dispatch(module, tiling, tile_name(dtype)),
        pack_a=emit_pack_a(module, tiling, plain, f"kina.pack_a.{dtype}"),
        pack_b=emit_pack_b(module, tiling, plain, f"kina.pack_b.{dtype}"),
        copy_tile=emit_copy_tile(module, tiling, f"kina.copy_tile.{dtype}"),
    )
    axpy = emit_axpy(module, tiling, plain, plain, f"kina.axpy.{dtype}")
    few = emit_few(module, tiling, f"kina.few.{dtype}")
    dot = emit_dot(module, tiling, plain, plain, f"kina.dot.{dtype}")
    function = ir.Function(module, GEMM_TYPE, Form.plain(dtype).name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = _swapped(b, dict(zip(GEMM_ARGUMENTS, function.args, strict=True)))
    p = _problem(b, tiling, plain, plain, arguments)
    _emit_streams(b, p, (plain, plain), axpy)
    _emit_few(b, machine, tiling, p, few)
    _emit_dots(b, p, (plain, plain), dot)
    emit_blocks(b, tiling, parts, p)
    b.ret_void()
    return function


def emit_mixed_gemm(module: ir.Module, machine: Machine, form: Form) -> ir.Function:
    """Emits gemm for operands that are stored in another form than what is computed with, as `emit_gemm` does.

    The tiles are those of the plain gemm, which the module declares (`tile_name`). Strides count elements, or blocks.
    """
    tiling = Tiling.of(machine, form.dtype)
    names = (form.right, form.left) if form.is_turned else (form.left, form.right)
    left, right = (source_of(name, machine) for name in names)
    assert isinstance(left, Plain), form
    function = ir.Function(module, GEMM_TYPE, form.name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = dict(zip(GEMM_ARGUMENTS, function.args, strict=True))
    if form.is_turned:
        arguments |= {name: arguments[other] for name, other in _SWAP.items()} | {"swapped": ir.Constant(I1, 1)}
    p = _problem(b, tiling, left, right, arguments)
    if isinstance(right, BlockFormat):
        pack_b = emit_pack_blocks(module, machine, tiling, right, "kina.pack_b")
        _emit_block_dots(b, p, emit_block_dot(module, machine, tiling, right, "kina.dot"))
    else:
        pack_b = emit_pack_b(module, tiling, right, "kina.pack_b")
        _emit_streams(b, p, (left, right), emit_axpy(module, tiling, left, right, "kina.axpy"))
        _emit_dots(b, p, (left, right), emit_dot(module, tiling, left, right, "kina.dot"))
    parts = Parts(
        tile=ir.Function(module, TILE_DISPATCH_TYPE, tile_name(form.dtype)),
        pack_a=emit_pack_a(module, tiling, left, "kina.pack_a"),
        pack_b=pack_b,
        copy_tile=emit_copy_tile(module, tiling, "kina.copy_tile"),
        a_in_place=not left.is_half,
        b_in_place=False,
    )
    emit_blocks(b, tiling, parts, p)
    b.ret_void()
    return function


def _swapped(b: Builder, x: dict[str, Value]) -> dict[str, Value]:
    """Swaps the roles of A and B where that makes C's rows contiguous, or its only column a row."""
    one = int_(1)
    single_column = b.icmp_signed("==", x["n"], one)
    transposed = b.and_(b.icmp_signed("!=", x["c_column"], one), b.icmp_signed("==", x["c_row"], one))
    swapped = b.and_(b.or_(single_column, transposed), b.icmp_signed("!=", x["m"], one))
    return x | {k: b.select(swapped, x[other], x[k]) for k, other in _SWAP.items()} | {"swapped": swapped}


def _problem(b: Builder, tiling: Tiling, left: Source, right: Source, x: dict[str, Value]) -> Problem:
    """The arguments with strides in bytes."""
    sizes = {"a": left.bytes, "b": right.bytes, "c": tiling.bytes}
    places = {n: (x[n], *(b.mul(x[f"{n}_{s}"], int_(size)) for s in ("row", "column"))) for n, size in sizes.items()}
    matrix = Matrix(*places["b"]) if isinstance(right, Plain) else BlockMatrix(*places["b"])
    scratch = at(b, x["scratch"], b.mul(x["tid"], int_(tiling.scratch_bytes)))
    finish = Finish(x["finish"], x["context"], x.get("swapped", ir.Constant(I1, 0)))
    a, c = Matrix(*places["a"]), Matrix(*places["c"])
    return Problem(x["m"], x["n"], x["k"], a, matrix, c, scratch, x["tid"], x["threads"], finish)


def _emit_streams(b: Builder, p: Problem, sources: tuple[Plain, Plain], axpy: ir.Function) -> None:
    """One row: B is read in long streams. Returns if so."""

    def one_row(c: Value, matrix: Value, count: Value) -> None:
        b.call(axpy, [count, p.k, p.a.start, p.a.column, matrix, p.b.row, c])

    straight = _straight(b, p, sources[1])
    with b.if_then(b.and_(straight, b.icmp_signed("==", p.m, int_(1)))):
        _emit_columns(b, p, one_row)


def _emit_few(b: Builder, machine: Machine, tiling: Tiling, p: Problem, few: ir.Function) -> None:
    """A few rows with a B from beyond L2: tiles read it in short pieces of rows, badly from there. Returns if so."""
    size = int_(tiling.bytes)
    straight = _straight(b, p, Plain(DType[tiling.dtype.upper()], machine))
    far = b.icmp_signed(">", b.mul(b.mul(p.n, p.k), size), int_(machine.l2 * 3 // 4))

    def few_rows(c: Value, matrix: Value, count: Value) -> None:
        b.call(few, [p.m, count, p.k, *p.a, matrix, p.b.row, c, p.c.row, p.scratch])

    with b.if_then(b.and_(b.and_(straight, far), b.icmp_signed("<=", p.m, int_(tiling.tall_rows)))):
        _emit_columns(b, p, few_rows)


def _straight(b: Builder, p: Problem, right: Plain) -> Value:
    """Whether rows of B and of C are contiguous."""
    size = int_(8 if right.bytes == 8 else 4)
    return b.and_(
        b.icmp_signed("==", p.c.column, size), b.icmp_signed("==", p.b.column, int_(right.bytes))
    )


def _emit_dots(b: Builder, p: Problem, sources: tuple[Plain, Plain], dot: ir.Function) -> None:
    """A few rows with B transposed: columns of B are read as they are. Returns if so."""
    left, right = (int_(source.bytes) for source in sources)
    turned = b.and_(b.icmp_signed("==", p.b.row, right), b.icmp_signed("==", p.a.column, left))

    def dots(c: Value, matrix: Value, count: Value) -> None:
        b.call(dot, [p.m, count, p.k, p.a.start, p.a.row, matrix, p.b.column, c, p.c.row, p.c.column])

    with b.if_then(b.and_(turned, b.icmp_signed("<=", p.m, int_(DOT_ROWS)))):
        _emit_columns(b, p, dots)


def _emit_block_dots(b: Builder, p: Problem, dot: ir.Function) -> None:
    """A few rows with a B in blocks. Returns if so."""
    contiguous = b.icmp_signed("==", p.a.column, int_(4))

    def dots(c: Value, matrix: Value, count: Value) -> None:
        b.call(dot, [p.m, count, p.k, p.a.start, p.a.row, matrix, p.b.row, p.b.column, c, p.c.row, p.c.column])

    with b.if_then(b.and_(contiguous, b.icmp_signed("<=", p.m, int_(BLOCK_DOT_ROWS)))):
        _emit_columns(b, p, dots)


def _emit_columns(b: Builder, p: Problem, compute: Callable[[Value, Value, Value], None]) -> None:
    """`compute(start of C, start of B, number of columns)` for this thread's columns, then the finish; returns."""
    start, stop = share(b, p.n, int_(COLUMN_UNIT), p.tid, p.threads)
    count = b.sub(stop, start)
    c = p.c.at(b, int_(0), start)
    compute(c, p.b.at(b, int_(0), start), count)
    p.finish.call(b, (int_(0), p.m), (start, count), c, (p.c.row, p.c.column))
    b.ret_void()
