"""Scans natively, with what feeds them and what they feed: one pass along the axis, whatever the size."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.pipeline import compile_function, lower

PROGRAMS = {
    "fused before and after": "exp (cumsum[axis=1] (log (abs x + 1.0)) * 0.01)",
    "of a reduction": "cumsum[axis=0] (reduce[sum, axis=1] x)",
    "of a scan": "cummax[axis=0] (cumsum[axis=1] x)",
    "of a transpose": "cumprod[axis=0] (transpose (tanh x) [1, 0])",
    "of a softmax": "cumsum[axis=1] (softmax[axis=1] x)",
    "as a reduction's operand": "reduce[max, axis=1] (cumsum[axis=1] x)",
    "of what is padded": "cumsum[axis=1] (pad[axis=1, lo=2, hi=1] x)",
    "of a stretched row": "cumsum[axis=0] (x * 0.0 + reduce_keep[mean, axis=0] x)",
    "of a scalar": "cumsum[axis=0] (expand_dims[axis=0] (reduce[sum, axes=[0, 1]] x))",
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_scans_agree_with_the_reference(check, name):
    function = check(f"let f [A, B] (x : F32[A, B]) = {PROGRAMS[name]}").accepts().checked.function("f")
    executable = compile_function(function)
    rng = np.random.default_rng(1)
    for a, b in [(0, 3), (3, 0), (1, 1), (5, 7), (130, 65), (3, 5000)]:
        sizes = {"A": a, "B": b}
        x = rng.standard_normal((a, b)).astype(np.float32)
        (want,) = run(function, sizes, [x])
        for laid_out in (x, np.asfortranarray(x), np.ascontiguousarray(x[:, ::-1])[:, ::-1]):
            (got,) = executable.run(sizes, [laid_out])
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_a_scan_is_one_pass(check):
    """The work is said to be linear in the axis, and a long axis takes no time."""
    function = check("let f [N] (x : F64[N]) : F64[N] = cumsum[axis=0] x").accepts().checked.function("f")
    assert "writes 8 * N; N operations" in str(lower(function))
    x = np.ones(1_000_000)
    (got,) = compile_function(function).run({"N": x.size}, [x])
    np.testing.assert_array_equal(got, np.arange(1, x.size + 1))


def test_nan_stays_the_greatest(check):
    function = check("let f [N] (x : F32[N]) : F32[N] = cummax[axis=0] x").accepts().checked.function("f")
    x = np.array([1, -2, np.nan, 7, -np.inf], np.float32)
    (got,) = compile_function(function).run({"N": 5}, [x])
    np.testing.assert_array_equal(got, [1, 1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(run(function, {"N": 5}, [x])[0], got)


def test_scans_are_of_numbers(check):
    check("let f [N] (x : Bool[N]) = cumsum[axis=0] x").rejects("K0303")
    check("let f [N] (x : F32[N]) = cumsum[axis=1] x").rejects("K0206", "axis 1 is out of range")
