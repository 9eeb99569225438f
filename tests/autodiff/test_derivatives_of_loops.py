"""Derivatives of loops and branches, forward and in reverse, against finite differences; natively too."""

from __future__ import annotations

from typing import Any

import derivatives
import numpy as np
import pytest

from kina import autodiff, pipeline
from kina.autodiff.errors import Unsupported
from kina.core.interpreter import run
from kina.core.verifier import verify

PROGRAMS: dict[str, tuple[str, list[dict[str, int]]]] = {
    "a recurrent net": (
        """
        let f [T, B, D] (w : F64[D, D]) (h0 : F64[B, D]) (xs : F64[T, B, D]) : (F64[B, D], F64[T, B, D]) =
          for t < T with h : F64[B, D] = h0 do
            let next = tanh (h @ w + xs[t]) in
            next yield next * h
        """,
        [{"T": 4, "B": 2, "D": 3}, {"T": 1, "B": 2, "D": 3}, {"T": 0, "B": 2, "D": 3}],
    ),
    "a comprehension": (
        "let f [N, D] (x : F64[N, D]) (w : F64[D]) : F64[N] = for i < N yield reduce[sum, axis=0] (sin (x[i] * w))",
        [{"N": 4, "D": 3}, {"N": 0, "D": 3}],
    ),
    "a cache that grows": (
        """
        let f [S, D, N] (k : F64[S, D]) (new : F64[N, 1, D]) (w : F64[D]) : F64[S + N, D] =
          for i < N with c : F64[S + i, D] = k do
            let mean = reduce[sum, axis=0] (c * w) in
            concat[axis=0] (c * 0.5 * w) (new[i] * reshape (sin mean) [1, D])
        """,
        [{"S": 2, "D": 3, "N": 3}, {"S": 0, "D": 2, "N": 2}, {"S": 2, "D": 2, "N": 0}],
    ),
    "a state that shrinks": (
        """
        let f [D, N] (x : F64[N + 1, D]) : F64[1, D] =
          for i < N with c : F64[N + 1 - i, D] = x do sin c[1:, :] * c[0:N - i, :]
        """,
        [{"D": 3, "N": 3}, {"D": 2, "N": 0}],
    ),
    "two states of which one has no tangent": (
        """
        let f [N] (x : F64[N]) (k : I64) : F64[N] =
          let (y, n) = for i < N with (y : F64[N], n : I64) = (x, k) do (y * cos y + cast[F64] n, n * 2 + 1) in
          y
        """,
        [{"N": 3}],
    ),
    "nested loops": (
        """
        let f [N, M] (x : F64[M]) (w : F64[N, M]) : F64[M] =
          for i < N with y : F64[M] = x do
            for j < M with z : F64[M] = y do sin z * w[i] + w[i, j] * y
        """,
        [{"N": 2, "M": 3}, {"N": 3, "M": 1}],
    ),
    "a branch on a value": (
        """
        let f [N] (x : F64[N]) (y : F64[N]) (c : Bool) : (F64[N], F64[N]) =
          if c then (x * sin y, x) else (exp y, zeros[F64] [N])
        """,
        [{"N": 3}],
    ),
    "a branch in a loop": (
        """
        let f [N] (x : F64[N]) (flags : Bool[N]) : F64[N] =
          for i < N with y : F64[N] = x do if flags[i] then sin y * x else exp (-y)
        """,
        [{"N": 4}, {"N": 0}],
    ),
    "a branch on sizes": (
        """
        let f [N] (x : F64[N]) : F64[1] =
          if N > 2 then x[0:1] * x[2:3] else ones[F64] [1] * reduce[sum, axis=0] (x ^ 3.0)
        """,
        [{"N": 4}, {"N": 2}, {"N": 0}],
    ),
    "a loop with a condition": (
        """
        let f [N] (x : F64[N]) (most : F64) =
          let [n] y = while [n < 10] reduce[sum, axis=0] (s * s) < most with s : F64[N] = x do s * 1.5 + sin x in
          reduce[sum, axis=0] (y ^ 2.0)
        """,
        [{"N": 3}, {"N": 1}],
    ),
    "positions in a loop": (
        """
        let f [V, D, N] (table : F64[V, D]) (ids : Idx[V][N]) : F64[D] =
          for i < N with s : F64[D] = zeros[F64] [D] do
            s * cos s + gather[axis=0] table (ids[i]) * reduce[max, axis=0] s
        """,
        [{"V": 3, "D": 2, "N": 4}],
    ),
    "calls": (
        """
        let g [N] (x : F64[N]) (w : F64[N]) : F64[N] = sin x * w
        let f [N] (x : F64[N]) (w : F64[N]) : F64[N] = for i < N with y : F64[N] = x do g (g y w) x
        """,
        [{"N": 3}],
    ),
}
CASES = [
    pytest.param(name, sizes, id=f"{name}-{n}")
    for name, (_, choices) in PROGRAMS.items()
    for n, sizes in enumerate(choices)
]


