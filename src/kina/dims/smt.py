"""The last resort: Z3 on what the facts left over, with every division spelled out.

`a div b` becomes a fresh `q` with `b*q <= a < b*q + b` (Euclid). That encoding is contradictory where `b` is 0, so the
prover shows `b >= 1` before an expression comes here. The solver works under a resource limit, never a clock, in a
context of its own, so that the answer depends on the question alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kina.dims.bounds import Used
from kina.dims.context import Context
from kina.dims.dim import Atom, CeilDiv, Dim, FloorDiv, Maximum, Minimum, Modulo, Variable, of_monomial
from kina.dims.proposition import OPERATORS, And, Comparison, Or, Proposition

RESOURCES = 150_000
SEED = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """`used` when the negated goal is impossible, else a model of the unknowns, else neither."""

    used: Used | None = None
    model: dict[str, int] | None = None


def ask(context: Context, negated: Comparison) -> Answer:
    """Whether `negated` is possible in `context`. Its denominators must be positive there."""
    import z3  # 45 ms, so only where it is needed

    question = _Question(z3, context)
    margin, used_by_rules = context.reduce(negated.left - negated.right)
    question.claim(OPERATORS[negated.relation](question.defined(margin), 0), used_by_rules)
    for bound, used in context.bounds.known.items():
        question.claim(question.defined(bound) >= 0, used)
    for monomial, (value, used) in context.rewriter.products.items():
        question.claim(question.defined(of_monomial(monomial) - value) == 0, used)
    for alternative, used in context.alternatives:
        question.claim(question.formula(alternative), used)
    return question.answer()


class _Question:
    """One question to the solver: an integer for each atom, with what defines it."""

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

    def formula(self, p: Proposition) -> Any:
        """`p` is defined and true. What is an alternative only may be undefined, so that is not rewritten by facts."""
        match p:
            case And(items):
                return self.z3.And([self.formula(q) for q in items] or [self.z3.BoolVal(True, self.home)])
            case Or(items):
                return self.z3.Or([self.formula(q) for q in items] or [self.z3.BoolVal(False, self.home)])
            case Comparison(relation, left, right):
                margin = self.number(self.in_unknowns(left - right))
                positive = [self.number(self.in_unknowns(d)) >= 1 for d in (*left.denominators, *right.denominators)]
                return self.z3.And([*positive, OPERATORS[relation](margin, 0)])

    def in_unknowns(self, expression: Dim) -> Dim:
        """The expression with the variables replaced that the context has eliminated, and nothing else changed."""
        return expression.substitute({name: self.context.value_of(name) for name in expression.variables})

    def defined(self, expression: Dim) -> Any:
        """The number that an expression is whose denominators are known to be positive."""
        for denominator in expression.denominators:
            self.solver.add(self.number(denominator) >= 1)
        return self.number(expression)

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
            if isinstance(atom, Variable):
                if self.context.bounds.natural_atom(atom):
                    self.solver.add(found >= 0)
            else:
                self.define(atom, found, self.number(atom.first), self.number(atom.second))
        return found

    def define(self, atom: Atom, value: Any, a: Any, b: Any) -> None:
        """States what the value of an atom is; of a division only where its denominator is positive."""
        match atom:
            case FloorDiv():
                self.solver.add(self.z3.Implies(b >= 1, self.z3.And(b * value <= a, a < b * value + b)))
            case CeilDiv():
                self.solver.add(self.z3.Implies(b >= 1, self.z3.And(b * value >= a, a > b * value - b)))
            case Modulo():
                quotient = self.z3.Int(f"quotient of {value}", self.home)
                whole = self.z3.And(a == b * quotient + value, value >= 0, value < b)
                self.solver.add(self.z3.Implies(b >= 1, whole))
            case Minimum():
                self.solver.add(value <= a, value <= b, self.z3.Or(value == a, value == b))
            case Maximum():
                self.solver.add(value >= a, value >= b, self.z3.Or(value == a, value == b))

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
