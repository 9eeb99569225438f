"""Loop nests: what fusion makes of core, and what native code is made from.

A kernel computes one tensor, element by element, over its loops. Its body is a scalar expression whose
`Element(k, index)` is an element of the kernel's input number `k` and whose index arithmetic is over
the loop variables. A contraction is a kernel of its own kind, as it has its own schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kina.core.ir import Check, Function, Open, Require, Value, statements_within
from kina.dims.dim import Dim, constant, product
from kina.dims.proposition import Proposition
from kina.kernels.ranges import at_most, made_sizes
from kina.ops.scalar import Index, Reduction, Scalar
from kina.types import Shape


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
    """What a kernel of its own kind reads: an element of `value` at `index`, over the kernel's loops.

    In a contraction those are the batch loops and `%m`, `%k` or `%n`.
    """

    value: Value
    index: Index


@dataclass(frozen=True, slots=True)
class Finish:
    """What is made of each element of a product before it is stored: `body`, over the batch loops, `%m` and `%n`.

    Its operand 0 is the element itself; operand `k` is an element of input number `k - 1`.
    """

    body: Scalar
    inputs: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """`output[batch, m, n] = sum over k of left[batch, m, k] * right[batch, k, n]`, or what `finish` makes of it.

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
    finish: Finish | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.left.value, self.right.value, *(self.finish.inputs if self.finish else ()))


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


@dataclass(frozen=True, slots=True)
class OrderKernel:
    """`output[index]`, `%j` from 0 to `count`: the first positions `%k`, of `size`, in the order of `keys[rows, %k]`.

    Ascending or `descending`; NaN is the greatest; of equals the lower position comes first.
    """

    name: str
    output: Value
    keys: Operand
    rows: tuple[Loop, ...]
    index: Index
    size: Dim
    count: Dim
    descending: bool

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.keys.value,)


@dataclass(frozen=True, slots=True)
class ScatterKernel:
    """`output[outer, %v, inner] = x[outer, %v, inner]`, `%v` from 0 to `size`; then, `places` in order and for all of
    inner, `output[outer, ids[places], inner]` is combined with `updates[outer, places, inner]`: added, set, max or min.
    """

    name: str
    output: Value
    x: Operand
    ids: Operand
    updates: Operand
    outer: tuple[Loop, ...]
    places: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    size: Dim
    kind: str

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.x.value, self.ids.value, self.updates.value)


@dataclass(frozen=True, slots=True)
class PlacesKernel:
    """`output[j]`, j from 0 to `count`: where along axis number `axis` of the `loops` the element number j stands of
    those, in row-major order, at which `mask` is true. There are `count` of them.
    """

    name: str
    output: Value
    mask: Operand
    loops: tuple[Loop, ...]
    axis: int
    count: Dim

    @property
    def inputs(self) -> tuple[Value, ...]:
        return (self.mask.value,)


Single = LoopKernel | GemmKernel | OrderKernel | ScatterKernel | PlacesKernel
"""Kernels that are one function each."""
Kernel = Single | BandKernel


# ---------------------------------------------------------------- loops and branches


@dataclass(frozen=True, slots=True)
class Carried:
    """A state of a loop: `start` is what it is first, `following` what a step makes of it, `last` what it is at last.

    Two places take turns as `state` and `following`. A state that grows has one place (`grows`), which is laid out as
    `layout`, its shape after all steps: a step writes only what is new there.
    """

    state: Value
    start: Value
    following: Value
    last: Value
    grows: bool
    layout: Shape


