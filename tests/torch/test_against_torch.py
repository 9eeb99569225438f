"""The companion's programs beside PyTorch: the same numbers, and tensors in give tensors out."""

from __future__ import annotations

from pathlib import Path

import pytest

import kina

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "programs"
SIZES = [(1, 1, 8, 16), (2, 7, 33, 50), (1, 64, 64, 128)]


def normal(seed: int, *shape: int):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def block():
    return kina.load(EXAMPLES / "transformer_block.kina")


@pytest.mark.parametrize(("b", "s", "d", "h"), SIZES)
def test_rmsnorm_is_pytorchs_rms_norm(block, b, s, d, h):
    x, weight = normal(0, b, s, d), normal(1, d)
    torch.testing.assert_close(block.rmsnorm(x, weight, 1e-6), torch.nn.functional.rms_norm(x, (d,), weight, 1e-6))


@pytest.mark.parametrize(("b", "s", "d", "h"), SIZES)
def test_the_block_is_pytorchs_with_linear_layers_weights_as_they_lie(block, b, s, d, h):
    x, norm = normal(0, b, s, d), normal(1, d)
    # nn.Linear holds [out, in]; its transpose is a view with other strides.
    gate, up, down = (normal(i, *shape) * shape[1] ** -0.5 for i, shape in enumerate([(h, d), (h, d), (d, h)], 2))
    normed = torch.nn.functional.rms_norm(x, (d,), norm, 1e-5)
    linear = torch.nn.functional.linear
    want = x + linear(torch.nn.functional.silu(linear(normed, gate)) * linear(normed, up), down)
    got = block.transformer_block_partial(x, norm, gate.T, up.T, down.T, 1e-5)
    assert isinstance(got, torch.Tensor)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 1, 4), (2, 3, 17, 16), (1, 2, 65, 64)])
def test_attention_is_pytorchs_scaled_dot_product_attention(shape):
    q, k, v = (normal(i, *shape) for i in range(3))
    got = kina.load(PROGRAMS / "attention.kina").attention(q, k, v, shape[-1] ** -0.5)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_a_softmax_of_many_rows_is_pytorchs():
    x = normal(0, 3, 50, 257) * 10
    torch.testing.assert_close(kina.load(PROGRAMS / "softmax.kina").softmax_last(x), torch.softmax(x, dim=-1))
