"""Few rows times a quantised matrix: its blocks are unpacked in registers, each once for each row, and never stored.

B has its blocks along K, so that every element of the result is a sum along a stream of blocks. Several columns at once
share what is loaded of A. The order of every sum depends on K alone, never on the columns a thread has.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from kina.native.blocks import codes, has_tables, looked_up, scales, table
from kina.native.build import I64, PTR, Builder, Value, at, each, int_, load_vector, loop, multiply_add, splat, zeros
from kina.native.gemv import internal, sum_lanes
from kina.native.machine import Machine
from kina.native.tiling import Tiling
from kina.types.blocks import NUMBERS, BlockFormat


def emit_block_dot(module: ir.Module, machine: Machine, tiling: Tiling, form: BlockFormat, name: str) -> ir.Function:
    """`dot(m, n, k, a, a_row, b, b_block, b_column, c, c_row, c_column)`: C = A @ B, rows of A contiguous, strides in
    bytes; `b_block` is how far apart the blocks of a column are."""
    function = internal(module, name, [I64, I64, I64, PTR, I64, PTR, I64, I64, PTR, I64, I64])
    b = ir.IRBuilder(function.append_basic_block("entry"))
    m, n, k, a, a_row, matrix, b_block, b_column, c, c_row, c_column = function.args
    together = 4 if machine.vector_registers >= 32 else 2
    grouped = b.sub(n, b.srem(n, int_(together)))
    count = b.udiv(k, int_(NUMBERS))

    def columns(number: int, j: Value) -> None:
        heads = [at(b, matrix, b.mul(b.add(j, int_(i)), b_column)) for i in range(number)]

        def row(r: Value) -> None:
            found = _sums(b, machine, tiling, form, (count, b_block), at(b, a, b.mul(r, a_row)), heads)
            for i, total in enumerate(found):
                place = at(b, c, b.add(b.mul(r, c_row), b.mul(b.add(j, int_(i)), c_column)))
                b.store(total, place, align=tiling.bytes)

        each(b, int_(0), m, 1, row)

    each(b, int_(0), grouped, together, partial(columns, together))
    each(b, grouped, n, 1, partial(columns, 1))
    b.ret_void()
    return function


def _sums(
    b: Builder, machine: Machine, tiling: Tiling, form: BlockFormat, blocks: tuple[Value, Value], a: Value,
    heads: list[Value],
) -> list[Value]:  # fmt: skip
    """The products of a row of A with the columns of blocks at `heads`; `blocks` is how many, and how far apart."""
    count, step = blocks
    each_has = 2 if has_tables(machine, form) or form.has_minimum else 1

    def add(_: Value, carried: list[Value]) -> list[Value]:
        row, offset, *totals = carried
        places = [at(b, row, v * tiling.vector_bytes) for v in range(NUMBERS // tiling.lanes)]
        xs = [load_vector(b, place, tiling.vector) for place in places]
        results = []
        for i, head in enumerate(heads):
            mine = totals[i * each_has : (i + 1) * each_has]
            results += _add_block(b, machine, tiling, form, at(b, head, offset), xs, mine)
        return [at(b, row, NUMBERS * tiling.bytes), b.add(offset, step), *results]

    start = [zeros(tiling.vector)] * (each_has * len(heads))
    _, _, *totals = loop(b, int_(0), count, 1, [a, int_(0), *start], add)
    found = []
    for i in range(len(heads)):
        mine = totals[i * each_has : (i + 1) * each_has]
        found.append(sum_lanes(b, mine[0] if each_has == 1 else b.fadd(*mine), tiling.lanes))
    return found


def _add_block(
    b: Builder, machine: Machine, tiling: Tiling, form: BlockFormat, block: Value, xs: list[Value], totals: list[Value]
) -> list[Value]:
    """The sums with the products of a block added: of numbers out of its table, else of codes, scaled together."""
    if has_tables(machine, form):
        found = looked_up(b, form, block, table(b, machine, form, block))
        return [multiply_add(b, w, x, total) for w, x, total in zip(found, xs, totals, strict=True)]
    scale, minimum = scales(b, machine, form, block)
    product = b.fmul(codes(b, form, block, 0, tiling.lanes), xs[0])
    for v, x in enumerate(xs[1:], start=1):
        product = multiply_add(b, codes(b, form, block, v * tiling.lanes, tiling.lanes), x, product)
    scaled = multiply_add(b, splat(b, scale, tiling.lanes), product, totals[0])
    if minimum is None:
        return [scaled]
    whole = xs[0]
    for x in xs[1:]:
        whole = b.fadd(whole, x)
    return [scaled, multiply_add(b, splat(b, minimum, tiling.lanes), whole, totals[1])]
