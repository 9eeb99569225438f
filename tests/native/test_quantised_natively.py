"""Programs over quantised and half-precision weights: native code against the reference and against NumPy."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import kina
from kina.kernels.ir import GemmKernel
from kina.pipeline import lower
from kina.types import DType
from quantised_arrays import QUANTISED, numbers_of, quantised

rng = np.random.default_rng(17)
LINEAR = """
let linear [T : Weight, M, N, K] (x : F32[M, K]) (w : T[N, K]) : F32[M, N] = x @ transpose (cast[F32] w) [1, 0]
"""


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def near(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * max(1, np.abs(want).max(initial=0)))


@pytest.fixture(scope="module")
def module():
    return kina.compile(
        LINEAR
        + """
type Layer [T : Weight, D, F] = { up : T[F, D], down : T[D, F], norm : F32[D] }
let mlp [T : Weight, B, D, F] (l : Layer[T, D, F]) (x : F32[B, D]) : F32[B, D] =
  linear (silu (linear (x * l.norm) l.up)) l.down
let network [T : Weight, N, B, D, F] (layers : List[N, Layer[T, D, F]]) (x : F32[B, D]) : F32[B, D] =
  for i < N with h : F32[B, D] = x do h + mlp layers[i] h
let turned [M, N] (w : Q4_1[M, 64]) (x : F32[64, N]) : F32[M, N] = w @ x
let along_columns [M, K] (x : F32[M, K]) (w : Q8_0[K, 96]) : F32[M, 96] = x @ w
let both [M, N] (x : Q4_0[M, 64]) (w : Q8_0[N, 64]) : F32[M, N] = x @ transpose w [1, 0]
let batched [B, M, N] (x : F32[B, M, 64]) (w : Q5_1[B, N, 64]) : F32[B, M, N] = x @ transpose w [0, 2, 1]
let shared [B, M, N] (x : F32[B, M, 64]) (w : Q5_0[N, 64]) : F32[B, M, N] = x @ transpose w [1, 0]
let expert [E, M, N] (x : F32[M, 64]) (w : Q4_1[E, N, 64]) (e : Idx[E]) : F32[M, N] = x @ transpose w[e] [1, 0]
let row_sums [N] (w : Q4_1[N, 64]) : F32[N] = reduce[sum, axis=1] (cast[F32] w)
let total [N] (w : Q4_1[N, 64]) : F32 = reduce[sum, axes=[0, 1]] (cast[F32] w)
let scaled [N] (w : Q8_0[N, 64]) (s : F32[N, 1]) : F32[N, 64] = cast[F32] w * s + 1.0
let upside_down [N] (w : Q4_0[N, 96]) : F32[96, N] = transpose w [1, 0]
let second [N] (w : Q4_0[3, N, 96]) : F32[N, 96] = cast[F32] w[1]
let biased [M, N] (x : F32[M, 64]) (w : Q4_1[N, 64]) (b : F32[N]) : F32[M, N] =
  relu (x @ transpose w [1, 0] + b)
