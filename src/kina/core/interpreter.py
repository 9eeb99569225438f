"""The reference interpreter: what every program means, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kina.core.ir import (
    Apply,
    Block,
    Call,
    Check,
    For,
    Function,
    If,
    Open,
    Require,
    Stack,
    Statement,
    Struct,
    Tree,
    Value,
    While,
    leaves,
)
from kina.diagnostics import KinaError
from kina.dims.dim import constant
from kina.dims.proposition import Proposition, holds
from kina.ops.base import Array, Fault
from kina.source import Span


def run(function: Function, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of `function` at concrete sizes, one array a tensor of the result.

    `inputs` are the arrays of `function.inputs`. Every intermediate array is compared with its type,
    so a type rule that disagrees with the meaning of its operation is found here. Raises KinaError
    where a run-time check fails.
    """
    return _run(function, sizes, inputs)[0]


def _run(
    function: Function, sizes: Mapping[str, int], inputs: Sequence[Array]
) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """The outputs, and the sizes that the names of an existential result stand for."""
    machine = _Machine(dict(zip(function.inputs, inputs, strict=True)), dict(sizes))
    for value, array in machine.values.items():
        machine.confirm(value, array)
    machine.statements(function.statements)
    outputs = tuple(machine.values[v] for v in function.outputs)
    return outputs, tuple(d.evaluate(machine.sizes) for d in function.witnesses)


@dataclass(slots=True)
class _Machine:
    """What has been computed so far. Names are unique in a function, so that blocks need no scopes of their own."""

    values: dict[Value, Array]
    sizes: dict[str, int]

    def statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Apply(result, operation, arguments, span):
                replacement = {name: constant(size) for name, size in self.sizes.items()}
                operands = [self.values[v] for v in arguments]
                try:
                    self.bind(result, operation.substitute(replacement).reference(*operands))
                except Fault as fault:
                    raise KinaError(f"{_at(span)}{fault}") from None
                except MemoryError:
                    raise KinaError(f"{_at(span)}there is no memory for {result.name} : {result.type}") from None
            case Call(result, callee, dimensions, arguments, opened):
                inner = {n: d.evaluate(self.sizes) for n, d in zip(callee.dimensions, dimensions, strict=True)}
                given = [self.values[v] for tree in arguments for v in leaves(tree)]
                outputs, witnesses = _run(callee, inner, given)
                self.sizes.update(zip(opened, witnesses, strict=True))
                self.values.update(zip(leaves(result), outputs, strict=True))
            case Check(proposition, span):
                self.check(proposition, span, "the assertion ")
            case Open(dimension, value, facts, span):
                self.open(dimension, int(self.values[value]), facts, span)
            case Require(condition, message, span):
                if message and not self.values[condition]:
                    raise KinaError(f"{_at(span)}{message}")
            case If(results, condition, then, otherwise):
                chosen = then if self.decide(condition) else otherwise
                self.bind_all(results, self.block(chosen))
            case For():
                self.loop(statement)
            case While():
                self.loop_while(statement)

    def decide(self, condition: Value | Proposition) -> bool:
        return bool(self.values[condition]) if isinstance(condition, Value) else holds(condition, self.sizes)

    def block(self, block: Block) -> list[Array]:
        self.statements(block.statements)
        return [self.values[v] for v in block.results]

    def loop(self, loop: For) -> None:
        states = [self.values[v] for v in loop.initial]
        yielded: list[list[Array]] = [[] for _ in loop.results[len(states) :]]
        for step in range(loop.bound.evaluate(self.sizes)):
            self.sizes[loop.index] = step
            self.bind_all(loop.states, states)
            made = self.block(loop.body)
            states = made[: len(states)]
            for items, item in zip(yielded, made[len(states) :], strict=True):
                items.append(item)
        results = loop.results[: len(states)]
        self.bind_all(results, states)
        for result, items in zip(loop.results[len(states) :], yielded, strict=True):
            dtype = result.type.dtype
            shape = tuple(d.evaluate(self.sizes) for d in result.type.shape)
            empty = np.empty(dtype.array_shape(shape), dtype.numpy)
            self.bind(result, np.stack(items) if items else empty)

    def loop_while(self, loop: While) -> None:
        states = [self.values[v] for v in loop.initial]
        most = None if loop.bound is None else loop.bound.evaluate(self.sizes)
        steps = 0
        while most is None or steps < most:
            self.sizes[loop.index] = steps
            self.bind_all(loop.states, states)
            if not self.block(loop.condition)[0]:
                break
            states = self.block(loop.body)
            steps += 1
        self.sizes[loop.steps] = steps
        self.bind_all(loop.results, states)

    # ------------------------------------------------------------ what has to hold

    def open(self, dimension: str, size: int, facts: Sequence[Proposition], span: Span | None) -> None:
        if size < 0:
            raise KinaError(f"{_at(span)}{dimension} would be {size}, and a dimension is not negative")
        self.sizes[dimension] = size
        for fact in facts:
            self.check(fact, span, "")

    def check(self, claim: Proposition, span: Span | None, what: str) -> None:
        if not holds(claim, self.sizes):
            at = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
            raise KinaError(f"{_at(span)}{what}{claim} does not hold for {at}")

    def bind_all(self, values: Sequence[Value], arrays: Sequence[Array]) -> None:
        for value, array in zip(values, arrays, strict=True):
            self.bind(value, array)

    def bind(self, value: Value, array: Array) -> None:
        self.confirm(value, array)
        self.values[value] = array

    def confirm(self, value: Value, array: Array) -> None:
        shape = tuple(d.evaluate(self.sizes) for d in value.type.shape)
        if value.type.dtype.shape_of(array) != shape or array.dtype != value.type.dtype.numpy:
            raise AssertionError(
                f"internal fault in Kina: {value.name} is typed {value.type} ({shape} here) "
                f"but the reference made {array.dtype}{list(array.shape)}"
            )
        bound = value.type.bound
        if bound is not None and array.size:
            limit, least, most = bound.evaluate(self.sizes), int(array.min()), int(array.max())
            if not 0 <= least <= most < limit:
                raise AssertionError(
                    f"internal fault in Kina: {value.name} is typed {value.type} ({limit} here) "
                    f"but the reference made numbers from {least} to {most}"
                )


def _at(span: Span | None) -> str:
    return f"{span}: " if span else ""


def rebuild(tree: Tree, arrays: Sequence[Array]) -> object:
    """Flat outputs put back into the shape of a result tree: nested tuples of arrays, dictionaries for records.

    A list stays as its item with an axis in front of each array.
    """
    supply = iter(arrays)

    def build(node: Tree) -> object:
        match node:
            case Value():
                return next(supply)
            case Struct(fields=fields):
                return {name: build(item) for name, item in fields}
            case Stack(item=item):
                return build(item)
            case _:
                return tuple(build(item) for item in node)

    return build(tree)

