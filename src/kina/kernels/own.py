"""Operations with a kernel of their own kind: no element of their results can be said by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kina.core.ir import Apply, Value
from kina.dims.dim import Dim, variable
from kina.kernels.ir import Kernel, Loop, LoopKernel, Operand, OrderKernel, PlacesKernel, ScatterKernel
from kina.ops.base import Operation
from kina.ops.guarded import Safe
from kina.ops.indexing import moved
from kina.ops.ordering import ArgSort, ArgTopK, NonzeroAlong
from kina.ops.scalar import Cast, Element, Index
from kina.ops.writing import Scatter
from kina.types import Tensor

_OF_THEIR_OWN = (ArgSort, ArgTopK, Scatter, NonzeroAlong)
View = Callable[[Value, Index, tuple[Loop, ...], str], Operand]
"""A value at an index over loops as a view of something stored; `role` says what it is to the kernel."""


def has_own_kernel(operation: Operation) -> bool:
    """Whether there is a kernel of its own kind for an operation."""
    return isinstance(_guarded(operation), _OF_THEIR_OWN)


def _guarded(operation: Operation) -> Operation:
    return operation.guarded if isinstance(operation, Safe) else operation


def kernels_of_their_own(made: Apply, view: View) -> list[Kernel]:
    """The kernels of an operation that has its own."""
    match _guarded(made.operation):
        case ArgSort(axis=axis):
            return [_order(made, view, axis, descending=False)]
        case ArgTopK(axis=axis):
            return [_order(made, view, axis, descending=True)]
        case Scatter(kind=kind, axis=axis):
            return _scatter(made, view, kind, axis)
        case NonzeroAlong(axis=axis, count=count):
            return [_places(made, view, axis, count)]
    raise AssertionError(made.operation)


def _order(made: Apply, view: View, axis: int, *, descending: bool) -> Kernel:
    (x,), output = made.arguments, made.result
    loops = _loops("%i", x.type.shape)
    rows = (*loops[:axis], *loops[axis + 1 :])
    at_key = moved(_index(loops), axis, variable("%k"))
    size, count = x.type.shape[axis], output.type.shape[axis]
    keys = view(x, at_key, (*rows, Loop("%k", size)), "put in order")
    place = moved(_index(loops), axis, variable("%j"))
    return OrderKernel(output.name, output, keys, rows, place, size, count, descending)


def _places(made: Apply, view: View, axis: int, count: Dim) -> Kernel:
    (mask,), output = made.arguments, made.result
    loops = _loops("%i", mask.type.shape)
    flags = view(mask, _index(loops), loops, "searched for true elements")
    return PlacesKernel(output.name, output, flags, loops, axis, count)


def _scatter(made: Apply, view: View, kind: str, axis: int) -> list[Kernel]:
    """Half-precision numbers are combined in F32, and rounded once by a kernel after it."""
    (x, ids, updates), output = made.arguments, made.result
    shape = x.type.shape
    outer, inner = _loops("%o", shape[:axis]), _loops("%i", shape[axis + 1 :])
    places = _loops("%p", ids.type.shape)
    row = Loop("%v", shape[axis])
    start = view(x, (*_index(outer), variable("%v"), *_index(inner)), (*outer, row, *inner), "scattered to")
    at = view(ids, _index(places), places, "positions to scatter at")
    everywhere = (*outer, *places, *inner)
    given = view(updates, _index(everywhere), everywhere, "scattered")
    wide = widened_value(output)
    scatter = ScatterKernel(wide.name, wide, start, at, given, outer, places, inner, shape[axis], kind)
    return [scatter] if wide is output else [scatter, rounded(wide, output)]


def widened_value(output: Value) -> Value:
    """What a kernel adds up in: the output itself, or for halves a value in F32 that is rounded to it at the end."""
    dtype = output.type.dtype
    if dtype.accumulator is dtype:
        return output
    return Value(f"{output.name} in {dtype.accumulator}", Tensor(dtype.accumulator, output.type.shape))


def rounded(wide: Value, output: Value) -> Kernel:
    """The kernel that rounds what was added up to the output's dtype."""
    loops = _loops("%i", output.type.shape)
    *rows, last = loops
    index = _index(loops)
    narrow = Cast(Element(0, index), output.type.dtype)
    return LoopKernel(output.name, output, (wide,), tuple(rows), last, index, narrow)


def _loops(stem: str, shape: Sequence[Dim]) -> tuple[Loop, ...]:
    return tuple(Loop(f"{stem}{n}", size) for n, size in enumerate(shape))


def _index(loops: Sequence[Loop]) -> Index:
    return tuple(variable(loop.variable) for loop in loops)
