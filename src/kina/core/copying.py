"""Copies of statements under other names, with other sizes, without calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kina.core.ir import (
    Apply,
    Block,
    Call,
    Check,
    For,
    If,
    Open,
    Require,
    Statement,
    Tree,
    Value,
    While,
    leaves,
    rename_tree,
)
from kina.core.names import Names
from kina.dims import proposition
from kina.dims.dim import Dim, variable
from kina.dims.proposition import Proposition
from kina.types import substitute_tensor


@dataclass(frozen=True, slots=True)
class Naming:
    """The names that a function has."""

    values: Names
    dimensions: Names


@dataclass(slots=True)
class Copy:
    """One copy of statements, with names of its own for what they make; calls in them are inlined.

    `values` and `dims` say what values and dimensions of the original are in the copy; others are what they were.
    """

    names: Naming
    values: dict[Value, Value] = field(default_factory=dict)
    dims: dict[str, Dim] = field(default_factory=dict)
    called: Callable[[Value], str | None] = lambda value: value.name
    """What a value is to be called, if nothing else is."""

    def statements(self, statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        copied: list[Statement] = []
        for statement in statements:
            match statement:
                case Call(result, callee, dimensions, arguments, opened):
                    given = [self.known(v) for tree in arguments for v in leaves(tree)]
                    sizes = dict(zip(callee.dimensions, map(self.dim, dimensions), strict=True))
                    inner = Copy(self.names, dict(zip(callee.inputs, given, strict=True)), sizes, self.called)
                    copied += inner.statements(callee.statements)
                    self.values.update(zip(leaves(result), leaves(inner.tree(callee.result)), strict=True))
                    self.dims.update(zip(opened, map(inner.dim, callee.witnesses), strict=True))
                case _:
                    copied.append(self.statement(statement))
        return tuple(copied)

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Apply(result, operation, arguments, span):
                given = tuple(self.known(a) for a in arguments)
                return Apply(self.value(result), operation.substitute(self.dims), given, span)
            case Check(claim, span):
                return Check(self.claim(claim), span)
            case Open(dimension, value, facts, span):
                opened = self.dimension(dimension)
                return Open(opened, self.known(value), tuple(map(self.claim, facts)), span)
            case Require(condition, message, span):
                return Require(self.known(condition), message, span)
            case If(results, condition, then, otherwise, span):
                chosen = self.known(condition) if isinstance(condition, Value) else self.claim(condition)
                blocks = self.block(then), self.block(otherwise)
                return If(tuple(map(self.value, results)), chosen, *blocks, span)
            case For(results, index, bound, states, initial, body, span):
                most, first = self.dim(bound), tuple(self.known(v) for v in initial)
                step = self.dimension(index)
                inner = tuple(map(self.value, states))
                inside = self.block(body)
                return For(tuple(map(self.value, results)), step, most, inner, first, inside, span)
            case While():
                return self.loop_while(statement)
            case Call():
                raise TypeError("calls are inlined where statements are copied")

    def loop_while(self, loop: While) -> While:
        bound = None if loop.bound is None else self.dim(loop.bound)
        first = tuple(self.known(v) for v in loop.initial)
        steps, index = self.dimension(loop.steps), self.dimension(loop.index)
        states = tuple(map(self.value, loop.states))
        blocks = self.block(loop.condition), self.block(loop.body)
        results = tuple(map(self.value, loop.results))
        return While(results, steps, index, bound, states, first, *blocks, loop.span)

    def block(self, block: Block) -> Block:
        return Block(self.statements(block.statements), tuple(self.known(v) for v in block.results))

    # ------------------------------------------------------------ names and sizes

    def known(self, value: Value) -> Value:
        return self.values.get(value, value)

    def value(self, value: Value) -> Value:
        """A new value for one that a statement makes."""
        made = Value(self.names.values.fresh(self.called(value)), substitute_tensor(value.type, self.dims))
        self.values[value] = made
        return made

    def dimension(self, name: str) -> str:
        """A new name for a dimension that a statement makes."""
        fresh = self.names.dimensions.fresh(name)
        self.dims[name] = variable(fresh)
        return fresh

    def dim(self, d: Dim) -> Dim:
        return d.substitute(self.dims)

    def claim(self, claim: Proposition) -> Proposition:
        return proposition.substitute(claim, self.dims)

    def tree(self, tree: Tree) -> Tree:
        return rename_tree(tree, self.known, self.dim)
