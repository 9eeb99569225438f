"""Propositions over dimensions: comparisons, joined by `&&`, `||` and `not`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kina.dims.dim import Dim, constant, modulo

Relation = Literal["=", "!=", "<", "<=", ">", ">="]
OPERATORS: Mapping[Relation, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NEGATION: Mapping[Relation, Relation] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Comparison:
    relation: Relation
    left: Dim
    right: Dim

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


@dataclass(frozen=True, slots=True)
class And:
    items: tuple[Proposition, ...]

    def __str__(self) -> str:
        return " && ".join(_grouped(p, Or) for p in self.items) or "0 = 0"

    @classmethod
    def of(cls, items: Iterable[Proposition]) -> Proposition:
        """What all items say, each said once."""
        once = tuple(dict.fromkeys(items))
        return once[0] if len(once) == 1 else cls(once)


@dataclass(frozen=True, slots=True)
class Or:
    items: tuple[Proposition, ...]

    def __str__(self) -> str:
        return " || ".join(_grouped(p, And) for p in self.items) or "0 = 1"


Proposition = Comparison | And | Or


def _grouped(p: Proposition, kind: type) -> str:
    return f"({p})" if isinstance(p, kind) else str(p)


def equal(left: Dim, right: Dim) -> Proposition:
    return Comparison("=", left, right)


def at_most(left: Dim, right: Dim) -> Proposition:
    return Comparison("<=", left, right)


def divides(divisor: Dim, multiple: Dim) -> Proposition:
    """`divisor divides multiple`, which says that the divisor is positive too."""
    return And((Comparison(">", divisor, constant(0)), Comparison("=", modulo(multiple, divisor), constant(0))))


def negate(p: Proposition) -> Proposition:
    match p:
        case Comparison(relation, left, right):
            return Comparison(NEGATION[relation], left, right)
        case And(items):
            return Or(tuple(map(negate, items)))
        case Or(items):
            return And(tuple(map(negate, items)))


def substitute(p: Proposition, replacement: Mapping[str, Dim]) -> Proposition:
    match p:
        case Comparison(relation, left, right):
            return Comparison(relation, left.substitute(replacement), right.substitute(replacement))
        case And(items):
            return And(tuple(substitute(q, replacement) for q in items))
        case Or(items):
            return Or(tuple(substitute(q, replacement) for q in items))


def variables(p: Proposition) -> frozenset[str]:
    match p:
        case Comparison(_, left, right):
            return left.variables | right.variables
        case And(items) | Or(items):
            return frozenset().union(*map(variables, items))


def holds(p: Proposition, sizes: Mapping[str, int]) -> bool:
    """Whether the proposition is true at these sizes, read from the left as far as it takes to know.

    Raises `UndefinedSize` where that meets a division by zero: `B > 0 && A mod B = 0` is false for `B = 0`, but
    `A mod B = 0 && B > 0` is undefined.
    """
    match p:
        case Comparison(relation, left, right):
            return bool(OPERATORS[relation](left.evaluate(sizes), right.evaluate(sizes)))
        case And(items):
            return all(holds(q, sizes) for q in items)
        case Or(items):
            return any(holds(q, sizes) for q in items)
