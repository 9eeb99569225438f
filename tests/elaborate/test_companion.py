"""The companion document's programs, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from kina.diagnostics import Severity
from kina.pipeline import check
from kina.source import Source

FOLDER = Path(__file__).parents[2] / "examples" / "companion"
WORKING = ["rmsnorm", "swiglu_ffn", "mha", "kv_append", "transformer_block_partial"]


def load(name: str):
    return check(Source(f"{name}.kina", (FOLDER / f"{name}.kina").read_text()))


@pytest.mark.parametrize("name", WORKING)
def test_a_companion_program_is_accepted_with_every_obligation_proved(name):
    checked = load(name)
    assert checked.diagnostics == ()
    assert checked.elaboration.obligations
    assert all(o.status.proved for o in checked.elaboration.obligations)


def test_the_unfinished_program_has_one_error_the_hole_and_a_redundant_assertion():
    checked = load("expand_kv_for_gqa")
    (error,) = [d for d in checked.diagnostics if d.severity is Severity.ERROR]
    assert error.code == "K0207"
    assert "(Tensor[F32, [B, Q_H, S, D_h]], Tensor[F32, [B, Q_H, S, D_h]])" in error.message
    (note,) = [d for d in checked.diagnostics if d.severity is Severity.NOTE]
    assert note.code == "K0311"
    assert "redundant" in note.message
    assert all(o.status.proved for o in checked.elaboration.obligations)


def test_the_unfinished_program_finished_needs_no_run_time_check():
    text = (FOLDER / "expand_kv_for_gqa.kina").read_text()
    same_for_v = """
  let v_5d = reshape v [B, KV_H, 1, S, D_h] in
  let v_expanded = broadcast v_5d [B, KV_H, REP, S, D_h] in
  let v_merged = reshape v_expanded [B, merged, S, D_h] in
  (k_merged, v_merged)
"""
    checked = check(Source("finished.kina", text.replace("  ...\n", same_for_v)))
    assert checked.ok
    assert all(o.status.proved for o in checked.elaboration.obligations)


def test_the_signature_prints_as_kina():
    signature = str(load("rmsnorm").elaboration.signatures["rmsnorm"])
    assert signature == (
        "rmsnorm[B, S, D] (x : Tensor[F32, [B, S, D]]) (weight : Tensor[F32, [D]]) (eps : Tensor[F32, []])"
        " : Tensor[F32, [B, S, D]]"
    )
