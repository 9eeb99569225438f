"""Settles obligations about dimensions: the road of normal form, facts, SMT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache

from kina.dims import smt
from kina.dims.bounds import Used
from kina.dims.cases import distinction, finer_distinction
from kina.dims.context import Context, difference
from kina.dims.dim import constant, parts
from kina.dims.linear import Budget
from kina.dims.products import PAIRS
from kina.dims.proposition import NEGATION, And, Comparison, Or, Proposition, negate
from kina.dims.search import breaks, complete, counterexample, satisfy, values_of

_SPLITS = 4
_WORK = 20_000
_FINER_WORK = 60_000
_CASE_WORK = 500
_FINER = (range(2), range(PAIRS + 1))
"""Efforts in the cases of finer distinctions: many simple cases first, then few hard ones."""
_REMEMBERED = 4096
_FALSE = Comparison("<=", constant(1), constant(0))


class Status(StrEnum):
    NORMAL_FORM = "normal-form"
    FACTS = "facts"
    SMT = "smt"
    REFUTED = "refuted"
    UNDECIDED = "undecided"

    @property
    def proved(self) -> bool:
        return self in (Status.NORMAL_FORM, Status.FACTS, Status.SMT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a goal was settled. `counterexample` gives sizes when refuted; `used` the facts that a proof took."""

    status: Status
    counterexample: Mapping[str, int] | None = None
    used: tuple[Proposition, ...] = ()


@dataclass(frozen=True)
class Facts:
    """Hypotheses in scope. Every variable is a natural number without being told."""

    hypotheses: tuple[Proposition, ...] = ()
    _before: Facts | None = field(default=None, repr=False, compare=False)

    def assume(self, *facts: Proposition) -> Facts:
        return _assumed(self, facts) if facts else self

    @cached_property
    def context(self) -> Context:
        """The facts, closed: worked out when it is first needed, from what was known before the last ones came."""
        known = Context() if self._before is None else self._before.context
        start = 0 if self._before is None else len(self._before.hypotheses)
        for position in range(start, len(self.hypotheses)):
            known = known.assume(self.hypotheses[position], 1 << position)
        return known

    @cached_property
    def witness(self) -> dict[str, int] | None:
        """Values of the unknowns that the context has left at which all facts hold, if some were found."""
        return satisfy(self.hypotheses, self.context)

    @cached_property
    def settled(self) -> dict[Proposition, Verdict]:
        """Goals settled before; they live as long as the facts."""
        return {}


@lru_cache(maxsize=256)
def _assumed(before: Facts, facts: tuple[Proposition, ...]) -> Facts:
    """The same object for the same facts, so that all functions which require them share what was settled."""
    return Facts(before.hypotheses + facts, before)


NO_FACTS = Facts()


def settle(goal: Proposition, facts: Facts) -> Verdict:
    """Proves or refutes `goal` for all sizes that satisfy `facts`.

    Proved means: wherever all facts are defined and true, the goal is defined and true.
    """
    if _holds_by_normal_form(goal):
        return Verdict(Status.NORMAL_FORM)
    found = facts.settled.get(goal)
    if found is None:
        if len(facts.settled) >= _REMEMBERED:
            facts.settled.clear()
        found = facts.settled[goal] = _settle(goal, facts)
    return found


def follows(goal: Proposition, facts: Facts) -> bool:
    """Whether `goal` is proved by facts and arithmetic alone: for compilers, to whom "unknown" is as good as "no".

    Unlike `settle`, it looks for no counterexample and asks no solver.
    """
    return _holds_by_normal_form(goal) or _Proof(goal, facts).of(goal, facts.context)


def _settle(goal: Proposition, facts: Facts) -> Verdict:
    context = facts.context
    proof = _Proof(goal, facts)
    if proof.of(goal, context):
        return Verdict(Status.FACTS, used=proof.hypotheses())
    sizes = counterexample(goal, facts.hypotheses, context, facts.witness)
    if sizes is not None:
        return Verdict(Status.REFUTED, sizes)
    for efforts in _FINER:
        proof.may_split_finer(efforts)
        if proof.of(goal, context):
            return Verdict(Status.FACTS, used=proof.hypotheses())
    proof.may_ask_solver()
    if proof.of(goal, context):
        return Verdict(Status.SMT, used=proof.hypotheses())
    if proof.counterexample is not None:
        return Verdict(Status.REFUTED, proof.counterexample)
    return Verdict(Status.UNDECIDED)


def _holds_by_normal_form(goal: Proposition) -> bool:
    """Whether the goal holds by the form of its sides alone, with nothing in it that could be undefined."""
    match goal:
        case And(items):
            return all(map(_holds_by_normal_form, items))
        case Or():
            return False
        case Comparison(relation, left, right):
            if left.denominators or right.denominators:
                return False
            if relation == "=":
                return left is right
            if relation == "!=":
                return False
            margin = difference(goal)
            return all(c > 0 and all(not parts(a) for a in m) for m, c in margin.terms)


