"""Copying operands of gemm into the order the micro-kernels read them in.

B is packed in panels one tile wide: row s of a panel is `width` contiguous elements, those past the last column
zero. A row tile of A whose steps are not contiguous is packed step by step: `rows` contiguous elements each.
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
    each,
    int_,
    load_vector,
    loop,
    mask_below,
    store_vector,
    zeros,
)
from kina.native.gemm_tiles import Tiling

# A packed step of A is written as this many elements at once; the next step overwrites what is too much.
A_STORE_LANES = 8


def emit_pack_b(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
    """`pack(k, columns, b, b_row, b_column, panel)`: packs `k` rows of `columns` columns; strides in bytes."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, PTR, I64, I64, PTR]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    k, columns, source, row, column, panel = function.args
    size = int_(tiling.bytes)
    with b.if_then(b.icmp_signed("==", column, size)):
        _pack_rows(b, tiling, k, columns, source, row, panel)
        b.ret_void()
    with b.if_then(b.icmp_signed("==", row, size)):
        _pack_columns(b, tiling, k, columns, source, column, panel)
        b.ret_void()
    _pack_elements(b, tiling, int_(0), k, int_(0), columns, source, row, column, panel)
    _pad(b, tiling, k, columns, panel)
    b.ret_void()
    return function


def _pack_rows(
    b: Builder, tiling: Tiling, k: Value, columns: Value, source: Value, row: Value, panel: Value
) -> None:
    """Rows are contiguous: whole vectors, the last ones masked (masked loads give the zeros to pad with)."""
    masks = [mask_below(b, tiling.lanes, b.sub(columns, int_(v * tiling.lanes))) for v in range(tiling.vectors)]

    def copy(_: Value, carried: list[Value]) -> list[Value]:
        from_, to = carried
        for v, mask in enumerate(masks):
            offset = v * tiling.vector_bytes
            vector = load_vector(b, at(b, from_, offset), tiling.vector, mask=mask)
            store_vector(b, vector, at(b, to, offset), align=tiling.vector_bytes)
        return [at(b, from_, row), at(b, to, tiling.width * tiling.bytes)]

    loop(b, int_(0), k, 1, [source, panel], copy)


def _pack_columns(
    b: Builder, tiling: Tiling, k: Value, columns: Value, source: Value, column: Value, panel: Value
) -> None:
    """Columns are contiguous (B is transposed): square blocks of vectors, transposed in registers."""
    lanes = int_(tiling.lanes)
    square_k = b.sub(k, b.srem(k, lanes))
    square_columns = b.sub(columns, b.srem(columns, lanes))

    def block_column(j: Value) -> None:
        to_column = at(b, panel, b.mul(j, int_(tiling.bytes)))

        def block(s: Value) -> None:
            from_ = at(b, source, b.add(b.mul(j, column), b.mul(s, int_(tiling.bytes))))
            vectors = []
            for _ in range(tiling.lanes):
                vectors.append(load_vector(b, from_, tiling.vector))
                from_ = at(b, from_, column)
            to = at(b, to_column, b.mul(s, int_(tiling.width * tiling.bytes)))
            for t, vector in enumerate(transpose(b, vectors, tiling.lanes)):
                store_vector(b, vector, at(b, to, t * tiling.width * tiling.bytes), align=tiling.vector_bytes)

        each(b, int_(0), square_k, tiling.lanes, block)

    each(b, int_(0), square_columns, tiling.lanes, block_column)
    size = int_(tiling.bytes)
    _pack_elements(b, tiling, square_k, k, int_(0), square_columns, source, size, column, panel)
    _pack_elements(b, tiling, int_(0), k, square_columns, columns, source, size, column, panel)
    _pad(b, tiling, k, columns, panel)


def transpose(b: Builder, vectors: list[Value], lanes: int) -> list[Value]:
    """The transpose of a square of vectors: log2(lanes) rounds that exchange blocks of 1, 2, 4, ... lanes."""
    distance = 1
    while distance < lanes:
        low = [l if not l & distance else lanes + (l ^ distance) for l in range(lanes)]
        high = [l + distance if not l & distance else lanes + l for l in range(lanes)]
        results = list(vectors)
        for r in range(lanes):
            if not r & distance:
                pair = vectors[r], vectors[r + distance]
                results[r] = _shuffle(b, *pair, low)
                results[r + distance] = _shuffle(b, *pair, high)
        vectors = results
        distance *= 2
    return vectors


