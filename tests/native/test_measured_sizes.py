"""Sizes from values natively: read while the program runs, against the reference, on one thread and on several."""

from __future__ import annotations

from itertools import product
from textwrap import dedent

import numpy as np
import pytest

from kina import native
from kina.core import interpreter
from kina.diagnostics import KinaError
from kina.kernels.ir import BandKernel
from kina.kernels.memory import plan_memory
from kina.native.runtime import set_threads
from kina.pipeline import check, lower
from kina.source import Source

MACHINE = native.Machine.host()
rng = np.random.default_rng(11)


class Both:
    """A function natively, on one thread and on three, and by the reference."""

    def __init__(self, text: str) -> None:
        checked = check(Source("sizes.kina", dedent(text).lstrip()))
        assert checked.ok, [d.message for d in checked.diagnostics]
        self.core = checked.function("f")
        self.program = lower(self.core)
        self.alone = native.Executable(self.program, MACHINE, worth_a_thread=1 << 60)
        self.shared = native.Executable(self.program, MACHINE, worth_a_thread=0)

    def agree(self, sizes: dict[str, int], *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        wanted = interpreter.run(self.core, sizes, inputs)
        for executable in (self.alone, self.shared):
            got = executable.run(sizes, inputs)
            for x, y in zip(got, wanted, strict=True):
                assert (x.shape, x.dtype) == (y.shape, y.dtype)
                assert x.flags.c_contiguous
                np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=2e-5, atol=2e-5)
        return got

    def refuse(self, message: str, sizes: dict[str, int], *inputs: np.ndarray) -> None:
        for executable in (self.alone, self.shared):
            with pytest.raises(KinaError, match=message):
                executable.run(sizes, inputs)


@pytest.fixture(autouse=True)
def three_threads():
    set_threads(3)
    yield
    set_threads(None)


def draw(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def flags(share: float, *shape: int) -> np.ndarray:
    return rng.random(shape) < share


SHARES = (0.0, 0.1, 0.5, 1.0)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 100_003])
def test_nonzero_finds_all_places_in_order_for_any_number_of_threads(n):
    both = Both("let f [N] (m : Bool[N]) : exists [K] requires (K <= N). Idx[N][K] = nonzero m")
    for share in SHARES:
        mask = flags(share, n)
        for given in (mask, np.ascontiguousarray(mask[::-1])[::-1], np.repeat(mask, 3)[::3]):
            (got,) = both.agree({"N": n}, given)
            np.testing.assert_array_equal(got, np.nonzero(mask)[0])


def test_nonzero_of_several_axes_and_of_computed_masks():
    both = Both("""
        let f [A, B, C] (x : F32[A, B, C]) : exists [K] requires (K <= A * B * C). (Idx[A][K], Idx[B][K], Idx[C][K]) =
          nonzero (x > 0.5)
    """)
    for a, b, c in product((0, 1, 3, 17), (1, 4), (0, 1, 31)):
        both.agree({"A": a, "B": b, "C": c}, draw(a, b, c))
        both.agree({"A": a, "B": b, "C": c}, draw(c, b, a).T)


