"""Loops and branches natively: every kind against the reference, at sizes from 0, on one thread and on two."""

from __future__ import annotations

from itertools import product
from textwrap import dedent

import numpy as np
import pytest

from kina import native
from kina.core import interpreter
from kina.core.ir import Function
from kina.diagnostics import KinaError
from kina.elaborate.generics import Choice
from kina.kernels.memory import plan_memory
from kina.native.runtime import set_threads
from kina.pipeline import check, lower
from kina.source import Source
from kina.types import DType

MACHINE = native.Machine.host()
rng = np.random.default_rng(0)


class Both:
    """A function natively and by the reference: on one thread and, where threads exist, on two."""

    def __init__(self, text: str) -> None:
        checked = check(Source("regions.kina", dedent(text)))
        assert checked.ok, [d.message for d in checked.diagnostics]
        self.core = checked.function("f")
        self.program = lower(self.core)
        self.alone = native.Executable(self.program, MACHINE, worth_a_thread=1 << 60)
        self.shared = native.Executable(self.program, MACHINE, worth_a_thread=0)

    def agree(self, sizes: dict[str, int], *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        kept = [x.copy() for x in inputs]
        wanted = interpreter.run(self.core, sizes, inputs)
        for executable in (self.alone, self.shared):
            got = executable.run(sizes, inputs)
            for x, y in zip(got, wanted, strict=True):
                assert (x.shape, x.dtype) == (y.shape, y.dtype)
                np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)
            for before, after in zip(kept, inputs, strict=True):
                np.testing.assert_array_equal(before, after)
            assert not any(np.shares_memory(x, y) for x in got for y in inputs)
        return got


@pytest.fixture(autouse=True)
def two_threads():
    set_threads(2)
    yield
    set_threads(None)


