"""Indexing, slicing and the operations that arrange elements, from source to value."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("index", "type_", "want"),
    [
        ("0, :, 1", "F32[B]", X[0, :, 1]),
        ("1:", "F32[A - 1, B, C]", X[1:]),
        (":2, ..., 0", "F32[2, B]", X[:2, ..., 0]),
        ("..., C - 1", "F32[A, B]", X[..., -1]),
        ("-1", "F32[B, C]", X[-1]),
        (":, 1:B - 1", "F32[A, B - 2, C]", X[:, 1:-1]),
        (":, :-2", "F32[A, B - 2, C]", X[:, :-2]),
        ("A - 1, B div 2, 0", "F32", X[2, 2, 0]),
        ("...", "F32[A, B, C]", X),
        ("::2, :, ::-1", "F32[cdiv(A, 2), B, C]", X[::2, :, ::-1]),
        ("..., 1:-1:2", "F32[A, B, cdiv(C - 2, 2)]", X[..., 1:-1:2]),
        (":, ::-2", "F32[A, cdiv(B, 2), C]", X[:, ::-2]),
        (":, -2:0:-1", "F32[A, B - 2, C]", X[:, -2:0:-1]),
        ("1::-1", "F32[2, B, C]", X[1::-1]),
        ("::A", "F32[1, B, C]", X[::3]),
    ],
)
def test_an_index_picks_what_numpy_picks(check, index, type_, want):
    program = check(f"""
        let f [A, B, C] requires (A >= 2 && B >= 2 && C >= 2) (x : F32[A, B, C]) : {type_} = x[{index}]
    """).accepts()
    (got,) = run(program.checked.function("f"), {"A": 3, "B": 4, "C": 5}, [X])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("index", "code", "said"),
    [
        ("A", "K0305", "A = 1"),
        ("2", "K0305", "does not always hold"),
        ("0, 0, 0, 0", "K0206", "4 items, and the tensor 3 axes"),
        ("..., 0, ...", "K0206", "stands twice"),
        ("::0", "K0206", "the step is 0"),
        ("::B", "K0305", "the step has to be positive"),
        ("x", "K0303", "`an index` is not defined for F32"),
        ("3:2", "K0305", "cannot end before it starts"),
    ],
)
def test_an_index_outside_is_an_error(check, index, code, said):
    check(f"let f [A, B, C] (x : F32[A, B, C]) : F32 = reduce[sum, axis=0] x[{index}]").rejects(code, said)


IDS = np.array([[2, 0], [1, 1]])


@pytest.mark.parametrize(
    ("index", "type_", "want"),
    [
        ("i", "F32[B, C]", X[1]),
        ("i, :, j", "F32[B]", X[1, :, 2]),
        ("ids", "F32[2, 2, B, C]", X[IDS]),
        (":, ids, 1:3", "F32[A, 2, 2, 2]", X[:, IDS, 1:3]),
        ("i, ids", "F32[2, 2, C]", X[1][IDS]),
        ("..., j", "F32[A, B]", X[..., 2]),
    ],
)
def test_an_index_may_be_computed(check, index, type_, want):
    program = check(f"""
        let f [A, B, C] requires (A >= 3 && B >= 3 && C >= 3)
            (x : F32[A, B, C]) (i : Idx[3]) (j : I32) (ids : Idx[3][2, 2]) : {type_} = x[{index}]
    """).accepts()
    inputs = [X, np.array(1), np.array(2, np.int32), IDS]
    (got,) = run(program.checked.function("f"), {"A": 3, "B": 4, "C": 5}, inputs)
    np.testing.assert_array_equal(got, want)


def test_two_tensors_of_positions_do_not_say_which_axes_they_make(check):
    check("let f [A] (x : F32[A, A]) (i : Idx[A][3]) : F32[3] = x[i, i]").rejects("K0206", "two of its items")


def test_a_list_is_indexed_by_a_computed_number(check):
    program = check("""
        type Layer [D] = { w : F32[D], b : F32 }
        let f [N, D] (layers : List[N, Layer[D]]) (i : Idx[N]) : F32[D] =
          let layer = layers[i] in
          layer.w + layer.b
    """).accepts()
    w, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([10, 20, 30], np.float32)
    (got,) = run(program.checked.function("f"), {"N": 3, "D": 2}, [w, b, np.array(2)])
    np.testing.assert_array_equal(got, [34, 35])


def test_a_rotary_half_is_negated_and_swapped(check):
    program = check("""
        let rotate_half [S, D] requires (D mod 2 = 0) (x : F32[S, D]) : F32[S, D] =
          concat[axis=1] (-x[:, D / 2:]) x[:, :D / 2]
    """).accepts()
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (got,) = run(program.checked.function("rotate_half"), {"S": 2, "D": 4}, [x])
    np.testing.assert_array_equal(got, np.concatenate([-x[:, 2:], x[:, :2]], 1))


def test_concat_needs_operands_of_one_rank(check):
    check("let f [A, B] (x : F32[A]) (y : F32[A, B]) : F32[2 * A] = concat[axis=0] x y").rejects("K0304")


@pytest.mark.parametrize("index", ["-1", "-1:", "N - 2:", "N - 2", "-3:-2", "0 - 1 : 0"])
def test_a_position_before_the_start_is_refused(check, index):
    check(f"let f [N] (x : F32[N, 3]) = x[{index}]").rejects("K0305", "has to start inside axis 0 of size N")
    if "0 -" not in index:
        check(f"let f [N] requires (N >= 3) (x : F32[N, 3]) = x[{index}]").accepts()
