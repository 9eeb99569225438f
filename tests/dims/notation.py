"""Propositions in Python's notation, so that tests read like the obligations they stand for.

`//` is `div`, `%` is `mod`; `cdiv`, `min`, `max`, comparisons, `and`, `or` and `not` are what they are called.
"""

from __future__ import annotations

import ast
import operator

from kina.dims.dim import Dim, ceil_div, constant, floor_div, maximum, minimum, modulo, variable
from kina.dims.proposition import And, Comparison, Or, Proposition, Relation, negate
from kina.dims.prover import Facts

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: floor_div,
    ast.Mod: modulo,
}
_CALLS = {"cdiv": ceil_div, "min": minimum, "max": maximum}
_RELATIONS: dict[type[ast.cmpop], Relation] = {
    ast.Eq: "=",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def dim_of(text: str) -> Dim:
    return _dim(ast.parse(text, mode="eval").body)


def prop(text: str) -> Proposition:
    return _proposition(ast.parse(text, mode="eval").body)


def facts(*texts: str) -> Facts:
    return Facts(tuple(prop(t) for t in texts if t))


def _proposition(node: ast.expr) -> Proposition:
    match node:
        case ast.BoolOp(ast.And(), values):
            return And(tuple(map(_proposition, values)))
        case ast.BoolOp(ast.Or(), values):
            return Or(tuple(map(_proposition, values)))
        case ast.UnaryOp(ast.Not(), operand):
            return negate(_proposition(operand))
        case ast.Compare(left, ops, comparators):
            sides = [_dim(left), *map(_dim, comparators)]
            items = [Comparison(_RELATIONS[type(op)], sides[i], sides[i + 1]) for i, op in enumerate(ops)]
            return items[0] if len(items) == 1 else And(tuple(items))
    raise ValueError(ast.unparse(node))


def _dim(node: ast.expr) -> Dim:
    match node:
        case ast.Constant(int(value)):
            return constant(value)
        case ast.Name(name):
            return variable(name)
        case ast.UnaryOp(ast.USub(), operand):
            return -_dim(operand)
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_dim(left), _dim(right))
        case ast.Call(ast.Name(name), [first, second]):
            return _CALLS[name](_dim(first), _dim(second))
    raise ValueError(ast.unparse(node))