@dataclass(frozen=True, slots=True)
class Repeat:
    """Steps: `index` counts them from 0, as a size of what is inside. `steps` is how many there were, where
    `condition`, a scalar that `test` computes, may end them before the `bound`.

    `entry` computes the states' starts, `leaving` what they were last where that is not their own memory. A yielded
    value is written into its part of the result.
    """

    index: str
    bound: Dim | None
    steps: str | None
    states: tuple[Carried, ...]
    yields: tuple[tuple[Value, Value], ...]
    entry: tuple[Kernel, ...]
    test: tuple[Step, ...]
    condition: Value | None
    body: tuple[Step, ...]
    leaving: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two lists of steps. Each result is computed in its place by whichever runs: (result, then, otherwise)."""

    condition: Value | Proposition
    results: tuple[tuple[Value, Value, Value], ...]
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


Step = Kernel | Repeat | Choice | Check | Require | Open


def kernels_of(steps: Sequence[Step]) -> Iterator[Kernel]:
    """All kernels, those inside loops and branches too, in the order in which they are written."""
    for step in steps:
        match step:
            case LoopKernel() | GemmKernel() | OrderKernel() | ScatterKernel() | PlacesKernel() | BandKernel():
                yield step
            case Repeat(entry=entry, test=test, body=body, leaving=leaving):
                yield from kernels_of((*entry, *test, *body, *leaving))
            case Choice(then=then, otherwise=otherwise):
                yield from kernels_of((*then, *otherwise))


def regions_of(steps: Sequence[Step]) -> Iterator[Repeat | Choice]:
    """All loops and branches, the outer ones first."""
    for step in steps:
        match step:
            case Repeat(test=test, body=body):
                yield step
                yield from regions_of((*test, *body))
            case Choice(then=then, otherwise=otherwise):
                yield step
                yield from regions_of((*then, *otherwise))


def bindings_of(steps: Sequence[Step]) -> dict[Value, Value]:
    """Values that lie in the memory of others, or in a part of it."""
    bound: dict[Value, Value] = {}
    for region in regions_of(steps):
        if isinstance(region, Choice):
            for result, first, second in region.results:
                bound |= {first: result, second: result}
            continue
        for item in region.states:
            bound[item.start] = item.state
            if item.grows:
                bound[item.following] = item.state
                if region.steps is None:
                    bound[item.state] = item.last
        bound |= dict(region.yields)
    return bound


# ---------------------------------------------------------------- programs

_USUAL = constant(4096)
"""What is taken for a size that is not known, where work is estimated."""


@dataclass(frozen=True)
class KernelProgram:
    """A function as steps in order. `outputs[i]` is the value that result number `i` is computed as.

    It may have another shape than the result, of which it then is the same memory in row-major order. Each value of
    `outputs` is computed by the program and stands there once.
    `checks` come before everything else. `reasons` say why a value was stored instead of being computed where it is
    used.
    """

    function: Function
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    reasons: tuple[tuple[Value, str], ...]

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, those inside loops and branches too."""
        return tuple(kernels_of(self.steps))

    @cached_property
    def regions(self) -> tuple[Repeat | Choice, ...]:
        """All loops and branches, the outer ones first."""
        return tuple(regions_of(self.steps))

    @cached_property
    def bindings(self) -> Mapping[Value, Value]:
        """Values that lie in the memory of others."""
        return bindings_of(self.steps)

    @cached_property
    def layouts(self) -> Mapping[Value, Shape]:
        """Values that are laid out as if they were larger."""
        grown = [s for r in self.regions if isinstance(r, Repeat) for s in r.states if s.grows]
        return {v: s.layout for s in grown for v in (s.state, s.start, s.following)}

    @property
    def straight(self) -> bool:
        """Whether the program is kernels alone."""
        return all(isinstance(step, Kernel) for step in self.steps)

    @cached_property
    def _made(self) -> tuple[tuple[str, Dim | None], ...]:
        return tuple(made_sizes(self.function.statements))

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """The dimensions that loops make and that are read from values."""
        return tuple(name for name, _ in self._made)

    @cached_property
    def ranges(self) -> tuple[tuple[str, Dim], ...]:
        """How large those are at most, where the types of values may mention them; those of outer loops first."""
        return tuple((name, bound) for name, bound in self._made if bound is not None)

    def most(self, d: Dim) -> Dim:
        """The most that a size can be in any step, over the function's dimensions and what is `measured`."""
        return at_most(d, self.ranges)

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Dimensions read from values, in order, of which nothing is known before."""
        unbounded = {name for name, bound in self._made if bound is None}
        opens = (s for s in statements_within(self.function.statements) if isinstance(s, Open))
        return tuple(s.dimension for s in opens if s.dimension in unbounded)

    def known_with(self, value: Value) -> str | None:
        """The measured dimension with which the size of a value in memory is known; None where that is at the start."""
        mentioned = self.most(product(list(value.type.shape))).variables
        return next((name for name in reversed(self.measured) if name in mentioned), None)

    def late(self, d: Dim) -> Dim:
        """What a size is in the last step: an estimate of what it is in any."""
        for name, bound in reversed(self.ranges):
            d = d.substitute({name: bound})
        return d.substitute(dict.fromkeys(self.measured, _USUAL))

    @cached_property
    def stored(self) -> tuple[Value, ...]:
        """All values that have an address of their own, results too, roughly in the order in which they are made."""
        found: dict[Value, None] = {}
        for step in self.steps:
            _collect(step, found)
        return tuple(found)

    @cached_property
    def temporaries(self) -> tuple[Value, ...]:
        """Values with memory of their own between kernels."""
        return tuple(v for v in self.stored if v not in self.outputs and v not in self.bindings)

    @property
    def between_stages(self) -> tuple[Value, ...]:
        """Values inside kernels that exist only in part, for each thread its own."""
        return tuple(v for k in self.kernels if isinstance(k, BandKernel) for v in k.between)

    def __str__(self) -> str:
        from kina.kernels.describe import describe

        return describe(self)


def _collect(step: Step, found: dict[Value, None]) -> None:
    match step:
        case LoopKernel() | GemmKernel() | OrderKernel() | ScatterKernel() | PlacesKernel() | BandKernel():
            found[step.output] = None
        case Choice(results=results, then=then, otherwise=otherwise):
            found.update(dict.fromkeys(result for result, _, _ in results))
            for inner in (*then, *otherwise):
                _collect(inner, found)
        case Repeat():
            found.update(dict.fromkeys(v for s in step.states for v in (s.last, s.state, s.start)))
            found.update(dict.fromkeys(result for _, result in step.yields))
            for inner in (*step.entry, *step.test, *step.body, *step.leaving):
                _collect(inner, found)
        case Check() | Require() | Open():
            pass
