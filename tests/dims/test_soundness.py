"""The prover on random questions, each answer checked at all sizes up to 6 and at larger ones drawn once.

`KINA_SOUNDNESS_CASES=20000 python -m pytest tests/dims/test_soundness.py` makes a long run.
"""

from __future__ import annotations

import os
from itertools import product
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from propositions import NAMES, arithmetic, hypotheses, laws, propositions

from kina.dims.proposition import negate
from kina.dims.prover import Facts, settle
from kina.dims.search import breaks, is_true

CASES = int(os.environ.get("KINA_SOUNDNESS_CASES", "250"))
_SMALL = list(product(range(7), repeat=len(NAMES)))
_RANDOM = Random(0)
_LARGER = [tuple(_RANDOM.randrange(60) for _ in NAMES) for _ in range(150)]
SIZES = [dict(zip(NAMES, numbers, strict=True)) for numbers in (*_SMALL, *_LARGER)]


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(propositions(), laws(), arithmetic()), hypotheses())
def test_no_answer_is_wrong(goal, given_facts):
    verdict = settle(goal, Facts(given_facts))
    if verdict.status.proved:
        wrong = next((s for s in SIZES if breaks(goal, given_facts, s)), None)
        assert wrong is None, f"{goal} was called {verdict.status}, but fails for {wrong}"
    if verdict.counterexample is not None:
        assert breaks(goal, given_facts, verdict.counterexample)


@settings(max_examples=CASES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(propositions(NAMES, 1), hypotheses())
def test_a_claim_and_its_negation_are_proved_only_from_contradictory_facts(goal, given_facts):
    facts = Facts(given_facts)
    if settle(goal, facts).status.proved and settle(negate(goal), facts).status.proved:
        assert not any(all(is_true(p, s) for p in given_facts) for s in SIZES)


@settings(max_examples=CASES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(propositions(NAMES, 1), hypotheses())
def test_facts_given_one_by_one_give_sound_answers_too(goal, given_facts):
    facts = Facts()
    for fact in given_facts:
        facts = facts.assume(fact)
        verdict = settle(goal, facts)
        if verdict.status.proved:
            assert not any(breaks(goal, facts.hypotheses, s) for s in SIZES)
