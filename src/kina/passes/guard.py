"""Operations that may end the program become a check and an operation that cannot: how native code runs them.

`to_idx x V` becomes: are all elements of x in [0, V)? That has to hold; then x, taken as it is. The check stands before
everything that could read out of bounds or divide by zero. It has no message: where it fails, the reference interpreter
runs the program again and says what is wrong, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kina.core.ir import Apply, Block, For, Function, If, Require, Statement, Value, While, values_of
from kina.core.names import Names
from kina.ops.creation import Constant, Full
from kina.ops.division import IntegerDivision
from kina.ops.guarded import Holds, Safe
from kina.ops.reductions import ReduceDrop
from kina.ops.shape import Broadcast
from kina.types import DType, Tensor


def guard(function: Function) -> Function:
    """The same function, in which only checks end the program, wherever operations say what they demand."""
    names = Names(v.name for v in values_of(function))
    return replace(function, statements=_guarded(function.statements, names, {}))


def _guarded(statements: Sequence[Statement], names: Names, made: dict[Value, Apply]) -> tuple[Statement, ...]:
    return tuple(new for s in statements for new in _each(s, names, made))


def _each(statement: Statement, names: Names, made: dict[Value, Apply]) -> Iterator[Statement]:
    def block(inner: Block) -> Block:
        return replace(inner, statements=_guarded(inner.statements, names, made))

    match statement:
        case Apply(operation=operation) if operation.may_end and operation.fusible:
            if not _divides_by_number(statement, made):
                yield from _check(statement, names)
            yield replace(statement, operation=Safe(operation))
        case Apply(result=result):
            made[result] = statement
            yield statement
        case If() | For() | While():
            yield _inside(statement, block)
        case _:
            yield statement


def _inside(statement: If | For | While, block: Callable[[Block], Block]) -> Statement:
    match statement:
        case If(then=then, otherwise=otherwise):
            return replace(statement, then=block(then), otherwise=block(otherwise))
        case For(body=body):
            return replace(statement, body=block(body))
        case While(condition=condition, body=body):
            return replace(statement, condition=block(condition), body=block(body))


def _check(statement: Apply, names: Names) -> Iterator[Statement]:
    shape = statement.arguments[0].type.shape
    holds = Value(names.fresh("holds"), Tensor(DType.BOOL, shape))
    yield Apply(holds, Holds(statement.operation), statement.arguments, statement.span)
    if shape:
        each, holds = holds, Value(names.fresh("holds"), Tensor(DType.BOOL, ()))
        yield Apply(holds, ReduceDrop("all", tuple(range(len(shape)))), (each,), statement.span)
    yield Require(holds, "", statement.span)


def _divides_by_number(statement: Apply, made: dict[Value, Apply]) -> bool:
    """Whether a division is by a literal without zeros, which demands nothing."""
    if not isinstance(statement.operation, IntegerDivision):
        return False
    divisor = made.get(statement.arguments[-1])
    while divisor is not None and isinstance(divisor.operation, Broadcast | Full):
        divisor = made.get(divisor.arguments[0])
    return divisor is not None and isinstance(divisor.operation, Constant) and all(divisor.operation.values)
