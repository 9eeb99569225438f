"""Kernels that differ only in their arrays are one function of machine code."""

from __future__ import annotations

import numpy as np

from kina import native
from kina.core.interpreter import run
from kina.native.entry import module_of
from kina.passes.specialise import specialise
from kina.pipeline import check, compile_function, lower
from kina.source import Source

MACHINE = native.Machine.avx2()


def network(layers: int) -> str:
    lines = ["let f [S, D] (x0 : F32[S, D]) (u : F32[D, D]) (w : F32[D, D]) : F32[S, D] ="]
    for n in range(layers):
        lines.append(f"  let n{n} = x{n} * rsqrt (reduce_keep[mean, axis=1] (x{n} * x{n}) + 1e-6) in")
        lines.append(f"  let x{n + 1} = x{n} + tanh (n{n} @ u) @ w in")
    return "\n".join([*lines, f"  x{layers}"])


def function_of(text: str):
    module = check(Source("functions.kina", text))
    assert module.ok, module.diagnostics
    return module.function("f")


def test_more_layers_take_no_more_functions():
    few, many = (module_of(lower(function_of(network(n))), MACHINE).count("define") for n in (5, 20))
    assert few == many


def test_layers_that_share_a_function_compute_on_their_own_arrays():
    function = function_of(network(6))
    rng = np.random.default_rng(0)
    x, u, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 33), (33, 33), (33, 33)))
    sizes = {"S": 9, "D": 33}
    inputs = [x, u.T, np.ascontiguousarray(w[::-1])[::-1]]
    (want,) = run(specialise(function), sizes, inputs)
    (got,) = compile_function(function).run(sizes, inputs)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_kernel_on_one_array_twice_is_not_that_on_two():
    function = function_of(
        "let f [A] (x : F32[A, A]) (y : F32[A, A]) : (F32[A, A], F32[A, A], F32[A, A]) = (x @ x, x @ y, y @ x)"
    )
    assert module_of(lower(function), MACHINE).count("define internal void @kernel") == 2
    x, y = np.random.default_rng(1).standard_normal((2, 5, 5)).astype(np.float32)
    got = compile_function(function).run({"A": 5}, [x, y])
    for result, expected in zip(got, (x @ x, x @ y, y @ x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
