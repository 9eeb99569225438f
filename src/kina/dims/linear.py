"""Linear arithmetic over monomials, exactly: is a set of inequalities contradictory?

Each monomial stands for one unknown; what is known of products comes in as further inequalities. The method is
the dual simplex with Bland's rule, in integers. A contradiction comes with the inequalities that make it
(a Farkas certificate), so that a proof can say what it used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from kina.dims.dim import Dim, Monomial

_CONSTANT = -1

Row = dict[int, int]
"""A linear form over numbered unknowns; `_CONSTANT` is the number on its own."""


class Budget:
    """How much work may still be done, counted in coefficients: the same on every machine."""

    def __init__(self, work: int) -> None:
        self.left = work


def contradiction(
    bounds: Sequence[Dim], is_natural: Callable[[Monomial], bool], budget: Budget
) -> tuple[int, ...] | None:
    """Positions of bounds `p >= 0` that cannot hold together over the rationals, or None where none was found."""
    columns: dict[tuple[Monomial, int], int] = {}
    forms = [_form(bound, is_natural, columns) for bound in bounds]
    first_slack = len(columns)
    rows = {first_slack + position: (1, form) for position, form in enumerate(forms)}
    while budget.left > 0:
        leaving = min((v for v, (_, form) in rows.items() if form.get(_CONSTANT, 0) < 0), default=None)
        if leaving is None:
            return None
        _, form = rows[leaving]
        entering = min((v for v, c in form.items() if c > 0 and v != _CONSTANT), default=None)
        if entering is None:
            return tuple(v - first_slack for v in (leaving, *form) if v >= first_slack)
        budget.left -= _pivot(rows, leaving, entering) + len(rows)
    return None


def _form(bound: Dim, is_natural: Callable[[Monomial], bool], columns: dict[tuple[Monomial, int], int]) -> Row:
    """The bound as a row; an unknown that may be negative is the difference of two that may not."""
    form: Row = {}
    for monomial, coefficient in bound.terms:
        if not monomial:
            form[_CONSTANT] = coefficient
            continue
        form[columns.setdefault((monomial, 1), len(columns))] = coefficient
        if not is_natural(monomial):
            form[columns.setdefault((monomial, -1), len(columns))] = -coefficient
    return form


def _pivot(rows: dict[int, tuple[int, Row]], leaving: int, entering: int) -> int:
    """Solves the row of `leaving` for `entering` and puts it into every other row. Returns the coefficients touched."""
    scale, form = rows.pop(leaving)
    factor = form.pop(entering)
    solved = {v: -c for v, c in form.items()}
    solved[leaving] = scale
    work = 0
    for basic, (other_scale, other) in rows.items():
        share = other.pop(entering, 0)
        if not share:
            continue
        work += len(solved)
        if factor != 1:
            work += len(other)
            for v in other:
                other[v] *= factor
        for v, c in solved.items():
            value = other.get(v, 0) + share * c
            if value:
                other[v] = value
            else:
                other.pop(v, None)
        if factor != 1:
            rows[basic] = _lowest_terms(other_scale * factor, other)
    rows[entering] = _lowest_terms(factor, solved)
    return work


def _lowest_terms(scale: int, form: Row) -> tuple[int, Row]:
    common = gcd(scale, *form.values())
    return (scale, form) if common == 1 else (scale // common, {v: c // common for v, c in form.items()})
