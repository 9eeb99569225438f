"""Gradients of what models are made of, against JAX; and natively against the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import derivatives
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kina import autodiff, pipeline
from kina.core.interpreter import run
from kina.core.verifier import verify

jax.config.update("jax_enable_x64", True)


class Case(NamedTuple):
    text: str
    jax: Callable[..., Any]
    shapes: tuple[tuple[str | int, ...], ...]
    """Of the float parameters; positions are drawn below the number that stands for the axis."""
    sizes: dict[str, int]
    ids: Mapping[int, str] = MappingProxyType({})
    """Parameters that are positions, and the size that they lie below."""


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ jnp.swapaxes(k, -1, -2) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v


def _conv(x: Any, w: Any, b: Any) -> Any:
    y = jax.lax.conv_general_dilated(x, w, (2, 1), [(1, 1), (1, 1)], rhs_dilation=(1, 2))
    y = jax.nn.relu(y + b[:, None, None])
    pooled = jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return pooled.mean((2, 3))


CASES = {
    "rmsnorm": Case(
        """
        let f [B, D] (x : F64[B, D]) (w : F64[D]) : F64[B, D] =
          x * rsqrt (reduce_keep[mean, axis=1] (x * x) + 1e-6) * w
        """,
        lambda x, w: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w,
        (("B", "D"), ("D",)),
        {"B": 3, "D": 5},
    ),
    "layernorm": Case(
        """
        let f [B, D] (x : F64[B, D]) (w : F64[D]) (b : F64[D]) : F64[B, D] =
          (x - reduce_keep[mean, axis=1] x) * rsqrt (reduce_keep[var, axis=1] x + 1e-5) * w + b
        """,
        lambda x, w, b: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w + b,
        (("B", "D"), ("D",), ("D",)),
        {"B": 3, "D": 5},
    ),
    "attention": Case(
        """
        let f [B, H, S, D] requires (D > 0) (q : F64[B, H, S, D]) (k : F64[B, H, S, D]) (v : F64[B, H, S, D])
            : F64[B, H, S, D] =
          let scores = q @ transpose k [0, 1, 3, 2] / sqrt (cast[F64] (dim_value D)) in
          let i = reshape (iota[I64] S) [S, 1] in
          let seen = broadcast i [S, S] >= broadcast (iota[I64] S) [S, S] in
          let none = log (zeros[F64] [B, H, S, S]) in
          softmax[axis=3] (select (broadcast seen [B, H, S, S]) scores none) @ v
        """,
        _attention,
        (("B", "H", "S", "D"),) * 3,
        {"B": 2, "H": 2, "S": 4, "D": 3},
    ),
    "swiglu": Case(
        """
        let f [B, D, F] (x : F64[B, D]) (gate : F64[D, F]) (up : F64[D, F]) (down : F64[F, D]) : F64[B, D] =
          x + (silu (x @ gate) * (x @ up)) @ down
        """,
        lambda x, gate, up, down: x + (jax.nn.silu(x @ gate) * (x @ up)) @ down,
        (("B", "D"), ("D", "F"), ("D", "F"), ("F", "D")),
        {"B": 3, "D": 4, "F": 5},
    ),
    "cross_entropy": Case(
        """
        let f [B, V] (logits : F64[B, V]) (targets : Idx[V][B, 1]) : F64[B, 1] =
          -(take_along[axis=1] (log_softmax[axis=1] logits) targets)
        """,
        lambda logits, ids: -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), ids, 1),
        (("B", "V"), ("B", 1)),
        {"B": 4, "V": 7},
        {1: "V"},
    ),
    "embedding": Case(
        """
        let f [V, D, B, S] (table : F64[V, D]) (w : F64[D, V]) (ids : Idx[V][B, S]) : F64[B, S, V] =
          let x = reshape (tanh (gather[axis=0] table ids)) [B * S, D] in
          reshape (x @ w) [B, S, V]
        """,
        lambda table, w, ids: jnp.tanh(table[ids]) @ w,
        (("V", "D"), ("D", "V"), ("B", "S")),
        {"V": 5, "D": 3, "B": 2, "S": 4},
        {2: "V"},
    ),
    "convolution": Case(
        """
        let f [N, C, H, W, O] requires (H >= 6 && W >= 6 && C > 0)
            (x : F64[N, C, H, W]) (w : F64[O, C, 3, 3]) (b : F64[O]) =
          let y = relu (conv[stride=[2, 1], pad=[1, 1], dilation=[1, 2]] x w + reshape b [O, 1, 1]) in
          reduce[mean, axes=[2, 3]] (max_pool[size=2] y)
        """,
        _conv,
        (("N", "C", "H", "W"), ("O", "C", 3, 3), ("O",)),
        {"N": 2, "C": 3, "H": 9, "W": 8, "O": 4},
    ),
    "sorted": Case(
        "let f [B, N] (x : F64[B, N]) : F64[B, N] = cumsum[axis=1] (sort[axis=1] x)",
        lambda x: jnp.cumsum(jnp.sort(x, 1), 1),
        (("B", "N"),),
        {"B": 3, "N": 6},
    ),
    "scattered": Case(
        """
        let f [V, D, N] (x : F64[V, D]) (ids : Idx[V][N]) (u : F64[N, D]) : F64[V, D] =
          sin (scatter[add, axis=0] (x * x) ids (exp u))
        """,
        lambda x, ids, u: jnp.sin((x * x).at[ids].add(jnp.exp(u))),
        (("V", "D"), ("N",), ("N", "D")),
        {"V": 4, "D": 3, "N": 6},
        {1: "V"},
    ),
}  # fmt: skip


def _inputs(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    found: list[np.ndarray] = []
    for n, names in enumerate(case.shapes):
        shape = [case.sizes[d] if isinstance(d, str) else d for d in names]
        if n in case.ids:
            found.append(rng.integers(0, case.sizes[case.ids[n]], shape))
        else:
            found.append(rng.standard_normal(shape))
    return found


def _function(check: Any, case: Case) -> Any:
    return check(case.text).accepts().checked.function("f")


@pytest.mark.parametrize("name", CASES)
def test_the_gradients_are_those_of_jax(check, name):
    case = CASES[name]
    function = _function(check, case)
    inputs = _inputs(case)
    floats = [n for n in range(len(inputs)) if n not in case.ids]

    def of_floats(*given: Any) -> Any:
        whole = list(inputs)
        for n, x in zip(floats, given, strict=True):
            whole[n] = x
        return case.jax(*whole)

    out, pull = jax.vjp(of_floats, *(inputs[n] for n in floats))
    w = np.random.default_rng(4).standard_normal(out.shape)
    pulled = autodiff.vjp(function)
    verify(pulled)
    (got, *gradients) = run(pulled, case.sizes, [*inputs, w])
    np.testing.assert_allclose(got, out, rtol=1e-10, atol=1e-12)
    for mine, theirs in zip(gradients, pull(jnp.asarray(w)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_gradients_are_what_finite_differences_say(check, name):
    case = CASES[name]
    function = autodiff.vjp(_function(check, case))
    rng = np.random.default_rng(5)
    inputs = _inputs(case)
    w = [rng.standard_normal(o.shape) for o in run(_function(check, case), case.sizes, inputs)]
    derivatives.agree_with_differences(function, case.sizes, [*inputs, *w], rng)
    derivatives.are_adjoint(function, case.sizes, [*inputs, *w], rng)


@pytest.mark.parametrize("name", CASES)
def test_native_code_computes_the_same_gradients(check, name):
    case = CASES[name]
    function = autodiff.vjp(_function(check, case))
    inputs = _inputs(case)
    w = [np.random.default_rng(6).standard_normal(o.shape) for o in run(_function(check, case), case.sizes, inputs)]
    want = run(function, case.sizes, [*inputs, *w])
    got = pipeline.compile_function(function).run(case.sizes, [*inputs, *w])
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
