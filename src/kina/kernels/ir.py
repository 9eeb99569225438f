"""Loop nests: what fusion makes of core, and what native code is made from.

A kernel computes one tensor, element by element, over its loops. Its body is a scalar expression whose
`Element(k, index)` is an element of the kernel's input number `k` and whose index arithmetic is over
the loop variables. A contraction is a kernel of its own kind, as it has its own schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from kina.core.ir import Check, Function, Value
from kina.dims.dim import Dim
from kina.ops.scalar import Index, Reduction, Scalar


@dataclass(frozen=True, slots=True)
class Loop:
    """`variable` from 0 to `extent`."""

    variable: str
    extent: Dim


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop in which every step stores a total: `total = combine(total, body)`, from the identity of the reduction."""

    kind: Reduction
    loop: Loop


@dataclass(frozen=True, slots=True)
class LoopKernel:
    """`output[index] = body`, for all values of the loops.

    `rows` are the outer loops, split over threads. `inner` runs along vectors; where it is None the rows end in
    single elements and vectors run along the reductions in the body. A reduction in the body that does
    not depend on `inner` is computed once a row, before the inner loop. With `scan` there is no `inner`: in each row,
    the loop of the scan stores totals of what the body gives, rounded to the output's dtype.
    """

    name: str
    output: Value
    inputs: tuple[Value, ...]
    rows: tuple[Loop, ...]
    inner: Loop | None
    index: Index
    body: Scalar
    scan: Scan | None = None

    @property
    def loops(self) -> tuple[Loop, ...]:
        if self.scan:
            return (*self.rows, self.scan.loop)
        return (*self.rows, self.inner) if self.inner else self.rows


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix operand: an element of `value` at `index`, over the batch loops and `%m`, `%k` or `%n`."""

    value: Value
    index: Index


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """`output[batch, m, n] = sum over k of left[batch, m, k] * right[batch, k, n]`.

    Operands are any strided view in their last two axes, and any index arithmetic in the batch axes.
    """

    name: str
    output: Value
    left: Operand
    right: Operand
    batch: tuple[Loop, ...]
    m: Dim
    n: Dim
    k: Dim

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.left.value, self.right.value)


@dataclass(frozen=True, slots=True)
class BandKernel:
    """Attention: a product, work on its rows, and a product of that, run together for a few rows at a time.

    What lies `between` them exists only a band at a time, in memory that each thread has for itself.
    """

    first: GemmKernel
    middle: LoopKernel
    last: GemmKernel

    @property
    def name(self) -> str:
        return self.last.name

    @property
    def output(self) -> Value:
        return self.last.output

    @property
    def between(self) -> tuple[Value, Value]:
        return (self.first.output, self.middle.output)

    @property
    def inputs(self) -> tuple[Value, ...]:
        read = (*self.first.inputs, *self.middle.inputs, *self.last.inputs)
        return tuple(v for v in dict.fromkeys(read) if v not in self.between)


Kernel = LoopKernel | GemmKernel | BandKernel


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """A function as kernels in order. `outputs[i]` is the value that result number `i` is computed as.

    It may have another shape than the result, of which it then is the same memory in row-major order. Each value of
    `outputs` is computed by kernels of the program and stands there once.
    `reasons` say why a value was stored instead of being computed where it is used.
    """

    function: Function
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    kernels: tuple[Kernel, ...]
    checks: tuple[Check, ...]
    reasons: tuple[tuple[Value, str], ...]

    @property
    def temporaries(self) -> tuple[Value, ...]:
        """Values between kernels, in the order in which they are computed."""
        made = dict.fromkeys(k.output for k in self.kernels)
        return tuple(v for v in made if v not in self.outputs)

    @property
    def between_stages(self) -> tuple[Value, ...]:
        """Values inside kernels that exist only in part, for each thread its own."""
        return tuple(v for k in self.kernels if isinstance(k, BandKernel) for v in k.between)

    def __str__(self) -> str:
        from kina.kernels.describe import describe

        return describe(self)
