"""Copying operands of gemm into the order the micro-kernels read them in.

B is packed in panels one tile wide: row s of a panel is `width` contiguous elements, those past the last column
zero. A row tile of A whose steps are not contiguous is packed step by step: `rows` contiguous elements each.
Numbers that are stored in another form (halves, blocks) become those that are computed with here.
"""

from __future__ import annotations

from llvmlite import ir

from kina.native.blocks import numbers
from kina.native.build import (
    I32,
    I64,
    PTR,
    Builder,
    Value,
    at,
    each,
    int_,
    loop,
    mask_below,
    minimum,
    store_vector,
    when,
    zeros,
)
from kina.native.machine import Machine
from kina.native.sources import Plain
from kina.native.tiling import Tiling
from kina.types.blocks import NUMBERS, BlockFormat

# A packed step of A is written as this many elements at once; the next step overwrites what is too much.
A_STORE_LANES = 8


def emit_pack_b(module: ir.Module, tiling: Tiling, plain: Plain, name: str) -> ir.Function:
    """`pack(k, columns, b, b_row, b_column, packed)`: packs a block of `k` rows; strides in bytes."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, PTR, I64, I64, PTR]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    k, columns, source, row, column, packed = function.args
    size = int_(plain.bytes)
    with b.if_then(b.icmp_signed("==", column, size)):
        _pack_rows(b, tiling, plain, k, columns, source, row, packed)
        b.ret_void()

    def panel(offset: Value) -> None:
        width = minimum(b, int_(tiling.width), b.sub(columns, offset))
        from_, to = at(b, source, b.mul(offset, column)), _panel_at(b, tiling, packed, offset)
        turned = b.icmp_signed("==", row, size)
        lanes = int_(tiling.lanes)
        square_k = b.select(turned, b.sub(k, b.srem(k, lanes)), int_(0))
        square_columns = b.select(turned, b.sub(width, b.srem(width, lanes)), int_(0))
        _pack_squares(b, tiling, plain, square_k, square_columns, from_, column, to)
        _pack_elements(b, tiling, plain, (square_k, k), (int_(0), square_columns), from_, (row, column), to)
        _pack_elements(b, tiling, plain, (int_(0), k), (square_columns, width), from_, (row, column), to)
        _pad(b, tiling, k, width, to)

    each(b, int_(0), columns, tiling.width, panel)
    b.ret_void()
    return function


def _panel_at(b: Builder, tiling: Tiling, packed: Value, offset: Value) -> Value:
    """Where the panel that starts at column `offset` of a block is packed."""
    return at(b, packed, b.mul(offset, int_(tiling.block_k * tiling.bytes)))


def _pack_rows(
    b: Builder, tiling: Tiling, plain: Plain, k: Value, columns: Value, source: Value, row: Value, packed: Value
) -> None:
    """Rows are contiguous: each is read as a stream, and dealt out to the panels. The last panel has
    masks (masked loads give the zeros to pad with)."""
    whole = b.sub(columns, b.srem(columns, int_(tiling.width)))
    masks = [
        mask_below(b, tiling.lanes, b.sub(b.sub(columns, whole), int_(v * tiling.lanes))) for v in range(tiling.vectors)
    ]

    def copy_row(_: Value, carried: list[Value]) -> list[Value]:
        from_, to = carried

        def copy(offset: Value, masks: list[Value | None]) -> None:
            panel, place = _panel_at(b, tiling, to, offset), at(b, from_, b.mul(offset, int_(plain.bytes)))
            for v, mask in enumerate(masks):
                vector = plain.load_vector(b, at(b, place, v * tiling.lanes * plain.bytes), tiling.vector, mask=mask)
                store_vector(b, vector, at(b, panel, v * tiling.vector_bytes), align=tiling.vector_bytes)

        each(b, int_(0), whole, tiling.width, lambda offset: copy(offset, [None] * tiling.vectors))
        when(b, b.icmp_signed("<", whole, columns), lambda: copy(whole, list(masks)))
        return [at(b, from_, row), at(b, to, tiling.width * tiling.bytes)]

    loop(b, int_(0), k, 1, [source, packed], copy_row)


def _pack_squares(
    b: Builder, tiling: Tiling, plain: Plain, k: Value, columns: Value, source: Value, column: Value, panel: Value
) -> None:
    """Columns are contiguous (B is transposed): square blocks of vectors, turned in registers."""

    def block_column(j: Value) -> None:
        to_column = at(b, panel, b.mul(j, int_(tiling.bytes)))

        def block(s: Value) -> None:
            from_ = at(b, source, b.add(b.mul(j, column), b.mul(s, int_(plain.bytes))))
            vectors = []
            for _ in range(tiling.lanes):
                vectors.append(plain.load_vector(b, from_, tiling.vector))
                from_ = at(b, from_, column)
            to = at(b, to_column, b.mul(s, int_(tiling.width * tiling.bytes)))
            for t, vector in enumerate(transpose(b, vectors, tiling.lanes)):
                store_vector(b, vector, at(b, to, t * tiling.width * tiling.bytes), align=tiling.vector_bytes)

        each(b, int_(0), k, tiling.lanes, block)

    each(b, int_(0), columns, tiling.lanes, block_column)


def transpose(b: Builder, vectors: list[Value], lanes: int) -> list[Value]:
    """The transpose of a square of vectors: log2(lanes) rounds that exchange blocks of 1, 2, 4, ... lanes."""
    distance = 1
    while distance < lanes:
        low = [i if not i & distance else lanes + (i ^ distance) for i in range(lanes)]
        high = [i + distance if not i & distance else lanes + i for i in range(lanes)]
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
    plain: Plain,
    steps: tuple[Value, Value],
    columns: tuple[Value, Value],
    source: Value,
    strides: tuple[Value, Value],
    panel: Value,
) -> None:
    """Any strides, one element at a time."""
    row, column = strides

    def pack_row(s: Value) -> None:
        from_, to = at(b, source, b.mul(s, row)), at(b, panel, b.mul(s, int_(tiling.width * tiling.bytes)))

        def copy(j: Value) -> None:
            value = plain.load(b, at(b, from_, b.mul(j, column)))
            b.store(value, at(b, to, b.mul(j, int_(tiling.bytes))), align=tiling.bytes)

        each(b, *columns, 1, copy)

    each(b, *steps, 1, pack_row)


def _pad(b: Builder, tiling: Tiling, k: Value, columns: Value, panel: Value) -> None:
    """Zeros in the columns of a panel that do not exist."""
    masks = [b.not_(mask_below(b, tiling.lanes, b.sub(columns, int_(v * tiling.lanes)))) for v in range(tiling.vectors)]

    def pad_row(s: Value) -> None:
        to = at(b, panel, b.mul(s, int_(tiling.width * tiling.bytes)))
        for v, mask in enumerate(masks):
            store_vector(b, zeros(tiling.vector), at(b, to, v * tiling.vector_bytes), mask=mask)

    stop = b.select(b.icmp_signed("<", columns, int_(tiling.width)), k, int_(0))
    each(b, int_(0), stop, 1, pad_row)


def emit_pack_blocks(
    module: ir.Module, machine: Machine, tiling: Tiling, form: BlockFormat, name: str
) -> ir.Function:
    """`pack(k, columns, b, b_block, b_column, packed)`: as `emit_pack_b`, of a B in blocks along K.

    `b_block` is how far apart the blocks of a column are, in bytes. Columns past the last one repeat it: what becomes
    of them is never stored.
    """
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, PTR, I64, I64, PTR]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    k, columns, source, step, column, packed = function.args
    last = b.sub(columns, int_(1))

    def square(s: Value, j: Value, first: int) -> None:
        """Some numbers of one block of each of several columns, turned in registers."""
        block = at(b, source, b.mul(b.udiv(s, int_(NUMBERS)), step))
        vectors = []
        for i in range(tiling.lanes):
            place = at(b, block, b.mul(minimum(b, b.add(j, int_(i)), last), column))
            vectors.append(numbers(b, machine, form, place, first, tiling.lanes))
        panel = _panel_at(b, tiling, packed, b.sub(j, b.srem(j, int_(tiling.width))))
        across = b.mul(b.srem(j, int_(tiling.width)), int_(tiling.bytes))
        row = at(b, panel, b.add(b.mul(s, int_(tiling.width * tiling.bytes)), across))
        for t, vector in enumerate(transpose(b, vectors, tiling.lanes)):
            place = at(b, row, (first + t) * tiling.width * tiling.bytes)
            store_vector(b, vector, place, align=tiling.vector_bytes)

    def steps(s: Value) -> None:
        for first in range(0, NUMBERS, tiling.lanes):
            each(b, int_(0), columns, tiling.lanes, lambda j, first=first: square(s, j, first))  # type: ignore[misc]

    each(b, int_(0), k, NUMBERS, steps)
    b.ret_void()
    return function


def emit_pack_a(module: ir.Module, tiling: Tiling, plain: Plain, name: str) -> ir.Function:
    """`pack(rows, k, a, a_row, a_step, packed)`: element (r, s) goes to `packed[s*rows + r]`; strides in bytes."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, PTR, I64, I64, PTR]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    b = ir.IRBuilder(function.append_basic_block("entry"))
    rows, k, source, row, step, packed = function.args
    packed_step = b.mul(rows, int_(tiling.bytes))
    with b.if_then(b.icmp_signed("==", row, int_(plain.bytes))):
        vector_type = ir.VectorType(tiling.element, A_STORE_LANES)
        mask = mask_below(b, A_STORE_LANES, rows)

        def copy(_: Value, carried: list[Value]) -> list[Value]:
            from_, to = carried
            store_vector(b, plain.load_vector(b, from_, vector_type, mask=mask), to)
            return [at(b, from_, step), at(b, to, packed_step)]

        loop(b, int_(0), k, 1, [source, packed], copy)
        b.ret_void()

    def pack_step(s: Value) -> None:
        from_, to = at(b, source, b.mul(s, step)), at(b, packed, b.mul(s, packed_step))

        def copy_row(r: Value) -> None:
            value = plain.load(b, at(b, from_, b.mul(r, row)))
            b.store(value, at(b, to, b.mul(r, int_(tiling.bytes))), align=tiling.bytes)

        each(b, int_(0), rows, 1, copy_row)

    each(b, int_(0), k, 1, pack_step)
    b.ret_void()
    return function


def emit_copy_tile(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
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
