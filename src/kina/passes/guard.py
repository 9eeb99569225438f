"""Operations that may end the program become a check and an operation that cannot: how native code runs them.

`to_idx x V` becomes: are all elements of x in [0, V)? That has to hold; then x, taken as it is. The check stands before
everything that could read out of bounds or divide by zero. It has no message: where it fails, the reference interpreter
runs the program again and says what is wrong, and where.

That a mask has as many true elements as `nonzero_along` says is known where that number was read off the mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kina.core.ir import Apply, Block, For, Function, If, Open, Require, Statement, Value, While, values_of
from kina.core.names import Names
from kina.dims.dim import Dim
from kina.ops.base import lookup
from kina.ops.creation import Constant, DimValue, Full
from kina.ops.division import IntegerDivision
from kina.ops.elementwise import Cast
from kina.ops.guarded import Holds, Safe
from kina.ops.ordering import NonzeroAlong
from kina.ops.reductions import ReduceDrop
from kina.ops.shape import Broadcast
from kina.source import Span
from kina.types import DType, Tensor


def guard(function: Function) -> Function:
    """The same function, in which only checks end the program, wherever operations say what they demand."""
    names = Names(v.name for v in values_of(function))
    return replace(function, statements=_guarded(function.statements, names, _Made({}, {})))


@dataclass(frozen=True, slots=True)
class _Made:
    """What was made so far: values by operations, and dimensions of values."""

    values: dict[Value, Apply]
    dimensions: dict[str, Value]


def _guarded(statements: Sequence[Statement], names: Names, made: _Made) -> tuple[Statement, ...]:
    return tuple(new for s in statements for new in _each(s, names, made))


def _each(statement: Statement, names: Names, made: _Made) -> Iterator[Statement]:
    def block(inner: Block) -> Block:
        return replace(inner, statements=_guarded(inner.statements, names, made))

    match statement:
        case Apply(operation=NonzeroAlong() as operation, arguments=(mask,)):
            if not _is_count(operation.count, mask, made):
                yield from _check_count(operation.count, mask, names, statement.span)
            yield replace(statement, operation=Safe(operation))
        case Apply(operation=operation) if operation.may_end and operation.fusible:
            if not _divides_by_number(statement, made.values):
                yield from _check(statement, names)
            yield replace(statement, operation=Safe(operation))
        case Apply(result=result):
            made.values[result] = statement
            yield statement
        case Open(dimension=name, value=value):
            made.dimensions[name] = value
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


def _is_count(count: Dim, mask: Value, made: _Made) -> bool:
    """Whether a dimension was read from the number of true elements of a mask."""
    total = made.values.get(made.dimensions[str(count)]) if str(count) in made.dimensions else None
    if total is None or total.operation != ReduceDrop("sum", tuple(range(mask.type.rank))):
        return False
    ones = made.values.get(total.arguments[0])
    return ones is not None and ones.operation == Cast(DType.I64) and ones.arguments == (mask,)


def _check_count(count: Dim, mask: Value, names: Names, span: Span | None) -> Iterator[Statement]:
    """That as many elements of a mask are true as `count` says."""
    scalar = Tensor(DType.I64, ())
    ones = Value(names.fresh("ones"), mask.type.with_dtype(DType.I64))
    total, size = Value(names.fresh("total"), scalar), Value(names.fresh("size"), scalar)
    holds = Value(names.fresh("holds"), Tensor(DType.BOOL, ()))
    yield Apply(ones, Cast(DType.I64), (mask,), span)
    yield Apply(total, ReduceDrop("sum", tuple(range(mask.type.rank))), (ones,), span)
    yield Apply(size, DimValue(count), (), span)
    equal = lookup("eq")
    assert equal is not None
    yield Apply(holds, equal.build(), (total, size), span)
    yield Require(holds, "", span)


def _divides_by_number(statement: Apply, made: dict[Value, Apply]) -> bool:
    """Whether a division is by a literal without zeros, which demands nothing."""
    if not isinstance(statement.operation, IntegerDivision):
        return False
    divisor = made.get(statement.arguments[-1])
    while divisor is not None and isinstance(divisor.operation, Broadcast | Full):
        divisor = made.get(divisor.arguments[0])
    return divisor is not None and isinstance(divisor.operation, Constant) and all(divisor.operation.values)
