"""Programs with computed positions in machine code: against the reference, where they end, and what is fused."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from kina import native, pipeline
from kina.core.interpreter import run
from kina.core.ir import Require
from kina.diagnostics import KinaError
from kina.native import runtime
from kina.source import Source

rng = np.random.default_rng(5)


def checks(program) -> int:
    return sum(isinstance(step, Require) for step in program.steps)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def program(text: str):
    """The function of a text, and its kernels."""
    checked = pipeline.check(Source("test.kina", dedent(text).lstrip()))
    assert checked.ok, checked.diagnostics
    (function,) = checked.elaboration.program.functions.values()
    return function, pipeline.lower(function)


def compiled(text: str, *, worth_a_thread: int = 65536):
    """The function of a text, and its machine code."""
    function, kernels = program(text)
    return function, native.Executable(kernels, native.Machine.host(), worth_a_thread=worth_a_thread)


def same(text: str, sizes: dict[str, int], *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """What both the reference and machine code give, for any layout."""
    function, executable = compiled(text)
    want = run(function, sizes, inputs)
    for given in (
        inputs,
        [np.array(x, order="F") for x in inputs],
        [np.ascontiguousarray(x[::-1])[::-1] if x.ndim else x for x in inputs],
    ):
        got = executable.run(sizes, given)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)
    return want


CROSS_ENTROPY = """
let loss [B, V] requires (B >= 1) (logits : F32[B, V]) (targets : {}[B]) : F32 =
  let picked = take_along[axis=1] (log_softmax[axis=1] logits) (expand_dims[axis=1] targets) in
  -(reduce[mean, axes=[0, 1]] picked)
