"""Loops and branches: what they read, what of it lies where, and the steps that they become.

The blocks inside are fused like functions, each for itself: what a block reads of the world outside is stored, what it
is for is stored, and the rest is inlined where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kina.core.ir import Apply as Applied
from kina.core.ir import (
    Block,
    Call,
    Check,
    For,
    Function,
    If,
    Open,
    Require,
    Statement,
    Value,
    While,
    blocks_of,
    made_by,
    statements_within,
)
from kina.diagnostics import KinaError
from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison, Proposition, negate
from kina.dims.prover import Facts
from kina.kernels.ir import Carried, Choice, Kernel, Loop, LoopKernel, Repeat, Step
from kina.kernels.own import has_own_kernel
from kina.kernels.ranges import NoBound, at_most
from kina.ops.base import Operation
from kina.ops.guarded import Safe
from kina.ops.scalar import Element
from kina.ops.shape import Concat

Reasons = Mapping[Value, str]
FuseBlock = Callable[[Sequence[Statement], Sequence[Value], Facts], tuple[tuple[Step, ...], tuple[Value, ...], Reasons]]
"""The steps of a block, the value that each of its results is computed as, and why others were stored."""


def refuse_unknown_forms(function: Function) -> None:
    """Raises KinaError where a function has what cannot be compiled yet."""
    for statement in statements_within(function.statements):
        if isinstance(statement, Applied) and _is_refused(statement.operation):
            raise KinaError(
                f"{function.name}: {statement.operation.name} cannot be compiled yet; "
                "the reference interpreter runs it (`.reference`)"
            )


def _is_refused(operation: Operation) -> bool:
    """Whether there is no kernel for it. What may end the program was guarded before (`kina.passes.guard`)."""
    if operation.may_end and not isinstance(operation, Safe):
        return True
    return not operation.fusible and not has_own_kernel(operation)


def dimensions_of(statement: Statement) -> tuple[str, ...]:
    """The dimensions that a statement makes."""
    match statement:
        case For(index=index):
            return (index,)
        case While(index=index, steps=steps):
            return (index, steps)
        case Open(dimension=name):
            return (name,)
        case _:
            return ()


@dataclass(slots=True)
class Region:
    """A statement that is no operation. `starts` are the first values of its states, and what each is a copy of."""

    statement: Statement
    starts: dict[Value, Value] = field(default_factory=dict)
    reads: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        statement = self.statement
        if isinstance(statement, For | While):
            for state, first in zip(statement.states, statement.initial, strict=True):
                self.starts[Value(f"{state.name} at first", first.type)] = first
        self.reads = tuple(dict.fromkeys(_reads(statement)))

    def step(
        self, fuse_block: FuseBlock, entries: Mapping[Value, tuple[Kernel, ...]], facts: Facts
    ) -> tuple[Step, Reasons]:
        """What it becomes; `entries` are the kernels that compute the starts."""
        match self.statement:
            case Check() | Require() | Open():
                return self.statement, {}
            case If():
                return self._choice(self.statement, fuse_block, facts)
            case For() | While():
                entry = tuple(kernel for start in self.starts for kernel in entries[start])
                return self._repeat(self.statement, entry, fuse_block, facts)
            case _:
                raise TypeError(f"no region: {self.statement}")

    def _choice(self, statement: If, fuse_block: FuseBlock, facts: Facts) -> tuple[Step, Reasons]:
        claim = None if isinstance(statement.condition, Value) else statement.condition
        then, first, why = _block(statement.then, fuse_block, _assuming(facts, claim))
        otherwise, second, why_not = _block(statement.otherwise, fuse_block, _assuming(facts, claim and negate(claim)))
        results = tuple(zip(statement.results, first, second, strict=True))
        return Choice(statement.condition, results, then, otherwise), {**why, **why_not}

    def _repeat(
        self, loop: For | While, entry: tuple[Kernel, ...], fuse_block: FuseBlock, facts: Facts
    ) -> tuple[Step, Reasons]:
        inside = facts if loop.bound is None else facts.assume(Comparison("<", variable(loop.index), loop.bound))
        body, made, reasons = _block(loop.body, fuse_block, inside)
        states = []
        for state, start, following, wanted, last in zip(
            loop.states, self.starts, made, loop.body.results, loop.results, strict=False
        ):
            layout = _grown(loop, state, following, wanted)
            states.append(Carried(state, start, following, last, layout is not None, layout or state.type.shape))
        grown = {s.following: s.state for s in states if s.grows}
        body = tuple(step for step in body if not _copies_itself(step, grown))
        in_place = isinstance(loop, For)
        leaving = tuple(_copy(s.last, s.state) for s in states if not (s.grows and in_place))
        yields = tuple(zip(made[len(states) :], loop.results[len(states) :], strict=True))
        if isinstance(loop, For):
            return Repeat(
                loop.index, loop.bound, None, tuple(states), yields, entry, (), None, body, leaving
            ), reasons  # fmt: skip
        test, (condition,), more = _block(loop.condition, fuse_block, inside)
        return Repeat(
            loop.index, loop.bound, loop.steps, tuple(states), yields, entry, test, condition, body, leaving
        ), {**reasons, **more}  # fmt: skip


def _block(
    block: Block, fuse_block: FuseBlock, facts: Facts
) -> tuple[tuple[Step, ...], tuple[Value, ...], Reasons]:
    return fuse_block(block.statements, block.results, facts)


def _assuming(facts: Facts, claim: Proposition | None) -> Facts:
    return facts if claim is None else facts.assume(claim)


def _reads(statement: Statement) -> Iterator[Value]:
    """Values made outside that a region reads while it runs, other than what its states start as."""
    match statement:
        case Require(condition=value) | Open(value=value):
            yield value
        case If(condition=condition) if isinstance(condition, Value):
            yield condition
    inside = set(statement.states) if isinstance(statement, For | While) else set[Value]()
    for block in blocks_of(statement):
        yield from _free(block, inside)


def _free(block: Block, known: set[Value]) -> Iterator[Value]:
    """Values that a block mentions and does not make; `known` are made around it."""
    known = set(known)
    for statement in block.statements:
        match statement:
            case Applied(arguments=arguments):
                yield from (v for v in arguments if v not in known)
            case For(initial=initial) | While(initial=initial):
                yield from (v for v in initial if v not in known)
            case Call():
                raise TypeError("calls are inlined before fusion")
        yield from (v for v in _reads(statement) if v not in known)
        known.update(made_by(statement))
    yield from (v for v in block.results if v not in known)


# ---------------------------------------------------------------- growth in place


def _grown(loop: For | While, state: Value, following: Value, wanted: Value) -> tuple[Dim, ...] | None:
    """The shape of a state after all steps, where each step only appends to it along one axis."""
    made = next((s for s in loop.body.statements if isinstance(s, Applied) and s.result is wanted), None)
    if loop.bound is None or following is not wanted or made is None or not isinstance(made.operation, Concat):
        return None
    if made.arguments[0] is not state or state in made.arguments[1:]:
        return None
    final = {loop.index: loop.bound}
    whole = tuple(d.substitute(final) for d in state.type.shape)
    for axis, (size, most) in enumerate(zip(state.type.shape, whole, strict=True)):
        if axis != made.operation.axis and loop.index in size.variables:
            return None
        try:
            if at_most(size, [(loop.index, loop.bound)]) is not most:
                return None
        except NoBound:
            return None
    return whole


def _copies_itself(step: Step, grown: Mapping[Value, Value]) -> bool:
    """Whether a kernel only copies elements of a growing state to where they are."""
    if not isinstance(step, LoopKernel) or step.output not in grown or not isinstance(step.body, Element):
        return False
    return step.inputs == (grown[step.output],) and step.body.index == step.index


def _copy(target: Value, source: Value) -> LoopKernel:
    """The kernel that copies a value of the same shape."""
    shape = target.type.shape
    loops = tuple(Loop(f"%i{n}", d) for n, d in enumerate(shape) if d.value != 1)
    index = tuple(constant(0) if d.value == 1 else variable(f"%i{n}") for n, d in enumerate(shape))
    outer, inner = (loops[:-1], loops[-1]) if loops else ((), None)
    return LoopKernel(target.name, target, (source,), outer, inner, index, Element(0, index))