class _Proof:
    """An attempt at a goal, first by facts and then with the solver, and what it rests on.

    The solver's models are tried as counterexamples to the whole goal.
    """

    def __init__(self, goal: Proposition, facts: Facts) -> None:
        self.goal = goal
        self.facts = facts
        self.used: Used = 0
        self.budget = Budget(_WORK)
        self.efforts = range(PAIRS)
        self.finer = False
        self.solver = False
        self.beyond_facts: set[Comparison] = set()
        self.counterexample: dict[str, int] | None = None

    def may_split_finer(self, efforts: range) -> None:
        """Starts over, with case distinctions on quotients and remainders, and these efforts in each case."""
        self.used = 0
        self.budget = Budget(_FINER_WORK)
        self.beyond_facts.clear()
        self.efforts = efforts
        self.finer = True

    def may_ask_solver(self) -> None:
        """Starts over; what the facts could not show goes to the solver this time."""
        self.used = 0
        self.budget = Budget(_WORK)
        self.solver = True

    def hypotheses(self) -> tuple[Proposition, ...]:
        return tuple(h for i, h in enumerate(self.facts.hypotheses) if self.used >> i & 1)

    def of(self, goal: Proposition, context: Context) -> bool:
        """Whether the goal is defined and true throughout the context."""
        match goal:
            case And(()):
                return True
            case And((only,)) | Or((only,)):
                return self.of(only, context)
            case And(items):
                return self.of(items[0], context) and self.of(And(items[1:]), context.assume(items[0], self.used))
            case Or(()):
                return self._impossible(context)
            case Or(items):
                if not self._defined(items[0], context):
                    return False
                return self.of(Or(items[1:]), context.assume(negate(items[0]), 0))
            case Comparison():
                return self._defined(goal, context) and self._holds(goal, context)

    def _defined(self, p: Proposition, context: Context) -> bool:
        """Whether the proposition is defined throughout the context; what decides it early excuses the rest."""
        match p:
            case Comparison(_, left, right):
                positive = (Comparison(">=", d, constant(1)) for d in (*left.denominators, *right.denominators))
                return all(self._holds(claim, context) for claim in positive)
            case And(()) | Or(()):
                return True
            case And(items) | Or(items):
                first, rest = items[0], type(p)(items[1:])
                reads_on = first if isinstance(p, And) else negate(first)
                if not self._defined(first, context):
                    return False
                return not rest.items or self._defined(rest, context.assume(reads_on, 0))

    def _impossible(self, context: Context) -> bool:
        return self._holds(_FALSE, context)

    def _holds(self, goal: Comparison, context: Context) -> bool:
        """Whether a comparison that is defined holds."""
        if goal not in self.beyond_facts:
            before = self.used
            if self._holds_by_facts(goal, context, _SPLITS) or (self.finer and self._contradicted(goal, context)):
                return True
            self.used = before
            self.beyond_facts.add(goal)
        return self.solver and self._holds_by_solver(goal, context)

    def _holds_by_facts(self, goal: Comparison, context: Context, splits: int) -> bool:
        """By rewriting and linear arithmetic, directly or in all cases of a distinction."""
        for effort in self.efforts:
            used = _directly(goal, context, effort, self.budget)
            if used is not None:
                self.used |= used
                return True
        if not splits or self.budget.left <= 0:
            return False
        split = distinction(goal, context)
        if split is None and self.finer:
            split = finer_distinction(goal, context, self.budget)
        if split is None:
            return False
        self.budget.left -= _CASE_WORK * len(split[0].items)
        alternative, used = split
        children = (context.assume(case, used, alternative) for case in alternative.items)
        return all(self._holds_by_facts(goal, child, splits - 1) for child in children)

    def _contradicted(self, goal: Comparison, context: Context) -> bool:
        """Whether the goal's negation, as one more fact that rewriting and division can use, is impossible."""
        return goal.relation != "=" and self._holds_by_facts(_FALSE, context.assume(negate(goal), 0), _SPLITS)

    def _holds_by_solver(self, goal: Comparison, context: Context) -> bool:
        answer = smt.ask(context, Comparison(NEGATION[goal.relation], goal.left, goal.right))
        if answer.used is not None:
            self.used |= answer.used
            return True
        if answer.model is not None and self.counterexample is None:
            values = values_of((self.goal, *self.facts.hypotheses), context)
            unknowns = {unknown: 1 for value in values.values() for unknown in value.variables}
            sizes = complete(unknowns | answer.model, values)
            if sizes is not None and breaks(self.goal, self.facts.hypotheses, sizes):
                self.counterexample = sizes
        return False


def _directly(goal: Comparison, context: Context, effort: int, budget: Budget) -> Used | None:
    """What a proof by rewriting and linear arithmetic used, or None."""
    if goal.relation not in ("=", "!="):
        margin, used = context.reduce(difference(goal))
        if context.bounds.is_natural(margin):
            return used | context.bounds.sign(margin)
        proof = context.bounds.refutes(-margin - 1, effort, budget)
        return None if proof is None else used | proof
    margin, used = context.reduce(goal.left - goal.right)
    if goal.relation == "!=":
        for possible in (margin, -margin):
            proof = context.bounds.refutes(possible, effort, budget)
            if proof is not None:
                return used | proof
        return None
    if margin.value == 0:
        return used
    for possible in (margin - 1, -margin - 1):
        proof = context.bounds.refutes(possible, effort, budget)
        if proof is None:
            return None
        used |= proof
    return used
