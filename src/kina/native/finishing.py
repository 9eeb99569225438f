"""Epilogues of products: the function that gemm calls for every tile of the result, while it is in L1.

Gemm is compiled once for all programs and knows of a `finish` only its address and a context, which it hands on (see
`gemm_finish`). The context is a block of words on the caller's stack: the program's argument block, the number of the
batch, and where in the argument block the kernel's values stand. Inside, a tile is a small loop kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kina.core.ir import Value
from kina.dims.dim import Dim, floor_div, modulo, product, variable
from kina.kernels.expressions import rebuild, substitute
from kina.kernels.ir import GemmKernel, Loop, LoopKernel
from kina.native.code import Code
from kina.native.elements import Buffer
from kina.native.loops import LoopEmitter
from kina.native.machine import Machine
from kina.native.schedule import task_loops
from kina.ops.scalar import Element, Scalar
from kina.types import Tensor

PARAMETERS = "ptr %context, i64 %row, i64 %column, i64 %rows, i64 %columns, ptr %c, i64 %c_row, i64 %c_column"
TILE_SIZES: Mapping[str, str] = {
    "tile batch": "%batch", "tile row": "%row", "tile column": "%column", "tile rows": "%rows",
    "tile columns": "%columns",
}  # fmt: skip
"""What the tile is, as sizes: the batch, its first row and column, and how many of them it has."""
_BATCH, _ROW, _COLUMN, _ROWS, _COLUMNS = (variable(name) for name in TILE_SIZES)
_M, _N = variable("%tm"), variable("%tn")


@dataclass(frozen=True, slots=True)
class FinishCall:
    """A product's `finish`: the function, and how many values the kernel has."""

    function: str
    values: int

    def tell(self, code: Code, batch: str) -> tuple[str, str]:
        """The last two arguments of gemm, for the batch of that number."""
        context = code.at_entry(f"alloca [{2 + self.values} x i64]", "context")
        for n, text in enumerate(["ptr %args", f"i64 {batch}", *(f"i64 %place{n}" for n in range(self.values))]):
            place = code.at_entry(f"getelementptr inbounds i64, ptr {context}, i64 {n}", "told")
            code.do(f"store {text}, ptr {place}")
        return f"ptr @{self.function}", f"ptr {context}"


def read_context(kernel: GemmKernel, values: int) -> list[str]:
    """Reads `%args`, `%place0` and so on, and `%batch`; and makes the strides of the tile, in elements."""
    lines = ["  %args = load ptr, ptr %context"]
    for n, name in enumerate(["batch", *(f"place{n}" for n in range(values))], 1):
        lines.append(f"  %told{n} = getelementptr inbounds i64, ptr %context, i64 {n}")
        lines.append(f"  %{name} = load i64, ptr %told{n}")
    shift = kernel.output.type.dtype.itemsize.bit_length() - 1
    for name in ("row", "column"):
        lines.append(f"  %stride_{name} = ashr i64 %c_{name}, {shift}")
    return lines


def emit_finish(code: Code, kernel: GemmKernel, machine: Machine, buffers: Mapping[Value, Buffer]) -> None:
    """The body of a `finish`: every element of the tile becomes what the kernel makes of it."""
    assert kernel.finish is not None
    tile = Value("tile", Tensor(kernel.output.type.dtype, (_ROWS, _COLUMNS)))
    body = _in_tile(substitute(kernel.finish.body, _places(kernel)))
    rows, inner = (Loop("%tm", _ROWS),), Loop("%tn", _COLUMNS)
    loops = LoopKernel("", tile, (tile, *kernel.finish.inputs), rows, inner, (_M, _N), body)
    own = Buffer("%c", tile.type.dtype, ("%stride_row", "%stride_column"))
    tasks = product([loop.extent for loop in task_loops(loops)])
    LoopEmitter(code, loops, machine, {**buffers, tile: own}, in_cache=True).emit("0", code.dim(tasks))


def _places(kernel: GemmKernel) -> dict[str, Dim]:
    """Batch, row and column of the product, from those of the tile. Where batches are joined to one product, its rows
    are counted through all of them."""
    found = {"%n": _COLUMN + _N}
    if not kernel.batch:
        return {**found, "%m": _ROW + _M}
    rest = _BATCH * kernel.m + _ROW + _M
    found["%m"], rest = modulo(rest, kernel.m), floor_div(rest, kernel.m)
    for loop in reversed(kernel.batch[1:]):
        found[loop.variable], rest = modulo(rest, loop.extent), floor_div(rest, loop.extent)
    return {**found, kernel.batch[0].variable: rest}


def _in_tile(e: Scalar) -> Scalar:
    """The element of the product that is being finished is the tile's own."""
    if isinstance(e, Element) and e.operand == 0:
        return Element(0, (_M, _N))
    return rebuild(e, _in_tile)
