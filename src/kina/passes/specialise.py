"""Calls inlined away: after this, a function is one flat block of operations and checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kina.core.ir import Apply, Call, Check, Function, Statement, Tree, Value, leaves, map_tree
from kina.dims import proposition
from kina.dims.dim import Dim
from kina.types import substitute_tensor


def specialise(function: Function) -> Function:
    """The function without calls. Sizes stay symbolic; names stay unique."""
    taken = {v.name for v in function.inputs}
    statements: list[Statement] = []
    renamed = _inline(function, {v: v for v in function.inputs}, {}, statements, _namer(taken))
    return replace(function, statements=tuple(statements), result=map_tree(function.result, renamed))


def _inline(
    function: Function,
    values: dict[Value, Value],
    dims: dict[str, Dim],
    out: list[Statement],
    fresh: Callable[[str], str],
) -> dict[Value, Value]:
    """Appends the statements of `function` to `out` under the given values and dimensions."""
    for statement in function.statements:
        match statement:
            case Apply(result, operation, arguments, span):
                renamed = Value(fresh(result.name), substitute_tensor(result.type, dims))
                values[result] = renamed
                out.append(Apply(renamed, operation.substitute(dims), tuple(values[a] for a in arguments), span))
            case Check(claim, span):
                out.append(Check(proposition.substitute(claim, dims), span))
            case Call(result, callee, dimensions, arguments):
                given = [v for tree in arguments for v in leaves(map_tree(tree, values))]
                inner_dims = {n: d.substitute(dims) for n, d in zip(callee.dimensions, dimensions, strict=True)}
                inner = _inline(callee, dict(zip(callee.inputs, given, strict=True)), inner_dims, out, fresh)
                _bind(result, map_tree(callee.result, inner), values)
    return values


def _bind(names: Tree, tree: Tree, values: dict[Value, Value]) -> None:
    for name, value in zip(leaves(names), leaves(tree), strict=True):
        values[name] = value


def _namer(taken: set[str]) -> Callable[[str], str]:
    """Gives each value a name of its own: the wanted one, or that with a number."""

    def fresh(wanted: str) -> str:
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}'{number}"
        taken.add(name)
        return name

    return fresh
