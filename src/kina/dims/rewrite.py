"""Expressions rewritten by facts: variables by what they equal, divisions by what comes out exactly."""

from __future__ import annotations

from kina.dims.bounds import Bounds, Used
from kina.dims.dim import (
    Atom,
    CeilDiv,
    Dim,
    FloorDiv,
    Maximum,
    Minimum,
    Modulo,
    Monomial,
    Variable,
    constant,
    minimum,
    of_monomial,
    variable,
    without,
)
from kina.dims.division import common_monomial, divide, exact_floor_div

_ZERO = constant(0)
_PRODUCTS = 12


class Rewriter:
    """Rules, and the normal form under them. Works with `bounds` to see which remainders are small."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.rules: dict[str, tuple[Dim, Used]] = {}
        """Variables eliminated, each with what it equals in terms of the ones that are left."""
        self.products: dict[Monomial, tuple[Dim, Used]] = {}
        """Products that equal something else, such as `T * k` under `(T * k) mod E = 0`."""
        self.quotients: dict[Atom, str] = {}
        """Divisions that a variable of ours stands for."""
        self._reduced: dict[Dim, tuple[Dim, Used]] = {}

    def copy(self, bounds: Bounds) -> Rewriter:
        copy = Rewriter(bounds)
        copy.rules = dict(self.rules)
        copy.products = dict(self.products)
        copy.quotients = dict(self.quotients)
        return copy

    def forget(self) -> None:
        """Drops remembered results: call when a rule or a bound was added."""
        self._reduced.clear()

    def reduce(self, expression: Dim, skip: Monomial | None = None) -> tuple[Dim, Used]:
        """The expression in the unknowns that are left, with what the rules that were applied rest on.

        Only variables, `div` and `min` remain as atoms. The expression's denominators must be positive. The rule for
        the product `skip` is left out.
        """
        if skip is None and (known := self._reduced.get(expression)) is not None:
            return known
        used = 0

        def replace(atom: Atom) -> Dim:
            nonlocal used
            replaced, by = self._reduce_atom(atom)
            used |= by
            return replaced

        reduced = expression.rebuild(replace)
        for _ in range(_PRODUCTS if self.products else 0):
            rewritten, by = self._rewrite_product(reduced, skip)
            if rewritten is reduced:
                break
            reduced, used = rewritten, used | by
        if skip is None:
            self._reduced[expression] = reduced, used
        return reduced, used

    def _reduce_atom(self, atom: Atom) -> tuple[Dim, Used]:
        if isinstance(atom, Variable):
            return self.rules.get(atom.name) or (of_monomial((atom,)), 0)
        a, b, used = self._reduce_both(atom)
        match atom:
            case FloorDiv():
                return self._quotient(a, b, used)
            case Modulo():
                quotient, used = self._quotient(a, b, used)
                return a - b * quotient, used
            case CeilDiv():
                quotient, used = self._quotient(a - 1, b, used)
                return quotient + 1, used
            case Minimum():
                return self._minimum(a, b, used)
            case Maximum():
                smaller, used = self._minimum(a, b, used)
                return a + b - smaller, used

    def _reduce_both(self, atom: FloorDiv | Modulo | CeilDiv | Minimum | Maximum) -> tuple[Dim, Dim, Used]:
        a, used = self.reduce(atom.first)
        b, by = self.reduce(atom.second)
        return a, b, used | by

    def _quotient(self, a: Dim, b: Dim, used: Used) -> tuple[Dim, Used]:
        """`a div b` for `b >= 1`, split into what divides exactly and a remainder within `[0, b)`."""
        if b.value is not None and b.value <= 0:
            return of_monomial((FloorDiv(a, b),)), used  # the facts contradict each other
        whole, a, b = exact_floor_div(a, b, self.bounds.is_natural)
        if a is _ZERO:
            return whole, used
        for low in (0, -1):
            inside = self.bounds.entails_both(a - b * low, b * (low + 1) - 1 - a)
            if inside is not None:
                return whole + low, used | inside
        nested = self._without_small_part(a, b)
        if nested is not None:
            quotient, by = self._quotient(*nested)
            return whole + quotient, used | by
        atom = FloorDiv(a, b)
        if (name := self.quotients.get(atom)) is not None:
            value, by = self.rules.get(name) or (variable(name), 0)
            return whole + value, used | by
        return whole + of_monomial((atom,)), used

    def _without_small_part(self, a: Dim, b: Dim) -> tuple[Dim, Dim, Used] | None:
        """`(g*x + r) div (g*y)` is `x div y` where `0 <= r < g`."""
        for atom in dict.fromkeys(common_monomial(b)):
            if not self.bounds.natural_atom(atom):
                continue
            factor = of_monomial((atom,))
            x, small = divide(a, factor)
            inside = self.bounds.entails_both(small, factor - 1 - small) if x is not _ZERO else None
            if inside is not None:
                return x, divide(b, factor)[0], inside
        return None

    def _minimum(self, a: Dim, b: Dim, used: Used) -> tuple[Dim, Used]:
        for small, large in ((a, b), (b, a)):
            proof = self.bounds.entails(large - small)
            if proof is not None:
                return small, used | proof
        return minimum(a, b), used

    def _rewrite_product(self, expression: Dim, skip: Monomial | None) -> tuple[Dim, Used]:
        for pattern, (value, used) in self.products.items():
            if pattern == skip:
                continue
            for monomial, coefficient in expression.terms:
                rest = without(monomial, pattern)
                if rest is not None:
                    changed = (value - of_monomial(pattern)) * of_monomial(rest) * coefficient
                    return expression + changed, used
        return expression, 0
