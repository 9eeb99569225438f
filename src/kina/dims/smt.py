"""The last resort: Z3 on what the facts left over, with every division spelled out.

`a div b` becomes a fresh `q` with `b*q <= a < b*q + b` (Euclid). That encoding is contradictory where `b` is 0, so the
prover shows `b >= 1` before an expression comes here. The solver works under a resource limit, never a clock, in a
context of its own, so that the answer depends on the question alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kina.dims.context import Context, Used, difference
from kina.dims.dim import Atom, Dim, FloorDiv, Minimum, Variable, of_monomial
from kina.dims.proposition import And, Comparison, Or, Proposition

RESOURCES = 400_000
SEED = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """`used` when the negated goal is impossible, else a model of the unknowns, else neither."""

    used: Used | None = None
    model: dict[str, int] | None = None


def ask(context: Context, negated: Proposition) -> Answer:
    """Whether `negated` is possible in `context`. Its denominators must be positive there."""
    import z3  # 45 ms, so only where it is needed

    question = _Question(z3, context)
    question.state(negated, 0)
    for bound, used in context.bounds.items():
        question.claim(question.number(bound) >= 0, used)
    for monomial, (value, used) in context.products.items():
        question.claim(question.number(of_monomial(monomial) - value) == 0, used)
    for alternative, used in context.alternatives:
        if question.can_state(alternative):
            question.state(alternative, used)
    return question.answer()


class _Question:
    def __init__(self, z3: Any, context: Context) -> None:
        self.z3 = z3
        self.context = context
        self.home = z3.Context()
        self.solver = z3.SolverFor("QF_NIA", ctx=self.home)
        self.solver.set("rlimit", RESOURCES)
        self.solver.set("random_seed", SEED)
        self.unknowns: dict[Atom, Any] = {}
        self.tracked: dict[str, Used] = {}

    def claim(self, formula: Any, used: Used) -> None:
        name = f"fact{len(self.tracked)}"
        self.tracked[name] = used
        self.solver.assert_and_track(formula, self.z3.Bool(name, self.home))

    def state(self, p: Proposition, used: Used) -> None:
        self.claim(self.formula(p), used)

    def can_state(self, p: Proposition) -> bool:
        """Whether no division in `p` could be undefined: an alternative that is not taken need not be defined."""
        match p:
            case Comparison(_, left, right):
                return not left.denominators and not right.denominators
            case And(items) | Or(items):
                return all(map(self.can_state, items))

    def formula(self, p: Proposition) -> Any:
        match p:
            case And(items):
                return self.z3.And([self.formula(q) for q in items] or [self.z3.BoolVal(True, self.home)])
            case Or(items):
                return self.z3.Or([self.formula(q) for q in items] or [self.z3.BoolVal(False, self.home)])
            case Comparison("=" | "!=" as relation, left, right):
                number = self.number(self.context.reduce(left - right)[0])
                return number == 0 if relation == "=" else number != 0
            case Comparison():
                return self.number(self.context.reduce(difference(p))[0]) >= 0

    def number(self, expression: Dim) -> Any:
        total = self.z3.IntVal(0, self.home)
        for monomial, coefficient in expression.terms:
            product = self.z3.IntVal(coefficient, self.home)
            for atom in monomial:
                product = product * self.unknown(atom)
            total = total + product
        return total

    def unknown(self, atom: Atom) -> Any:
        found = self.unknowns.get(atom)
        if found is None:
            found = self.unknowns[atom] = self.z3.Int(f"n{len(self.unknowns)}", self.home)
            if self.context.natural_atom(atom):
                self.solver.add(found >= 0)
            self.define(atom, found)
        return found

    def define(self, atom: Atom, value: Any) -> None:
        match atom:
            case FloorDiv(numerator, denominator):
                a, b = self.number(numerator), self.number(denominator)
                self.solver.add(b * value <= a, a < b * value + b)
            case Minimum(left, right):
                a, b = self.number(left), self.number(right)
                self.solver.add(value <= a, value <= b, self.z3.Or(value == a, value == b))

    def answer(self) -> Answer:
        result = self.solver.check()
        if result == self.z3.unsat:
            used = 0
            for name in self.solver.unsat_core():
                used |= self.tracked[str(name)]
            return Answer(used=used)
        if result == self.z3.sat:
            model = self.solver.model()
            named = {a.name: v for a, v in self.unknowns.items() if isinstance(a, Variable)}
            return Answer(model={n: model.eval(v, model_completion=True).as_long() for n, v in named.items()})
        return Answer()
