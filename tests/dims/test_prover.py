"""The prover on obligations of real models."""

from __future__ import annotations

import pytest
from notation import facts, prop
from obligations import PROVED, REFUTED

from kina.dims.prover import Status, settle
from kina.dims.search import breaks


@pytest.mark.parametrize(("requires", "claim"), [row[1:] for row in PROVED], ids=[row[0] for row in PROVED])
def test_what_holds_for_every_size_is_proved(requires, claim):
    assert settle(prop(claim), facts(requires)).status.proved


@pytest.mark.parametrize(("requires", "claim"), [row[1:] for row in REFUTED], ids=[row[0] for row in REFUTED])
def test_what_fails_for_some_size_is_refuted_with_such_sizes(requires, claim):
    verdict = settle(prop(claim), facts(requires))
    assert verdict.status is Status.REFUTED
    assert breaks(prop(claim), facts(requires).hypotheses, verdict.counterexample)