def draw(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


COUNTS = (0, 1, 2, 5)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_cache_that_grows(axis):
    shape = ["A", "B", "C"]
    grown = [*shape]
    grown[axis] += " + i"
    whole = [*shape]
    whole[axis] += " + N"
    thin = [*shape]
    thin[axis] = "1"
    both = Both(f"""
        let f [A, B, C, N] (k : F32[{", ".join(shape)}]) (new : F32[N, {", ".join(thin)}]) : F32[{", ".join(whole)}] =
          for i < N with c : F32[{", ".join(grown)}] = k do concat[axis={axis}] c new[i]
    """)
    assert any(both.program.layouts)
    for n, a, b, c in product(COUNTS, (0, 1, 3), (1, 5), (0, 1, 17)):
        sizes = {"A": a, "B": b, "C": c, "N": n}
        one = [a, b, c]
        one[axis] = 1
        both.agree(sizes, draw(a, b, c), draw(n, *one))


def test_appending_writes_only_what_is_new():
    both = Both("""
        let f [S, D, N] (k : F32[S, D]) (new : F32[N, D]) : F32[S + N, D] =
          for i < N with c : F32[S + i, D] = k do concat[axis=0] c (reshape new[i] [1, D])
    """)
    (loop,) = both.program.steps
    (written,) = loop.body
    assert [str(x.extent) for x in written.loops] == ["D"]
    assert not loop.leaving
    assert not plan_memory(both.program).places


def test_what_is_appended_may_be_computed_from_what_is_there():
    both = Both("""
        let f [D, N] (first : F32[1, D]) (w : F32[D, D]) : F32[1 + N, D] =
          for i < N with c : F32[1 + i, D] = first do
            let mean = reduce_keep[mean, axis=0] c in
            concat[axis=0] c (tanh (mean @ w))
    """)
    for n, d in product(COUNTS, (1, 3, 33)):
        both.agree({"D": d, "N": n}, draw(1, d), draw(d, d))


def test_a_state_that_grows_at_the_front_or_is_read_again_is_copied():
    both = Both("""
        let f [D, N] (x : F32[N, D]) : (F32[N, D], F32[N, D]) =
          for i < N with (a : F32[i, D], b : F32[i, D]) = (zeros[F32] [0, D], zeros[F32] [0, D]) do
            (concat[axis=0] (reshape x[i] [1, D]) a, concat[axis=0] a (reshape x[i] [1, D]))
    """)
    assert not both.program.layouts
    for n, d in product(COUNTS, (1, 3)):
        both.agree({"D": d, "N": n}, draw(n, d))


def test_states_trade_places():
    both = Both("""
        let f [D, N] (x : F32[D]) (y : F32[D]) : (F32[D], F32[D]) =
          for i < N with (a : F32[D], b : F32[D]) = (x, y) do (b, a * 0.5 + b)
    """)
    for n, d in product(COUNTS, (0, 1, 7, 1000)):
        both.agree({"D": d, "N": n}, draw(d), draw(d))
    same = draw(7)
    both.agree({"D": 7, "N": 3}, same, same)


def test_states_that_shrink_and_change_in_several_sizes():
    both = Both("""
        let f [D, N] (x : F32[N, D]) : F32[D] =
          let all = for i < N with s : F32[N - i, D] = x do s[1 : N - i, :] + reshape s[0, :] [1, D] in
          reduce[sum, axis=0] all + D_sum x
        let D_sum [D, N] (x : F32[N, D]) : F32[D] = reduce[sum, axis=0] x
    """)
    for n, d in product(COUNTS, (1, 3)):
        both.agree({"D": d, "N": n}, draw(n, d))


def test_yields_and_comprehensions():
    both = Both("""
        let f [D, N] (x : F32[N, D]) (w : F32[D, D]) : (F32[D], F32[N, D], F32[N], F32[N, N]) =
          let scanned = for i < N with h = zeros[F32] [D] do
            let g = tanh (reshape (reshape h [1, D] @ w) [D] + x[i]) in
            g yield g * 2.0 in
          let sums = for i < N yield reduce[sum, axis=0] (x[i] * x[i]) in
          let pairs = for i < N yield for j < N yield reduce[sum, axis=0] (x[i] * x[j]) in
          (scanned.0, scanned.1, sums, pairs)
    """)
    for n, d in product(COUNTS, (0, 1, 3, 40)):
        both.agree({"D": d, "N": n}, draw(n, d), draw(d, d))


def test_loops_in_loops_with_states_of_their_own():
    both = Both("""
        let f [D, N, M] (x : F32[N, M, D]) : (F32[N * M, D], F32[N, M, D]) =
          for i < N with c : F32[i * M, D] = zeros[F32] [0, D] do
            let rows = for j < M with r : F32[j, D] = zeros[F32] [0, D] do
              concat[axis=0] r (reshape x[i, j, :] [1, D] + 1.0) in
            concat[axis=0] c rows
          yield for j < M with r : F32[j, D] = zeros[F32] [0, D] do concat[axis=0] r (reshape x[i, j, :] [1, D] * 2.0)
    """)
    for n, m, d in product(COUNTS, (0, 1, 3), (1, 5)):
        both.agree({"D": d, "N": n, "M": m}, draw(n, m, d))


def test_a_loop_over_layers_is_one_loop():
    both = Both("""
        type Layer [D, H] = { up : F32[D, H], down : F32[H, D] }
        let f [N, S, D, H] (x : F32[S, D]) (layers : List[N, Layer[D, H]]) : F32[S, D] =
          for i < N with h = x do
            let l = layers[i] in
            h + relu (h @ l.up) @ l.down
    """)
    (loop,) = both.program.steps
    assert len(loop.body) < 6
    for n, s, d, h in product((0, 1, 2, 30), (0, 1, 5), (1, 4), (0, 7)):
        scale = np.float32(0.3)
        both.agree({"N": n, "S": s, "D": d, "H": h}, draw(s, d), draw(n, d, h) * scale, draw(n, h, d) * scale)


def test_attention_over_a_growing_cache():
    both = Both("""
        let f [H, D, N] (q : F32[N, H, 1, D]) (k : F32[N, H, 1, D]) : (F32[H, N, D], F32[N, H, 1, D]) =
          for i < N with c : F32[H, i, D] = zeros[F32] [H, 0, D] do
            let all = concat[axis=1] c k[i] in
            all yield softmax[axis=2] (q[i] @ transpose all [0, 2, 1]) @ all
    """)
    for n, h, d in product((0, 1, 2, 9), (1, 3), (1, 8)):
        both.agree({"H": h, "D": d, "N": n}, draw(n, h, 1, d), draw(n, h, 1, d))


def test_branches_on_values_and_on_sizes():
    both = Both("""
        let f [N] (c : Bool) (x : F32[N]) : (F32[N], F32[]) =
          let y = if c then exp (min x 1.0) else if N > 3 then x + 1.0 else x * 2.0 in
          let total = if reduce[sum, axis=0] y > 0.0 then reduce[max, axis=0] (y * y) else 3.0 in
          (y, total)
    """)
    for n, c in product((1, 2, 3, 4, 70), (True, False)):
        both.agree({"N": n}, np.array(c), draw(n))


def test_branches_in_loops():
    both = Both("""
        let f [D, N] (x : F32[N, D]) : (F32[D], F32[N, D]) =
          for i < N with s = zeros[F32] [D] do
            let next = if reduce[sum, axis=0] x[i] > 0.0 then s + x[i] else s in
            next yield if i > 2 then next * 2.0 else x[i]
    """)
    for n, d in product((0, 1, 2, 9), (0, 1, 3, 50)):
        both.agree({"D": d, "N": n}, draw(n, d))


def test_only_the_branch_that_is_chosen_runs():
    both = Both("""
        let f (c : Bool) (x : F32) : F32 =
          if c then x + 1.0 else
            for i < 1000000000 with s = x do s * 0.5
    """)
    assert both.alone.run({}, [np.array(True), np.float32(1)]) == (2,)


def test_while_ends_by_its_condition_or_by_its_bound():
    both = Both("""
        let f [N] (x : F32) : exists [n] requires (n <= N). F32[n] =
          while [n < N] reduce[sum, axis=0] s < 10.0 with s : F32[n] = zeros[F32] [0] do
            concat[axis=0] s (reshape x [1])
    """)
    for n, x in product((0, 1, 2, 5, 50), (0.1, 1.0, 3.0, 20.0)):
        (got,) = both.agree({"N": n}, np.float32(x))
        assert got.flags.c_contiguous


def test_while_with_a_state_that_keeps_its_type():
    both = Both("""
        let f [D] (x : F32[D]) : F32[D] ! {diverge} =
          while reduce[sum, axis=0] (s * s) > 1.0 with s = x do s * 0.5
    """)
    for d in (0, 1, 5, 300):
        both.agree({"D": d}, draw(d) * 30)


def test_what_is_made_of_a_size_that_a_loop_found():
    both = Both("""
        let f [N, D] (x : F32[D]) : exists [n] requires (n <= N). (F32[n, D], F32[n]) =
          let [n] s = while [n < N] reduce[sum, axes=[0, 1]] s < 4.0 with s : F32[n, D] = zeros[F32] [0, D] do
            concat[axis=0] s (reshape x [1, D]) in
          (s * 2.0, reduce[sum, axis=1] s)
    """)
    for n, d in product((0, 1, 3, 20), (0, 1, 7)):
        both.agree({"N": n, "D": d}, np.abs(draw(d)))


def test_an_assertion_that_fails_in_a_step_ends_the_program_and_says_where():
    both = Both("""
        let f [N, M] requires (M > 0) (x : F32[N]) : F32[N] =
          for i < N with s = x do
            let assert (i * i != 13 * M * M + 1) in
            s + 1.0
    """)
    both.agree({"N": 9, "M": 2}, draw(9))
    for executable in (both.alone, both.shared):
        with pytest.raises(KinaError, match=r"regions.kina:4:.* does not hold for N = 651, M = 180, i = 649$"):
            executable.run({"N": 651, "M": 180}, [draw(651)])
    both.agree({"N": 649, "M": 180}, draw(649))


def test_a_condition_that_does_not_hold_ends_the_program_with_its_message():
    both = Both("""
        let f [N, D] (x : F32[N, D]) : F32[N] ! {fail} =
          for i < N yield
            let total = reduce[sum, axis=0] x[i] in
            let _ = check (total < 100.0) "a row is too large" in
            total
    """)
    x = draw(4, 3)
    both.agree({"N": 4, "D": 3}, x)
    x[2] = 50
    for executable in (both.alone, both.shared):
        with pytest.raises(KinaError, match=r"regions.kina:5:.*a row is too large"):
            executable.run({"N": 4, "D": 3}, [x])


def test_many_steps_on_two_threads_never_meet():
    """Enough steps that a missing wait would show."""
    both = Both("""
        let f [D, N] (x : F32[D]) (w : F32[D, D]) : (F32[D], F32[N]) =
          for i < N with s = x do
            let y = reshape (reshape s [1, D] @ w) [D] in
            tanh (y - reduce[mean, axis=0] y) yield reduce[sum, axis=0] (y * y)
    """)
    for d in (3, 64):
        both.agree({"D": d, "N": 400}, draw(d), draw(d, d) / np.float32(d))


def test_strided_inputs():
    both = Both("""
        let f [S, D, N] (k : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =
          for i < N with c : F32[S + i, D] = k do concat[axis=0] c new[i]
    """)
    k, new = draw(7, 6).T[::-1], draw(9, 2, 14)[::2, ::2, ::2]
    both.agree({"S": 6, "D": 7, "N": 5}, k, new)


def test_growth_in_branches_and_in_states_of_other_loops():
    both = Both("""
        let f [D, N, M] (c : Bool) (x : F32[N, D]) : (F32[N, D], F32[N, D]) =
          let first = if c then
              for i < N with r : F32[i, D] = zeros[F32] [0, D] do concat[axis=0] r (reshape x[i] [1, D])
            else x * 2.0 in
          let second = for j < M with s : F32[N, D] = x do
            for i < N with r : F32[i, D] = zeros[F32] [0, D] do concat[axis=0] r (reshape s[i] [1, D] + 1.0) in
          (first, second)
    """)
    for n, m, d, c in product(COUNTS, (0, 1, 2, 3), (1, 5), (True, False)):
        both.agree({"D": d, "N": n, "M": m}, np.array(c), draw(n, d))


def test_weights_that_a_loop_reads_are_unpacked_there_and_never_stored_wide():
    text = """
        let f [N, K, W : Weight] (x : F32[1, K]) (w : W[K, K]) : F32[1, K] =
          let y = x @ transpose (cast[F32] w) [1, 0] in
          for i < N with y = y do y @ transpose (cast[F32] w) [1, 0]
    """
    checked = check(Source("regions.kina", dedent(text)))
    for dtype in (DType.Q4_1, DType.F16, DType.BF16):
        function = checked.elaboration.generic["f"].instance(Choice((("W", dtype),), ()))
        assert isinstance(function, Function), function
        made = [v.type for place in plan_memory(lower(function)).places for v in place.values]
        assert all(type_.shape[0].value == 1 for type_ in made), made