def _shuffle(b: Builder, x: Value, y: Value, order: list[int]) -> Value:
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(order)), order))


def _pack_elements(
    b: Builder,
    tiling: Tiling,
    k_start: Value,
    k_stop: Value,
    start: Value,
    stop: Value,
    source: Value,
    row: Value,
    column: Value,
    panel: Value,
) -> None:
    """Any strides, one element at a time: rows `k_start..k_stop` of columns `start..stop`."""

    def pack_row(s: Value) -> None:
        from_, to = at(b, source, b.mul(s, row)), at(b, panel, b.mul(s, int_(tiling.width * tiling.bytes)))

        def copy(j: Value) -> None:
            value = b.load(at(b, from_, b.mul(j, column)), typ=tiling.element, align=tiling.bytes)
            b.store(value, at(b, to, b.mul(j, int_(tiling.bytes))), align=tiling.bytes)

        each(b, start, stop, 1, copy)

    each(b, k_start, k_stop, 1, pack_row)


def _pad(b: Builder, tiling: Tiling, k: Value, columns: Value, panel: Value) -> None:
    """Zeros in the columns of the last, partial vector that do not exist (further vectors are never read)."""
    lanes = int_(tiling.lanes)
    above = b.add(columns, b.sub(lanes, int_(1)))
    padded = b.sub(above, b.srem(above, lanes))

    def pad_row(s: Value) -> None:
        to = at(b, panel, b.mul(s, int_(tiling.width * tiling.bytes)))
        each(
            b,
            columns,
            padded,
            1,
            lambda j: b.store(zeros(tiling.element), at(b, to, b.mul(j, int_(tiling.bytes))), align=tiling.bytes),
        )

    each(b, int_(0), k, 1, pad_row)


def emit_pack_a(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
    """`pack(rows, k, a, a_row, a_step, packed)`: element (r, s) goes to `packed[s*rows + r]`; strides in bytes."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, PTR, I64, I64, PTR]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, k, source, row, step, packed = function.args
    packed_step = b.mul(rows, int_(tiling.bytes))
    with b.if_then(b.icmp_signed("==", row, int_(tiling.bytes))):
        vector_type = ir.VectorType(tiling.element, A_STORE_LANES)
        mask = mask_below(b, A_STORE_LANES, rows)

        def copy(_: Value, carried: list[Value]) -> list[Value]:
            from_, to = carried
            store_vector(b, load_vector(b, from_, vector_type, mask=mask), to)
            return [at(b, from_, step), at(b, to, packed_step)]

        loop(b, int_(0), k, 1, [source, packed], copy)
        b.ret_void()

    def pack_step(s: Value) -> None:
        from_, to = at(b, source, b.mul(s, step)), at(b, packed, b.mul(s, packed_step))

        def copy_row(r: Value) -> None:
            value = b.load(at(b, from_, b.mul(r, row)), typ=tiling.element, align=tiling.bytes)
            b.store(value, at(b, to, b.mul(r, int_(tiling.bytes))), align=tiling.bytes)

        each(b, int_(0), rows, 1, copy_row)

    each(b, int_(0), k, 1, pack_step)
    b.ret_void()
    return function


def emit_scatter(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
    """`copy(rows, columns, from, from_row, from_column, to, to_row, to_column)`: a tile, element by element."""
    types = [I64, I64, PTR, I64, I64, PTR, I64, I64]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, columns, source, source_row, source_column, target, target_row, target_column = function.args

    def copy_row(r: Value) -> None:
        from_, to = at(b, source, b.mul(r, source_row)), at(b, target, b.mul(r, target_row))

        def copy(j: Value) -> None:
            value = b.load(at(b, from_, b.mul(j, source_column)), typ=tiling.element, align=tiling.bytes)
            b.store(value, at(b, to, b.mul(j, target_column)), align=tiling.bytes)

        each(b, int_(0), columns, 1, copy)

    each(b, int_(0), rows, 1, copy_row)
    b.ret_void()
    return function


