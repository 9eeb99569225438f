"""Few rows times a matrix: every element of B is read once, and reading it is all that matters.

- B with contiguous rows (`axpy` form): a chunk of the result stays in L1 while rows of B, several at once, are added to
  it, so that the hardware sees a few long streams.
- B with contiguous columns (`dot` form): several columns of B at once, each a sum of vector lanes along K.

The order of every sum depends on K alone, never on the columns a thread has.
"""

from __future__ import annotations

from collections.abc import Callable

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
    minimum,
    multiply_add,
    splat,
    store_vector,
    zeros,
)
from kina.native.sources import Plain
from kina.native.tiling import Tiling

STREAMS = 8  # rows (axpy) of B read at once
DOT_COLUMNS = 4  # columns (dot) of B read at once
DOT_SUMS = 2  # vectors of partial sums a column: hides the latency of FMA
CHUNK_BYTES = 16 * 1024  # of the result, to stay in L1
FEW_CHUNK_BYTES = 4 * 1024  # of each of a few rows of the result


def emit_axpy(module: ir.Module, tiling: Tiling, left: Plain, right: Plain, name: str) -> ir.Function:
    """`axpy(n, k, a, a_step, b, b_row, c)`: c[j] = sum over s of a[s] * b[s, j], for j < n; strides in bytes."""
    function = internal(module, name, [I64, I64, PTR, I64, PTR, I64, PTR])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    n, k, a, a_step, matrix, b_row, c = function.args
    grouped = b.sub(k, b.srem(k, int_(STREAMS)))
    chunk = CHUNK_BYTES // tiling.bytes

    def columns(start: Value) -> None:
        count = minimum(b, int_(chunk), b.sub(n, start))
        target = at(b, c, b.mul(start, int_(tiling.bytes)))
        origin = at(b, matrix, b.mul(start, int_(right.bytes)))
        _each_vector(b, tiling, 1, count, lambda o, _, mask: _store_zero(b, tiling, at(b, target, o), mask))

        def rows(number: int, s: Value) -> None:
            heads = [at(b, origin, b.mul(b.add(s, int_(i)), b_row)) for i in range(number)]
            factors = []
            for i in range(number):
                place = at(b, a, b.mul(b.add(s, int_(i)), a_step))
                factors.append(splat(b, left.load(b, place), tiling.lanes))

            def add(offset: Value, _: int, mask: Value | None) -> None:
                total = load_vector(b, at(b, target, offset), tiling.vector, mask=mask)
                for head, factor in zip(heads, factors, strict=True):
                    vector = right.load_vector(b, at(b, head, right.offset(b, offset)), tiling.vector, mask=mask)
                    total = multiply_add(b, factor, vector, total)
                store_vector(b, total, at(b, target, offset), mask=mask)

            _each_vector(b, tiling, 1, count, add)

        each(b, int_(0), grouped, STREAMS, lambda s: rows(STREAMS, s))
        each(b, grouped, k, 1, lambda s: rows(1, s))

    each(b, int_(0), n, chunk, columns)
    b.ret_void()
    return function


