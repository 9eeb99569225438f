"""The companion's programs, natively through the Python API, against JAX: one compilation for all sizes and strides."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kina

FOLDER = Path(__file__).parents[2] / "examples" / "companion"
rng = np.random.default_rng(5)
SIZES = [(1, 1, 1, 1), (2, 3, 8, 5), (0, 3, 4, 2), (2, 0, 5, 3), (3, 70, 129, 65)]


def draw(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def strided(*shape: int) -> np.ndarray:
    """Every second element of a larger array, with the first two axes swapped in memory."""
    return np.swapaxes(draw(shape[1], shape[0], *shape[2:-1], 2 * shape[-1]), 0, 1)[..., ::2]


def rmsnorm(x, weight, eps):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * weight


def swiglu(x, gate, up, down):
    return (jax.nn.silu(x @ gate) * (x @ up)) @ down


def block(x, norm, gate, up, down, eps):
    return x + swiglu(rmsnorm(x, norm, eps), gate, up, down)


def attention(q, k, v, scale):
    weights = jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q, k) * scale, axis=-1)
    return jnp.einsum("bhst,bhtd->bhsd", weights, v)


def close(got: np.ndarray, want) -> None:
    want = np.asarray(want)
    assert (got.shape, got.dtype) == (want.shape, np.float32)
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5 * scale)


@pytest.fixture(scope="module")
def programs():
    names = ("rmsnorm", "swiglu_ffn", "mha", "kv_append", "transformer_block_partial")
    return {name: getattr(kina.load(FOLDER / f"{name}.kina"), name) for name in names}


@pytest.mark.parametrize("make", [draw, strided])
@pytest.mark.parametrize(("b", "s", "d", "h"), SIZES)
def test_normalisation_and_feed_forward(programs, make, b, s, d, h):
    x, norm = make(b, s, d), draw(d)
    gate, up, down = draw(d, h), draw(h, d).T, draw(h, d)
    close(programs["rmsnorm"](x, norm, 1e-5), rmsnorm(x, norm, 1e-5))
    close(programs["swiglu_ffn"](x, gate, up, down), swiglu(x, gate, up, down))
    close(programs["transformer_block_partial"](x, norm, gate, up, down, 1e-5), block(x, norm, gate, up, down, 1e-5))


@pytest.mark.parametrize("make", [draw, strided])
@pytest.mark.parametrize(("b", "h", "s", "d"), [(1, 1, 1, 1), (2, 3, 5, 4), (1, 2, 67, 16), (3, 5, 33, 64)])
def test_attention(programs, make, b, h, s, d):
    q, k, v = (make(b, h, s, d) for _ in range(3))
    close(programs["mha"](q, k, v, d**-0.5), attention(q, k, v, d**-0.5))


@pytest.mark.parametrize("cached", [0, 1, 7, 100])
def test_the_cache_grows_by_one(programs, cached):
    old, new = (draw(2, 3, cached, 4), draw(2, 3, cached, 4)), (draw(2, 3, 1, 4), draw(2, 3, 1, 4))
    for got, *parts in zip(programs["kv_append"](*old, *new), old, new, strict=True):
        np.testing.assert_array_equal(got, np.concatenate(parts, axis=2))


def test_every_function_was_compiled_once(programs):
    for function in programs.values():
        for size in (2, 9):
            dims = dict.fromkeys(("B", "S", "D", "H", "D_h", "S_cache"), size)
            arguments = [draw(*(d.evaluate(dims) for d in v.type.shape)) for v in function._core.inputs]
            function(*arguments)
        assert function.compilations == 1
