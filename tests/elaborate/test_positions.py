"""Operations at computed positions, from source to value: types, run-time checks, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.core.ir import Apply, statements_within
from kina.core.verifier import verify
from kina.diagnostics import KinaError
from kina.ops.indexing import ToIdx
from kina.passes.simplify import simplify
from kina.passes.specialise import specialise
from kina.pipeline import core_text

rng = np.random.default_rng(4)


def checks_of(function) -> list[str]:
    """On whose behalf integers are checked when the program runs."""
    made = [s.operation for s in statements_within(function.statements) if isinstance(s, Apply)]
    return [operation.what for operation in made if isinstance(operation, ToIdx)]


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def test_class_numbers_pick_log_probabilities(check):
    program = check("""
        let pick [B, V] (log_probs : F32[B, V]) (targets : I64[B]) : F32[B, 1] =
          take_along[axis=1] log_probs (expand_dims[axis=1] targets)
    """).accepts()
    x = floats(3, 5)
    (got,) = run(program.checked.function("pick"), {"B": 3, "V": 5}, [x, np.array([4, 0, 2])])
    np.testing.assert_array_equal(got, x[[0, 1, 2], [4, 0, 2]][:, None])


def test_class_numbers_given_as_floats_are_refused(check):
    check("""
        let pick [B, V] (log_probs : F32[B, V]) (targets : F32[B]) : F32[B, 1] =
          take_along[axis=1] log_probs (expand_dims[axis=1] targets)
    """).rejects("K0303", "take_along", "not defined for F32", line=2)


READS = {
    "gather": ("(x : F32[V, D]) (i : {}[B])", "gather[axis=0] x i", "F32[B, D]"),
    "take_along": ("(x : F32[V, D]) (i : {}[B, D])", "take_along[axis=0] x i", "F32[B, D]"),
    "one_hot": ("(x : F32[V, D]) (i : {}[B])", "one_hot[F32] i V", "F32[B, V]"),
    "scatter": ("(x : F32[V, D]) (i : {}[B]) (u : F32[B, D])", "scatter[add, axis=0] x i u", "F32[V, D]"),
    "dynamic_slice": ("(x : F32[V, D]) (i : {})", "dynamic_slice[axis=0] x i 1", "F32[1, D]"),
    "update_slice": ("(x : F32[V, D]) (i : {}) (u : F32[1, D])", "update_slice[axis=0] x u i", "F32[V, D]"),
}


@pytest.mark.parametrize("name", READS)
def test_positions_known_to_lie_inside_are_not_checked(check, name):
    parameters, body, type_ = READS[name]
    head = "let f [V, D, B, W] requires (V >= 1 && W <= V) "
    for element in ("Idx[V]", "Idx[W]"):
        function = check(f"{head}{parameters.format(element)} : {type_} = {body}").accepts().checked.function("f")
        assert checks_of(function) == []
        verify(function)


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("element", ["I64", "I32", "U8", "Idx[V + 1]"])
def test_other_integers_are_checked_on_behalf_of_who_reads(check, name, element):
    parameters, body, type_ = READS[name]
    text = f"let f [V, D, B] requires (V >= 1) {parameters.format(element)} : {type_} = {body}"
    function = check(text).accepts().checked.function("f")
    assert checks_of(function) == [name]
    verify(function)
    again = check(core_text(function), strict=True).accepts().checked.function("f")
    assert core_text(again) == core_text(function)


def test_an_integer_as_a_position_is_sugar(check):
    check(
        """
        let f [V, B] (x : Tensor[F32, [V]]) (i : Tensor[I64, [B]]) : Tensor[F32, [B]] = gather[axis=0] x i
        """,
        strict=True,
    ).rejects("K0212", "an integer as a position", "to_idx")


def test_a_start_lies_where_the_slice_still_fits(check):
    body = ": F32[n, D] = dynamic_slice[axis=0] x i n"
    head = "let f [V, D, n] requires (n <= V) (x : F32[V, D])"
    fits = check(f"{head} (i : Idx[V - n + 1]) {body}").accepts()
    assert checks_of(fits.checked.function("f")) == []
    further = check(f"{head} (i : Idx[V]) {body}").accepts()
    assert checks_of(further.checked.function("f")) == ["dynamic_slice"]
    check(f"let f [V, D, n] (x : F32[V, D]) (i : I64) {body}").rejects("K0305", "has to fit into axis 0")


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ([[0, 1], [2, 5]], "gather: the index 5 at [1, 1] is out of range: it has to lie in [0, 5)"),
        ([[0, -1], [9, 0]], "gather: the index -1 at [0, 1] is out of range: it has to lie in [0, 5)"),
    ],
)
def test_an_index_outside_is_named_with_its_place_and_range(check, ids, said):
    program = check("let f [V, D, B, S] (x : F32[V, D]) (i : I64[B, S]) : F32[B, S, D] = gather[axis=0] x i").accepts()
    with pytest.raises(KinaError) as found:
        run(program.checked.function("f"), {"V": 5, "D": 2, "B": 2, "S": 2}, [floats(5, 2), np.array(ids)])
    assert said in str(found.value)
    assert str(found.value).startswith("test.kina:1:")


def test_an_empty_table_has_no_index_but_no_index_is_fine(check):
    program = check("let f [V, B] (x : F32[V]) (i : I64[B]) : F32[B] = gather[axis=0] x i").accepts()
    function = program.checked.function("f")
    (got,) = run(function, {"V": 0, "B": 0}, [floats(0), np.zeros(0, np.int64)])
    assert got.shape == (0,)
    with pytest.raises(KinaError, match="the index 0 at \\[0\\] is out of range: the axis is empty"):
        run(function, {"V": 0, "B": 1}, [floats(0), np.zeros(1, np.int64)])


def test_a_check_whose_result_nothing_needs_stays(check):
    program = check("let f [B] (i : I64[B]) : F32 = let _ = to_idx i 3 in 1.0").accepts()
    flat = simplify(specialise(program.checked.function("f")))
    assert checks_of(flat) == ["to_idx"]
    with pytest.raises(KinaError, match="to_idx: the index 3 at \\[0\\]"):
        run(flat, {"B": 1}, [np.array([3])])


def test_argmax_gives_a_position_along_its_axis(check):
    program = check("""
        let f [B, V] requires (V >= 1) (x : F32[B, V]) : (Idx[V][B], F32[B, 1]) =
          let best = reduce_keep[argmax, axis=1] x in
          (squeeze[axis=1] best, take_along[axis=1] x best)
    """).accepts()
    function = program.checked.function("f")
    assert checks_of(function) == []
    x = np.array([[1, 3, 3], [np.nan, 9, np.nan], [-np.inf, -np.inf, -np.inf]], np.float32)
    best, value = run(function, {"B": 3, "V": 3}, [x])
    np.testing.assert_array_equal(best, [1, 0, 0])
    np.testing.assert_array_equal(value[:, 0], [3, np.nan, -np.inf])


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("reduce[argmax, axis=0] x", "K0305", "argmax of an empty axis is no position"),
        ("reduce[argmin, axes=[0, 1]] x", "K0206", "a position along one axis"),
        ("gather[axis=2] x i", "K0206", "axis 2 is out of range"),
        ("take_along[axis=0] x i", "K0304", "same number of axes"),
        ("take_along[axis=0] x (reinterpret j [4, B])", "K0301", "axis 1"),
        ("dynamic_slice[axis=0] x i 0", "K0206", "starts at one place"),
        ("scatter[mul, axis=0] x i x", "K0206", "does not know `mul`"),
        ("scatter[add, axis=0] x i x", "K0305", "axis 0 of the updates has to be B"),
        ("scatter[add, axis=0] x i i", "K0303", "operands of one dtype"),
        ("arg_top_k[axis=0] x (A + 1)", "K0305", "there are A elements along axis 0"),
        ("compress[axis=0] x i", "K0303", "`compress` is not defined for I64"),
        ("nonzero x", "K0303", "`nonzero` is not defined for F32"),
        ("take_along[axis=0] q j", "K0206", "take_along takes numbers, and Q8_0 holds blocks of 32"),
        ("q + q", "K0206", "add takes numbers, and Q8_0 holds blocks of 32"),
    ],
)
def test_what_does_not_fit_is_an_error(check, call, code, said):
    check(f"""
        let f [A, B, C] requires (4 * B = C)
            (x : F32[A, C]) (i : I64[B]) (j : I64[4, B]) (q : Q8_0[A, 32]) =
          {call}
    """).rejects(code, said)


def test_sorting_and_the_greatest(check):
    program = check("""
        let f [B, N, k] requires (k <= N) (x : F32[B, N]) : (F32[B, N], F32[B, k], Idx[N][B, k]) =
          let (best, at) = top_k[axis=1] x k in
          (sort[axis=-1] x, best, at)
    """).accepts()
    function = program.checked.function("f")
    assert checks_of(function) == []
    x = np.array([[2, np.nan, 1, 2, -1], [0, 0, 0, 0, 0]], np.float32)
    ordered, best, at = run(function, {"B": 2, "N": 5, "k": 3}, [x])
    np.testing.assert_array_equal(ordered, [[-1, 1, 2, 2, np.nan], [0, 0, 0, 0, 0]])
    np.testing.assert_array_equal(best, [[np.nan, 2, 2], [0, 0, 0]])
    np.testing.assert_array_equal(at, [[1, 0, 3], [0, 1, 2]])


def test_what_is_piped_into_top_k_comes_before_k(check):
    check("let f [N] requires (N >= 2) (x : F32[N]) : (F32[2], Idx[N][2]) = x |> top_k[axis=0] 2").accepts()


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nonzero_and_compress_give_as_many_as_there_are(check, n):
    program = check("""
        let places [A, N] (m : Bool[A, N]) : exists [K] requires (K <= A * N). (Idx[A][K], Idx[N][K]) = nonzero m
        let kept [N, D] (x : F32[D, N]) (m : Bool[N]) : exists [K] requires (K <= N). F32[D, K] =
          compress[axis=1] x m
        let total [N] (m : Bool[N]) : I64 =
          let [k] at = nonzero m in
          reduce[sum, axis=0] (at + 1) + dim_value k
    """).accepts()
    mask = rng.random((3, n)) < 0.5
    rows, columns = run(program.checked.function("places"), {"A": 3, "N": n}, [mask])
    np.testing.assert_array_equal(np.stack([rows, columns], 1), np.argwhere(mask))
    x = floats(2, n)
    (kept,) = run(program.checked.function("kept"), {"N": n, "D": 2}, [x, mask[0]])
    np.testing.assert_array_equal(kept, x[:, mask[0]])
    (total,) = run(program.checked.function("total"), {"N": n}, [mask[0]])
    assert total == (np.nonzero(mask[0])[0] + 2).sum()


def test_updates_at_one_place_are_taken_in_order(check):
    program = check("""
        let f [V, B] (x : F32[V]) (i : Idx[V][B]) (u : F32[B]) : (F32[V], F32[V], F32[V], F32[V]) =
          let (last, sum) = (scatter[set, axis=0] x i u, scatter[add, axis=0] x i u) in
          (last, sum, scatter[max, axis=0] x i u, scatter[min, axis=0] x i u)
    """).accepts()
    x, i = np.array([1, 1, 1], np.float32), np.array([2, 0, 2, 2])
    u = np.array([5, 1, -7, 2], np.float32)
    got = run(program.checked.function("f"), {"V": 3, "B": 4}, [x, i, u])
    np.testing.assert_array_equal(got, [[1, 1, 2], [2, 1, 1], [1, 1, 5], [1, 1, -7]])
