"""Case distinctions: what to split when no single line of arithmetic decides.

Each is a disjunction of which one case holds wherever the context does, so that a goal that holds in all cases holds.
A case fixes something that the rewriting can then use: which side a minimum takes, the value of a division, or a
variable written as a multiple and a remainder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import lcm

from kina.dims.bounds import Bounds, Used
from kina.dims.context import Context
from kina.dims.dim import Atom, Dim, FloorDiv, Minimum, Monomial, Variable, constant, floor_div, of_monomial, parts
from kina.dims.dim import variable as variable_of
from kina.dims.equations import difference_variable, quotient_variable, remainder_variable
from kina.dims.linear import Budget
from kina.dims.proposition import And, Comparison, Or, equal

Distinction = tuple[Or, Used]
"""The cases, and the hypotheses on which it rests that there are no others."""

_ZERO = constant(0)
_VALUES = 4
_LARGEST_MODULUS = 12


def distinction(goal: Comparison, context: Context) -> Distinction | None:
    """What to split first: a minimum, or an alternative among the facts."""
    margin, _ = context.reduce(goal.left - goal.right)
    for atom in _inner_first((margin, *context.bounds.known)):
        if isinstance(atom, Minimum):
            left, right = atom.first, atom.second
            return Or((Comparison("<=", left, right), Comparison("<=", right, left))), 0
    return next(iter(context.alternatives), None)


def finer_distinction(goal: Comparison, context: Context, budget: Budget) -> Distinction | None:
    """What to split when nothing else helped: the value of a division, or a variable by its remainder."""
    margin, _ = context.reduce(goal.left - goal.right)
    for expressions in ((margin,), tuple(context.bounds.known)):
        divisions = [atom for atom in _inner_first(expressions) if isinstance(atom, FloorDiv)]
        for atom in divisions:
            found = _few_values(atom, context.bounds, budget)
            if found is not None:
                return found
        for atom in reversed(divisions):
            found = _multiple_and_remainder(atom, context.bounds)
            if found is not None:
                return found
        found = _residues(divisions, context.bounds)
        if found is not None:
            return found
    return _difference(margin, context.bounds)


def _inner_first(expressions: Iterable[Dim]) -> Iterator[Atom]:
    """All minima and divisions, each after those inside it."""
    seen: set[Atom] = set()

    def walk(expression: Dim) -> Iterator[Atom]:
        for atom in expression.atoms():
            if atom not in seen and not isinstance(atom, Variable):
                seen.add(atom)
                for part in parts(atom):
                    yield from walk(part)
                yield atom

    for expression in expressions:
        yield from walk(expression)


def _few_values(division: FloorDiv, bounds: Bounds, budget: Budget) -> Distinction | None:
    """`a div b = v` for each `v` that `low * b <= a < high * b` leaves, where those are few.

    Exhaustive because both bounds are proved: the quotient is at least `low` and below `high`.
    """
    a, b = division.first, division.second
    low, by_low = next(
        ((v, by) for v in (1, 0, -1, -2) if (by := bounds.refutes(b * v - a - 1, 1, budget)) is not None), (None, 0)
    )
    if low is None:
        return None
    for high in range(low + 1, low + _VALUES + 1):
        by_high = bounds.refutes(a - b * high, 1, budget)
        if by_high is not None:
            return Or(tuple(equal(floor_div(a, b), constant(v)) for v in range(low, high))), by_low | by_high
    return None


def _multiple_and_remainder(division: FloorDiv, bounds: Bounds) -> Distinction | None:
    """`x = b*q + r` with `r < b` for a term `x` of the numerator, where `b` is no small number: a single case.

    `q` and `r` are variables of ours, `x div b` and `x mod b`. They exist and are natural, because `b` is positive and
    `x` natural. Every other division of `x` is then one of `r`, which is small.
    """
    a, b = division.first, division.second
    if b.value is not None and b.value <= _LARGEST_MODULUS:
        return None
    for monomial, _ in a.terms:
        if not monomial or not _splits(monomial, b) or not bounds.natural_monomial(monomial):
            continue
        term = of_monomial(monomial)
        remainder = remainder_variable(term, b)
        whole = equal(term, b * quotient_variable(term, b) + remainder)
        return Or((And((whole, Comparison("<", remainder, b))),)), bounds.sign(term) | bounds.sign(b)
    return None


def _splits(monomial: Monomial, b: Dim) -> bool:
    """Whether the term is one of variables alone, none of them in the denominator: then it can be rewritten."""
    return all(isinstance(a, Variable) and a.name not in b.variables for a in monomial)


def _residues(divisions: Iterable[Atom], bounds: Bounds) -> Distinction | None:
    """`x = m*q + r` for every remainder `r` of a variable by `m`, the common multiple of what it is divided by.

    The remainders are all there are. The variable and the modulus with the fewest cases are taken.
    """
    moduli: dict[str, list[int]] = {}
    for division in divisions:
        assert isinstance(division, FloorDiv)
        divisor = division.second.value
        if divisor is None or not 2 <= divisor <= _LARGEST_MODULUS:
            continue
        for name in sorted(division.first.variables):
            moduli.setdefault(name, []).append(divisor)
    choices: list[tuple[int, str]] = []
    for name, numbers in moduli.items():
        if not bounds.natural_atom(Variable(name)):
            continue
        common = lcm(*numbers)
        choices.append((common if common <= _LARGEST_MODULUS else min(numbers), name))
    if not choices:
        return None
    modulus, name = min(choices)
    x = variable_of(name)
    quotient = quotient_variable(x, constant(modulus))
    cases = tuple(equal(x, quotient * modulus + r) for r in range(modulus))
    return Or(cases), bounds.sign(x)


def _difference(margin: Dim, bounds: Bounds) -> Distinction | None:
    """`x = y + d` where `x >= y` is known and `x` occurs in a product: a single case, in which nothing is subtracted.

    `d` is a variable of ours, `x - y`; it is natural because of the bound. Products with `x - y` then have natural
    factors, which is what the arithmetic of products needs.
    """
    factors = {a for p in (margin, *bounds.known) for m, _ in p.terms if len(m) > 1 for a in m}
    for bound, used in bounds.known.items():
        for monomial, coefficient in bound.terms:
            match monomial:
                case (Variable(name) as x,) if coefficient == 1 and x in factors:
                    smaller = of_monomial(monomial) - bound
                    if not smaller.terms or name in smaller.variables or not bounds.is_natural(smaller):
                        continue
                    larger = variable_of(name)
                    return Or((equal(larger, smaller + difference_variable(larger, smaller)),)), used
    return None
