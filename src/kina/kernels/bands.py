"""Attention, in bands: a product, work on its rows, and a product of that, run together a few rows at a time.

The matrix between the two products is as large as all keys times all queries, and is needed once. In a band of
rows it stays in the caches of one thread, and the whole matrix never exists.

Products with weights are left as they are: every band packs its right operand anew, which pays only where that
is small beside what lies between, as the keys of one head are.
"""

from __future__ import annotations

from collections.abc import Sequence

from kina.core.ir import Value
from kina.dims.dim import variable
from kina.kernels.expressions import free_variables, walk
from kina.kernels.ir import BandKernel, GemmKernel, Kernel, LoopKernel
from kina.ops.scalar import Element, Index, Reduce


def in_bands(kernels: Sequence[Kernel], outputs: Sequence[Value]) -> tuple[Kernel, ...]:
    """The kernels in an order that computes the same, with every attention as one.

    A chain stands where its last product stood: what lies between its kernels does not need them.
    """
    found = list(kernels)
    for last in kernels:
        chain = _chain(last, kernels, outputs)
        if chain is not None:
            found[found.index(last)] = chain
            found.remove(chain.first)
            found.remove(chain.middle)
    return tuple(found)


def _chain(last: Kernel, kernels: Sequence[Kernel], outputs: Sequence[Value]) -> BandKernel | None:
    """The chain that ends with a product, if it is one."""
    if not isinstance(last, GemmKernel) or not last.batch:
        return None
    middle = _only_maker(last.left.value, last, kernels, outputs)
    if not isinstance(middle, LoopKernel) or not _works_on_rows(middle):
        return None
    if last.left.index != (*(variable(loop.variable) for loop in last.batch), variable("%m"), variable("%k")):
        return None
    for value in middle.inputs:
        first = _only_maker(value, middle, kernels, outputs)
        if isinstance(first, GemmKernel) and _fit(first, middle, last) and _reads_own_row(middle, value):
            return BandKernel(first, middle, last)
    return None


def _only_maker(value: Value, user: Kernel, kernels: Sequence[Kernel], outputs: Sequence[Value]) -> Kernel | None:
    """The kernel that makes a value which nobody else needs, all of it at once."""
    makers = [k for k in kernels if k.output is value]
    users = [k for k in kernels if value in k.inputs]
    return makers[0] if len(makers) == 1 and users == [user] and value not in outputs else None


def _works_on_rows(kernel: LoopKernel) -> bool:
    """Whether each row of the output is computed whole, from reductions along it."""
    if kernel.inner is None or kernel.index != tuple(variable(loop.variable) for loop in kernel.loops):
        return False
    inner = kernel.inner.variable
    return any(isinstance(e, Reduce) and inner not in free_variables(e) for e in walk(kernel.body))


def _reads_own_row(kernel: LoopKernel, value: Value) -> bool:
    number = kernel.inputs.index(value)
    rows: Index = kernel.index[:-1]
    return all(e.index[:-1] == rows for e in walk(kernel.body) if isinstance(e, Element) and e.operand == number)


def _fit(first: GemmKernel, middle: LoopKernel, last: GemmKernel) -> bool:
    """Whether batches and rows of all three are the same, and the first product's right operand is of its batch."""
    shape = first.output.type.shape
    same = shape == middle.output.type.shape and first.output.type.dtype is middle.output.type.dtype
    batch = {loop.variable for loop in first.batch}
    return same and any(batch & i.variables for i in first.right.index) and last.m is first.m
