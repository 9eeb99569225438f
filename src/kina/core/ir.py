"""Core: typed SSA in A-normal form, plain frozen data.

A function is a block of statements that each name tensors; tuples, records and lists exist only in
parameters, results and calls, as trees of values. Loops and branches hold blocks of their own, which
may use every value that was made before them. Everything is pure. Dimensions are ordinary symbols of
the function: operations mention them in their parameters, types in their shapes. Names of values and
of dimensions are unique in a function, its blocks included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kina.dims.dim import Dim
from kina.dims.proposition import Proposition
from kina.ops.base import Operation
from kina.source import Span
from kina.types import Argument, List, Record, Tensor, Tuple, Type, map_tensors


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A named tensor. Names are unique within a function; values are compared by identity."""

    name: str
    type: Tensor

    def __repr__(self) -> str:
        return f"{self.name} : {self.type}"


# ---------------------------------------------------------------- trees


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A record's value: what its fields are."""

    name: str
    arguments: tuple[Argument, ...]
    fields: tuple[tuple[str, Tree], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """A list's value: each tensor of `item` has the list's axis in front."""

    size: Dim
    item: Tree


Tree = Value | tuple["Tree", ...] | Struct | Stack
"""A value, or what is made of values: what parameters, results and calls may be."""


def leaves(tree: Tree) -> Iterator[Value]:
    """The values of a tree, left to right."""
    match tree:
        case Value():
            yield tree
        case Struct(fields=fields):
            for _, item in fields:
                yield from leaves(item)
        case Stack(item=item):
            yield from leaves(item)
        case _:
            for item in tree:
                yield from leaves(item)


def parts(tree: Tree) -> tuple[Tree, ...]:
    """What a tuple or record is made of; a list is made of what its item is made of, a tensor has no parts."""
    match tree:
        case Value():
            return ()
        case Struct(fields=fields):
            return tuple(item for _, item in fields)
        case Stack(item=item):
            return parts(item)
        case _:
            return tree


def tree_type(tree: Tree) -> Type:
    """The type of a tree of values."""
    match tree:
        case Value(type=type_):
            return type_
        case Struct(name, arguments, fields):
            return Record(name, arguments, tuple((field, tree_type(item)) for field, item in fields))
        case Stack(size, item):
            return List(size, map_tensors(tree_type(item), lambda tensor: tensor.with_shape(tensor.shape[1:])))
        case _:
            return Tuple(tuple(map(tree_type, tree)))


def rename_tree(tree: Tree, value: Callable[[Value], Value], size: Callable[[Dim], Dim] = lambda d: d) -> Tree:
    """The tree with its values, and the sizes that records and lists mention, replaced."""
    match tree:
        case Value():
            return value(tree)
        case Struct(name, arguments, fields):
            given = tuple(_renamed_argument(a, size) for a in arguments)
            return Struct(name, given, tuple((field, rename_tree(item, value, size)) for field, item in fields))
        case Stack(length, item):
            return Stack(size(length), rename_tree(item, value, size))
        case _:
            return tuple(rename_tree(item, value, size) for item in tree)


def _renamed_argument(argument: Argument, size: Callable[[Dim], Dim]) -> Argument:
    if isinstance(argument, Dim):
        return size(argument)
    return tuple(map(size, argument)) if isinstance(argument, tuple) else argument


def map_tree(tree: Tree, replacement: Mapping[Value, Value]) -> Tree:
    """The tree with values replaced where the mapping has them."""
    return rename_tree(tree, lambda value: replacement.get(value, value))


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Apply:
    """`result = operation(arguments)`."""

    result: Value
    operation: Operation
    arguments: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`result = function[dimensions](arguments)`; gone after specialisation.

    `opened` are new dimensions of the caller, for those that the callee's result brings.
    """

    result: Tree
    function: Function
    dimensions: tuple[Dim, ...]
    arguments: tuple[Tree, ...]
    opened: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Check:
    """A proposition that could not be proved: checked when the program runs, before what follows."""

    proposition: Proposition
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Open:
    """The new `dimension` is the scalar `value`, an I64: checked not to be negative, and to satisfy `facts`."""

    dimension: str
    value: Value
    facts: tuple[Proposition, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Require:
    """`condition`, a scalar Bool, has to hold when the program runs, else it ends with `message`.

    Without a message it stands before an operation that then would end the program, and says why itself.
    """

    condition: Value
    message: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements, and what they are for."""

    statements: tuple[Statement, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class If:
    """`results = then if condition else otherwise`. Only the block that is chosen runs.

    A proposition as a condition is a fact in `then`, its negation in `otherwise`.
    """

    results: tuple[Value, ...]
    condition: Value | Proposition
    then: Block
    otherwise: Block
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class For:
    """`index` from 0 to `bound`: each step maps the states, typed T(index), to states typed T(index + 1).

    `body.results` are the next states, then what each step yields. `results` are the last states, typed T(bound), then
    what was yielded, stacked: `[bound, ...]`. Without states the steps do not depend on each other.
    """

    results: tuple[Value, ...]
    index: str
    bound: Dim
    states: tuple[Value, ...]
    initial: tuple[Value, ...]
    body: Block
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While:
    """Steps while `condition` gives true, at most `bound` of them: `steps`, a new dimension, is how many there were.

    States are typed T(index), results T(steps). Without a bound no type mentions the index, and `steps` counts on.
    """

    results: tuple[Value, ...]
    steps: str
    index: str
    bound: Dim | None
    states: tuple[Value, ...]
    initial: tuple[Value, ...]
    condition: Block
    body: Block
    span: Span | None = field(default=None, compare=False, repr=False)


Statement = Apply | Call | Check | Open | Require | If | For | While


def made_by(statement: Statement) -> tuple[Value, ...]:
    """The values that a statement makes for those after it."""
    match statement:
        case Apply(result=result):
            return (result,)
        case Call(result=result):
            return tuple(leaves(result))
        case If(results=results) | For(results=results) | While(results=results):
            return results
        case Check() | Open() | Require():
            return ()


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """The blocks inside a statement, in the order in which they are written."""
    match statement:
        case If(then=then, otherwise=otherwise):
            return (then, otherwise)
        case For(body=body):
            return (body,)
        case While(condition=condition, body=body):
            return (condition, body)
        case _:
            return ()


def read_by(statement: Statement) -> tuple[Value, ...]:
    """The values that a statement itself, or its blocks as their results, mention."""
    inside = tuple(v for b in blocks_of(statement) for v in b.results)
    match statement:
        case Apply(arguments=arguments):
            return arguments
        case Call(arguments=trees):
            return tuple(v for tree in trees for v in leaves(tree))
        case Open(value=value):
            return (value,)
        case Require(condition=condition):
            return (condition,)
        case If(condition=condition):
            return (*((condition,) if isinstance(condition, Value) else ()), *inside)
        case For(initial=initial) | While(initial=initial):
            return (*initial, *inside)
        case _:
            return ()


def statements_within(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements and all that are in their blocks, in the order in which they are written."""
    for statement in statements:
        yield statement
        for block in blocks_of(statement):
            yield from statements_within(block.statements)


def values_of(function: Function) -> Iterator[Value]:
    """All values of a function: its inputs, and what is made in it, blocks included."""
    yield from function.inputs
    for statement in statements_within(function.statements):
        if isinstance(statement, For | While):
            yield from statement.states
        yield from made_by(statement)


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    value: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of dimensions and tensors. `requires` holds whenever it runs.

    Where `result_type` is an existential, `witnesses` are the sizes of the body that its names stand for.
    """

    name: str
    dimensions: tuple[str, ...]
    requires: tuple[Proposition, ...]
    parameters: tuple[Parameter, ...]
    result_type: Type
    statements: tuple[Statement, ...]
    result: Tree
    documentation: str = ""
    witnesses: tuple[Dim, ...] = ()

    @property
    def effects(self) -> frozenset[str]:
        """What running it may do besides giving its result: end with a message of `check`, or never end."""
        found: set[str] = set()
        known = {self.name}
        functions = [self]
        while functions:  # each that is called once, however often it is
            for statement in statements_within(functions.pop().statements):
                match statement:
                    case Require():
                        found.add("fail")
                    case While(bound=None):
                        found.add("diverge")
                    case Call(function=function) if function.name not in known:
                        known.add(function.name)
                        functions.append(function)
        return frozenset(found)

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
