"""Nonlinear consequences of bounds: products of what is at least 0, chosen by the monomials they would cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kina.dims.dim import Atom, Dim, Monomial, of_monomial, without

_LIMIT = (40, 120, 240)


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


def _nonlinear(bounds: Iterable[Dim]) -> dict[Monomial, None]:
    return {m: None for p in bounds for m, _ in p.terms if len(m) >= 2}


def _cofactors(bound: Dim, monomial: Monomial) -> dict[Monomial, None]:
    found: dict[Monomial, None] = {}
    for own, _ in bound.terms:
        rest = without(monomial, own) if own else None
        if rest:
            found[rest] = None
    return found
