"""Attention in bands of rows: one kernel where it may be, and the values of the reference."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from kina import native
from kina.core.interpreter import run
from kina.kernels import BandKernel, KernelProgram
from kina.native.pool import Pool
from kina.native.runtime import set_threads
from kina.passes.specialise import specialise
from kina.pipeline import check, lower
from kina.source import Source
from kina.types import DType

MACHINE = native.Machine.host()

ONE_KERNEL = {
    "attention": """
        let f [B, H, S, T, D] (q : F32[B, H, S, D]) (k : F32[B, H, T, D]) (v : F32[B, H, T, D]) : F32[B, H, S, D] =
          softmax[axis=3] ((q @ transpose k [0, 1, 3, 2]) * 0.125) @ v
    """,
    "of doubles": """
        let f [B, S, T, D] (q : F64[B, S, D]) (k : F64[B, T, D]) (v : F64[B, T, D]) : F64[B, S, D] =
          softmax[axis=2] (q @ transpose k [0, 2, 1]) @ v
    """,
    "with a mask and a bias": """
        let f [H, S, T, D] (q : F32[H, S, D]) (k : F32[H, T, D]) (v : F32[H, T, D])
            (m : Bool[S, T]) (b : F32[H, 1, T]) : F32[H, S, D] =
          let scores = q @ transpose k [0, 2, 1] + broadcast b [H, S, T] in
          softmax[axis=2] (select (broadcast m [H, S, T]) scores (full (-1e9) [H, S, T])) @ v
    """,
    "of heads out of one projection": """
        let f [B, S, H, D] (q : F32[B, S, H * D]) (k : F32[B, S, H * D]) (v : F32[B, S, H * D]) : F32[B, H, S, D] =
          let qh = transpose (reshape q [B, S, H, D]) [0, 2, 1, 3] in
          let kh = transpose (reshape k [B, S, H, D]) [0, 2, 3, 1] in
          let vh = transpose (reshape v [B, S, H, D]) [0, 2, 1, 3] in
          softmax[axis=3] (qh @ kh) @ vh
    """,
}
SEVERAL = {
    "whose weights are a result too": """
        let f [H, S, D] (q : F32[H, S, D]) (k : F32[H, S, D]) (v : F32[H, S, D]) : (F32[H, S, D], F32[H, S, S]) =
          let w = softmax[axis=2] (q @ transpose k [0, 2, 1]) in
          (w @ v, w)
    """,
    "with softmax along the queries": """
        let f [H, S, D] (q : F32[H, S, D]) (k : F32[H, S, D]) (v : F32[H, S, D]) : F32[H, S, D] =
          softmax[axis=1] (q @ transpose k [0, 2, 1]) @ v
    """,
    "transposed between": """
        let f [H, S, D] (q : F32[H, S, D]) (k : F32[H, S, D]) (v : F32[H, S, D]) : F32[H, S, D] =
          softmax[axis=2] (transpose (q @ transpose k [0, 2, 1]) [0, 2, 1]) @ v
    """,
    "of products with weights": """
        let f [B, S, D] (x : F32[B, S, D]) (w : F32[D, D]) : F32[B, S, D] = softmax[axis=2] (x @ w) @ w
    """,
}


@pytest.fixture(autouse=True)
def threads_as_before():
    yield
    set_threads(None)


def function_of(text: str):
    module = check(Source("bands.kina", dedent(text)))
    assert module.ok, module.diagnostics
    return module.function("f")


def compare(text: str, rounds: int = 25) -> KernelProgram:
    """Runs a program on one thread and two at sizes around those of a band, and gives it."""
    checked = function_of(text)
    program, function = lower(checked), specialise(checked)
    executable = native.Executable(program, MACHINE, worth_a_thread=0)
    rng = np.random.default_rng(2)
    for _ in range(rounds):
        sizes = {name: int(rng.choice((0, 1, 2, 3, 5))) for name in function.dimensions}
        sizes |= {n: int(rng.choice((0, 1, 3, 16, 63, 64, 65, 130, 300))) for n in ("S", "T") if n in sizes}
        inputs = []
        for value in function.inputs:
            shape = tuple(d.evaluate(sizes) for d in value.type.shape)
            drawn = rng.standard_normal(shape) * 2
            drawn = np.ascontiguousarray(drawn[..., ::-1])[..., ::-1] if drawn.ndim and rng.random() < 0.3 else drawn
            inputs.append(drawn > 0 if value.type.dtype is DType.BOOL else drawn.astype(value.type.dtype.numpy))
        want = run(function, sizes, inputs)
        set_threads(1)
        alone = executable.run(sizes, inputs)
        set_threads(2)
        together = executable.run(sizes, inputs)
        for x, y, expected in zip(alone, together, want, strict=True):
            assert x.tobytes() == y.tobytes(), f"at {sizes}, a result depends on the number of threads"
            np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5, err_msg=f"at {sizes}")
    return program


@pytest.mark.parametrize("text", ONE_KERNEL.values(), ids=ONE_KERNEL.keys())
def test_attention_is_one_kernel(text):
    program = compare(text)
    assert [type(kernel) for kernel in program.kernels] == [BandKernel]
    assert not program.temporaries


@pytest.mark.parametrize("text", SEVERAL.values(), ids=SEVERAL.keys())
def test_what_is_no_chain_of_rows_stays_apart(text):
    program = compare(text, rounds=8)
    assert not any(isinstance(kernel, BandKernel) for kernel in program.kernels)


def test_two_attentions_in_a_row_share_memory_without_meeting():
    program = compare("""
        let f [H, S, D] (q : F32[H, S, D]) (k : F32[H, S, D]) (v : F32[H, S, D]) : F32[H, S, D] =
          let a = softmax[axis=2] (q @ transpose k [0, 2, 1]) @ v in
          let b = softmax[axis=2] (v @ transpose k [0, 2, 1]) @ q in
          softmax[axis=2] (a @ transpose b [0, 2, 1]) @ (a + b)
    """)
    assert sum(isinstance(kernel, BandKernel) for kernel in program.kernels) == 3


def test_attention_never_holds_the_matrix_of_all_pairs():
    class Watched(Pool):
        most = 0

        def take(self, size):
            self.most = max(self.most, size)
            return super().take(size)

    pool = Watched()
    executable = native.Executable(lower(function_of(ONE_KERNEL["attention"])), MACHINE, pool=pool)
    long = 4096
    x = np.zeros((1, 4, long, 8), np.float32)
    set_threads(2)
    executable.run({"B": 1, "H": 4, "S": long, "T": long, "D": 8}, [x, x, x])
    assert pool.most < 4 * long * long * 4 / 8
