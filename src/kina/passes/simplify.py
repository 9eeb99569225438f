"""Small clean-ups of a function without calls: one computation for equal expressions, none for unused ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kina.core.ir import (
    Apply,
    Block,
    Check,
    For,
    Function,
    If,
    Open,
    Require,
    Statement,
    Value,
    While,
    made_by,
    map_tree,
)
from kina.ops.base import Operation


def simplify(function: Function) -> Function:
    """The same results with less work. Checks stay, in order: they are part of what a program means."""
    return eliminate_dead_code(share_common_expressions(function))


# ---------------------------------------------------------------- common expressions

Known = dict[tuple[Operation, tuple[Value, ...]], Value]


def share_common_expressions(function: Function) -> Function:
    """Equal operations on equal operands are computed once; a block knows what was computed before it."""
    replaced: dict[Value, Value] = {}
    statements = _shared(function.statements, {}, replaced)
    return replace(function, statements=statements, result=map_tree(function.result, replaced))


def _shared(statements: tuple[Statement, ...], known: Known, replaced: dict[Value, Value]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in statements:
        match statement:
            case Apply(result, operation, arguments, span):
                given = _all(arguments, replaced)
                first = known.setdefault((operation, given), result)
                if first is result:
                    kept.append(Apply(result, operation, given, span))
                else:
                    replaced[result] = first
            case _:
                kept.append(_shared_inside(statement, known, replaced))
    return tuple(kept)


def _shared_inside(statement: Statement, known: Known, replaced: dict[Value, Value]) -> Statement:
    def block(inner: Block) -> Block:
        return Block(_shared(inner.statements, dict(known), replaced), _all(inner.results, replaced))

    match statement:
        case Open(value=value):
            return replace(statement, value=replaced.get(value, value))
        case Require(condition=condition):
            return replace(statement, condition=replaced.get(condition, condition))
        case If(condition=condition, then=then, otherwise=otherwise):
            chosen = replaced.get(condition, condition) if isinstance(condition, Value) else condition
            return replace(statement, condition=chosen, then=block(then), otherwise=block(otherwise))
        case For(initial=initial, body=body):
            return replace(statement, initial=_all(initial, replaced), body=block(body))
        case While(initial=initial, condition=test, body=body):
            return replace(statement, initial=_all(initial, replaced), condition=block(test), body=block(body))
        case _:
            return statement


def _all(values: tuple[Value, ...], replaced: Mapping[Value, Value]) -> tuple[Value, ...]:
    return tuple(replaced.get(v, v) for v in values)


# ---------------------------------------------------------------- dead code


def eliminate_dead_code(function: Function) -> Function:
    """Operations whose results nothing needs are dropped, in blocks too; what may end the program stays."""
    return replace(function, statements=needed_for(function.statements, function.outputs))


def needed_for(statements: Sequence[Statement], results: Iterable[Value]) -> tuple[Statement, ...]:
    """Those of the statements that results depend on, and those that may end the program."""
    return _needed(tuple(statements), set(results))


def _needed(statements: tuple[Statement, ...], needed: set[Value]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in reversed(statements):
        match statement:
            case Apply(result, operation, arguments):
                if result not in needed and not operation.may_end:
                    continue
                needed.update(arguments)
            case Open(value=value):
                needed.add(value)
            case Require(condition=condition):
                needed.add(condition)
            case If() | For() | While():
                inside = _needed_inside(statement, needed)
                if inside is None:
                    continue
                statement = inside
            case _:
                pass
        kept.append(statement)
    return tuple(reversed(kept))


def _needed_inside(statement: If | For | While, needed: set[Value]) -> Statement | None:
    """The statement with its blocks cleaned, or None where nothing needs it."""
    if needed.isdisjoint(made_by(statement)) and not _may_end(statement):
        return None

    def block(inner: Block) -> Block:
        needed.update(inner.results)
        return replace(inner, statements=_needed(inner.statements, needed))

    match statement:
        case If(condition=condition, then=then, otherwise=otherwise):
            if isinstance(condition, Value):
                needed.add(condition)
            return replace(statement, then=block(then), otherwise=block(otherwise))
        case For(initial=initial, body=body):
            needed.update(initial)
            return replace(statement, body=block(body))
        case While(initial=initial, condition=test, body=body):
            needed.update(initial)
            body = block(body)
            return replace(statement, condition=block(test), body=body)


def _may_end(statement: Statement) -> bool:
    """Whether a statement, or one in its blocks, can end the program, run for ever, or make a dimension."""
    match statement:
        case Check() | Open() | Require() | While():
            return True
        case Apply(operation=operation):
            return operation.may_end
        case If(then=then, otherwise=otherwise):
            return any(map(_may_end, (*then.statements, *otherwise.statements)))
        case For(body=body):
            return any(map(_may_end, body.statements))
        case _:
            return False
