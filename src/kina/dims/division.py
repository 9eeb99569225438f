"""Division of polynomials, as far as it holds for every value of the atoms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import gcd

from kina.dims.dim import Atom, Dim, FloorDiv, Monomial, Variable, constant, of_monomial, without

_ZERO = constant(0)
_STEPS = 60
_REMAINDERS = 128


def divide(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `a = b*q + r`, where no term of `r` contains the leading term of `b`.

    Coefficients of `r` on multiples of the leading monomial lie in `[0, c)` for the leading coefficient `c`.
    """
    lead, factor = b.terms[-1]
    quotient, remainder, rest = _ZERO, _ZERO, a
    for _ in range(_STEPS):
        if not rest.terms:
            break
        monomial, coefficient = rest.terms[-1]
        share = without(monomial, lead)
        times = coefficient // factor if share is not None else 0
        term = of_monomial(monomial) * coefficient
        if share is None or times == 0:
            remainder, rest = remainder + term, rest - term
            continue
        step = of_monomial(share) * times
        quotient, rest = quotient + step, rest - step * b
        if rest.coefficient(monomial):
            left = of_monomial(monomial) * rest.coefficient(monomial)
            remainder, rest = remainder + left, rest - left
    return quotient, remainder + rest


def common_monomial(p: Dim) -> Monomial:
    """The greatest monomial that divides every term."""
    if not p.terms:
        return ()
    common = p.terms[0][0]
    for monomial, _ in p.terms[1:]:
        rest = list(monomial)
        kept: list[Atom] = []
        for atom in common:
            if atom in rest:
                rest.remove(atom)
                kept.append(atom)
        common = tuple(kept)
    return common


def content(p: Dim) -> int:
    """The greatest number that divides every coefficient; 0 for 0."""
    return gcd(*(c for _, c in p.terms))


def exact_floor_div(a: Dim, b: Dim, is_natural: Callable[[Dim], bool]) -> tuple[Dim, Dim, Dim]:
    """`(q, a', b')` with `a div b = q + a' div b'`, for `b >= 1`, made as small as it goes without facts.

    Flattens `(x div c + y) div d` to `(x + c*y) div (c*d)`, splits off what divides exactly and cancels common factors.
    `a'` is 0 where nothing is left over.
    """
    while (inner := _nested(a)) is not None and inner.second is not _ZERO:
        outer = a - of_monomial((inner,))
        a, b = outer * inner.second + inner.first, b * inner.second
    whole, a = divide(a, b)
    if a is _ZERO:
        return whole, a, b
    a, b = _without_small_number(a, b)
    for atom in common_monomial(b):
        factor = of_monomial((atom,))
        if is_natural(factor) and atom in common_monomial(a):
            a, b = divide(a, factor)[0], divide(b, factor)[0]
    more, a = divide(a, b)
    return whole + more, a, b


def remainders(a: Dim, modulus: int) -> tuple[int, int]:
    """The least and the greatest that `a mod modulus` can be, for a polynomial over variables.

    It depends on the variables' own remainders alone, so a few values say it for all: `N*(N + 1)` is always even.
    """
    names = sorted(a.variables)
    plain = all(isinstance(atom, Variable) for atom in a.atoms())
    if not plain or modulus ** len(names) > _REMAINDERS:
        return 0, modulus - 1
    values = product(range(modulus), repeat=len(names))
    found = {a.evaluate(dict(zip(names, numbers, strict=True))) % modulus for numbers in values}
    return min(found), max(found)


def _without_small_number(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """`(g*x + r) div (g*y)` is `x div y` for a number `0 <= r < g`; so is every number `r` once rounded down."""
    shared = gcd(content(b), *(c for m, c in a.terms if m))
    if shared <= 1:
        return a, b
    return divide(a, constant(shared))[0], divide(b, constant(shared))[0]


def _nested(a: Dim) -> FloorDiv | None:
    """The one division that stands in `a` as a term of its own, where there is just one."""
    found = [m[0] for m, c in a.terms if len(m) == 1 and c == 1 and isinstance(m[0], FloorDiv)]
    return found[0] if len(found) == 1 and isinstance(found[0], FloorDiv) else None
