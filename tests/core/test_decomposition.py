"""Composite operations are what they are said to be made of, and the printed decomposition checks again."""

from __future__ import annotations

import numpy as np
import pytest

import kina
from kina.core.ir import Apply, statements_within
from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.host.reference import Reference
from kina.passes.decompose import decompose
from kina.pipeline import check
from kina.source import Source

COMPOSITE = {
    "softmax": "softmax[axis={axis}] x",
    "log_softmax": "log_softmax[axis={axis}] x",
    "mean": "reduce_keep[mean, axis={axis}] x",
    "logsumexp": "reduce[logsumexp, axis={axis}] x",
    "var": "reduce[var, axes=[0, {axis}]] x",
}
INFINITE = float("inf")
ROWS = np.array(
    [
        [1.0, 2.0, -3.0], [1e4, -1e4, 1e4], [-INFINITE] * 3, [0.0, -INFINITE, 1.0], [np.nan, 1.0, 2.0],
        [-0.0, 0.0, 1e-40], [300.0, 300.0, 300.0],
    ]
)  # fmt: skip


def program(kind: str, dtype: str, axis: int):
    body = COMPOSITE[kind].format(axis=axis)
    checked = check(Source("f.kina", f"let f [A, B] (x : {dtype}[A, B]) = {body}"))
    if not checked.ok:  # a result without a type
        rank = {"softmax": "[A, B]", "log_softmax": "[A, B]", "mean": "[1, B]" if axis == 0 else "[A, 1]"}
        left = rank.get(kind, "[B]" if axis == 0 else "[A]")
        left = "[]" if kind == "var" and axis == 1 else left
        checked = check(Source("f.kina", f"let f [A, B] (x : {dtype}[A, B]) : {dtype}{left} = {body}"))
    assert checked.ok, checked.diagnostics
    return checked.function("f")


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", [k for k in COMPOSITE if k != "var"])
def test_it_means_the_same(kind, axis, dtype):
    function = program(kind, dtype, axis)
    simple = decompose(function)
    verify(simple)
    made = [s.operation for s in statements_within(simple.statements) if isinstance(s, Apply)]
    assert len(made) > 2
    numpy_dtype = function.inputs[0].type.dtype.numpy
    with np.errstate(all="ignore"):
        rows = [ROWS.astype(numpy_dtype), ROWS.T.astype(numpy_dtype), np.ones((3, 1), numpy_dtype)]
    for x in rows:
        sizes = {"A": x.shape[0], "B": x.shape[1]}
        (want,), (got,) = (Reference(f).run(sizes, [x]) for f in (function, simple))
        scale = 2 ** {"F64": -50, "F32": -21, "F16": -9, "BF16": -6}[dtype]
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=scale, atol=scale)


@pytest.mark.parametrize("kind", COMPOSITE)
def test_it_prints_as_kina_that_checks_again_to_the_same_core(kind):
    simple = decompose(program(kind, "F32", 1))
    text = print_program(simple)
    again = check(Source("again.kina", text), strict=True)
    assert again.ok, again.diagnostics
    assert print_program(again.function("f")) == text


def test_what_is_in_loops_branches_and_calls_is_decomposed_too():
    text = """
let half [N] (x : F32[N]) : F32[N] = softmax[axis=0] x / 2.0
let f [N, S] (x : F32[N]) : F32[N] =
  for i < S with y : F32[N] = half x do if i = 0 then softmax[axis=0] y else log_softmax[axis=0] y
"""
    module = kina.compile(text)
    shown = module.f.explain("decomposed")
    assert "softmax" not in shown
    assert "exp" in shown
    assert "softmax" in module.f.explain("core")


def test_an_operation_that_is_not_made_of_others_stays():
    text = "let f [N] (x : F32[N]) : F32[N] = exp x"
    function = check(Source("f.kina", text)).function("f")
    assert decompose(function).statements == function.statements
