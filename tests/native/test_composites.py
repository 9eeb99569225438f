"""Programs that people write, against the reference: each compiled once, run at many sizes, layouts and threads."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.native.runtime import set_threads
from kina.passes.specialise import specialise
from kina.pipeline import check, compile_function
from kina.source import Source
from kina.types import DType

PROGRAMS = {
    "rotary": """
        let f [B, S, H, D] (x : F32[B, S, H, 2 * D]) (c : F32[S, D]) (s : F32[S, D]) : F32[B, S, H, 2 * D] =
          let a = x[..., :D] in
          let b = x[..., D:] in
          let cc = broadcast (reshape c [S, 1, D]) [B, S, H, D] in
          let ss = broadcast (reshape s [S, 1, D]) [B, S, H, D] in
          concat[axis=3] (a * cc - b * ss) (b * cc + a * ss)
    """,
    "attention": """
        let f [B, H, S, D] (q : F32[B, H, S, D]) (k : F32[B, H, S, D]) (v : F32[B, H, S, D]) : F32[B, H, S, D] =
          softmax[axis=3] ((q @ transpose k [0, 1, 3, 2]) * 0.125) @ v
    """,
    "softmax of a merged axis": """
        let f [A, B, C] (x : F32[A, B, C]) : F32[A, B * C] = softmax[axis=1] (reshape x [A, B * C])
    """,
    "softmax of reductions": """
        let f [A, B, C] (x : F32[A, B, C]) : F32[A, B] = softmax[axis=1] (reduce[max, axis=2] x)
    """,
    "softmax along the first axis": """
        let f [A, B, C] (x : F32[A, B, C]) : F32[A, B, C] = softmax[axis=0] x
    """,
    "softmax transposed": """
        let f [A, B] (x : F32[A, B]) : F32[B, A] = transpose (softmax[axis=1] x) [1, 0]
    """,
    "softmax in half precision": """
        let f [A, B] (x : F16[A, B]) : F16[A, B] = softmax[axis=1] (x + x)
    """,
    "several results": """
        let f [A, B] (x : F32[A, B]) : (F32[A, B], F32[A], F32[]) =
          (softmax[axis=1] x, reduce[logsumexp, axis=1] x, reduce[sum, axes=[0, 1]] (exp x))
    """,
    "loss": """
        let f [A, B] (x : F32[A, B]) (y : F32[A, B]) : F32[] =
          reduce[mean, axis=0] (reduce[logsumexp, axis=1] x - reduce[sum, axis=1] (x * y))
    """,
    "scaled by the whole": """
        let f [A, B] (x : F32[A, B]) : F32[A, B] = (x - reduce[mean, axes=[0, 1]] x) / 3.0
    """,
    "a linear layer of joined rows": """
        let f [A, B, C, D] (x : F32[A, C]) (y : F32[B, C]) (w : F32[C, D]) : F32[A + B, D] = concat[axis=0] x y @ w
    """,
    "sums of joined columns": """
        let f [A, B, C] (x : F32[C, A]) (y : F32[C, B]) : F32[C] = reduce[sum, axis=1] (concat[axis=1] x y)
    """,
    "products of integers": "let f [A, B, C] (x : I32[A, B]) (y : I32[B, C]) : I32[A, C] = x @ y",
    "products in half precision": "let f [A, B, C] (x : F16[A, B]) (y : F16[B, C]) : F16[A, C] = x @ y",
    "products in bfloat16": "let f [A, B, C] (x : BF16[A, B]) (y : BF16[B, C]) : BF16[A, C] = x @ y",
    "products in double precision": "let f [A, B, C] (x : F64[A, B]) (y : F64[B, C]) : F64[A, C] = x @ y + 1.0",
    "variance in bfloat16": "let f [A, B] (x : BF16[A, B]) : BF16[] = reduce[var, axes=[0, 1]] x",
}
SIZES = (0, 1, 2, 3, 7, 16, 17, 33, 64, 70)
TOLERANCE = {DType.F64: 1e-11, DType.F32: 1e-4, DType.F16: 4e-3, DType.BF16: 3e-2}


@pytest.fixture(autouse=True)
def threads_as_before():
    yield
    set_threads(None)


def laid_out(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if x.ndim == 0:
        return x
    wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype)
    wide[..., ::3] = x
    repeated = np.broadcast_to(x[:1], x.shape) if x.shape[0] else x
    ways = [x, x, np.asfortranarray(x), x[..., ::-1], np.ascontiguousarray(x[::-1])[::-1], wide[..., ::3], repeated]
    return ways[rng.integers(len(ways))]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_one_compilation_serves_all_sizes_layouts_and_numbers_of_threads(text):
    module = check(Source("composite.kina", dedent(text)))
    assert module.ok, module.diagnostics
    function = specialise(module.function("f"))
    executable = compile_function(module.function("f"))
    rng = np.random.default_rng(5)
    for _ in range(30):
        sizes = {name: int(rng.choice(SIZES)) for name in function.dimensions}
        inputs = []
        for value in function.inputs:
            shape = tuple(d.evaluate(sizes) for d in value.type.shape)
            drawn = rng.integers(-100, 100, shape) if value.type.dtype.is_integer else rng.standard_normal(shape)
            inputs.append(laid_out(drawn.astype(value.type.dtype.numpy), rng))
        want = run(function, sizes, inputs)
        set_threads(1)
        alone = executable.run(sizes, inputs)
        set_threads(2)
        together = executable.run(sizes, inputs)
        for x, y, expected in zip(alone, together, want, strict=True):
            assert x.tobytes() == y.tobytes(), f"at {sizes}, a result depends on the number of threads"
            assert (x.shape, x.dtype) == (expected.shape, expected.dtype)
            limit = TOLERANCE.get(DType.of_numpy(x.dtype), 0)
            wide, exact = x.astype(np.float64), expected.astype(np.float64)
            np.testing.assert_allclose(wide, exact, rtol=limit, atol=4 * limit, err_msg=f"at {sizes}")
