"""Core: typed SSA in A-normal form, plain frozen data.

A function is a block of statements that each name a tensor; tuples exist only in results, as trees
of values. Everything is pure. Dimensions are ordinary symbols of the function: operations mention
them in their parameters, types in their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kina.dims.dim import Dim
from kina.dims.proposition import Proposition
from kina.ops.base import Operation
from kina.source import Span
from kina.types import Tensor, Tuple, Type


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A named tensor. Names are unique within a function; values are compared by identity."""

    name: str
    type: Tensor

    def __repr__(self) -> str:
        return f"{self.name} : {self.type}"


Tree = Value | tuple["Tree", ...]
"""A value, or a tuple of trees: what parameters, results and calls may be."""


@dataclass(frozen=True, slots=True)
class Apply:
    """`result = operation(arguments)`."""

    result: Value
    operation: Operation
    arguments: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`result = function[dimensions](arguments)`; gone after specialisation."""

    result: Tree
    function: Function
    dimensions: tuple[Dim, ...]
    arguments: tuple[Tree, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check:
    """A proposition that could not be proved: checked when the program runs, before what follows."""

    proposition: Proposition
    span: Span | None = field(default=None, compare=False, repr=False)


Statement = Apply | Call | Check


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    value: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of dimensions and tensors. `requires` holds whenever it runs."""

    name: str
    dimensions: tuple[str, ...]
    requires: tuple[Proposition, ...]
    parameters: tuple[Parameter, ...]
    result_type: Type
    statements: tuple[Statement, ...]
    result: Tree
    documentation: str = ""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The tensors of the parameters, left to right."""
        return tuple(v for p in self.parameters for v in leaves(p.value))

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The tensors of the result, left to right."""
        return tuple(leaves(self.result))


@dataclass(frozen=True, slots=True)
class Program:
    """The functions of a module, callees first."""

    functions: Mapping[str, Function]


def leaves(tree: Tree) -> Iterator[Value]:
    """The values of a tree, left to right."""
    if isinstance(tree, Value):
        yield tree
    else:
        for item in tree:
            yield from leaves(item)


def tree_type(tree: Tree) -> Type:
    """The type of a tree of values."""
    return tree.type if isinstance(tree, Value) else Tuple(tuple(map(tree_type, tree)))


def map_tree(tree: Tree, replacement: Mapping[Value, Value]) -> Tree:
    """The tree with values replaced where the mapping has them."""
    if isinstance(tree, Value):
        return replacement.get(tree, tree)
    return tuple(map_tree(item, replacement) for item in tree)
