"""Attention, in bands: a product, work on its rows, and a product of that, run together a few rows at a time.

The matrix between the two products is as large as all keys times all queries, and is needed once. In a band of
rows it stays in the caches of one thread, and the whole matrix never exists.

Products with weights are left as they are: every band packs its right operand anew, which pays only where that
is small beside what lies between, as the keys of one head are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kina.core.ir import Value
from kina.dims.dim import variable
from kina.kernels.expressions import free_variables, walk
from kina.kernels.ir import BandKernel, GemmKernel, Kernel, LoopKernel
from kina.ops.scalar import Element, Index, Reduce


def in_bands(kernels: Sequence[Kernel], outputs: Sequence[Value], measured: frozenset[str]) -> tuple[Kernel, ...]:
    """The kernels in an order that computes the same, with every attention as one.

    A chain stands where its last product stood: what lies between its kernels does not need them. Threads' memory for
    bands is planned at the start, so that no band is as wide as a size that is `measured` later.
    """
    makers = _makers_for_one(kernels, outputs)
    found = {kernel: chain for kernel in kernels if (chain := _chain(kernel, makers)) is not None}
    chains = {kernel: chain for kernel, chain in found.items() if measured.isdisjoint(_sizes(chain))}
    inside = {stage for chain in chains.values() for stage in (chain.first, chain.middle)}
    return tuple(chains.get(kernel, kernel) for kernel in kernels if kernel not in inside)


def _sizes(chain: BandKernel) -> frozenset[str]:
    return frozenset[str]().union(*(d.variables for d in chain.first.output.type.shape))


def _makers_for_one(kernels: Sequence[Kernel], outputs: Sequence[Value]) -> dict[Value, Kernel]:
    """Values that a single kernel makes, for a single kernel, and who makes them."""
    made = Counter(kernel.output for kernel in kernels)
    used = Counter(value for kernel in kernels for value in dict.fromkeys(kernel.inputs))
    used.update(outputs)
    return {k.output: k for k in kernels if made[k.output] == 1 and used[k.output] == 1 and k.output not in outputs}


def _chain(last: Kernel, makers: Mapping[Value, Kernel]) -> BandKernel | None:
    """The chain that ends with a product, if it is one."""
    if not isinstance(last, GemmKernel) or not last.batch or last.left.value is last.right.value:
        return None
    middle = makers.get(last.left.value)
    if not isinstance(middle, LoopKernel) or not _works_on_rows(middle):
        return None
    if last.left.index != (*(variable(loop.variable) for loop in last.batch), variable("%m"), variable("%k")):
        return None
    for value in middle.inputs:
        first = makers.get(value)
        if isinstance(first, GemmKernel) and _fit(first, middle, last) and _reads_own_row(middle, value):
            return BandKernel(first, middle, last)
    return None


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
