"""Reductions to a single element, cut into parts: threads compute parts, and the parts are combined.

Parts have a fixed size, whatever the number of threads, so a result does not depend on it. A row that is reduced on
its own (softmax) stays whole: there, rows are what threads share.
"""

from __future__ import annotations

from collections.abc import Iterator

from kina.core.ir import Value
from kina.dims.dim import Dim, ceil_div, constant, floor_div, maximum, minimum, product, variable
from kina.kernels.expressions import free_variables, rebuild, result_dtype, substitute, walk
from kina.kernels.ir import Loop, LoopKernel
from kina.ops.scalar import Element, Reduce, Scalar
from kina.types import Tensor

PART = 65536
"""Elements in a part, roughly."""
_ONE = constant(1)


def in_parts(output: Value, e: Scalar, inputs: dict[Value, int]) -> tuple[list[LoopKernel], Scalar]:
    """Kernels that compute the parts of all reductions in `e`, and `e` as it is with the parts at hand.

    `e` has no free loop variables; `inputs` number what its elements are of, and get the parts added.
    """
    kernels: list[LoopKernel] = []
    given = len(inputs)
    while (found := next(_whole(e, given), None)) is not None:
        kernel, combined = _cut(output, len(kernels), found, inputs)
        kernels.append(kernel)
        e = _replaced(e, found, combined)
    return kernels, e


def _whole(e: Scalar, given: int) -> Iterator[Reduce]:
    """Reductions that depend on no loop, of more than parts (which come after the given inputs); inner ones first."""
    for node in reversed(list(walk(e))):
        if isinstance(node, Reduce) and not free_variables(node):
            elements = [x.operand for x in walk(node) if isinstance(x, Element)]
            if any(n < given for n in elements):
                yield node


def _cut(output: Value, number: int, whole: Reduce, inputs: dict[Value, int]) -> tuple[LoopKernel, Scalar]:
    """The kernel that computes the parts of a reduction over one or several axes, and how they are combined."""
    axes, body = _nest(whole)
    dtypes = tuple(value.type.dtype for value in inputs)
    each = _work(body, frozenset(axis.variable for axis in axes))
    rows: list[Loop] = []
    narrowed: list[Loop] = []
    for axis in reversed(axes):
        size = constant(PART) if each is _ONE else maximum(_ONE, floor_div(constant(PART), maximum(_ONE, each)))
        row = Loop(f"%p{len(rows)}", ceil_div(axis.extent, size))
        start = variable(row.variable) * size
        body = substitute(body, {axis.variable: variable(axis.variable) + start})
        narrowed.append(Loop(axis.variable, minimum(size, axis.extent - start)))
        rows.append(row)
        each = each * axis.extent
    for axis in narrowed:
        body = Reduce(whole.kind, axis.variable, axis.extent, body)
    rows.reverse()
    index = tuple(variable(row.variable) for row in rows)
    shape = tuple(row.extent for row in rows)
    parts = Value(f"parts {number + 1} of {output.name}", Tensor(result_dtype(body, dtypes), shape))
    used = tuple(inputs)
    kernel = LoopKernel(parts.name, parts, used, tuple(rows), None, index, body)
    inputs[parts] = len(inputs)
    combined: Scalar = Element(inputs[parts], tuple(variable(axis.variable) for axis in axes))
    for axis, row in zip(reversed(axes), reversed(rows), strict=True):
        combined = Reduce(whole.kind, axis.variable, row.extent, combined)
    return kernel, combined


def _nest(e: Reduce) -> tuple[list[Loop], Scalar]:
    """The axes of a reduction over several, the outermost first, and what is reduced."""
    axes = [Loop(e.variable, e.extent)]
    body = e.body
    while isinstance(body, Reduce) and body.kind == e.kind:
        axes.append(Loop(body.variable, body.extent))
        body = body.body
    return axes, body


def _work(e: Scalar, axes: frozenset[str]) -> Dim:
    """Roughly how many elements are combined for one of the elements that a reduction over `axes` combines."""
    most = _ONE
    for node in walk(e):
        if isinstance(node, Reduce) and axes & free_variables(node):
            inner, body = _nest(node)
            extents = [axis.extent for axis in inner]
            names = axes | {axis.variable for axis in inner}
            work = product([*extents, _work(body, names)])
            most = work if most is _ONE else maximum(most, work)
    return most


def _replaced(e: Scalar, old: Scalar, new: Scalar) -> Scalar:
    return new if e == old else rebuild(e, lambda child: _replaced(child, old, new))
