"""What depends on what: the values that can change where others do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kina.core.ir import Apply, Block, For, If, Open, Statement, Value, While, made_by, read_by, statements_within
from kina.ops.base import has_tangent


def reached(statements: Iterable[Statement], seeds: Iterable[Value]) -> set[Value]:
    """The values with tangents that are computed from `seeds`, these included; in blocks too."""
    found = set(seeds)
    _reach(statements, found)
    return found


def _reach(statements: Iterable[Statement], found: set[Value]) -> None:
    for statement in statements:
        match statement:
            case Apply(result, operation, arguments):
                if not operation.flat and not found.isdisjoint(arguments):
                    _add(found, result)
            case If(results, _, then, otherwise):
                for block in (then, otherwise):
                    _reach(block.statements, found)
                    _pass(found, block.results, results)
            case For(results, _, _, states, initial, body) | While(results, _, _, _, states, initial, _, body):
                _pass(found, initial, states)
                _steps(found, states, body)
                _pass(found, states, results)
                _pass(found, body.results, results)
            case _:
                pass


def _steps(found: set[Value], states: tuple[Value, ...], body: Block) -> None:
    """Through a loop's body until no more of its states are reached."""
    while True:
        before = found.intersection(states)
        _reach(body.statements, found)
        _pass(found, body.results, states)
        if found.intersection(states) == before:
            return


def _pass(found: set[Value], given: tuple[Value, ...], received: tuple[Value, ...]) -> None:
    for source, target in zip(given, received, strict=False):
        if source in found:
            _add(found, target)


def _add(found: set[Value], value: Value) -> None:
    if has_tangent(value.type):
        found.add(value)


def free_values(statements: Sequence[Statement], results: Iterable[Value] = ()) -> list[Value]:
    """What a block reads and does not make, in the order in which it is first read."""
    inside = {v for s in statements_within(tuple(statements)) for v in _bound_by(s)}
    read = (v for s in statements_within(tuple(statements)) for v in read_by(s))
    return [v for v in dict.fromkeys((*read, *results)) if v not in inside]


def _bound_by(statement: Statement) -> tuple[Value, ...]:
    states = statement.states if isinstance(statement, For | While) else ()
    return (*states, *made_by(statement))


def dimensions_made(statements: Iterable[Statement]) -> frozenset[str]:
    """The dimensions that exist only after these statements: sizes from values."""
    found = (s.dimension if isinstance(s, Open) else s.steps for s in statements if isinstance(s, Open | While))
    return frozenset(found)