"""


@pytest.mark.parametrize(("b", "v"), [(1, 1), (3, 5), (64, 1000)])
def test_cross_entropy_picks_its_targets(b, v):
    x, targets = floats(b, v), rng.integers(0, v, b)
    (got,) = same(CROSS_ENTROPY.format("I64"), {"B": b, "V": v}, x, targets)
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    np.testing.assert_allclose(got, -logs[np.arange(b), targets].mean(), rtol=1e-5)


def test_indices_known_to_lie_inside_are_checked_by_no_kernel():
    _, known = program(CROSS_ENTROPY.format("Idx[V]"))
    assert checks(known) == 0
    _, plain = program(CROSS_ENTROPY.format("I32"))
    assert checks(plain) == 1


def test_an_embedding_and_what_follows_are_one_kernel():
    text = """
    let f [V, D, B, S] (table : F32[V, D]) (ids : Idx[V][B, S]) (w : F32[D]) : F32[B, S, D] =
      let x = gather[axis=0] (table * w) ids in
      x * rsqrt (reduce_keep[mean, axis=2] (x * x) + 1e-6)
    """
    _, kernels = program(text)
    assert len(kernels.kernels) == 1, str(kernels)
    for v, d, b, s in ((1, 1, 1, 1), (7, 33, 2, 3), (50, 128, 4, 0)):
        same(text, {"V": v, "D": d, "B": b, "S": s}, floats(v, d), rng.integers(0, v, (b, s)), floats(d))


def test_lookups_inside_lookups_and_reductions():
    text = """
    let f [V, W, D, B] requires (B >= 1) (table : F32[V, D]) (through : Idx[V][W]) (ids : I32[B]) : (F32[D], F32[B]) =
      let at = gather[axis=0] through ids in
      let rows = gather[axis=0] table at in
      (reduce[sum, axis=0] rows, reduce[max, axis=1] (rows + gather[axis=0] table (gather[axis=0] through ids)))
    """
    for v, w, d, b in ((1, 1, 1, 1), (9, 4, 17, 5), (30, 20, 64, 300)):
        inputs = floats(v, d), rng.integers(0, v, w), rng.integers(0, w, b).astype(np.int32)
        same(text, {"V": v, "W": w, "D": d, "B": b}, *inputs)


def test_an_argmax_is_read_at_without_a_check():
    text = """
    let f [B, N, D] requires (N >= 1) (scores : F32[B, N]) (values : F32[N, D]) : F32[B, D] =
      gather[axis=0] values (reduce[argmax, axis=1] scores)
    """
    _, kernels = program(text)
    assert checks(kernels) == 0
    for b, n, d in ((1, 1, 1), (5, 33, 7), (0, 3, 2)):
        same(text, {"B": b, "N": n, "D": d}, floats(b, n), floats(n, d))


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("n", [1, 16, 37, 1000])
def test_the_first_of_equals_and_the_first_nan_win(kind, n):
    text = f"let f [B, N] requires (N >= 1) (x : F32[B, N]) : Idx[N][B] = reduce[{kind}, axis=1] x"
    x = rng.integers(-3, 4, (50, n)).astype(np.float32)
    x[::3][rng.random((17, n)) < 0.1] = np.nan
    x[1::3][rng.random((17, n)) < 0.1] = np.inf
    (got,) = same(text, {"B": 50, "N": n}, x)
    np.testing.assert_array_equal(got, getattr(np, kind)(x, axis=1))


def test_a_cache_is_written_where_a_number_says():
    text = """
    let f [B, S, D, n] requires (n <= S) (cache : F32[B, S, D]) (new : F32[B, n, D]) (at : I64) : F32[B, S, D] =
      2.0 * update_slice[axis=1] cache new at
    """
    for b, s, d, n, at in ((1, 1, 1, 1, 0), (2, 9, 5, 3, 6), (2, 9, 16, 0, 9), (0, 4, 3, 2, 1)):
        sizes = {"B": b, "S": s, "D": d, "n": n}
        same(text, sizes, floats(b, s, d), floats(b, n, d), np.array(at))


# ---------------------------------------------------------------- where programs end

GATHER = "let f [V, D, B, S] (table : F32[V, D]) (ids : I64[B, S]) : F32[B, S, D] = gather[axis=0] table ids"


@pytest.mark.parametrize("worth", [1, 1 << 40])
@pytest.mark.parametrize("wrong", [{}, {(1, 2): 5}, {(0, 1): -1, (1, 0): 17}, {(1, 3): -(2**63)}, {(0, 0): 2**62}])
def test_machine_code_ends_where_the_reference_does_and_says_the_same(wrong, worth):
    function, executable = compiled(GATHER, worth_a_thread=worth)
    sizes = {"V": 5, "D": 3, "B": 2, "S": 4}
    table, ids = floats(5, 3), rng.integers(0, 5, (2, 4))
    for place, number in wrong.items():
        ids[place] = number
    if not wrong:
        np.testing.assert_array_equal(executable.run(sizes, [table, ids])[0], table[ids])
        return
    with pytest.raises(KinaError) as want:
        run(function, sizes, [table, ids])
    for given in (ids, np.asfortranarray(ids)):
        with pytest.raises(KinaError) as got:
            executable.run(sizes, [table, given])
        assert str(got.value) == str(want.value)
    # A call after one that ended is like any other.
    np.testing.assert_array_equal(executable.run(sizes, [table, ids * 0])[0], table[ids * 0])


def test_nothing_is_read_of_an_empty_table():
    _, executable = compiled(GATHER)
    sizes = {"V": 0, "D": 3, "B": 1, "S": 1}
    with pytest.raises(KinaError, match="the index 0 at \\[0, 0\\] is out of range: the axis is empty"):
        executable.run(sizes, [floats(0, 3), np.zeros((1, 1), np.int64)])


def test_computed_numbers_are_checked_too_and_the_first_check_speaks():
    text = """
    let f [V, B] (x : F32[V]) (i : I32[B]) (y : F32[B]) : (F32[B], F32[B, V]) =
      let j = cast[I64] (y * 2.0) in
      (gather[axis=0] x (cast[I64] i + j), one_hot[F32] j V)
    """
    function, executable = compiled(text)
    sizes = {"V": 6, "B": 3}
    x, y = floats(6), np.array([0, 1, 2], np.float32)
    for i, y_ in (([0, 1, 1], y), ([0, 1, 2], y), ([0, 1, 1], y - 1), ([9, 9, 9], y + 9)):
        inputs = [x, np.array(i, np.int32), y_.astype(np.float32)]
        try:
            want = run(function, sizes, inputs)
        except KinaError as fault:
            with pytest.raises(KinaError) as got:
                executable.run(sizes, inputs)
            assert str(got.value) == str(fault)
        else:
            for a, b in zip(executable.run(sizes, inputs), want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_a_check_whose_result_nothing_needs_ends_the_program():
    _, executable = compiled("let f [B] (i : I64[B]) (x : F32[B]) : F32[B] = let _ = to_idx i 3 in x + 1.0")
    with pytest.raises(KinaError, match="to_idx: the index 3 at \\[1\\] is out of range"):
        executable.run({"B": 2}, [np.array([0, 3]), floats(2)])


# ---------------------------------------------------------------- orders and scatters

NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 31, 500])
def test_orders_are_those_of_the_reference(n):
    text = """
    let f [A, N, k] requires (k <= N) (x : F32[A, N]) : (F32[A, N], Idx[N][A, N], F32[A, k], Idx[N][A, k]) =
      let (best, at) = top_k[axis=1] (x + x) k in
      (sort[axis=1] x, argsort[axis=1] x, best, at)
    """
    x = rng.choice(np.array(NUMBERS, np.float32), (7, n))
    for k in {0, min(1, n), n // 2, n}:
        ordered, at, best, places = same(text, {"A": 7, "N": n, "k": k}, x)
        np.testing.assert_array_equal(at, np.argsort(x, 1, kind="stable"))
        np.testing.assert_array_equal(ordered, np.sort(x, 1))
        np.testing.assert_array_equal(best, 2 * np.take_along_axis(x, places, 1))


def test_along_an_outer_axis_and_through_a_view():
    text = """
    let f [A, N, B] (x : F32[N, B, A]) : (F32[A, N, B], Idx[N][A, N, B]) =
      let y = transpose x [2, 0, 1] in
      (sort[axis=1] y, argsort[axis=1] y)
    """
    for a, n, b in ((1, 1, 1), (3, 17, 5), (2, 0, 3), (0, 4, 2)):
        same(text, {"A": a, "N": n, "B": b}, floats(n, b, a))


SCATTER = """
let f [A, V, B, D] (x : F32[A, V, D]) (ids : I64[B]) (u : F32[A, B, D]) : F32[A, V, D] =
  scatter[{}, axis=1] x ids (u * 3.0)
