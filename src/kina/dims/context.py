"""What follows from the facts in scope: a system of rewriting rules and inequalities, kept closed.

An equality becomes a rule that eliminates a variable (`A mod B = 0` turns `A` into `B * q`), so that everything else
is stated in fewer, independent unknowns. What cannot be turned into a rule stays as a bound `p >= 0`. Every rule and
bound carries the set of hypotheses it came from, as bits of an integer.

A division in scope always has a positive denominator here: the facts that mention it say so, and the prover shows it of
a goal before it lets the goal in.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

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
from kina.dims.linear import Budget, contradiction
from kina.dims.products import with_products
from kina.dims.proposition import And, Comparison, Or, Proposition

Used = int
"""A set of hypotheses: bit `i` stands for the `i`-th."""

ZERO = constant(0)
_REWRITES = 12
_EQUATIONS = 100
_SIDE_WORK = 2_000


class Context:
    """Facts, closed. Treat as immutable: `assume` gives a new one."""

    def __init__(self) -> None:
        self.rules: dict[str, tuple[Dim, Used]] = {}
        """Variables eliminated, each with what it equals in terms of the ones that are left."""
        self.products: dict[Monomial, tuple[Dim, Used]] = {}
        """Products that equal something else, such as `T * k` under `(T * k) mod E = 0`."""
        self.quotients: dict[Atom, str] = {}
        """Divisions that a variable of ours stands for."""
        self.bounds: dict[Dim, Used] = {}
        """What is at least 0."""
        self.alternatives: list[tuple[Or, Used]] = []
        """Facts of which one case holds."""
        self.contradictory: Used | None = None
        """Facts that were seen to contradict each other."""
        self.integers: frozenset[str] = frozenset()
        """Variables of ours that may be negative."""
        self._pending: list[tuple[Dim, Used]] = []
        self._reduced: dict[Dim, tuple[Dim, Used]] = {}
        self._natural: dict[Atom, bool] = {}

    def assume(self, fact: Proposition, used: Used, instead_of: Or | None = None) -> Context:
        """The context in which `fact` holds too, defined and true; `instead_of` names the alternative it decides."""
        child = Context()
        child.rules = dict(self.rules)
        child.products = dict(self.products)
        child.quotients = dict(self.quotients)
        child.bounds = dict(self.bounds)
        child.alternatives = [a for a in self.alternatives if a[0] is not instead_of]
        child.integers = self.integers
        child.contradictory = self.contradictory
        child._add(fact, used)
        child._close()
        return child

    # ------------------------------------------------------------ entering facts

    def _add(self, fact: Proposition, used: Used) -> None:
        if self.contradictory is not None:
            return
        match fact:
            case And(items):
                for item in items:
                    self._add(item, used)
            case Or((only,)):
                self._add(only, used)
            case Or():
                self.alternatives.append((fact, used))
            case Comparison("=", left, right):
                if self._add_defined((left, right), used):
                    self._pending.append((left - right, used))
                    self._close()
            case Comparison("!=", left, right):
                self._add_defined((left, right), used)
                cases = Or((Comparison("<", left, right), Comparison(">", left, right)))
                self.alternatives.append((cases, used))
            case Comparison(_, left, right):
                if self._add_defined((left, right), used):
                    self._bound(difference(fact), used)

    def _add_defined(self, sides: tuple[Dim, ...], used: Used) -> bool:
        """Enters that what is divided by is positive. False where that is impossible."""
        for side in sides:
            for denominator in side.denominators:
                self._bound(denominator - 1, used)
                if self.contradictory is not None:
                    return False
        return True

    def _bound(self, at_least_zero: Dim, used: Used) -> None:
        reduced, by = self.reduce(at_least_zero)
        reduced = _tightened(reduced)
        if reduced.value is not None:
            if reduced.value < 0:
                self.contradictory = used | by
            return
        if -reduced in self.bounds:
            self._pending.append((reduced, used | by | self.bounds[-reduced]))
        self.bounds.setdefault(reduced, used | by)

    # ------------------------------------------------------------ closing

    def _close(self) -> None:
        """Turns equations into rules until none is left; each rule is applied to everything known before."""
        for _ in range(_EQUATIONS):
            if not self._pending or self.contradictory is not None:
                break
            equation, used = self._pending.pop()
            reduced, by = self.reduce(equation)
            self._orient(self._with_named_quotients(reduced, used | by), used | by)
        self._pending.clear()

    def _with_named_quotients(self, equation: Dim, used: Used) -> Dim:
        """The equation with a variable of ours for each division in it."""

        def name(atom: Atom) -> Dim:
            if not isinstance(atom, FloorDiv):
                return _of(atom)
            numerator, denominator = atom.numerator, atom.denominator
            quotient = variable(f"⌊{numerator.factor_text()}/{denominator.factor_text()}⌋")
            if atom not in self.quotients:
                if str(quotient) in self.rules:
                    return self.rules[str(quotient)][0]
                if not self.natural_atom(atom):
                    self.integers |= quotient.variables
                self.quotients[atom] = str(quotient)
                self._reduced.clear()
                self._bound(numerator - denominator * quotient, used)
                self._bound(denominator * quotient + denominator - 1 - numerator, used)
            return quotient

        return equation.rebuild(name)

    def _orient(self, equation: Dim, used: Used) -> None:
        """Makes a rule of `equation = 0`, or keeps it as two bounds."""
        equation, by = self._cancelled(equation)
        used |= by
        if equation is ZERO:
            return
        content = gcd(*(c for m, c in equation.terms if m))
        number = equation.coefficient(())
        if content == 0 or number % content:
            self.contradictory = used
            return
        equation = divide(equation, constant(content))[0]
        solved = self._solve_variable(equation) or self._solve_pair(equation)
        if solved is not None:
            for name, value in solved:
                self._eliminate(name, value, used)
        elif (rule := _product_rule(equation)) is not None:
            monomial, value = rule
            self.products[monomial] = (value, used)
            self._restate()
        else:
            self.bounds.setdefault(equation, used)
            self.bounds.setdefault(-equation, used)

    def _cancelled(self, equation: Dim) -> tuple[Dim, Used]:
        """Without the factors that all terms share and that are known to be positive."""
        used = 0
        for atom in dict.fromkeys(common_monomial(equation)):
            proof = self.entails(_of(atom) - 1) if self.natural_atom(atom) else None
            while proof is not None and atom in common_monomial(equation):
                equation = divide(equation, _of(atom))[0]
                used |= proof
        return equation, used

    def _solve_variable(self, equation: Dim) -> list[tuple[str, Dim]] | None:
        """`x = value` for a variable with coefficient 1 or -1 that occurs nowhere else."""
        best: tuple[tuple[bool, bool, int], str, Dim] | None = None
        for monomial, coefficient in equation.terms:
            match monomial:
                case (Variable(name) as atom,) if abs(coefficient) == 1:
                    rest = equation - _of(atom) * coefficient
                    if name in rest.variables:
                        continue
                    value = rest * -coefficient
                    rank = (self.is_natural(value), not name.startswith("⌊"), len(value.terms))
                    if best is None or rank > best[0]:
                        best = (rank, name, value)
        return best and [best[1:]]

    def _solve_pair(self, equation: Dim) -> list[tuple[str, Dim]] | None:
        """`a*x + b*y + c = 0` with coprime `a`, `b`: all solutions, by one new variable."""
        match [(m, c) for m, c in equation.terms if m]:
            case [((Variable(x),), a), ((Variable(y),), b)] if gcd(a, b) == 1:
                number = equation.coefficient(())
                x0 = -number * pow(a, -1, abs(b)) % abs(b)
                y0 = (-number - a * x0) // b
                parameter = variable(f"⌊{x}/{abs(b)}⌋")
                sign = 1 if b > 0 else -1
                if x in self.integers:
                    self.integers |= parameter.variables
                return [(x, x0 + parameter * (sign * b)), (y, y0 - parameter * (sign * a))]
        return None

    def _eliminate(self, name: str, value: Dim, used: Used) -> None:
        was_natural = name not in self.integers
        self.rules[name] = (value, used)
        self._reduced.clear()
        self._natural.clear()
        if was_natural and not self.is_natural(value):
            self.bounds[value] = used
        self._restate()

    def _restate(self) -> None:
        """Applies a new rule to everything known."""
        self._reduced.clear()
        self._natural.clear()
        rules, self.rules = self.rules, dict(self.rules)
        for name, (value, used) in rules.items():
            reduced, by = self.reduce(value)
            self.rules[name] = (reduced, used | by)
        self._reduced.clear()
        bounds, self.bounds = self.bounds, {}
        for bound, used in bounds.items():
            self._bound(bound, used)
        for monomial, (value, used) in list(self.products.items()):
            restated, _ = self.reduce(of_monomial(monomial), skip=monomial)
            if restated is of_monomial(monomial):
                value, by = self.reduce(value, skip=monomial)
                self.products[monomial] = value, used | by
            else:
                del self.products[monomial]
                self._pending.append((of_monomial(monomial) - value, used))
        quotients, self.quotients = self.quotients, {}
        self._reduced.clear()
        for atom, quotient in quotients.items():
            reduced, by = self.reduce(_of(atom))
            match reduced.terms:
                case ((((FloorDiv() as renamed),), 1),) if renamed not in self.quotients:
                    self.quotients[renamed] = quotient
                    self._reduced.clear()
                case _ if reduced is not variable(quotient):
                    self._pending.append((variable(quotient) - reduced, by))

    # ------------------------------------------------------------ rewriting

    def reduce(self, expression: Dim, skip: Monomial | None = None) -> tuple[Dim, Used]:
        """The expression in the unknowns that are left, with what the rules that were applied rest on.

        Only variables, `div` and `min` remain as atoms. The expression's denominators must be positive.
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
        for _ in range(_REWRITES if self.products else 0):
            rewritten, by = self._rewrite_product(reduced, skip)
            if rewritten is reduced:
                break
            reduced, used = rewritten, used | by
        if skip is None:
            self._reduced[expression] = reduced, used
        return reduced, used

    def _reduce_atom(self, atom: Atom) -> tuple[Dim, Used]:
        match atom:
            case Variable(name):
                return self.rules.get(name) or (variable(name), 0)
            case FloorDiv(a, b):
                return self._quotient(*self._reduce_both(a, b))
            case Modulo(a, b):
                a, b, used = self._reduce_both(a, b)
                quotient, by = self._quotient(a, b, used)
                return a - b * quotient, by
            case CeilDiv(a, b):
                a, b, used = self._reduce_both(a, b)
                quotient, by = self._quotient(a - 1, b, used)
                return quotient + 1, by
            case Minimum(a, b):
                return self._minimum(*self._reduce_both(a, b))
            case Maximum(a, b):
                a, b, used = self._reduce_both(a, b)
                smaller, by = self._minimum(a, b, used)
                return a + b - smaller, by

    def _reduce_both(self, a: Dim, b: Dim) -> tuple[Dim, Dim, Used]:
        a, used = self.reduce(a)
        b, by = self.reduce(b)
        return a, b, used | by

    def _quotient(self, a: Dim, b: Dim, used: Used) -> tuple[Dim, Used]:
        """`a div b` for `b >= 1`, split into what divides exactly and a remainder within `[0, b)`."""
        if b.value is not None and b.value <= 0:
            return _of(FloorDiv(a, b)), used  # the facts contradict each other
        whole, a, b = exact_floor_div(a, b, self.is_natural)
        if a is ZERO:
            return whole, used
        for low in (0, -1):
            inside = self.entails_both(a - b * low, b * (low + 1) - 1 - a)
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
        return whole + _of(atom), used

    def _without_small_part(self, a: Dim, b: Dim) -> tuple[Dim, Dim, Used] | None:
        """`(g*x + r) div (g*y)` is `x div y` where `0 <= r < g`."""
        for atom in dict.fromkeys(common_monomial(b)):
            if not self.natural_atom(atom):
                continue
            g = _of(atom)
            x, small = divide(a, g)
            inside = self.entails_both(small, g - 1 - small) if x is not ZERO else None
            if inside is not None:
                return x, divide(b, g)[0], inside
        return None

    def _minimum(self, a: Dim, b: Dim, used: Used) -> tuple[Dim, Used]:
        for small, large in ((a, b), (b, a)):
            proof = self.entails(large - small)
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

    # ------------------------------------------------------------ linear consequences

    def entails(self, at_least_zero: Dim) -> Used | None:
        """What a linear proof of `at_least_zero >= 0` used, or None. Takes a reduced expression; cheap."""
        if self.is_natural(at_least_zero):
            return 0
        if self.contradictory is not None or at_least_zero.value is not None:
            return self.contradictory
        names = at_least_zero.variables
        near = [p for p in self.bounds if _is_plain(p) and p.variables & names]
        known = [(p, self.bounds[p]) for p in near]
        return self._contradiction(known, -at_least_zero - 1, Budget(_SIDE_WORK)) if known else None

    def entails_both(self, first: Dim, second: Dim) -> Used | None:
        used = self.entails(first)
        by = self.entails(second) if used is not None else None
        return None if used is None or by is None else used | by

    def refutes(self, at_least_zero: Dim, effort: int, budget: Budget) -> Used | None:
        """What a proof that `at_least_zero >= 0` is impossible used, or None. Takes a reduced expression.

        Divisions and minima bring their inequalities; `effort` is how far products are brought in.
        """
        if self.contradictory is not None:
            return self.contradictory
        known = self._related(at_least_zero)
        known += [(p, 0) for p in self._definitions([at_least_zero, *(p for p, _ in known)])]
        more = with_products([p for p, _ in known], at_least_zero, self.natural_atom, effort)
        known += [(p, known[i][1] if i >= 0 else 0) for p, i in more]
        return self._contradiction(known, at_least_zero, budget)

    def _related(self, goal: Dim) -> list[tuple[Dim, Used]]:
        """The bounds that share variables with the goal, directly or through others; all where the goal has none."""
        if not goal.variables:
            return list(self.bounds.items())
        names = set(goal.variables)
        left, found = dict(self.bounds), list[tuple[Dim, Used]]()
        while near := [p for p in left if not names.isdisjoint(p.variables)]:
            for p in near:
                found.append((p, left.pop(p)))
                names |= p.variables
        return found

    def _contradiction(self, known: list[tuple[Dim, Used]], goal: Dim, budget: Budget) -> Used | None:
        found = contradiction([_tightened(goal), *(p for p, _ in known)], self.natural_monomial, budget)
        if found is None:
            return None
        used = 0
        for position in found:
            used |= known[position - 1][1] if position else 0
        return used

    def _definitions(self, expressions: Iterable[Dim]) -> list[Dim]:
        """The inequalities that define the divisions and minima inside."""
        found: dict[Dim, None] = {}
        seen: set[Atom] = set()
        todo = [a for e in expressions for a in e.atoms()]
        while todo:
            atom = todo.pop()
            if atom in seen or isinstance(atom, Variable):
                continue
            seen.add(atom)
            value = _of(atom)
            match atom:
                case FloorDiv(a, b):
                    inequalities = [a - b * value, b * value + b - 1 - a, b - 1]
                case Minimum(a, b):
                    inequalities = [a - value, b - value]
                case _:
                    continue
            for p in inequalities:
                found[_tightened(p)] = None
                todo.extend(p.atoms())
        return list(found)

    def natural_atom(self, atom: Atom) -> bool:
        """Whether the atom is known not to be negative."""
        if isinstance(atom, Variable):
            return atom.name not in self.integers
        known = self._natural.get(atom)
        if known is None:
            self._natural[atom] = False
            match atom:
                case FloorDiv(a, _):
                    known = self.entails(a) is not None
                case Minimum(a, b):
                    known = self.entails_both(a, b) is not None
                case _:
                    known = False
            self._natural[atom] = known
        return known

    def natural_monomial(self, monomial: Monomial) -> bool:
        return all(self.natural_atom(a) or monomial.count(a) % 2 == 0 for a in monomial)

    def is_natural(self, expression: Dim) -> bool:
        return all(c > 0 and self.natural_monomial(m) for m, c in expression.terms)


