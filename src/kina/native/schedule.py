"""How a loop kernel is divided: tasks for threads, stretches of long rows, tiles where memory is walked across.

A task is a row (one value of each outer loop), or a stretch of a row that has no reductions to be computed first.
Where some array is contiguous along an outer loop instead of the inner one (a transposed copy), a task takes several
rows, so that every cache line that is read is used whole.
"""

from __future__ import annotations

from dataclasses import replace

from kina.dims.atoms import Variable, parts
from kina.dims.dim import Dim, ceil_div, constant, of_monomial, product
from kina.kernels.expressions import free_variables, walk
from kina.kernels.ir import Loop, LoopKernel
from kina.native.code import Code
from kina.ops.scalar import Element, Reduce

STRETCH = 16384
"""Elements of a long row that one task takes."""
_REDUCED_STRETCH = 256
"""The same, where each element is a reduction."""
TILE_ROWS = 16
"""Rows of a tile: a cache line of F32."""
TILE_COLUMNS = 16
"""Elements of a tile's row: not more, as the lines of a column often all fall into one set of the cache."""


class NotAlong(Exception):
    """An index is not linear in the loop variable, so that loads along it are no vectors."""


def tasks_of(kernel: LoopKernel) -> Dim:
    """How many tasks a kernel has."""
    return product([loop.extent for loop in task_loops(kernel)]) * stretches_of(kernel)


def task_loops(kernel: LoopKernel) -> tuple[Loop, ...]:
    """The rows' loops as tasks count them: the loop of a tile's rows in steps of a tile."""
    tiled = tiled_loop(kernel)
    return tuple(
        replace(loop, extent=ceil_div(loop.extent, constant(TILE_ROWS))) if loop is tiled else loop
        for loop in kernel.rows
    )


def tiled_loop(kernel: LoopKernel) -> Loop | None:
    """The outer loop along which an array is read contiguously that the inner loop walks across."""
    if kernel.inner is None or any(isinstance(e, Reduce) for e in walk(kernel.body)):
        return None
    inner = kernel.inner.variable
    for e in walk(kernel.body):
        if not isinstance(e, Element) or not e.index or inner in e.index[-1].variables:
            continue
        if any(inner in i.variables for i in e.index):
            for loop in kernel.rows:
                try:
                    if coefficient(e.index[-1], loop.variable).value == 1:
                        return loop
                except NotAlong:
                    continue
    return None


def stretches_of(kernel: LoopKernel) -> Dim:
    """How many tasks a row is."""
    if kernel.inner is None or has_row_reductions(kernel):
        return constant(1)
    return ceil_div(kernel.inner.extent, constant(stretch_of(kernel)))


def stretch_of(kernel: LoopKernel) -> int:
    """How much of a row one task takes."""
    return _REDUCED_STRETCH if any(isinstance(e, Reduce) for e in walk(kernel.body)) else STRETCH


def has_row_reductions(kernel: LoopKernel) -> bool:
    """Whether something is computed once a row, before the inner loop."""
    inner = kernel.inner.variable if kernel.inner else None
    return any(isinstance(e, Reduce) and inner not in free_variables(e) for e in walk(kernel.body))


def part_of(code: Code, tasks: str, which: str) -> str:
    """Where the part of a thread, of `%n`, begins: `tasks * which / n`, without overflow for any number of tasks."""
    quotient = code.let(f"udiv i64 {tasks}, %n")
    rest = code.let(f"urem i64 {tasks}, %n")
    whole = code.let(f"mul i64 {quotient}, {which}")
    extra = code.let(f"mul i64 {rest}, {which}")
    share = code.let(f"udiv i64 {extra}, %n")
    return code.let(f"add i64 {whole}, {share}")


def coefficient(index: Dim, variable: str) -> Dim:
    """How much an index moves with a step of the variable. Raises NotAlong where that is not constant."""
    step = constant(0)
    for monomial, coefficient in index.terms:
        powers = [a for a in monomial if isinstance(a, Variable) and a.name == variable]
        if any(variable in part.variables for a in monomial for part in parts(a)) or len(powers) > 1:
            raise NotAlong
        if powers:
            rest = tuple(a for a in monomial if a is not powers[0])
            step = step + (of_monomial(rest) if rest else constant(1)) * coefficient
    return step
