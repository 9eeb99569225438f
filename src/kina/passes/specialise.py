"""Calls inlined away: after this, a function is one flat block of operations and checks."""

from __future__ import annotations

from dataclasses import replace

from kina.core.ir import Apply, Call, Check, Function, Statement, Tree, Value, leaves, map_tree
from kina.core.names import Names
from kina.dims import proposition
from kina.dims.dim import Dim
from kina.types import substitute_tensor


def specialise(function: Function) -> Function:
    """The function without calls. Sizes stay symbolic; names stay unique."""
    names = Names(v.name for v in function.inputs)
    statements: list[Statement] = []
    renamed = _inline(function, {v: v for v in function.inputs}, {}, statements, names)
    return replace(function, statements=tuple(statements), result=map_tree(function.result, renamed))


def _inline(
    function: Function,
    values: dict[Value, Value],
    dims: dict[str, Dim],
    out: list[Statement],
    names: Names,
) -> dict[Value, Value]:
    """Appends the statements of `function` to `out` under the given values and dimensions."""
    for statement in function.statements:
        match statement:
            case Apply(result, operation, arguments, span):
                renamed = Value(names.fresh(result.name), substitute_tensor(result.type, dims))
                values[result] = renamed
                out.append(Apply(renamed, operation.substitute(dims), tuple(values[a] for a in arguments), span))
            case Check(claim, span):
                out.append(Check(proposition.substitute(claim, dims), span))
            case Call(result, callee, dimensions, arguments):
                given = [v for tree in arguments for v in leaves(map_tree(tree, values))]
                inner_dims = {n: d.substitute(dims) for n, d in zip(callee.dimensions, dimensions, strict=True)}
                inner = _inline(callee, dict(zip(callee.inputs, given, strict=True)), inner_dims, out, names)
                _bind(result, map_tree(callee.result, inner), values)
    return values


def _bind(names: Tree, tree: Tree, values: dict[Value, Value]) -> None:
    for name, value in zip(leaves(names), leaves(tree), strict=True):
        values[name] = value
