"""What is known to be at least 0, and what follows from it by linear arithmetic and products."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from kina.dims.dim import Atom, Dim, FloorDiv, Minimum, Monomial, Variable, constant, of_monomial
from kina.dims.division import divide, remainders
from kina.dims.linear import Budget, contradiction
from kina.dims.products import PAIRS, products_of_pairs, with_products

Used = int
"""A set of hypotheses: bit `i` stands for the `i`-th."""

_SIDE_WORK = 2_000


class Bounds:
    """Inequalities `p >= 0`, each with the hypotheses it rests on. All expressions are reduced ones.

    Variables are natural numbers but for those in `integers`. Every division that occurs has a positive denominator.
    """

    def __init__(self) -> None:
        self.known: dict[Dim, Used] = {}
        self.integers: frozenset[str] = frozenset()
        self.contradictory: Used | None = None
        """Facts that were seen to contradict each other."""
        self.signs: dict[str, Used] = {}
        """What it rests on that a variable of ours is natural, where that is not nothing."""
        self._natural: dict[Atom, Used | None] = {}

    def copy(self) -> Bounds:
        copy = Bounds()
        copy.known = dict(self.known)
        copy.integers = self.integers
        copy.contradictory = self.contradictory
        copy.signs = dict(self.signs)
        return copy

    def add(self, at_least_zero: Dim, used: Used) -> tuple[Dim, Used] | None:
        """Enters a bound. Returns what must be 0 because its opposite is known too, with what that rests on."""
        bound = tightened(at_least_zero)
        if bound.value is not None:
            if bound.value < 0:
                self.contradictory = used
            return None
        self.known.setdefault(bound, used)
        self._natural.clear()
        opposite = self.known.get(-bound)
        return None if opposite is None else (bound, used | opposite)

    # ------------------------------------------------------------ consequences

    def entails(self, at_least_zero: Dim) -> Used | None:
        """What a linear proof of `at_least_zero >= 0` rests on, or None. Cheap: sees bounds between variables only."""
        if self.is_natural(at_least_zero):
            return self.sign(at_least_zero)
        if self.contradictory is not None or at_least_zero.value is not None:
            return self.contradictory
        if (known := self.known.get(tightened(at_least_zero))) is not None:
            return known
        names = at_least_zero.variables
        near = [p for p in self.known if p.variables & names and all(isinstance(a, Variable) for a in p.atoms())]
        if not near:
            return None
        return self._contradiction([(p, self.known[p]) for p in near], -at_least_zero - 1, Budget(_SIDE_WORK))

    def entails_both(self, first: Dim, second: Dim) -> Used | None:
        """What proofs that both are at least 0 rest on, or None."""
        used = self.entails(first)
        by = self.entails(second) if used is not None else None
        return None if used is None or by is None else used | by

    def refutes(self, at_least_zero: Dim, effort: int, budget: Budget) -> Used | None:
        """What a proof that `at_least_zero >= 0` is impossible rests on, or None.

        Divisions and minima bring their inequalities; `effort` is how far products are brought in.
        """
        if self.contradictory is not None:
            return self.contradictory
        facts = self._related(at_least_zero)
        facts += [(p, 0) for p in _definitions([at_least_zero, *(p for p, _ in facts)])]
        if effort:
            facts += self.divided(at_least_zero)
            facts += self._quotients_of_bounds(facts, at_least_zero)
        if effort == PAIRS:
            facts += products_of_pairs([(at_least_zero, 0), *facts])
        more = with_products([p for p, _ in facts], at_least_zero, self.natural_atom, min(effort, PAIRS - 1))
        facts += [(p, facts[i][1] if i >= 0 else 0) for p, i in more]
        return self._contradiction(facts, at_least_zero, budget)

    def divided(self, at_least_zero: Dim) -> list[tuple[Dim, Used]]:
        """What follows of the bound when a positive factor of some of its terms is divided out, rounding down.

        From `m*q + r >= 0` with `m >= 1` and `r < m` follows `m*q > -m`, so `q >= 0`; and with `r < 0` even `m*q > 0`,
        so `q >= 1`. This is where products of whole numbers know more than those of fractions: `g*a > g*b` gives
        `a >= b + 1`.
        """
        found: list[tuple[Dim, Used]] = []
        for atom in dict.fromkeys(a for m, _ in at_least_zero.terms if len(m) > 1 for a in m):
            factor = of_monomial((atom,))
            positive = self.entails(factor - 1)
            if positive is None:
                continue
            quotient, rest = divide(at_least_zero, factor)
            for least, margin in ((1, -1 - rest), (0, factor - 1 - rest)):
                small = self.entails(margin)
                if small is not None:
                    found.append((tightened(quotient - least), positive | small))
                    break
        return found

    def _quotients_of_bounds(self, facts: list[tuple[Dim, Used]], goal: Dim) -> list[tuple[Dim, Used]]:
        """What bounds on a numerator say of the quotient: from `a < b*u` follows `a div b < u`.

        The bound and the definition of the quotient are added up so that the numerator cancels, then divided.
        """
        found: list[tuple[Dim, Used]] = []
        divisions = {a: None for p, _ in [(goal, 0), *facts] for a in p.atoms() if isinstance(a, FloorDiv)}
        for division in divisions:
            a, b = division.first, division.second
            if len(a.terms) != 1 or a.terms[0][1] != 1:
                continue
            value = of_monomial((division,))
            for bound, used in facts:
                match bound.coefficient(a.terms[0][0]):
                    case -1:
                        of_quotient = bound + a - b * value
                    case 1:
                        of_quotient = bound + b * value + b - 1 - a
                    case _:
                        continue
                if b.value is not None:
                    found.append((tightened(of_quotient), used))
                found += [(p, used | by) for p, by in self.divided(of_quotient)]
        return found

    def _related(self, goal: Dim) -> list[tuple[Dim, Used]]:
        """The bounds that share variables with the goal, directly or through others; all where the goal has none."""
        if not goal.variables:
            return list(self.known.items())
        names = set(goal.variables)
        left = dict(self.known)
        found: list[tuple[Dim, Used]] = []
        while near := [p for p in left if not names.isdisjoint(p.variables)]:
            for p in near:
                found.append((p, left.pop(p)))
                names |= p.variables
        return found

    def _contradiction(self, facts: list[tuple[Dim, Used]], goal: Dim, budget: Budget) -> Used | None:
        found = contradiction([tightened(goal), *(p for p, _ in facts)], self.natural_monomial, budget)
        if found is None:
            return None
        used = 0
        for position in found:
            bound, by = facts[position - 1] if position else (goal, 0)
            used |= by | self.sign(bound)
        return used

    # ------------------------------------------------------------ what is not negative

    def natural_atom(self, atom: Atom) -> bool:
        """Whether the atom is known not to be negative."""
        if isinstance(atom, Variable):
            return atom.name not in self.integers
        if atom not in self._natural:
            self._natural[atom] = None  # what a proof that needs itself would find
            match atom:
                case FloorDiv(a, _):
                    self._natural[atom] = self.entails(a)
                case Minimum(a, b):
                    self._natural[atom] = self.entails_both(a, b)
        return self._natural[atom] is not None

    def sign(self, expression: Dim) -> Used:
        """What it rests on that the atoms known to be natural are: at least what a proof with `expression` needs."""
        used = 0
        for atom in expression.atoms():
            known = self.signs.get(atom.name) if isinstance(atom, Variable) else self._natural.get(atom)
            used |= known or 0
        return used

    def natural_monomial(self, monomial: Monomial) -> bool:
        return all(self.natural_atom(a) or monomial.count(a) % 2 == 0 for a in monomial)

    def is_natural(self, expression: Dim) -> bool:
        """Whether every term is known not to be negative."""
        return all(c > 0 and self.natural_monomial(m) for m, c in expression.terms)


def tightened(at_least_zero: Dim) -> Dim:
    """The same bound on integers, with the common factor of the coefficients divided out and the number rounded."""
    content = gcd(*(c for m, c in at_least_zero.terms if m))
    return divide(at_least_zero, constant(content))[0] if content > 1 else at_least_zero


def _definitions(expressions: Iterable[Dim]) -> list[Dim]:
    """The inequalities that define the divisions and minima inside."""
    found: dict[Dim, None] = {}
    seen: set[Atom] = set()
    todo = [a for e in expressions for a in e.atoms()]
    while todo:
        atom = todo.pop()
        if atom in seen:
            continue
        seen.add(atom)
        value = of_monomial((atom,))
        match atom:
            case FloorDiv(a, b) if b.value is not None and b.value > 0:
                least, greatest = remainders(a, b.value)
                inequalities = [a - b * value - least, b * value + greatest - a]
            case FloorDiv(a, b):
                inequalities = [a - b * value, b * value + b - 1 - a, b - 1]
            case Minimum(a, b):
                inequalities = [a - value, b - value]
            case _:
                continue
        for p in inequalities:
            found[tightened(p)] = None
            todo.extend(p.atoms())
    return list(found)
