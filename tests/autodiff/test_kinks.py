"""Where a function has no derivative, or an infinite one: what is taken there, against values known from PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from kina import autodiff
from kina.core.interpreter import run

INF, NAN = np.inf, np.nan


def gradient(check, body: str, *inputs: list[float]) -> list[list[float]]:
    """The cotangents, for one of ones, of the parameters x, y, z of an expression over F64[N]."""
    names = "xyz"[: len(inputs)]
    parameters = " ".join(f"({name} : F64[N])" for name in names)
    function = check(f"let f [N] {parameters} : F64[N] =\n  {body}").accepts().checked.function("f")
    arrays = [np.array(x, np.float64) for x in inputs]
    pulled = autodiff.vjp(function)
    with np.errstate(all="ignore"):
        outputs = run(pulled, {"N": len(inputs[0])}, [*arrays, np.ones(len(inputs[0]))])
    return [o.tolist() for o in outputs[1:]]


@pytest.mark.parametrize(
    ("body", "x", "want"),
    [
        ("abs x", [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
        ("relu x", [-2.0, 0.0, 3.0], [0.0, 0.0, 1.0]),
        ("sign x", [-2.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        ("round x", [0.5, 1.5, 0.2], [0.0, 0.0, 0.0]),
        ("sqrt x", [0.0, 4.0], [INF, 0.25]),
        ("clamp x 0.0 1.0", [-1.0, 0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 1.0, 1.0, 0.0]),
        ("x ^ 2.0", [0.0, 3.0], [0.0, 6.0]),
        ("x ^ 1.0", [0.0, 3.0], [1.0, 1.0]),
        ("x ^ 0.0", [0.0, 3.0], [0.0, 0.0]),
        ("2.0 ^ x", [0.0, 1.0], [np.log(2.0), 2 * np.log(2.0)]),
        ("0.0 ^ x", [0.0, 1.0], [0.0, 0.0]),
        ("cummax[axis=0] x", [1.0, 3.0, 2.0, 3.0, 0.0], [1.0, 2.0, 0.0, 2.0, 0.0]),
        ("broadcast (reduce[max, axis=0] x) [N]", [1.0, 4.0, 4.0, 4.0, 0.0], [0.0, 5 / 3, 5 / 3, 5 / 3, 0.0]),
        ("broadcast (reduce[prod, axis=0] x) [N]", [2.0, 0.0, 3.0], [0.0, 18.0, 0.0]),
        ("broadcast (reduce[prod, axis=0] x) [N]", [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        ("cumprod[axis=0] x", [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
    ],
)  # fmt: skip
def test_kinks_are_what_pytorch_takes_them_for(check, body, x, want):
    (got,) = gradient(check, body, x)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("name", ["min", "max"])
def test_of_equals_each_gets_half(check, name):
    of_x, of_y = gradient(check, f"{name} x y", [1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    less, greater = (of_x, of_y) if name == "min" else (of_y, of_x)
    assert less == [1.0, 0.5, 0.0] and greater == [0.0, 0.5, 1.0]


def test_a_branch_that_was_not_taken_does_not_spoil_the_gradient(check):
    (got,) = gradient(check, "select (x > 0.0) (sqrt x) x", [4.0, 0.0, -1.0])
    assert got == [0.25, 1.0, 1.0]
    (got,) = gradient(check, "select (x > 0.0) (log x * x) (2.0 * x)", [1.0, 0.0, -1.0])
    assert got == [1.0, 2.0, 2.0]
    of_x, of_y = gradient(check, "select (x == 0.0) 1.0 (y / x)", [0.0, 2.0], [0.0, 1.0])
    assert of_x == [0.0, -0.25] and of_y == [0.0, 0.5]


def test_forward_mode_does_not_see_the_other_branch_either(check):
    function = check("let f [N] (x : F64[N]) : F64[N] = select (x > 0.0) (sqrt x) x").accepts().checked.function("f")
    x = np.array([4.0, 0.0, -1.0])
    for order in (1, 2):
        function = autodiff.jvp(function)
        given = [x, *(np.ones(3) for _ in range(2**order - 1))]
        with np.errstate(all="ignore"):
            outputs = run(function, {"N": 3}, given)
        assert np.isfinite(np.array(outputs)).all()
    # The last of the tangents is f'' + f', as every direction is 1.
    np.testing.assert_allclose(outputs[-1], [-1 / 32 + 0.25, 1.0, 1.0])


def test_the_norm_of_zero_has_gradient_zero(check):
    text = "let norm [N] (x : F64[N]) : F64 = sqrt (reduce[sum, axis=0] (x * x))"
    function = autodiff.vjp(check(text).accepts().checked.function("norm"))
    with np.errstate(all="ignore"):
        _, at_zero = run(function, {"N": 3}, [np.zeros(3), np.array(1.0)])
        _, elsewhere = run(function, {"N": 2}, [np.array([3.0, 4.0]), np.array(1.0)])
    assert at_zero.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(elsewhere, [0.6, 0.8])


def test_masked_attention_weights_have_finite_gradients(check):
    text = """
        let f [N] (x : F64[N]) : F64 =
          let masked = select (iota[F64] N < 2.0) x (full -inf [N]) in
          reduce[sum, axis=0] (softmax[axis=0] masked * x)
    """.replace("full -inf [N]", "log (zeros[F64] [N])")
    function = autodiff.vjp(check(text).accepts().checked.function("f"))
    with np.errstate(all="ignore"):
        _, got = run(function, {"N": 4}, [np.array([0.0, 1.0, 5.0, 6.0]), np.array(1.0)])
    p = np.exp(1) / (1 + np.exp(1))
    np.testing.assert_allclose(got, [(1 - p) - p * (1 - p), p + p * (1 - p), 0, 0], atol=1e-12)


def test_what_is_stopped_is_a_constant(check):
    of_x, of_y = gradient(check, "stop_gradient (x * y) * y", [2.0, 3.0], [5.0, 7.0])
    assert of_x == [0.0, 0.0] and of_y == [10.0, 21.0]