@pytest.mark.parametrize("dtype", ["F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "Bool"])
def test_compress_keeps_what_a_mask_chooses_in_every_dtype(dtype):
    both = Both(f"""
        let f [N, D] (x : {dtype}[N, D]) (m : Bool[N]) : exists [K] requires (K <= N). {dtype}[K, D] =
          compress[axis=0] x m
    """)
    numpy = both.core.inputs[0].type.dtype.numpy
    for n, d, share in product((0, 1, 5, 300), (1, 9), SHARES):
        both.agree({"N": n, "D": d}, (draw(n, d) * 3).astype(numpy), flags(share, n))


def test_a_count_given_by_hand_has_to_be_right():
    both = Both("let f [N, K] (m : Bool[N]) (x : F32[K]) : Idx[N][K] = nonzero_along[axis=0] m K")
    mask = np.array([True, False, True])
    both.agree({"N": 3, "K": 2}, mask, draw(2))
    both.refuse("nonzero_along: 2 elements of the mask are true, not 3", {"N": 3, "K": 3}, mask, draw(3))


def test_a_size_that_nothing_bounds_takes_memory_when_it_is_known():
    both = Both("""
        let f [D] (k : I64) (x : F32[D]) : exists [n]. (F32[n, D], F32[n], I64) =
          let [n] = to_dim k in
          let rows = broadcast x [n, D] * 2.0 + reshape (cast[F32] (iota[I64] n)) [n, 1] in
          (rows @ eye[F32] D, cumsum[axis=0] (reduce[sum, axis=1] rows), dim_value n)
    """)
    assert {place.known_with for place in plan_memory(both.program).late} == {"n"}
    for n, d in product((0, 1, 2, 100, 5000), (1, 3, 16)):
        both.agree({"D": d}, np.array(n), draw(d))


def test_a_bound_that_is_checked_is_memory_planned_at_the_start():
    both = Both("""
        let f [N] (x : F32[N]) (k : I64) : exists [n] requires (n <= N). F32[n] =
          let [n] = to_dim k in
          let assert (n <= N) in
          x[0:n] * 2.0
    """)
    assert plan_memory(both.program).late == ()
    for k in (0, 1, 5, 100):
        both.agree({"N": 100}, draw(100), np.array(k))
    both.refuse(r"sizes.kina:3:.*n <= N does not hold for N = 4, n = 5$", {"N": 4}, draw(4), np.array(5))
    both.refuse(r"sizes.kina:2:.*n would be -1, and a dimension is not negative", {"N": 4}, draw(4), np.array(-1))


def test_sizes_beyond_any_memory_are_refused_and_the_next_call_is_right():
    both = Both("""
        let f (k : I64) : exists [n]. F32[n, n] =
          let [n] = to_dim k in
          reshape (cumsum[axis=0] (ones[F32] [n])) [n, 1] * ones[F32] [n, n]
    """)
    for k in (1 << 31, 1 << 40, (1 << 63) - 1):
        both.refuse("n is .* more bytes than can be addressed", {}, np.array(k))
    both.refuse("n is .* there is no memory for what depends on it", {}, np.array(1 << 29))
    both.agree({}, np.array(5))


def test_a_size_from_a_value_in_each_step_of_a_loop():
    both = Both("""
        let f [N] (counts : I64[N]) (x : F32[N]) : (F32, F32[N]) =
          for i < N with total : F32 = 0.0 do
            let [n] = to_dim counts[i] in
            let some = cast[F32] (iota[I64] n) * x[i] in
            let both = cumsum[axis=0] some in
            total + reduce[sum, axis=0] (both * both) yield reduce[sum, axis=0] both
    """)
    for n in (0, 1, 2, 20):
        both.agree({"N": n}, rng.integers(0, 60, n), draw(n))
    both.refuse("n would be -2", {"N": 3}, np.array([4, -2, 1]), draw(3))


def test_a_size_from_a_value_in_a_branch():
    both = Both("""
        let f [N] (x : F32[N]) (c : Bool) (k : I64) : F32 =
          if c then
            let [n] = to_dim k in reduce[sum, axis=0] (cumsum[axis=0] (cast[F32] (iota[I64] n)))
          else reduce[sum, axis=0] (let [m] some = compress[axis=0] x (x > 0.0) in some)
    """)
    for n, c, k in product((0, 1, 50), (True, False), (0, 3, 40)):
        both.agree({"N": n}, draw(n), np.array(c), np.array(k))
    assert both.alone.run({"N": 1}, [draw(1), np.array(False), np.array(-5)])


def test_a_loop_over_a_measured_size_whose_state_grows():
    both = Both("""
        let f [D] (k : I64) (x : F32[D]) : exists [n]. (F32[n + 1, D], F32[n, D]) =
          let [n] = to_dim k in
          for i < n with s : F32[i + 1, D] = reshape x [1, D] do
            concat[axis=0] s (reduce_keep[mean, axis=0] s + 1.0) yield x * cast[F32] (dim_value i)
    """)
    for n, d in product((0, 1, 2, 30), (1, 5)):
        both.agree({"D": d}, np.array(n), draw(d))


def test_sizes_that_depend_on_each_other():
    both = Both("""
        let f [N] (x : F32[N]) : exists [a, b] requires (a <= N && b <= a). (F32[a], F32[b]) =
          let [a] some = compress[axis=0] x (x > 0.0) in
          let [b] fewer = compress[axis=0] some (some > 0.7) in
          (some * 2.0, fewer + reduce[sum, axis=0] some)
    """)
    for n in (0, 1, 10, 3000):
        both.agree({"N": n}, draw(n))


def test_facts_that_come_with_a_size_are_checked():
    both = Both("""
        let pairs (k : I64) : exists [n] requires (n mod 2 = 0). F32[n] =
          let [n] = to_dim k in
          let assert (n mod 2 = 0) in
          cast[F32] (iota[I64] n)
        let f (k : I64) : exists [m]. F32[m, 2] =
          let [n] x = pairs k in
          reshape x [n / 2, 2]
    """)
    for k in (0, 2, 10):
        both.agree({}, np.array(k))
    both.refuse("n mod 2 = 0 does not hold for n = 3", {}, np.array(3))


def test_attention_over_a_measured_length_has_no_bands():
    both = Both("""
        let f [H, S, D] (q : F32[H, S, D]) (k : I64) : F32[H, S, D] =
          let [n] = to_dim k in
          let keys = reshape (cast[F32] (iota[I64] n)) [1, n, 1] * 0.01 + ones[F32] [H, n, D] in
          softmax[axis=2] (q @ transpose keys [0, 2, 1]) @ keys
    """)
    assert not any(isinstance(kernel, BandKernel) for kernel in both.program.kernels)
    for s, n in product((1, 5), (1, 3, 70)):
        both.agree({"H": 2, "S": s, "D": 4}, draw(2, s, 4), np.array(n))


def test_results_outlive_the_call_and_share_nothing():
    both = Both("let f (k : I64) : exists [n]. I64[n] = let [n] = to_dim k in iota[I64] n")
    kept = [both.alone.run({}, [np.array(n)])[0] for n in (5, 70_000, 3)]
    again = [both.alone.run({}, [np.array(n)])[0] for n in (5, 70_000, 3)]
    for x, y in zip(kept, again, strict=True):
        x[...] = -1
        np.testing.assert_array_equal(y, np.arange(len(y)))
    assert both.alone.run({}, [np.array(2)])[0].flags.writeable