let halves [M, N, K] (x : BF16[M, K]) (w : BF16[K, N]) : BF16[M, N] = x @ w
let kept [N] (w : Q4_0[3, N, 64]) : Q4_0[N, 64] = w[1]
"""
    )


@pytest.mark.parametrize("dtype", [*QUANTISED, DType.F32, DType.BF16, DType.F16], ids=str)
@pytest.mark.parametrize("m", [0, 1, 2, 4, 33])
def test_one_linear_layer_serves_weights_of_every_dtype(module, dtype, m):
    for n, k in ((0, 64), (1, 32), (65, 64), (130, 352)):
        x, values = floats(m, k), floats(n, k)
        w = quantised(values, dtype) if dtype.block else values.astype(dtype.numpy)
        wide = numbers_of(w, dtype) if dtype.block else w.astype(np.float32)
        got = module.linear(x, w)
        near(got, x @ wide.T)
        near(got, module.linear.reference(x, w))


@pytest.mark.parametrize("dtype", [DType.Q4_1, DType.Q8_0, DType.F16], ids=str)
@pytest.mark.parametrize("b", [1, 7])
def test_a_network_of_records_runs_over_quantised_layers(module, dtype, b):
    values = {"up": floats(3, 96, 64) / 8, "down": floats(3, 64, 96) / 8}
    layers = {n: quantised(v, dtype) if dtype.block else v.astype(dtype.numpy) for n, v in values.items()}
    layers["norm"] = floats(3, 64)
    x = floats(b, 64)
    near(module.network(layers, x), module.network.reference(layers, x))
    items = [{n: v[i] for n, v in layers.items()} for i in range(3)]
    np.testing.assert_array_equal(module.network(items, x), module.network(layers, x))


def call(name: str) -> list[object]:
    """Arguments for a function of the module."""
    q = {d: quantised(floats(5, 64), d) for d in QUANTISED}
    match name:
        case "turned":
            return [q[DType.Q4_1], floats(64, 7)]
        case "along_columns":
            return [floats(3, 5), quantised(floats(5, 96), DType.Q8_0)]
        case "both":
            return [q[DType.Q4_0], q[DType.Q8_0]]
        case "batched":
            return [floats(4, 3, 64), quantised(floats(4, 5, 64), DType.Q5_1)]
        case "shared":
            return [floats(4, 3, 64), q[DType.Q5_0]]
        case "expert":
            return [floats(3, 64), quantised(floats(6, 5, 64), DType.Q4_1), 4]
        case "row_sums" | "total":
            return [q[DType.Q4_1]]
        case "scaled":
            return [q[DType.Q8_0], floats(5, 1)]
        case "upside_down":
            return [quantised(floats(37, 96), DType.Q4_0)]
        case "second":
            return [quantised(floats(3, 5, 96), DType.Q4_0)]
        case "biased":
            return [floats(9, 64), q[DType.Q4_1], floats(5)]
        case _:
            return [floats(9, 33).astype(DType.BF16.numpy), floats(33, 20).astype(DType.BF16.numpy)]


CALLS = [
    "turned", "along_columns", "both", "batched", "shared", "expert", "row_sums", "total", "scaled", "upside_down",
    "second", "biased", "halves",
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_native_code_reads_quantised_tensors_as_the_reference_does(module, name):
    function, arguments = getattr(module, name), call(name)
    got, want = function(*arguments), function.reference(*arguments)
    assert got.dtype == want.dtype
    limit = 1e-2 if name == "halves" else 1e-4
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=limit, atol=limit * 10)


def test_strides_and_odd_addresses_make_no_difference(module):
    w = quantised(floats(40, 160), DType.Q4_1)
    x = floats(1, 160)
    want = module.linear(x, w)
    odd = np.zeros(w.nbytes + 1, np.uint8)
    odd[1:] = w.view(np.uint8).ravel()
    wide = np.zeros((80, 12), DType.Q4_1.numpy)
    wide[::2, :5] = w
    shifted = np.zeros((40, 101), np.uint8)  # rows that do not lie whole blocks apart are copied
    shifted[:, :100] = w.view(np.uint8).reshape(40, 100)
    for laid_out in (odd[1:].view(DType.Q4_1.numpy).reshape(40, 5), wide[::2, :5], w[::-1].copy()[::-1]):
        np.testing.assert_array_equal(module.linear(x, laid_out), want)
    np.testing.assert_array_equal(module.linear(x, shifted[:, :100].view(DType.Q4_1.numpy)), want)


def test_weights_are_not_stored_as_numbers(check):
    text = "let f [M, N] (x : F32[M, 64]) (w : Q4_1[N, 64]) : F32[M, N] = silu (x @ transpose w [1, 0])"
    program = lower(check(text).accepts().checked.function("f"))
    (gemm,) = program.kernels
    assert isinstance(gemm, GemmKernel)
    assert gemm.right.value.type.dtype is DType.Q4_1
    assert not program.temporaries


def test_a_quantised_result_is_left_to_the_reference(module):
    w = quantised(floats(3, 5, 64), DType.Q4_0)
    with pytest.raises(kina.KinaError, match="would store the quantised tensor"):
        module.kept(w)
    np.testing.assert_array_equal(module.kept.reference(w), w[1])


GUARDED = """
import numpy as np
from guarded import guarded
from quantised_arrays import QUANTISED, numbers_of, quantised
import kina
from kina.native.runtime import set_threads
from kina.types import DType

set_threads(2)
rng = np.random.default_rng(1)
for dtype in (*QUANTISED, DType.F16, DType.BF16):
    module = kina.compile(f'''
let linear [M, N, K] requires (K mod 32 = 0) (x : F32[M, K]) (w : {dtype}[N, K]) : F32[M, N] =
  x @ transpose (cast[F32] w) [1, 0]
let rows [V, K, B] requires (K mod 32 = 0) (t : {dtype}[V, K]) (i : Idx[V][B]) : F32[B, K] =
  cast[F32] (gather[axis=0] t i)
''')
    for m, n, k in ((1, 1, 32), (1, 67, 96), (3, 5, 64), (9, 70, 544)):
        values = rng.standard_normal((n, k)).astype(np.float32)
        made = quantised(values, dtype) if dtype.block else values.astype(dtype.numpy)
        for at_start in (False, True):
            w = guarded(made.shape, made.dtype, at_start=at_start)
            w[...] = made
            x = guarded((m, k), np.float32, at_start=at_start)
            x[...] = rng.standard_normal((m, k))
            wide = numbers_of(made, dtype) if dtype.block else made.astype(np.float32)
            np.testing.assert_allclose(module.linear(x, w), x @ wide.T, rtol=1e-3, atol=1e-3)
            np.testing.assert_array_equal(module.rows(w, np.arange(n)[::-1]), wide[::-1])
print("done")
"""


def test_nothing_is_read_past_either_end_of_the_blocks():
    here = Path(__file__).parent
    path = [str(here), str(here.parent), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}\n{textwrap.dedent(GUARDED)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == "done", done.stderr[-2000:]
