"""The stages joined: long programs, and core re-checked after every stage under KINA_VERIFY=1."""

from __future__ import annotations

import pytest

from kina import pipeline
from kina.core.verifier import InvalidCore
from kina.dims.dim import constant
from kina.source import Source
from kina.types import DType, Tensor


def test_a_long_sum_goes_through_all_stages(check):
    program = check("let f [N] (x : F32[N]) : F32[N] = " + " + ".join(["x"] * 900)).accepts()
    assert pipeline.lower(program.checked.function("f")).kernels


def test_a_long_run_of_lets_goes_through_all_stages(check):
    lines = "".join("  let x = x + 1.0 in\n" for _ in range(1500))
    program = check(f"let f [N] (x : F32[N]) : F32[N] =\n{lines}  x").accepts()
    assert pipeline.lower(program.checked.function("f")).kernels


def test_core_is_verified_after_each_stage_when_asked(monkeypatch):
    monkeypatch.setenv("KINA_VERIFY", "1")
    source = Source("f.kina", "let f [N] (x : F32[N]) : F32[N] = exp x * 2.0")
    function = pipeline.check(source).function("f")
    assert pipeline.lower(function).kernels
    object.__setattr__(function.outputs[0], "type", Tensor(DType.F32, (constant(3),)))
    with pytest.raises(InvalidCore, match="internal fault in Kina"):
        pipeline.lower(function)