def emit_few(module: ir.Module, tiling: Tiling, name: str) -> ir.Function:
    """`few(m, n, k, a, a_row, a_step, b, b_row, c, c_row, block)`: the axpy form for m rows at once, strides in bytes.

    `block` has room for `STREAMS` elements a row. Rows of B are in registers while all rows of C pass by.
    """
    types = [I64, I64, I64, PTR, I64, I64, PTR, I64, PTR, I64, PTR]
    function = internal(module, name, types)
    b = ir.IRBuilder(function.append_basic_block("entry"))
    m, n, k, a, a_row, a_step, matrix, b_row, c, c_row, block = function.args
    grouped = b.sub(k, b.srem(k, int_(STREAMS)))
    chunk = FEW_CHUNK_BYTES // tiling.bytes

    def columns(start: Value) -> None:
        count = minimum(b, int_(chunk), b.sub(n, start))
        target = at(b, c, b.mul(start, int_(tiling.bytes)))
        origin = at(b, matrix, b.mul(start, int_(tiling.bytes)))

        def clear(r: Value) -> None:
            row = at(b, target, b.mul(r, c_row))
            _each_vector(b, tiling, 1, count, lambda o, _, mask: _store_zero(b, tiling, at(b, row, o), mask))

        def rows(number: int, s: Value) -> None:
            first = at(b, a, b.mul(s, a_step))
            _copy_block(b, tiling, (m, number), first, (a_row, a_step), block)
            heads = [at(b, origin, b.mul(b.add(s, int_(i)), b_row)) for i in range(number)]

            def add(offset: Value, vectors: int, mask: Value | None) -> None:
                _add_outer(b, tiling, (number, vectors), heads, offset, mask, (m, block, at(b, target, offset), c_row))

            _each_vector(b, tiling, tiling.vectors // 2, count, add)

        each(b, int_(0), m, 1, clear)
        each(b, int_(0), grouped, STREAMS, lambda s: rows(STREAMS, s))
        each(b, grouped, k, 1, lambda s: rows(1, s))

    each(b, int_(0), n, chunk, columns)
    b.ret_void()
    return function


def _copy_block(
    b: Builder, tiling: Tiling, shape: tuple[Value, int], a: Value, strides: tuple[Value, Value], block: Value
) -> None:
    """`number` steps of `m` rows of A, contiguous, `STREAMS` elements a row."""
    m, number = shape
    a_row, a_step = strides

    def copy(r: Value) -> None:
        from_, to = at(b, a, b.mul(r, a_row)), at(b, block, b.mul(r, int_(STREAMS * tiling.bytes)))
        for i in range(number):
            value = b.load(at(b, from_, b.mul(a_step, int_(i))), typ=tiling.element, align=tiling.bytes)
            b.store(value, at(b, to, i * tiling.bytes), align=tiling.bytes)

    each(b, int_(0), m, 1, copy)


def _add_outer(
    b: Builder,
    tiling: Tiling,
    shape: tuple[int, int],
    heads: list[Value],
    offset: Value,
    mask: Value | None,
    rows: tuple[Value, Value, Value, Value],
) -> None:
    """Adds to `vectors` vectors of each row of C the products of `number` elements of A with rows of B."""
    number, vectors = shape
    m, block, target, c_row = rows
    places = [[at(b, at(b, head, offset), v * tiling.vector_bytes) for v in range(vectors)] for head in heads]
    loaded = [[load_vector(b, place, tiling.vector, mask=mask) for place in row] for row in places]

    def row(_: Value, carried: list[Value]) -> list[Value]:
        factors, c = carried
        totals = [load_vector(b, at(b, c, v * tiling.vector_bytes), tiling.vector, mask=mask) for v in range(vectors)]
        for i in range(number):
            scalar = b.load(at(b, factors, i * tiling.bytes), typ=tiling.element, align=tiling.bytes)
            factor = splat(b, scalar, tiling.lanes)
            totals = [multiply_add(b, factor, loaded[i][v], totals[v]) for v in range(vectors)]
        for v, total in enumerate(totals):
            store_vector(b, total, at(b, c, v * tiling.vector_bytes), mask=mask)
        return [at(b, factors, STREAMS * tiling.bytes), at(b, c, c_row)]

    loop(b, int_(0), m, 1, [block, target], row)


def _store_zero(b: Builder, tiling: Tiling, place: Value, mask: Value | None) -> None:
    store_vector(b, zeros(tiling.vector), place, mask=mask)


def _each_vector(
    b: Builder, tiling: Tiling, most: int, count: Value, body: Callable[[Value, int, Value | None], None]
) -> None:
    """`body(byte offset, vectors, mask)` over `count` elements: `most` vectors at once without a mask, then single
    ones with a mask."""
    step = most * tiling.lanes
    whole = b.sub(count, b.srem(count, int_(step)))
    each(b, int_(0), whole, step, lambda j: body(b.mul(j, int_(tiling.bytes)), most, None))

    def rest(j: Value) -> None:
        body(b.mul(j, int_(tiling.bytes)), 1, mask_below(b, tiling.lanes, b.sub(count, j)))

    each(b, whole, count, tiling.lanes, rest)


def emit_dot(module: ir.Module, tiling: Tiling, left: Plain, right: Plain, name: str) -> ir.Function:
    """`dot(m, n, k, a, a_row, b, b_column, c, c_row, c_column)`: C = A @ B, rows of A and columns of B contiguous;
    strides in bytes."""
    function = internal(module, name, [I64, I64, I64, PTR, I64, PTR, I64, PTR, I64, I64])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    m, n, k, a, a_row, matrix, b_column, c, c_row, c_column = function.args
    grouped = b.sub(n, b.srem(n, int_(DOT_COLUMNS)))

    def columns(number: int, j: Value) -> None:
        heads = [at(b, matrix, b.mul(b.add(j, int_(i)), b_column)) for i in range(number)]

        def row(r: Value) -> None:
            sums = _dots(b, tiling, (left, right), k, at(b, a, b.mul(r, a_row)), heads)
            for i, total in enumerate(sums):
                place = at(b, c, b.add(b.mul(r, c_row), b.mul(b.add(j, int_(i)), c_column)))
                b.store(total, place, align=tiling.bytes)

        each(b, int_(0), m, 1, row)

    each(b, int_(0), grouped, DOT_COLUMNS, lambda j: columns(DOT_COLUMNS, j))
    each(b, grouped, n, 1, lambda j: columns(1, j))
    b.ret_void()
    return function


def _dots(
    b: Builder, tiling: Tiling, sources: tuple[Plain, Plain], k: Value, a: Value, heads: list[Value]
) -> list[Value]:
    """The dot products of `k` elements at `a` with those at each of `heads`."""
    left, right = sources
    step = DOT_SUMS * tiling.lanes
    whole = b.sub(k, b.srem(k, int_(step)))

    def add(s: Value, sums: list[Value], masks: list[Value | None]) -> list[Value]:
        results = list(sums)
        for u, mask in enumerate(masks):
            offset = b.add(b.mul(s, int_(tiling.bytes)), int_(u * tiling.vector_bytes))
            factor = left.load_vector(b, at(b, a, left.offset(b, offset)), tiling.vector, mask=mask)
            for i, head in enumerate(heads):
                vector = right.load_vector(b, at(b, head, right.offset(b, offset)), tiling.vector, mask=mask)
                place = i * DOT_SUMS + u
                results[place] = multiply_add(b, factor, vector, sums[place])
        return results

    start = [zeros(tiling.vector)] * (len(heads) * DOT_SUMS)
    sums = loop(b, int_(0), whole, step, start, lambda s, sums: add(s, sums, [None] * DOT_SUMS))
    masks = [mask_below(b, tiling.lanes, b.sub(b.sub(k, whole), int_(u * tiling.lanes))) for u in range(DOT_SUMS)]
    sums = loop(b, whole, k, step, sums, lambda s, sums: add(s, sums, list(masks)))
    totals = []
    for i in range(len(heads)):
        total = sums[i * DOT_SUMS]
        for u in range(1, DOT_SUMS):
            total = b.fadd(total, sums[i * DOT_SUMS + u])
        totals.append(sum_lanes(b, total, tiling.lanes))
    return totals


def sum_lanes(b: Builder, vector: Value, lanes: int) -> Value:
    """The sum of all lanes, halves added to halves: an order of our own, not the optimiser's."""
    while lanes > 1:
        lanes //= 2
        low, high = (
            b.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(I32, lanes), list(range(s, s + lanes))))
            for s in (0, lanes)
        )
        vector = b.fadd(low, high)
    return b.extract_element(vector, ir.Constant(I32, 0))


def internal(module: ir.Module, name: str, types: list[object]) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function
