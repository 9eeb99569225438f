"""Attention in bands: which rows a band has, where its matrices lie, and the function that runs through bands.

The three stages are the functions they would be on their own. Each thread has a copy of the argument block in which the
matrices between the stages begin so far before its own memory that the rows of the band fall into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kina.core.ir import Value
from kina.dims.dim import Dim, ceil_div, constant, floor_div, maximum, minimum, product
from kina.kernels.ir import BandKernel
from kina.native.code import Code

_MOST_ROWS, _FEWEST_ROWS = 256, 64
"""Rows of a band: enough for packing the right operands to be little work, few enough for the caches."""
_TASKS = 16
"""Bands there are at least, where that leaves each the fewest rows."""
_ELEMENTS = 1 << 20
"""Elements of a matrix's band, at most, where that leaves 16 rows."""
_LINE = 64


def band_rows(kernel: BandKernel) -> Dim:
    """The rows of a band. They depend on sizes alone: so does every rounding."""
    rows, columns = kernel.first.m, kernel.first.n
    shared = maximum(_FEWEST_ROWS, ceil_div(_batches(kernel) * rows, constant(_TASKS)))
    fitting = floor_div(constant(_ELEMENTS), maximum(1, columns))
    return maximum(1, minimum(rows, maximum(16, minimum(minimum(_MOST_ROWS, shared), fitting))))


def band_tasks(kernel: BandKernel) -> Dim:
    """How many bands there are in all batches."""
    return _batches(kernel) * _bands(kernel)


def band_bytes(kernel: BandKernel) -> Dim:
    """What a thread needs for the matrices of a band."""
    return _matrix_bytes(kernel) * len(kernel.between)


def _batches(kernel: BandKernel) -> Dim:
    return product([loop.extent for loop in kernel.first.batch])


def _bands(kernel: BandKernel) -> Dim:
    return ceil_div(kernel.first.m, band_rows(kernel))


def _matrix_bytes(kernel: BandKernel) -> Dim:
    size = band_rows(kernel) * kernel.first.n * kernel.first.output.type.dtype.itemsize
    return ceil_div(size, constant(_LINE)) * _LINE


def emit_bands(code: Code, kernel: BandKernel, calls: Sequence[str], words: int, places: Mapping[Value, int]) -> None:
    """The body of `(ptr %args, i64 %begin, i64 %end, i64 %tid, ptr %own)`, which runs through a range of bands.

    The argument block has `words` words, with the matrices' addresses at `places`; `%own` is this thread's memory. The
    calls of the stages have holes for the `block`, for `batch`, `first` row and number of `rows`, and for the
    `begin` and `end` of the rows counted through all batches.
    """
    block = code.at_entry(f"alloca [{words} x i64], align {_LINE}", "block")
    code.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {block}, ptr %args, i64 {8 * words}, i1 false)")
    memory = code.let("ptrtoint ptr %own to i64")
    rows, most, bands = code.dim(kernel.first.m), code.dim(band_rows(kernel)), code.dim(_bands(kernel))
    row_bytes = code.dim(kernel.first.n * kernel.first.output.type.dtype.itemsize)
    matrix = code.dim(_matrix_bytes(kernel))
    with code.loop("%begin", "%end") as task:
        batch = code.let(f"udiv i64 {task}, {bands}")
        first = code.let(f"mul i64 {code.let(f'urem i64 {task}, {bands}')}, {most}")
        left = code.let(f"sub i64 {rows}, {first}")
        count = code.let(f"call i64 @llvm.smin.i64(i64 {left}, i64 {most})")
        begin = code.let(f"add i64 {code.let(f'mul i64 {batch}, {rows}')}, {first}")
        end = code.let(f"add i64 {begin}, {count}")
        before = code.let(f"mul i64 {begin}, {row_bytes}")
        address = code.let(f"sub i64 {memory}, {before}")
        for value in kernel.between:
            code.do(f"store i64 {address}, ptr {code.let(f'getelementptr i64, ptr {block}, i64 {places[value]}')}")
            address = code.let(f"add i64 {address}, {matrix}")
        for call in calls:
            code.do(call.format(block=block, batch=batch, first=first, rows=count, begin=begin, end=end))
    code.do("ret void")
