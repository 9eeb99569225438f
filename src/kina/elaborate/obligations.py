"""Obligations in code: proved, or an error that says which sizes break them or what would settle them."""

from __future__ import annotations

from collections.abc import Mapping

from kina.diagnostics import shape_errors as errors
from kina.diagnostics.diagnostic import Edit, Help, Label
from kina.dims.dim import Dim, FloorDiv, Variable, constant, modulo, of_monomial
from kina.dims.proposition import And, Comparison, Proposition, equal, negate, variables
from kina.dims.prover import Status, Verdict, settle
from kina.elaborate.context import Context, Reported
from kina.source import Span


def oblige(context: Context, goal: Proposition, span: Span, why: str, help: tuple[Help, ...] = ()) -> None:
    """The goal has to hold for all sizes: an error unless it is proved. `help` is what else may mend it."""
    verdict = context.settle(goal, span, why)
    if verdict.status.proved:
        return
    if goal in context.refused:
        raise Reported
    context.refused.add(goal)
    facts = context.facts.hypotheses
    help_ = (*help, *propose_requires(context, goal))
    if verdict.status is Status.REFUTED:
        raise context.report(errors.obligation_refuted(span, goal, why, verdict.counterexample or {}, facts, help_))
    raise context.report(errors.obligation_undecided(span, goal, why, facts, help_))


def propose_requires(context: Context, goal: Proposition) -> tuple[Help, ...]:
    """A `requires` that can be pasted, where the dimensions can state the goal and some sizes satisfy it."""
    declaration = context.declaration
    names = {b.name for b in declaration.binders}
    if not names or not variables(goal) <= names or settle(negate(goal), context.facts).status.proved:
        return ()
    if _means_nothing_else(goal):
        return ()
    last = declaration.binders[-1].span
    end = last.source.text.find("]", last.end) + 1
    if end == 0:
        return ()
    edit = Edit(Span(last.source, end, end), f" requires ({_simpler(context, goal)})")
    return (Help(f"if callers always satisfy it, say so in {declaration.name}'s signature", (edit,)),)


def _means_nothing_else(goal: Proposition) -> bool:
    """Whether an equation holds only where a size is 0, as `3 * H = 4 * H` does: nobody would require it."""
    if not isinstance(goal, Comparison) or goal.relation != "=" or not (goal.left.terms and goal.right.terms):
        return False
    apart = goal.left - goal.right
    return len(apart.terms) == 1 and all(isinstance(atom, Variable) for atom in apart.atoms())


def sizes_that_differ(verdict: Verdict, left: Dim, right: Dim) -> Mapping[str, int] | None:
    """Sizes for which an equation that was not proved fails; none of them where it fails for all: `S + 1 = S`."""
    return {} if (left - right).value is not None else verdict.counterexample


def where_declared(context: Context, left: Dim, right: Dim) -> tuple[Label, ...]:
    """Of two sizes that are plain names of the function's own: where it declares them as two."""
    binders = [b for b in context.declaration.binders if b.name in (str(left), str(right))]
    if len(binders) != 2:
        return ()
    first, second = binders
    return (Label(first.span.to(second.span), f"{first.name} and {second.name} are declared as two sizes"),)


def worth_requiring(goal: Proposition) -> bool:
    """Whether a `requires` is likely what is missing. Of two sizes of plain names that differ, one is likely wrong,
    unless the one is a name and the other says what it is made of: `D = H * K`."""
    if not isinstance(goal, Comparison) or goal.relation != "=":
        return True
    sides = goal.left, goal.right
    if not all(isinstance(atom, Variable) for side in sides for atom in side.atoms()):
        return True
    names = [side for side in sides if len(side.terms) == 1 and str(side) in side.variables]
    return len(names) == 1 and goal.left.variables.isdisjoint(goal.right.variables) and all(s.variables for s in sides)


def _simpler(context: Context, goal: Proposition) -> Proposition:
    """Divisibilities that settle the goal, where some do: `D mod 2 = 0` reads better than what follows from it.
    Of inequalities, the form without a minus: `N >= 2` rather than `0 <= N - 2`."""
    if not isinstance(goal, Comparison):
        return goal
    if goal.relation in ("<", "<=") and goal.left.value is not None:
        return _without_minus(goal)
    divisions = [a for a in (*goal.left.atoms(), *goal.right.atoms()) if isinstance(a, FloorDiv)]
    exact = [equal(modulo(a.first, a.second), constant(0)) for a in dict.fromkeys(divisions)]
    for claims in [*((claim,) for claim in exact), tuple(exact)]:
        if claims and settle(goal, context.facts.assume(*claims)).status.proved:
            return claims[0] if len(claims) == 1 else And(claims)
    return goal


def _without_minus(goal: Comparison) -> Comparison:
    """`left <= right` with each term on the side where it is positive, what grows on the left."""
    terms = (goal.right - goal.left).terms
    grows, shrinks = constant(0), constant(0)
    for monomial, coefficient in terms:
        term = of_monomial(monomial) * abs(coefficient)
        grows, shrinks = (grows + term, shrinks) if coefficient > 0 else (grows, shrinks + term)
    return Comparison(">=" if goal.relation == "<=" else ">", grows, shrinks)


def assert_(context: Context, goal: Proposition, span: Span) -> None:
    """`let assert`: proved (then redundant), refuted (an error), or checked when the program runs."""
    verdict = context.settle(goal, span, "asserted")
    measured = not context.measured.isdisjoint(variables(goal))
    if verdict.status.proved:
        context.module.report(errors.assertion_redundant(span, goal, verdict.status.value))
    elif verdict.status is Status.REFUTED and (not measured or settle(negate(goal), context.facts).status.proved):
        raise context.report(errors.assertion_false(span, goal, verdict.counterexample or {}, context.facts.hypotheses))
    else:
        context.record(goal, span, "asserted", Verdict(Status.UNDECIDED))
        context.module.report(errors.assertion_at_run_time(span, goal))
        context.check_at_run_time(goal, span)
    context.assume(goal)
