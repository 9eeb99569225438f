"""Small clean-ups of a flat function: one computation for equal expressions, none for unused ones."""

from __future__ import annotations

from dataclasses import replace

from kina.core.ir import Apply, Check, Function, Statement, Value, map_tree
from kina.ops.base import Operation


def simplify(function: Function) -> Function:
    """The same results with less work. Checks stay, in order: they are part of what a program means."""
    return eliminate_dead_code(share_common_expressions(function))


def share_common_expressions(function: Function) -> Function:
    """Equal operations on equal operands are computed once."""
    first: dict[tuple[Operation, tuple[Value, ...]], Value] = {}
    replaced: dict[Value, Value] = {}
    kept: list[Statement] = []
    for statement in function.statements:
        match statement:
            case Apply(result, operation, arguments, span):
                given = tuple(replaced.get(a, a) for a in arguments)
                known = first.setdefault((operation, given), result)
                if known is result:
                    kept.append(Apply(result, operation, given, span))
                else:
                    replaced[result] = known
            case _:
                kept.append(statement)
    return replace(function, statements=tuple(kept), result=map_tree(function.result, replaced))


def eliminate_dead_code(function: Function) -> Function:
    """Operations whose results nothing needs are dropped."""
    needed = set(function.outputs)
    kept: list[Statement] = []
    for statement in reversed(function.statements):
        match statement:
            case Check():
                kept.append(statement)
            case Apply(result, _, arguments) if result in needed:
                needed.update(arguments)
                kept.append(statement)
    return replace(function, statements=tuple(reversed(kept)))
