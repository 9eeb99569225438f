"""Nonlinear consequences of bounds: products of what is at least 0, chosen by the monomials they would cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kina.dims.dim import Atom, Dim, Monomial, of_monomial, without

PAIRS = 3
"""The effort at which bounds are multiplied by each other; below, by monomials alone."""

_LIMIT = (40, 120, 240)
_FACTORS = 12
_PAIRS = 80


def with_products(
    bounds: Sequence[Dim], goal: Dim, is_natural: Callable[[Atom], bool], effort: int
) -> list[tuple[Dim, int]]:
    """Products of bounds with natural monomials, each with the position of the bound it came from (-1: the goal).

    A product is taken when it contains a nonlinear monomial that stands in the bounds or in the goal: others could not
    cancel. `effort` is the number of rounds, so that 0 gives none.
    """
    found: dict[Dim, int] = {}
    sources = [*((p, i) for i, p in enumerate(bounds)), (goal, -1)]
    wanted = _nonlinear(p for p, _ in sources)
    for _ in range(effort):
        for monomial in tuple(wanted):
            for bound, origin in sources:
                for cofactor in _cofactors(bound, monomial):
                    if all(map(is_natural, cofactor)):
                        found.setdefault(bound * of_monomial(cofactor), origin)
            if len(found) > _LIMIT[effort]:
                return list(found.items())
        wanted = _nonlinear(found)
    return list(found.items())


def products_of_pairs(bounds: Sequence[tuple[Dim, int]]) -> list[tuple[Dim, int]]:
    """Products of two linear bounds `p >= 0` and `q >= 0`, and squares of differences, with what they rest on.

    `p*q >= 0` needs both; `(x - y)^2 >= 0` needs nothing. Only those with a monomial that already occurs can cancel.
    """
    wanted = _nonlinear(p for p, _ in bounds)
    found: dict[Dim, int] = {}
    for monomial in wanted:
        if len(monomial) == 2 and monomial[0] != monomial[1]:
            gap = of_monomial(monomial[:1]) - of_monomial(monomial[1:])
            found.setdefault(gap * gap, 0)
    linear = [(p, used) for p, used in bounds if all(len(m) <= 1 for m, _ in p.terms) and len(p.terms) > 1]
    for i, (p, used) in enumerate(linear[:_FACTORS]):
        for q, by in linear[i:_FACTORS]:
            both = p * q
            if any(m in wanted for m, _ in both.terms):
                found.setdefault(both, used | by)
    return list(found.items())[:_PAIRS]


def _nonlinear(bounds: Iterable[Dim]) -> dict[Monomial, None]:
    return {m: None for p in bounds for m, _ in p.terms if len(m) >= 2}


def _cofactors(bound: Dim, monomial: Monomial) -> dict[Monomial, None]:
    found: dict[Monomial, None] = {}
    for own, _ in bound.terms:
        rest = without(monomial, own) if own else None
        if rest:
            found[rest] = None
    return found
