"""The reference interpreter against JAX: what the companion's programs mean."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kina.core.interpreter import run
from kina.pipeline import check
from kina.source import Source

FOLDER = Path(__file__).parents[2] / "examples" / "companion"
rng = np.random.default_rng(0)


def function(name: str):
    checked = check(Source(name, (FOLDER / f"{name}.kina").read_text()))
    assert checked.ok
    return checked.function(name)


def draw(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def rmsnorm(x, weight, eps):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * weight


def swiglu(x, gate, up, down):
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def close(got: np.ndarray, want, tolerance: float = 2e-5) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


SIZES = [(1, 1, 1), (2, 3, 8), (0, 3, 4), (2, 0, 5), (1, 7, 33)]


@pytest.mark.parametrize(("b", "s", "d"), SIZES)
def test_rmsnorm_means_what_jax_computes(b, s, d):
    x, w, eps = draw(b, s, d), draw(d), np.float32(1e-5)
    (got,) = run(function("rmsnorm"), {"B": b, "S": s, "D": d}, [x, w, np.asarray(eps)])
    close(got, rmsnorm(x, w, eps))


@pytest.mark.parametrize(("b", "s", "d"), SIZES)
def test_swiglu_and_the_block_mean_what_jax_computes(b, s, d):
    h = 5
    x, norm, eps = draw(b, s, d), draw(d), np.float32(1e-5)
    gate, up, down = draw(d, h), draw(d, h), draw(h, d)
    sizes = {"B": b, "S": s, "D": d, "H": h}
    (got,) = run(function("swiglu_ffn"), sizes, [x, gate, up, down])
    close(got, swiglu(x, gate, up, down), 1e-4)
    (got,) = run(function("transformer_block_partial"), sizes, [x, norm, gate, up, down, np.asarray(eps)])
    close(got, x + swiglu(rmsnorm(x, norm, eps), gate, up, down), 1e-4)


@pytest.mark.parametrize(("b", "h", "s", "d"), [(1, 1, 1, 1), (2, 3, 5, 4), (2, 3, 1, 8), (1, 2, 9, 16)])
def test_attention_means_what_jax_computes(b, h, s, d):
    q, k, v = draw(b, h, s, d), draw(b, h, s, d), draw(b, h, s, d)
    scale = np.float32(d**-0.5)
    (got,) = run(function("mha"), {"B": b, "H": h, "S": s, "D_h": d}, [q, k, v, np.asarray(scale)])
    weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, k) * scale, axis=-1)
    close(got, jnp.einsum("bhst,bhtd->bhsd", weights, v))


@pytest.mark.parametrize("cached", [0, 1, 7])
def test_appending_to_a_cache_means_what_jax_computes(cached):
    k, v, new_k, new_v = draw(2, 3, cached, 4), draw(2, 3, cached, 4), draw(2, 3, 1, 4), draw(2, 3, 1, 4)
    sizes = {"B": 2, "H": 3, "S_cache": cached, "D_h": 4}
    got = run(function("kv_append"), sizes, [k, v, new_k, new_v])
    for array, parts in zip(got, ((k, new_k), (v, new_v)), strict=True):
        close(array, jnp.concatenate(parts, axis=2))
