"""What follows from the facts in scope: a system of rewriting rules and inequalities, kept closed.

An equality becomes a rule that eliminates a variable (`A mod B = 0` turns `A` into `B * q`), so that everything else
is stated in fewer, independent unknowns. What cannot be turned into a rule stays as a bound `p >= 0`. Every rule and
bound carries the set of hypotheses it rests on.

A division in scope always has a positive denominator here: the facts that mention it say so, and the prover shows it of
a goal before it lets the goal in.
"""

from __future__ import annotations

from kina.dims.bounds import Bounds, Used
from kina.dims.dim import Atom, Dim, FloorDiv, constant, of_monomial, parts, variable
from kina.dims.division import common_monomial, divide
from kina.dims.equations import product_rule, quotient_variable, solve_pair, solve_variable, without_content
from kina.dims.linear import Budget
from kina.dims.proposition import And, Comparison, Or, Proposition
from kina.dims.rewrite import Rewriter

_ZERO = constant(0)
_EQUATIONS = 100
_APART_WORK = 2_000


class Context:
    """Facts, closed. Immutable from outside: `assume` gives a new one."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.rewriter = Rewriter(self.bounds)
        self.alternatives: list[tuple[Or, Used]] = []
        """Facts of which one case holds."""
        self._pending: list[tuple[Dim, Used]] = []

    def assume(self, fact: Proposition, used: Used, instead_of: Or | None = None) -> Context:
        """The context in which `fact` holds too, defined and true; `instead_of` names the alternative it decides."""
        child = Context()
        child.bounds = self.bounds.copy()
        child.rewriter = self.rewriter.copy(child.bounds)
        child.alternatives = [a for a in self.alternatives if a[0] is not instead_of]
        child._add(fact, used)
        child._reconsider_products()
        child._close()
        child._reconsider_bounds()
        child._divide_bounds()
        return child

    def reduce(self, expression: Dim) -> tuple[Dim, Used]:
        """The expression's normal form under the facts; see `Rewriter.reduce`."""
        return self.rewriter.reduce(expression)

    def value_of(self, name: str) -> Dim:
        """What a variable equals in terms of the unknowns that are left."""
        rule = self.rewriter.rules.get(name)
        return variable(name) if rule is None else rule[0]

    # ------------------------------------------------------------ entering facts

    def _add(self, fact: Proposition, used: Used) -> None:
        match fact:
            case And(items):
                for item in items:
                    self._add(item, used)
            case Or((only,)):
                self._add(only, used)
            case Or(()):
                self.bounds.contradictory = used
            case Or():
                self.alternatives.append((fact, used))
            case Comparison() if self._add_defined(fact, used):
                self._add_comparison(fact, used)

    def _add_defined(self, fact: Comparison, used: Used) -> bool:
        """Enters that what is divided by is positive. False where the facts contradict each other."""
        for denominator in (*fact.left.denominators, *fact.right.denominators):
            if self.bounds.contradictory is None:
                self._add_bound(denominator - 1, used)
        return self.bounds.contradictory is None

    def _add_comparison(self, fact: Comparison, used: Used) -> None:
        if fact.relation == "=":
            self._pending.append((fact.left - fact.right, used))
            self._close()
        elif fact.relation == "!=":
            margin, by = self.reduce(fact.left - fact.right)
            for apart in (margin, -margin):
                known = self.bounds.refutes(-apart - 1, 0, Budget(_APART_WORK))
                if known is not None:
                    self._add_bound(apart - 1, used | by | known)
                    return
            less, more = Comparison("<", fact.left, fact.right), Comparison(">", fact.left, fact.right)
            self.alternatives.append((Or((less, more)), used))
        else:
            self._add_bound(difference(fact), used)

    def _add_bound(self, at_least_zero: Dim, used: Used) -> None:
        reduced, by = self.reduce(at_least_zero)
        zero = self.bounds.add(reduced, used | by)
        if zero is not None:
            self._pending.append(zero)

    # ------------------------------------------------------------ closing

    def _close(self) -> None:
        """Turns equations into rules until none is left; each rule is applied to everything known before."""
        for _ in range(_EQUATIONS):
            if not self._pending or self.bounds.contradictory is not None:
                break
            equation, used = self._pending.pop()
            reduced, by = self.reduce(equation)
            self._orient(self._with_named_quotients(reduced, used | by), used | by)
        self._pending.clear()
        self.rewriter.forget()

    def _reconsider_bounds(self) -> None:
        """Reduces bounds with divisions or minima again: a new bound may decide them.

        One at a time and without itself among the others, so that what holds of all together stays the same.
        """
        for bound in list(self.bounds.known):
            if bound in self.bounds.known and any(map(parts, bound.atoms())) and self.bounds.contradictory is None:
                used = self.bounds.known.pop(bound)
                self.rewriter.forget()
                self._add_bound(bound, used)
        self._close()

    def _divide_bounds(self) -> None:
        """Enters what nonlinear bounds say of their factors; see `Bounds.divided`."""
        for bound, used in list(self.bounds.known.items()):
            for smaller, by in self.bounds.divided(bound):
                if self.bounds.contradictory is None and smaller not in self.bounds.known:
                    self._add_bound(smaller, used | by)
        self._close()

    def _reconsider_products(self) -> None:
        """Takes the rules for products as equations again: a new bound may allow to cancel a factor."""
        rules, self.rewriter.products = self.rewriter.products, {}
        self.rewriter.forget()
        self._pending += [(of_monomial(monomial) - value, used) for monomial, (value, used) in rules.items()]

    def _with_named_quotients(self, equation: Dim, used: Used) -> Dim:
        """The equation with a variable of ours for each division in it."""

        def name(atom: Atom) -> Dim:
            if not isinstance(atom, FloorDiv):
                return of_monomial((atom,))
            quotient = quotient_variable(atom.first, atom.second)
            if atom not in self.rewriter.quotients:
                if self.bounds.natural_atom(atom):
                    self.bounds.signs[str(quotient)] = self.bounds.sign(of_monomial((atom,)))
                else:
                    self.bounds.integers |= quotient.variables
                self.rewriter.quotients[atom] = str(quotient)
                self.rewriter.forget()
                remainder = atom.first - atom.second * quotient
                self._add_bound(remainder, used)
                self._add_bound(atom.second - 1 - remainder, used)
            return self.value_of(str(quotient))

        return equation.rebuild(name)

    def _orient(self, equation: Dim, used: Used) -> None:
        """Makes a rule of `equation = 0`, or keeps it as two bounds."""
        equation, by = self._cancelled(equation)
        used |= by
        if equation is _ZERO:
            return
        primitive = without_content(equation)
        if primitive is None:
            self.bounds.contradictory = used
        elif (one := solve_variable(primitive, self.bounds.is_natural)) is not None:
            self._eliminate(*one, used)
        elif (pair := solve_pair(primitive)) is not None:
            parameter, x, x_value, y, y_value = pair
            if x in self.bounds.integers:
                self.bounds.integers |= parameter.variables
            self.bounds.signs[str(parameter)] = self.bounds.signs.get(x, 0)
            self._eliminate(x, x_value, used)
            self._eliminate(y, y_value, used)
        elif (rule := product_rule(primitive)) is not None:
            self.rewriter.products[rule[0]] = rule[1], used
            self._restate()
        else:
            self.bounds.add(primitive, used)
            self.bounds.add(-primitive, used)

    def _cancelled(self, equation: Dim) -> tuple[Dim, Used]:
        """Without the factors that all terms share and that are known to be positive."""
        used = 0
        for atom in common_monomial(equation):
            factor = of_monomial((atom,))
            positive = self.bounds.entails(factor - 1)
            if positive is not None:
                equation = divide(equation, factor)[0]
                used |= positive
        return equation, used

    def _eliminate(self, name: str, value: Dim, used: Used) -> None:
        natural = name not in self.bounds.integers
        self.rewriter.rules[name] = value, used
        self._restate()
        if natural and not self.bounds.is_natural(value):
            self._add_bound(value, used)

    def _restate(self) -> None:
        """Applies a new rule to everything known."""
        rewriter = self.rewriter
        rewriter.forget()
        for name, (value, used) in list(rewriter.rules.items()):
            reduced, by = rewriter.reduce(value)
            rewriter.rules[name] = reduced, used | by
        rewriter.forget()
        bounds, self.bounds.known = self.bounds.known, {}
        for bound, used in bounds.items():
            self._add_bound(bound, used)
        rewriter.forget()
        self._restate_products()
        self._restate_quotients()

    def _restate_products(self) -> None:
        for monomial, (value, used) in list(self.rewriter.products.items()):
            pattern = of_monomial(monomial)
            restated, _ = self.rewriter.reduce(pattern, skip=monomial)
            if restated is pattern:
                value, by = self.rewriter.reduce(value, skip=monomial)
                self.rewriter.products[monomial] = value, used | by
            else:
                del self.rewriter.products[monomial]
                self._pending.append((pattern - value, used))

    def _restate_quotients(self) -> None:
        quotients, self.rewriter.quotients = self.rewriter.quotients, {}
        self.rewriter.forget()
        for atom, quotient in quotients.items():
            reduced, by = self.reduce(of_monomial((atom,)))
            match reduced.terms:
                case ((((FloorDiv() as renamed),), 1),):
                    self.rewriter.quotients[renamed] = quotient
                    self.rewriter.forget()
                case _ if reduced is not self.value_of(quotient):
                    self._pending.append((variable(quotient) - reduced, by))


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
