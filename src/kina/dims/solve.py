"""Solves an equation between dimensions for one variable, for inference."""

from __future__ import annotations

from typing import NamedTuple

from kina.dims.dim import Dim, Variable, constant, floor_div, modulo, of_monomial, variable, without
from kina.dims.division import divide
from kina.dims.proposition import Comparison, Proposition

_ZERO = constant(0)


class Solution(NamedTuple):
    """The one value the unknown can have, and what must hold for it to be a size that solves the equation."""

    value: Dim
    conditions: tuple[Proposition, ...]


def solve_linear(left: Dim, right: Dim, unknown: str) -> Solution | None:
    """The unique `unknown` with `left = right`, or None where the equation is not linear in it.

    `2*n = D` gives `D div 2` where `D mod 2 = 0`; `S + n = T` gives `T - S` where `S <= T`; `n*H = D` gives `D div H`
    where `H > 0` and `D mod H = 0`.
    """
    split = _coefficient_of(left - right, unknown)
    if split is None:
        return None
    factor, rest = split
    if all(c < 0 for _, c in factor.terms):
        factor, rest = -factor, -rest
    target = -rest  # factor * unknown = target
    conditions: list[Proposition] = []
    if factor.value is None:
        conditions.append(Comparison(">", factor, _ZERO))
    value, remainder = divide(target, factor)
    if remainder is not _ZERO:
        value = floor_div(target, factor)
        conditions.append(Comparison("=", modulo(target, factor), _ZERO))
    if not _clearly_natural(target):
        conditions.append(_not_negative(value if remainder is _ZERO else target))
    return Solution(value, tuple(conditions))


def _coefficient_of(equation: Dim, unknown: str) -> tuple[Dim, Dim] | None:
    """`(c, r)` with `equation = c * unknown + r`, neither of which mentions the unknown; `c` is not 0."""
    atom = Variable(unknown)
    factor = _ZERO
    for monomial, coefficient in equation.terms:
        others = without(monomial, (atom,))
        if others is not None:
            factor = factor + of_monomial(others) * coefficient
    rest = equation - factor * variable(unknown)
    if factor is _ZERO or unknown in factor.variables or unknown in rest.variables:
        return None
    return factor, rest


def _clearly_natural(expression: Dim) -> bool:
    return all(c > 0 and all(isinstance(a, Variable) for a in m) for m, c in expression.terms)


def _not_negative(expression: Dim) -> Proposition:
    """`expression >= 0`, written without minus signs."""
    above = sum((of_monomial(m) * c for m, c in expression.terms if c > 0), _ZERO)
    return Comparison("<=", above - expression, above)
