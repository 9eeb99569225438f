"""What may end a program ends it natively as in the reference, before anything is read out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.diagnostics import KinaError
from kina.pipeline import compile_function, lower

rng = np.random.default_rng(8)


def both(function, sizes, inputs):
    """The results, which have to agree, or the errors, which have to be the same."""
    found = []
    for runs in (lambda: run(function, sizes, inputs), lambda: compile_function(function).run(sizes, inputs)):
        try:
            found.append(runs()[0])
        except KinaError as error:
            found.append(str(error))
    np.testing.assert_array_equal(found[0], found[1])
    return found[1]


GATHER = "let f [V, D, B] (t : F32[V, D]) (ids : I64[B]) : F32[B, D] = gather[axis=0] t ids"


@pytest.mark.parametrize("wrong", [None, -1, 5, 2**62, -(2**63)])
@pytest.mark.parametrize("count", [1, 2, 17, 4000])
def test_plain_integers_as_positions(check, wrong, count):
    function = check(GATHER).accepts().checked.function("f")
    ids = rng.integers(0, 5, count)
    if wrong is not None:
        ids[count // 2] = wrong
    found = both(function, {"V": 5, "D": 3, "B": count}, [rng.random((5, 3), np.float32), ids])
    if wrong is not None:
        assert f"the index {wrong} at [{count // 2}] is out of range" in found


def test_an_empty_axis_has_no_position(check):
    function = check(GATHER).accepts().checked.function("f")
    assert both(function, {"V": 0, "D": 3, "B": 0}, [np.zeros((0, 3), np.float32), np.zeros(0, np.int64)]).size == 0
    assert "out of range" in both(function, {"V": 0, "D": 3, "B": 1}, [np.zeros((0, 3), np.float32), np.zeros(1, int)])


@pytest.mark.parametrize("dtype", ["I64", "I32", "I16", "I8", "U8"])
def test_targets_of_every_integer_dtype(check, dtype):
    text = f"let f [B, C] (x : F32[B, C]) (t : {dtype}[B, 1]) : F32[B, 1] = take_along[axis=1] x t"
    function = check(text).accepts().checked.function("f")
    x, t = (
        rng.random((4, 3), np.float32),
        np.array([[0], [2], [1], [2]]).astype(dtype.lower().replace("i", "int"))
        if dtype != "U8"
        else np.array([[0], [2], [1], [2]], np.uint8),
    )
    both(function, {"B": 4, "C": 3}, [x, t])
    t[3] = 3
    assert "[3, 0] is out of range" in both(function, {"B": 4, "C": 3}, [x, t])


def test_a_check_in_a_branch_that_is_not_taken_ends_nothing(check):
    text = """
    let f [N] (x : F32[N]) (i : I64) (c : Bool) : F32 =
      if c then gather[axis=0] x i else 0.0
    """
    function = check(text).accepts().checked.function("f")
    x = rng.random(3, np.float32)
    for i in (-1, 0, 2, 3):
        for c in (False, True):
            both(function, {"N": 3}, [x, np.array(i), np.array(c)])


def test_a_check_in_a_loop_ends_it_at_its_step(check):
    text = """
    let f [N, M] (x : F32[N]) (ids : I64[M]) : F32 =
      for i < M with s : F32 = 0.0 do
        s + gather[axis=0] x ids[i]
    """
    function = check(text).accepts().checked.function("f")
    x = rng.random(3, np.float32)
    both(function, {"N": 3, "M": 4}, [x, np.array([0, 2, 1, 1])])
    assert "the index 7" in both(function, {"N": 3, "M": 4}, [x, np.array([0, 2, 7, 9])])


def test_a_check_that_nothing_needs_still_ends_the_program(check):
    function = check("let f [B] (i : I64[B]) : F32 = let _ = to_idx i 3 in 1.0").accepts().checked.function("f")
    assert "the index 3" in both(function, {"B": 2}, [np.array([0, 3])])
    assert both(function, {"B": 2}, [np.array([0, 2])]) == 1.0


def test_positions_with_a_type_have_no_check(check):
    text = "let f [V, D, B] (t : F32[V, D]) (ids : Idx[V][B]) : F32[B, D] = gather[axis=0] t ids"
    program = lower(check(text).accepts().checked.function("f"))
    assert program.straight and len(program.kernels) == 1
