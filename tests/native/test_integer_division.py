"""Division of integers: rounded down, by the reference and natively; by zero it ends the program and says where."""

from __future__ import annotations

import numpy as np
import pytest

from kina.core.interpreter import run
from kina.core.printer import print_program
from kina.diagnostics import KinaError
from kina.passes.simplify import simplify
from kina.pipeline import compile_function
from kina.types import DType

DTYPES = [DType.I64, DType.I32, DType.I16, DType.I8, DType.U8]


def numbers(dtype: DType) -> np.ndarray:
    least, greatest = dtype.integer_range
    return np.array([0, 1, 2, 3, 5, 7, 8, 100, 127, least, least + 1, greatest, *range(40)]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 100, -1, -2, -7, -128])
def test_division_by_a_literal_runs_natively(check, dtype, divisor):
    if dtype is DType.U8 and divisor < 0:
        pytest.skip("no such number")
    text = f"({divisor})" if divisor < 0 else str(divisor)
    program = check(f"let f [N] (x : {dtype}[N]) : ({dtype}[N], {dtype}[N]) = (x / {text}, x mod {text})").accepts()
    function = program.checked.function("f")
    x = numbers(dtype)
    executable = compile_function(function)
    for xs in (x, -x if dtype is not DType.U8 else x, x[::-1], x[:0], x[:1]):
        with np.errstate(all="ignore"):
            want = xs // dtype.numpy.type(divisor), np.remainder(xs, dtype.numpy.type(divisor))
        for got in (run(function, {"N": len(xs)}, [xs]), executable.run({"N": len(xs)}, [xs])):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)
                assert g.dtype == w.dtype


def test_a_quotient_and_a_remainder_make_the_whole(check):
    program = check("let f [A, B] (x : I64[A, B]) (y : I64[B]) : I64[A, B] = (x div y) * y + x mod y").accepts()
    function = program.checked.function("f")
    printed = print_program(function)
    assert print_program(check(printed, strict=True).accepts().checked.function("f")) == printed
    rng = np.random.default_rng(1)
    x, y = rng.integers(-50, 50, (6, 4)), np.array([3, -7, 1, -1])
    np.testing.assert_array_equal(run(function, {"A": 6, "B": 4}, [x, y])[0], x)


@pytest.mark.parametrize("operator", ["/", "div", "mod"])
def test_division_by_zero_says_where(check, operator):
    program = check(f"let f [A, B] (x : I64[A, B]) (y : I64[A, B]) : I64[A, B] = x {operator} y").accepts()
    function = program.checked.function("f")
    x, y = np.full((2, 3), 5), np.ones((2, 3), np.int64)
    y[1, 2] = 0
    with pytest.raises(KinaError, match=r"test\.kina:1:\d+: .* divides 5 by zero at \[1, 2\]"):
        run(function, {"A": 2, "B": 3}, [x, y])
    with pytest.raises(KinaError, match=r"test\.kina:1:\d+: .* divides 5 by zero at \[1, 2\]"):
        compile_function(function).run({"A": 2, "B": 3}, [x, y])


def test_a_division_that_nothing_needs_still_ends_the_program(check):
    program = check("let f (x : I64) : I64 = let y = x / x in x").accepts()
    function = simplify(program.checked.function("f"))
    with pytest.raises(KinaError, match=r"divides 0 by zero$"):
        run(function, {}, [np.array(0)])


def test_floats_have_no_remainder(check):
    check("let f [N] (x : F32[N]) : F32[N] = x mod 2.0").rejects("K0303")
    check("let f [N] (x : F32[N]) : F32[N] = x div 2.0").rejects("K0303")
    check("let f [N] (x : F32[N]) : F32[N] = x * (1 / 2)").accepts()


def test_zero_as_a_literal_ends_the_program_only_where_there_is_something_to_divide(check):
    function = check("let f [N] (x : I64[N]) : I64[N] = x / 0").accepts().checked.function("f")
    for runs in (lambda n, x: run(function, n, x), compile_function(function).run):
        assert runs({"N": 0}, [np.zeros(0, np.int64)])[0].size == 0
        with pytest.raises(KinaError, match=r"divides 1 by zero at \[0\]"):
            runs({"N": 1}, [np.ones(1, np.int64)])
