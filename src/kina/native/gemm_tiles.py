"""The micro-kernels of gemm: a small tile of C kept in registers while K runs.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), in the form of BLIS
(Van Zee and van de Geijn, 2015): an outer product a step, `rows` broadcasts of A times `vectors` vectors of B.
One kernel is emitted for every tile shape up to the full one, so that edges cost what they hold.
"""

from __future__ import annotations

from llvmlite import ir

from kina.native.build import (
    I32,
    I64,
    PTR,
    Builder,
    Value,
    at,
    ceil_div,
    choose,
    int_,
    intrinsic,
    load_vector,
    loop,
    mask_below,
    multiply_add,
    splat,
    store_vector,
    zeros,
)
from kina.native.tiling import Tiling

TILE_ARGUMENTS = ("k", "a", "a_row", "a_step", "b", "b_row", "c", "c_row", "columns", "accumulate")
TILE_TYPE = ir.FunctionType(ir.VoidType(), [PTR if name in ("a", "b", "c") else I64 for name in TILE_ARGUMENTS])


TILE_DISPATCH_TYPE = ir.FunctionType(ir.VoidType(), [*TILE_TYPE.args, I64])
"""The type of what picks a kernel: a kernel's arguments, then the tile's rows."""


def emit_tile(module: ir.Module, tiling: Tiling, name: str, rows: int, vectors: int, sure: int) -> ir.Function:
    """A kernel for a tile of `rows` x `vectors`: C (+)= A @ B over `k` steps.

    Its arguments, strides in bytes: A's element (r, s) at `a + r*a_row + s*a_step`; B's row s at `b + s*b_row`,
    contiguous; C's row r at `c + r*c_row`, contiguous, of which `columns` are stored: more than `sure` vectors.
    """
    function = ir.Function(module, TILE_TYPE, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    arg = dict(zip(TILE_ARGUMENTS, function.args, strict=True))
    _prefetch(b, tiling, rows, vectors, arg)
    sums = _accumulate(b, tiling, rows, vectors, arg)
    _store(b, tiling, (rows, vectors, sure), arg, sums)
    b.ret_void()
    return function


def _prefetch(b: Builder, tiling: Tiling, rows: int, vectors: int, arg: dict[str, Value]) -> None:
    """Asks for the tile of C, which is needed only at the end, so that K hides the wait."""
    write, everywhere, data = (ir.Constant(I32, n) for n in (1, 3, 1))
    row_at = arg["c"]
    for r in range(rows):
        row_at = at(b, row_at, arg["c_row"]) if r else row_at
        for offset in range(0, vectors * tiling.vector_bytes, 64):
            intrinsic(b, "prefetch", ir.VoidType(), [at(b, row_at, offset), write, everywhere, data], ["p0"])


def _accumulate(b: Builder, tiling: Tiling, rows: int, vectors: int, arg: dict[str, Value]) -> list[Value]:
    """The sums over k, row by row. Rows of A are addressed from every third one, to need few registers."""
    twice = b.add(arg["a_row"], arg["a_row"])
    bases = [at(b, arg["a"], b.mul(arg["a_row"], int_(r))) for r in range(0, rows, 3)]
    n = len(bases)

    def step(_: Value, carried: list[Value]) -> list[Value]:
        heads, b_at, sums = carried[:n], carried[n], carried[n + 1 :]
        loaded = [load_vector(b, at(b, b_at, v * tiling.vector_bytes), tiling.vector) for v in range(vectors)]
        results = []
        for r in range(rows):
            head = at(b, heads[r // 3], (0, arg["a_row"], twice)[r % 3])
            scalar = splat(b, b.load(head, typ=tiling.element, align=tiling.bytes), tiling.lanes)
            results += [multiply_add(b, scalar, loaded[v], sums[r * vectors + v]) for v in range(vectors)]
        return [*(at(b, head, arg["a_step"]) for head in heads), at(b, b_at, arg["b_row"]), *results]

    start = [*bases, arg["b"], *([zeros(tiling.vector)] * (rows * vectors))]
    return loop(b, int_(0), arg["k"], 1, start, step)[n + 1 :]


def _store(
    b: Builder,
    tiling: Tiling,
    shape: tuple[int, int, int],
    arg: dict[str, Value],
    sums: list[Value],
) -> None:
    """Adds what C holds if asked, and stores. Vectors that may be partial, or absent, have a mask."""
    rows, vectors, sure = shape
    masks: list[Value | None] = [
        None if v < sure else mask_below(b, tiling.lanes, b.sub(arg["columns"], int_(v * tiling.lanes)))
        for v in range(vectors)
    ]
    row_at = [arg["c"]]
    for _ in range(1, rows):
        row_at.append(at(b, row_at[-1], arg["c_row"]))

    def places() -> list[tuple[int, int, Value, Value | None]]:
        return [
            (r, v, at(b, row_at[r], v * tiling.vector_bytes), masks[v]) for r in range(rows) for v in range(vectors)
        ]

    def add_c() -> list[Value]:
        return [
            b.fadd(load_vector(b, place, tiling.vector, mask=mask), total)
            for (_, _, place, mask), total in zip(places(), sums, strict=True)
        ]

    totals = choose(b, b.icmp_signed("!=", arg["accumulate"], int_(0)), add_c, lambda: sums)
    for (_, _, place, mask), total in zip(places(), totals, strict=True):
        store_vector(b, total, place, mask=mask)


def emit_tile_dispatch(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
    """All kernels, and a function in front that picks one: the arguments of a kernel, then the tile's rows. The
    narrowest that holds `columns` is picked."""
    function = ir.Function(module, TILE_DISPATCH_TYPE, name)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    *arguments, rows = function.args
    columns = arguments[TILE_ARGUMENTS.index("columns")]
    needed = ceil_div(b, columns, int_(tiling.lanes))
    impossible = b.append_basic_block("impossible")
    switch = b.switch(b.add(b.mul(rows, int_(tiling.vectors)), needed), impossible)
    for r in range(1, tiling.tall_rows + 1):
        sure = 0
        for vectors in tiling.widths(r):
            kernel = emit_tile(module, tiling, f"{name}.{r}x{vectors}", r, vectors, sure)
            block = b.append_basic_block()
            for width in range(sure + 1, vectors + 1):
                switch.add_case(int_(r * tiling.vectors + width), block)
            sure = vectors
            b.position_at_end(block)
            b.call(kernel, arguments, tail="tail")
            b.ret_void()
    b.position_at_end(impossible)
    b.unreachable()
    return function