def difference(p: Comparison) -> Dim:
    """What is at least 0 where an ordering holds."""
    match p.relation:
        case "<=":
            return p.right - p.left
        case "<":
            return p.right - p.left - 1
        case ">=":
            return p.left - p.right
        case ">":
            return p.left - p.right - 1
    raise ValueError(f"{p} is not an ordering")


def _product_rule(equation: Dim) -> tuple[Monomial, Dim] | None:
    for monomial, coefficient in reversed(equation.terms):
        if len(monomial) >= 2 and abs(coefficient) == 1:
            value = (equation - of_monomial(monomial) * coefficient) * -coefficient
            foreign = any(a.name.startswith("⌊") for a in monomial if isinstance(a, Variable))
            if not foreign and all(without(m, monomial) is None for m, _ in value.terms):
                return monomial, value
    return None


def _of(atom: Atom) -> Dim:
    return of_monomial((atom,))


def _is_plain(expression: Dim) -> bool:
    return all(isinstance(a, Variable) for a in expression.atoms())


def _tightened(at_least_zero: Dim) -> Dim:
    """The same bound on integers, with the common factor of the coefficients divided out and the number rounded."""
    content = gcd(*(c for m, c in at_least_zero.terms if m))
    if content <= 1:
        return at_least_zero
    return divide(at_least_zero, constant(content))[0]
