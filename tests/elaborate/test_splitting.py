"""`split` and `roll` from source to value."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.core.printer import print_program

X = np.arange(24, dtype=np.float32).reshape(2, 4, 3)


def test_split_gives_the_parts_of_an_axis(check):
    program = check("""
        let f [A, B] requires (B >= 1) (x : F32[A, B, 3]) : (F32[A, 1, 3], F32[A, B - 1, 3], F32[A, 0, 3]) =
          split[axis=1] x [1, B - 1, 0]
    """).accepts()
    function = program.checked.function("f")
    for got, want in zip(run(function, {"A": 2, "B": 4}, [X]), np.split(X, [1, 4], 1), strict=True):
        np.testing.assert_array_equal(got, want)
    printed = print_program(function)
    assert print_program(check(printed, strict=True).accepts().checked.function("f")) == printed


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("split[axis=1] x [1, 1]", "K0305", "the parts of axis 1 add up to its size, B"),
        ("split[axis=2] x [1, 2, -1]", "K0208", "cannot be negative"),
        ("split[axis=3] x [1]", "K0206", "axis 3 is out of range"),
        ("split x [1]", "K0206", "`split` needs `axis` in its bracket"),
        ("split[axis=0] x", "K0203", "takes 2 arguments"),
        ("split[axis=0] x 2", "K0206", "wants a shape in brackets"),
    ],
)
def test_parts_that_do_not_add_up_are_an_error(check, text, code, said):
    check(f"let f [A, B] (x : F32[A, B, 3]) = {text}").rejects(code, said)


@pytest.mark.parametrize("n", [0, 1, -1, 3, 7, -9])
def test_roll_goes_round_the_end(check, n):
    text = f"({n})" if n < 0 else str(n)
    program = check(f"let f [A, B, C] (x : F32[A, B, C]) : F32[A, B, C] = roll[axis=1] x {text}").accepts()
    (got,) = run(program.checked.function("f"), {"A": 2, "B": 4, "C": 3}, [X])
    np.testing.assert_array_equal(got, np.roll(X, n, 1))
