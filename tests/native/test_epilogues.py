"""Work on the elements of a product, done on its tiles: the same as the reference, in one kernel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import kina
from kina.kernels import GemmKernel
from kina.pipeline import check, lower
from kina.source import Source

rng = np.random.default_rng(11)

ONE_PRODUCT = {
    "bias": "let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32[N]) : F32[M, N] = x @ w + b",
    "column": "let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32[M, 1]) : F32[M, N] = relu (x @ w * b)",
    "residual": "let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32[M, N]) : F32[M, N] = b + gelu[tanh] (x @ w)",
    "itself": """let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32) : F32[M, N] =
      let y = x @ w in y * sigmoid (b * y)""",
    "place": """let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32) : F32[M, N] =
      select (broadcast (expand_dims[axis=1] (iota[I64] M)) [M, N] >= iota[I64] N) (x @ w) b""",
    "wider": "let f [M, K, N] (x : F64[M, K]) (w : F64[K, N]) (b : F32[N]) : F64[M, N] = tanh (x @ w) + cast[F64] b",
    "turned": """let f [M, K, N] (x : F32[M, K]) (w : F32[K, N]) (b : F32[N, M]) : F32[M, N] =
      x @ w - transpose b [1, 0]""",
}
BATCHED = {
    "linear layer": """let f [A, B, M, K, N] (x : F32[A, B, M, K]) (w : F32[K, N]) (b : F32[B, M, N]) 
      : F32[A, B, M, N] = x @ w + b""",
    "products of their own": """let f [A, B, M, K, N] (x : F32[A, B, M, K]) (w : F32[A, B, K, N]) (b : F32[A, 1, 1, N])
      : F32[A, B, M, N] = silu (x @ w) * b""",
}
SIZES = [0, 1, 2, 7, 70, 131]


def one(text: str):
    module = check(Source("epilogue.kina", text))
    assert module.ok, module.diagnostics
    return lower(module.function("f")).kernels


def draw(shape: tuple[int, ...], dtype: str, layout: int) -> np.ndarray:
    if layout == 0 or not shape:
        return rng.standard_normal(shape).astype(dtype)
    if layout == 1:
        return rng.standard_normal(shape[::-1]).astype(dtype).T
    return rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)[..., ::2]


def same(function, arrays) -> None:
    got, want = function(*arrays), function.reference(*arrays)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1.0, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("text", [*ONE_PRODUCT.values(), *BATCHED.values()], ids=[*ONE_PRODUCT, *BATCHED])
def test_a_product_and_what_is_done_to_it_are_one_kernel(text):
    (kernel,) = one(text)
    assert isinstance(kernel, GemmKernel)
    assert kernel.finish is not None


@pytest.mark.parametrize("name", ONE_PRODUCT)
def test_it_is_what_the_reference_says_at_every_size(name):
    f = kina.compile(ONE_PRODUCT[name]).f
    dtype = "float64" if name == "wider" else "float32"
    for n, (m, k, width) in enumerate(itertools.product(SIZES, SIZES, SIZES)):
        shape = {"bias": (width,), "wider": (width,), "column": (m, 1), "residual": (m, width), "turned": (width, m)}
        b = draw(shape.get(name, ()), "float32", n % 3)
        same(f, [draw((m, k), dtype, n % 3), draw((k, width), dtype, n // 3 % 3), b])
    assert f.compilations == 1


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_batches_know_their_places_whether_they_are_joined_or_not(name, threads, monkeypatch):
    monkeypatch.setenv("KINA_THREADS", threads)
    f = kina.compile(BATCHED[name]).f
    for a, b, m, k, n in [(1, 1, 1, 1, 1), (2, 3, 5, 7, 9), (0, 2, 3, 4, 5), (3, 5, 33, 16, 70), (2, 2, 200, 64, 130)]:
        for swapped in (False, True):
            x = draw((b, a, m, k), "float32", 0).swapaxes(0, 1) if swapped else draw((a, b, m, k), "float32", 0)
            own = name != "linear layer"
            w = draw((a, b, k, n) if own else (k, n), "float32", 2)
            same(f, [x, w, draw((a, 1, 1, n) if own else (b, m, n), "float32", 0)])


def test_of_two_products_the_later_one_takes_the_work():
    gate = "let f [S, D, H] (x : F32[S, D]) (g : F32[D, H]) (u : F32[D, H]) : F32[S, H] = silu (x @ g) * (x @ u)"
    first, second = one(gate)
    assert isinstance(first, GemmKernel) and first.finish is None
    assert isinstance(second, GemmKernel) and second.finish is not None
    assert first.output in second.finish.inputs
    f = kina.compile(gate).f
    for s, d, h in itertools.product((1, 7, 64), (3, 70), (1, 33, 200)):
        same(f, [draw((s, d), "float32", 0), draw((d, h), "float32", 0), draw((d, h), "float32", 0)])


KEPT_APART = {
    "needed twice": """let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : (F32[M, N], F32[M, N]) =
      let y = x @ w in (y, exp y)""",
    "rows": "let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : F32[M, N] = softmax[axis=1] (x @ w)",
    "turned": "let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : F32[N, M] = exp (transpose (x @ w) [1, 0])",
    "another place": "let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : F32[M, N] = let y = x @ w in y + flip[axis=1] y",
    "another dtype": "let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : Bool[M, N] = x @ w > 0.0",
    "a part": "let f [M, N] (x : F32[M, M]) (w : F32[M, N]) : F32[2 * M, N] = concat[axis=0] (x @ w) (exp w)",
}


@pytest.mark.parametrize("text", KEPT_APART.values(), ids=KEPT_APART.keys())
def test_what_is_more_than_work_on_each_element_is_a_kernel_of_its_own(text):
    assert all(not isinstance(k, GemmKernel) or k.finish is None for k in one(text))
    f = kina.compile(text).f
    x, w = draw((9, 9), "float32", 0), draw((9, 21), "float32", 0)
    np.testing.assert_equal(len(f(x, w)), len(f.reference(x, w)))


def test_a_loop_of_layers_finishes_its_products_at_every_step():
    text = """let f [N, S, D] (x : F32[S, D]) (w : F32[N, D, D]) (b : F32[N, D]) : F32[S, D] =
      for i < N with h : F32[S, D] = x do h + tanh (h @ w[i] + b[i])
    """
    f = kina.compile(text).f
    for n, s, d in [(0, 2, 3), (1, 1, 1), (5, 9, 33), (30, 70, 16)]:
        same(f, [draw((s, d), "float32", 0), 0.1 * draw((n, d, d), "float32", 0), draw((n, d), "float32", 0)])