def _case(check: Any, name: str, sizes: dict[str, int]) -> tuple[Any, list[np.ndarray], np.random.Generator]:
    function = check(PROGRAMS[name][0]).accepts().checked.function("f")
    rng = np.random.default_rng(1)
    inputs: list[np.ndarray] = []
    for value in function.inputs:
        shape = tuple(d.evaluate(sizes) for d in value.type.shape)
        if value.type.bound is not None:
            inputs.append(rng.integers(0, value.type.bound.evaluate(sizes), shape))
        elif not value.type.dtype.is_float:
            inputs.append(np.asarray(rng.integers(0, 2, shape)).astype(value.type.dtype.numpy))
        elif value.name == "most":
            inputs.append(np.asarray(30.0))
        else:
            inputs.append(np.asarray(rng.uniform(0.3, 1.2, shape)))
    return function, inputs, rng


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_tangents_are_what_finite_differences_say_and_adjoint_to_cotangents(check, name, sizes):
    function, inputs, rng = _case(check, name, sizes)
    derivatives.agree_with_differences(function, sizes, inputs, rng)
    derivatives.are_adjoint(function, sizes, inputs, rng)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_derivatives_are_well_typed_for_all_sizes(check, name):
    function, _, _ = _case(check, name, PROGRAMS[name][1][0])
    verify(autodiff.jvp(function))
    verify(autodiff.vjp(function))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_derivatives_are_what_finite_differences_say(check, name):
    sizes = PROGRAMS[name][1][0]
    function, inputs, rng = _case(check, name, sizes)
    pulled = autodiff.vjp(function)
    w = [rng.standard_normal(o.shape) for o in derivatives.only_floats(function, run(function, sizes, inputs))]
    derivatives.agree_with_differences(pulled, sizes, [*inputs, *w], rng)
    derivatives.are_adjoint(pulled, sizes, [*inputs, *w], rng)
    pushed = autodiff.jvp(function)
    derivatives.are_adjoint(pushed, sizes, [*inputs, *derivatives.directions(function, inputs, rng)], rng)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_computes_the_same_derivatives(check, name):
    function, _, _ = _case(check, name, PROGRAMS[name][1][0])
    for derivative in (autodiff.jvp(function), autodiff.vjp(function)):
        executable = pipeline.compile_function(derivative)
        for sizes in PROGRAMS[name][1]:
            _, inputs, rng = _case(check, name, sizes)
            given = derivative.inputs[len(inputs) :]
            more = [rng.standard_normal([d.evaluate(sizes) for d in v.type.shape]) for v in given]
            want = run(derivative, sizes, [*inputs, *more])
            for mine, theirs in zip(executable.run(sizes, [*inputs, *more]), want, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "let f (x : F64) : F64 ! {diverge} = while s < 100.0 with s : F64 = x do s * s + 1.0",
            "a `while` without a bound",
        ),
        (
            """
            let f [N, D] (x : F64[N, D]) (masks : Bool[3, N]) : F64[D] =
              for i < 3 with s : F64[D] = zeros[F64] [D] do
                let [K] some = compress[axis=0] x masks[i] in
                s * cos s + reduce[sum, axis=0] (sin some * some)
            """,
            "a size comes from a value",
        ),
        (
            """
            let f [N] (x : F64[2]) : F64 =
              for i < N with s : F64 = reduce[sum, axis=0] x do
                s + reduce[sum, axis=0] (sin (x[0:i mod 2] * s))
            """,
            "goes up and down",
        ),
    ],
)
def test_what_cannot_be_differentiated_is_named(check, text, says):
    function = check(text).accepts().checked.function("f")
    with pytest.raises(Unsupported, match=says):
        autodiff.vjp(function)
    autodiff.jvp(function)
