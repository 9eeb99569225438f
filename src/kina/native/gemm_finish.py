"""Epilogues: what happens to a part of C when its sums are complete, while it is still in L1.

Gemm itself is compiled once for all programs. A program that wants a bias, an activation or a residual added
gives it the address of a function of its own, which gemm calls for every finished tile:

    void finish(ptr context, i64 row, i64 column, i64 rows, i64 columns, ptr c, i64 c_row, i64 c_column)

`c` is the tile's first element, which is element (row, column) of C; the strides are in bytes. Every
element of C is finished exactly once, by the thread that computed it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    mask_below,
    store_vector,
    when,
    zeros,
)
from kina.native.machine import Machine
from kina.native.tiling import Tiling

Pair = tuple[Value, Value]

FINISH_TYPE = ir.FunctionType(ir.VoidType(), [PTR, I64, I64, I64, I64, PTR, I64, I64])


@dataclass(frozen=True, slots=True)
class Store:
    """Where a finished vector of C goes: the place of its first lane, and which lanes exist (None: all).

    Lanes are successive columns. An epilogue that loads (a bias, a residual) must load under `mask`.
    """

    context: Value
    row: Value
    column: Value
    mask: Value | None


Epilogue = Callable[[Builder, Store, Value], Value]
"""Emits IR that turns a vector of A @ B into what is stored in C. It is called for several forms of the loop."""


def emit_finish(module: ir.Module, machine: Machine, dtype: str, name: str, epilogue: Epilogue) -> ir.Function:
    """A `finish` function, internal to `module`, that applies `epilogue` to every element of its tile."""
    tiling = Tiling.of(machine, dtype)
    function = ir.Function(module, FINISH_TYPE, name)
    function.linkage = "internal"
    b = ir.IRBuilder(function.append_basic_block("entry"))
    context, row, column, rows, columns, c, c_row, c_column = function.args
    contiguous = b.icmp_signed("==", c_column, int_(tiling.bytes))
    lane_0 = ir.Constant(I32, 0)

    def vectors(r: Value) -> None:
        origin, full_row = at(b, c, b.mul(r, c_row)), b.add(row, r)
        whole = b.sub(columns, b.srem(columns, int_(tiling.lanes)))

        def finish(j: Value, mask: Value | None) -> None:
            place = at(b, origin, b.mul(j, int_(tiling.bytes)))
            value = load_vector(b, place, tiling.vector, mask=mask)
            store_vector(b, epilogue(b, Store(context, full_row, b.add(column, j), mask), value), place, mask=mask)

        each(b, int_(0), whole, tiling.lanes, lambda j: finish(j, None))
        rest = b.sub(columns, whole)
        when(b, b.icmp_signed(">", rest, int_(0)), lambda: finish(whole, mask_below(b, tiling.lanes, rest)))

    def elements(r: Value) -> None:
        def finish(j: Value) -> None:
            place = at(b, c, b.add(b.mul(r, c_row), b.mul(j, c_column)))
            scalar = b.load(place, typ=tiling.element, align=tiling.bytes)
            vector = b.insert_element(zeros(tiling.vector), scalar, lane_0)
            store = Store(context, b.add(row, r), b.add(column, j), mask_below(b, tiling.lanes, int_(1)))
            b.store(b.extract_element(epilogue(b, store, vector), lane_0), place, align=tiling.bytes)

        each(b, int_(0), columns, 1, finish)

    when(b, contiguous, lambda: each(b, int_(0), rows, 1, vectors))
    when(b, b.not_(contiguous), lambda: each(b, int_(0), rows, 1, elements))
    b.ret_void()
    return function


@dataclass(frozen=True, slots=True)
class Finish:
    """A caller's `finish` (null: none) with its context, and whether gemm has swapped the roles of A and B, so
    that its rows are the caller's columns."""

    function: Value
    context: Value
    swapped: Value

    def call(self, b: Builder, rows: Pair, columns: Pair, c: Value, strides: Pair) -> None:
        """Finishes `rows` and `columns` (first, count) at `c`, in gemm's own orientation."""

        def oriented(mine: Value, other: Value) -> Value:
            return b.select(self.swapped, other, mine)

        def call() -> None:
            pairs = ((rows[0], columns[0]), (rows[1], columns[1]), strides)
            places, counts, steps = ([oriented(x, y), oriented(y, x)] for x, y in pairs)
            callee = b.bitcast(self.function, _FunctionPointer(FINISH_TYPE))
            b.call(callee, [self.context, *places, *counts, c, *steps])

        when(b, b.icmp_unsigned("!=", self.function, ir.Constant(PTR, None)), call)


class _FunctionPointer(ir.PointerType):  # type: ignore[misc]
    """An opaque pointer of which llvmlite knows what it can be called with."""

    def __init__(self, pointee: ir.FunctionType) -> None:
        super().__init__()
        self.pointee = pointee

    def __eq__(self, other: object) -> bool:
        return self is other  # or a cast to it would be left out

    __hash__ = ir.PointerType.__hash__
