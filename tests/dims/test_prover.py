"""The prover on obligations of real models, and on what it must not fall for."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice, product

import pytest
from catalogue import PROVED, REFUTED
from notation import facts, prop

from kina.dims import smt
from kina.dims.proposition import variables
from kina.dims.prover import Facts, Status, settle
from kina.dims.search import breaks, is_true


def cases(rows):
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


def satisfying(hypotheses, names):
    """Small sizes at which all hypotheses hold."""
    largest = {0: 1, 1: 300, 2: 30, 3: 14, 4: 8, 5: 5, 6: 4}.get(len(names), 3)
    for numbers in product(range(largest), repeat=len(names)):
        sizes = dict(zip(names, numbers, strict=True))
        if all(is_true(h, sizes) for h in hypotheses):
            yield sizes


@pytest.mark.parametrize(("requires", "claim"), cases(PROVED))
def test_what_holds_for_every_size_is_proved(requires, claim):
    given = facts(requires)
    assert settle(prop(claim), given).status.proved
    names = sorted(variables(prop(claim)).union(*map(variables, given.hypotheses)))
    for sizes in islice(satisfying(given.hypotheses, names), 300):
        assert is_true(prop(claim), sizes)


@pytest.mark.parametrize(("requires", "claim"), cases(REFUTED))
def test_what_fails_for_some_size_is_refuted_with_such_sizes(requires, claim):
    verdict = settle(prop(claim), facts(requires))
    assert verdict.status is Status.REFUTED
    assert breaks(prop(claim), facts(requires).hypotheses, verdict.counterexample)


def test_the_solver_is_the_last_resort():
    asked = [name for name, requires, claim in PROVED if settle(prop(claim), facts(requires)).status is Status.SMT]
    assert len(asked) <= 5, asked


def test_the_solver_is_not_even_loaded_until_it_is_asked():
    code = "import sys, kina.dims.prover, kina.dims.regroup; assert 'z3' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_does_not_depend_on_the_solvers_seed(seed, monkeypatch):
    monkeypatch.setattr(smt, "SEED", seed)
    for requires, claim in [
        ("A * A == B * B", "A == B"),
        ("A * B == 12 and A > B", "A >= 4"),
        ("", "(a * c + b * d) * (a * c + b * d) <= (a * a + b * b) * (c * c + d * d)"),
    ]:
        assert settle(prop(claim), facts(requires)).status is Status.SMT
    assert settle(prop("A * A != 2 * B + 4000"), Facts()).status is Status.REFUTED


def test_equal_normal_forms_are_settled_before_anything_is_worked_out_from_the_facts():
    given = facts("Q % K == 0")
    assert settle(prop("B * H * S * D == (B * H) * (D * S)"), given).status is Status.NORMAL_FORM
    assert "context" not in vars(given)


TRAPS = [
    ("a division by 0 that no fact forbids", "", "A // B == A // B"),
    ("a product that hides it", "", "0 * A + B // C >= 0"),
    ("a denominator that is a difference", "", "A % (B - C) < B - C"),
    ("a denominator that is a division", "A > 0", "B % (C // A) <= B"),
    ("what is false, under a divisor of 0", "", "A // 0 == 1"),
    ("a divisor that only a disjunction bounds", "A > 0 or B > 0", "C % A < A"),
    ("a claim guarded on the wrong side", "", "A // B <= A and B > 0"),
]


@pytest.mark.parametrize(("requires", "claim"), cases(TRAPS))
def test_where_a_divisor_may_be_zero_nothing_is_proved(requires, claim):
    verdict = settle(prop(claim), facts(requires))
    assert verdict.status is Status.REFUTED
    assert breaks(prop(claim), facts(requires).hypotheses, verdict.counterexample)


GUARDED = [
    ("a guard before it", "", "B == 0 or A // B <= A"),
    ("a guard inside", "", "(B > 0 and A % B < B) or B == 0"),
    ("the fact that mentions the division", "A // B == 3", "B >= 1"),
    ("the fact that mentions the remainder", "A % B == 0", "B * (A // B) == A"),
    ("a divisor bounded by another size", "A < B", "C % B < B"),
    ("a divisor that is positive in both cases", "B == 2 or B == 3", "A % B < 3"),
]


@pytest.mark.parametrize(("requires", "claim"), cases(GUARDED))
def test_a_divisor_known_to_be_positive_is_used(requires, claim):
    assert settle(prop(claim), facts(requires)).status.proved


def test_a_disjunct_that_divides_by_zero_does_not_count():
    assert settle(prop("B == 4"), facts("B == 4 or A % 0 == 0")).status.proved


@pytest.mark.parametrize("claim", ["A == B + 1", "A // 0 == 3", "A < A"])
def test_contradictory_facts_prove_anything(claim):
    assert settle(prop(claim), facts("A % B == 0", "A == B * 2 + 1", "B > 1")).status.proved


def test_a_proof_names_the_facts_that_it_used_and_no_others():
    given = facts("S > 3", "Q % K == 0", "W <= S", "D % H == 0", "B >= 1")
    verdict = settle(prop("K * (Q // K) == Q"), given)
    assert verdict.used == (prop("Q % K == 0"),)


@pytest.mark.parametrize(("requires", "claim"), cases(PROVED))
def test_the_facts_that_a_proof_used_are_enough(requires, claim):
    parts = requires.split(" and ") if requires and " or " not in requires else [requires]
    given = facts(*parts, "unrelated >= 2")
    verdict = settle(prop(claim), given)
    assert verdict.status.proved
    assert prop("unrelated >= 2") not in verdict.used
    assert settle(prop(claim), Facts(verdict.used)).status.proved


def test_facts_assumed_later_do_not_change_those_before():
    before = facts("A <= B")
    after = before.assume(prop("B <= A"))
    assert settle(prop("A == B"), after).status.proved
    assert settle(prop("A == B"), before).status is Status.REFUTED


def test_the_order_of_facts_does_not_matter():
    given = ["H * A == H * B", "H > 0", "A % 2 == 0"]
    for order in (given, given[::-1]):
        assert settle(prop("B % 2 == 0"), facts(*order)).status.proved


def test_a_counterexample_gives_every_size_that_occurs_and_prefers_small_positive_ones():
    verdict = settle(prop("S == D"), facts("B > 0"))
    assert verdict.counterexample == {"B": 1, "D": 1, "S": 2}


def test_the_same_question_has_the_same_answer():
    for _, requires, claim in REFUTED:
        answers = {str(settle(prop(claim), facts(requires))) for _ in range(2)}
        assert len(answers) == 1


def test_what_nobody_can_decide_is_left_open():
    fermat = prop("x * x * x + y * y * y != z * z * z")
    assert settle(fermat, facts("x > 0", "y > 0", "z > 0")).status is Status.UNDECIDED


def test_rewriting_by_products_does_not_let_expressions_grow():
    products = "max(A * A, B % 5) == (A % B) % (4 * B) and B % B == 0"
    given = facts(products, "A % A == 0", "B % 2 == 0 or B % B == 0", "A > 0", "B > 0")
    assert settle(prop("(A % A) % (1 % B) < 1 % B"), given).status.proved
    assert settle(prop("A > A"), facts("max(A, A * A) == 0", "max(6, A) % A == 0")).status.proved
