"""Epilogues: elementwise work on a product is done while the product is in cache, and never stored apart.

A bias, an activation, a residual, a gate: each reads every element of a product once, at its own place. It becomes the
product's `finish`, and the product is stored as what it is finished to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kina.core.ir import Value
from kina.dims.dim import Dim, constant, variable
from kina.kernels.expressions import rebuild, substitute, walk
from kina.kernels.ir import Finish, GemmKernel, Kernel, LoopKernel
from kina.ops.scalar import Element, Index, Lookup, Reduce, Scalar

_ONE, _ZERO = constant(1), constant(0)


def with_epilogues(kernels: Sequence[Kernel], outputs: Sequence[Value]) -> tuple[Kernel, ...]:
    """The kernels in an order that computes the same, with elementwise work done by the products that it is of.

    `outputs` are needed by others. A product moves down to where its elementwise user stood; of two products that one
    kernel reads, the later one takes it.
    """
    made = Counter(kernel.output for kernel in kernels)
    used = Counter(value for kernel in kernels for value in dict.fromkeys(kernel.inputs))
    used.update(outputs)
    products = {
        k.output: k for k in kernels if isinstance(k, GemmKernel) and made[k.output] == 1 and used[k.output] == 1
    }
    found: dict[Value, GemmKernel] = {}
    finished: set[Value] = set()
    for kernel in kernels:
        if isinstance(kernel, LoopKernel):
            for value in reversed([v for v in products if v in kernel.inputs]):
                whole = _finished(products[value], kernel)
                if whole is not None:
                    found[kernel.output] = whole
                    finished.add(value)
                    break
    left = (kernel for kernel in kernels if kernel.output not in finished)
    return tuple(found.get(kernel.output, kernel) if isinstance(kernel, LoopKernel) else kernel for kernel in left)


def _finished(gemm: GemmKernel, kernel: LoopKernel) -> GemmKernel | None:
    """The product with the kernel's work done on its elements, or None where that is more than work on each element."""
    product, shape = gemm.output.type, kernel.output.type.shape
    if gemm.finish is not None or shape != product.shape or kernel.output.type.dtype is not product.dtype:
        return None
    if kernel.scan is not None or any(isinstance(e, Reduce | Lookup) for e in walk(kernel.body)):
        return None
    own = _own_index(gemm)
    loops = {variable(loop.variable): loop for loop in kernel.loops}
    variables: dict[str, Dim] = {}
    for i, mine, size in zip(kernel.index, own, shape, strict=True):
        if size is not _ONE:
            if i not in loops or loops[i].extent is not size:
                return None
            variables[loops[i].variable] = mine
    body = substitute(kernel.body, variables)
    number = kernel.inputs.index(gemm.output)
    place = tuple(_ZERO if size is _ONE else i for i, size in zip(own, shape, strict=True))
    if any(e.index != place for e in walk(body) if isinstance(e, Element) and e.operand == number):
        return None
    others = tuple(v for v in kernel.inputs if v is not gemm.output)
    numbers = {n: 0 if n == number else 1 + others.index(v) for n, v in enumerate(kernel.inputs)}
    finish = Finish(_numbered(body, numbers), others)
    return replace(gemm, name=kernel.name, output=kernel.output, finish=finish)


def _own_index(gemm: GemmKernel) -> Index:
    return (*(variable(loop.variable) for loop in gemm.batch), variable("%m"), variable("%n"))


def _numbered(e: Scalar, numbers: dict[int, int]) -> Scalar:
    if isinstance(e, Element):
        return Element(numbers[e.operand], e.index)
    return rebuild(e, lambda child: _numbered(child, numbers))
