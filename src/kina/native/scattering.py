"""Updates at computed places. Each thread has some of the rows that are written, and goes through all updates in order.

So every element meets its updates in one order, whatever the number of threads, and no two threads write to one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kina.core.ir import Value
from kina.dims.dim import variable
from kina.kernels.ir import ScatterKernel
from kina.native.code import Code
from kina.native.elements import Buffer, load, loops_over, store
from kina.native.primitives import emit_call, emit_cast

_ROW = "%v"


def emit_scatter(
    code: Code, kernel: ScatterKernel, buffers: Mapping[Value, Buffer], part: Callable[[Code, str, str], str]
) -> None:
    """The body of `(ptr %args, i64 %tid, i64 %n, ...)`. `part` says where the share of a thread begins."""
    size, output = code.dim(kernel.size), buffers[kernel.output]
    begin, end = (part(code, size, which) for which in ("%tid", code.let("add i64 %tid, 1")))
    outer, inner = (tuple(variable(loop.variable) for loop in loops) for loops in (kernel.outer, kernel.inner))
    place = (*outer, variable(_ROW), *inner)
    with (
        loops_over(code, kernel.outer),
        code.loop(begin, end) as row,
        code.variable(_ROW, row),
        loops_over(code, kernel.inner),
    ):
        x = load(code, buffers[kernel.x.value], kernel.x.index)
        store(code, emit_cast(code, x, output.dtype), output, place)
    with loops_over(code, kernel.outer), loops_over(code, kernel.places):
        row = load(code, buffers[kernel.ids.value], kernel.ids.index).text
        ours, done = code.fresh_label("ours"), code.fresh_label("done")
        from_begin, count = code.let(f"sub i64 {row}, {begin}"), code.let(f"sub i64 {end}, {begin}")
        code.do(f"br i1 {code.let(f'icmp ult i64 {from_begin}, {count}')}, label %{ours}, label %{done}")
        code.label(ours)
        with code.variable(_ROW, row), loops_over(code, kernel.inner):
            update = emit_cast(code, load(code, buffers[kernel.updates.value], kernel.updates.index), output.dtype)
            if kernel.kind != "set":
                update = emit_call(code, kernel.kind, [load(code, output, place), update])
            store(code, update, output, place)
        code.do(f"br label %{done}")
        code.label(done)
    code.do("ret void")