"""


@pytest.mark.parametrize("kind", ["add", "set", "max", "min"])
def test_a_scatter_is_the_same_for_any_number_of_threads(kind):
    _, executable = compiled(SCATTER.format(kind), worth_a_thread=1)
    before = runtime.threads()
    sizes = {"A": 2, "V": 13, "B": 400, "D": 9}
    x, ids, u = floats(2, 13, 9), rng.integers(0, 13, 400), 1e3 * floats(2, 400, 9)
    want = np.array(x)
    combine = {"add": np.add, "set": lambda old, new: new, "max": np.maximum, "min": np.minimum}[kind]
    for n, row in enumerate(ids):
        want[:, row] = combine(want[:, row], u[:, n] * np.float32(3))
    try:
        for threads in (1, 2, 3):
            runtime.set_threads(threads)
            np.testing.assert_array_equal(executable.run(sizes, [x, ids, u])[0], want)
    finally:
        runtime.set_threads(before)
    same(SCATTER.format(kind), {"A": 1, "V": 1, "B": 0, "D": 1}, floats(1, 1, 1), ids[:0], floats(1, 0, 1))


def test_scattering_outside_ends_the_program():
    _, executable = compiled(SCATTER.format("add"))
    sizes = {"A": 1, "V": 3, "B": 2, "D": 1}
    inputs = [floats(1, 3, 1), np.array([0, 3]), floats(1, 2, 1)]
    with pytest.raises(KinaError, match="scatter: the index 3 at \\[1\\] is out of range: it has to lie in \\[0, 3\\)"):
        executable.run(sizes, inputs)


def test_scattering_into_half_precision_is_rounded_once():
    text = "let f [V, B] (x : BF16[V]) (i : Idx[V][B]) (u : BF16[B]) : BF16[V] = scatter[add, axis=0] x i u"
    function, executable = compiled(text)
    half = function.inputs[0].type.dtype.numpy
    x, i, u = np.array([256], half), np.zeros(8, np.int64), np.full(8, 0.5, half)
    (got,) = executable.run({"V": 1, "B": 8}, [x, i, u])
    assert float(got[0]) == 260  # each step rounded would stay at 256
