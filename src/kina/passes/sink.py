"""What costs nothing is done where it is used: constants and views move into the blocks of loops and branches.

A block reads values that were made before it from memory. A constant, or a value that only rearranges another, would
have to be stored for that; copied into the block, it is part of whatever uses it there. So are weights that are read
as wider numbers than they are stored as: unpacked once and stored, they would be larger and slower to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kina.core.ir import (
    Apply,
    Block,
    For,
    Function,
    If,
    Open,
    Require,
    Statement,
    Value,
    While,
    blocks_of,
    read_by,
    statements_within,
    values_of,
)
from kina.core.names import Names
from kina.dims.dim import variable
from kina.ops.scalar import Cast, Element, Literal, SizeValue
from kina.types import DType

_PACKED = frozenset({DType.F16, DType.BF16, *(dtype for dtype in DType if dtype.block is not None)})
"""What weights are stored as that are computed with as F32."""


def sink(function: Function) -> Function:
    """The same function; blocks have copies of the constants and views that they use."""
    if all(isinstance(s, Apply) for s in function.statements):
        return function
    names = Names(v.name for v in values_of(function))
    return replace(function, statements=_sunk(function.statements, names))


def is_free(made: Apply) -> bool:
    """Whether an element of the result is a constant, a size, or an element of the operand, maybe a weight unpacked."""
    if not made.operation.fusible:
        return False
    index = tuple(variable(f"%{n}") for n in range(made.result.type.rank))
    lowered = made.operation.lower(tuple(a.type for a in made.arguments), index)
    if isinstance(lowered, Cast):
        return isinstance(lowered.operand, Element) and made.arguments[0].type.dtype in _PACKED
    return isinstance(lowered, Element | Literal | SizeValue)


def _sunk(statements: tuple[Statement, ...], names: Names) -> tuple[Statement, ...]:
    free: dict[Value, Apply] = {}
    result: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Apply):
            if is_free(statement):
                free[statement.result] = statement
        else:
            statement = _with_blocks(statement, tuple(_block(b, free, names) for b in blocks_of(statement)))
        result.append(statement)
    return tuple(result)


def _block(block: Block, free: Mapping[Value, Apply], names: Names) -> Block:
    copies: list[Statement] = []
    renamed: dict[Value, Value] = {}

    def bring(value: Value) -> Value:
        if value not in free:
            return value
        if value not in renamed:
            given = tuple(map(bring, free[value].arguments))
            renamed[value] = Value(names.fresh(value.name), value.type)
            copies.append(replace(free[value], result=renamed[value], arguments=given))
        return renamed[value]

    for statement in statements_within(block.statements):
        for value in read_by(statement):
            bring(value)
    results = tuple(map(bring, block.results))
    return Block(_sunk((*copies, *reading(block.statements, renamed)), names), results)


def reading(statements: Iterable[Statement], instead: Mapping[Value, Value]) -> tuple[Statement, ...]:
    """The statements, which have no calls, with other values in the place of some that they read."""
    return tuple(_renamed(s, instead) for s in statements)


def _renamed(statement: Statement, renamed: Mapping[Value, Value]) -> Statement:
    """The statement and its blocks with other names for what they read."""
    if not renamed:
        return statement

    def all_(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(renamed.get(v, v) for v in values)

    blocks = tuple(Block(reading(b.statements, renamed), all_(b.results)) for b in blocks_of(statement))
    match statement:
        case Apply(arguments=arguments):
            return replace(statement, arguments=all_(arguments))
        case Open(value=value):
            return replace(statement, value=renamed.get(value, value))
        case Require(condition=condition):
            return replace(statement, condition=renamed.get(condition, condition))
        case If(condition=condition):
            chosen = renamed.get(condition, condition) if isinstance(condition, Value) else condition
            return _with_blocks(replace(statement, condition=chosen), blocks)
        case For(initial=initial) | While(initial=initial):
            return _with_blocks(replace(statement, initial=all_(initial)), blocks)
        case _:
            return statement


def _with_blocks(statement: Statement, blocks: tuple[Block, ...]) -> Statement:
    match statement:
        case If():
            return replace(statement, then=blocks[0], otherwise=blocks[1])
        case For():
            return replace(statement, body=blocks[0])
        case While():
            return replace(statement, condition=blocks[0], body=blocks[1])
        case _:
            return statement
