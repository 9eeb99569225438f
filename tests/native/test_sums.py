"""Long sums: as accurate as their length allows, the same for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from kina.native.runtime import set_threads
from kina.pipeline import check, compile_function
from kina.source import Source

LONG = 2**24 + 1000
"""More ones than an F32 can count one by one."""


@pytest.fixture(autouse=True)
def threads_as_before():
    yield
    set_threads(None)


def compiled(text: str):
    module = check(Source("sums.kina", text))
    assert module.ok, module.diagnostics
    return compile_function(module.function("f"))


@pytest.mark.parametrize("step", [1, 0, -1])
def test_a_sum_of_more_ones_than_f32_counts_is_right_for_any_stride(step):
    f = compiled("let f [A] (x : F32[A]) : F32[] = reduce[sum, axis=0] x")
    one = np.ones(LONG if step else 1, np.float32)
    x = one[::step] if step else np.broadcast_to(one, (LONG,))
    (got,) = f.run({"A": LONG}, [x])
    assert got == LONG


@pytest.mark.parametrize("columns", [1, 40])
def test_sums_of_long_columns_are_right(columns):
    f = compiled("let f [A, B] (x : F32[A, B]) : F32[B] = reduce[sum, axis=0] x")
    (got,) = f.run({"A": LONG, "B": columns}, [np.broadcast_to(np.float32(1), (LONG, columns))])
    assert (got == LONG).all()


@pytest.mark.parametrize("shape", [(1, LONG), (LONG // 2, 2), (4096, 4099), (0, 5), (5, 0)])
def test_sums_over_all_axes_are_right_whatever_the_shape(shape):
    f = compiled("let f [A, B] (x : F32[A, B]) : F32[] = reduce[sum, axes=[0, 1]] x")
    (got,) = f.run({"A": shape[0], "B": shape[1]}, [np.broadcast_to(np.float32(1), shape)])
    assert got == shape[0] * shape[1]


@pytest.mark.parametrize("kind", ["sum", "mean", "var", "logsumexp", "max", "prod"])
def test_a_reduction_to_one_element_does_not_depend_on_the_number_of_threads(kind):
    f = compiled(f"let f [A, B] (x : F32[A, B]) : F32[] = reduce[{kind}, axes=[0, 1]] x")
    x = np.random.default_rng(0).uniform(0.9, 1.1, (300, 1001)).astype(np.float32)
    results = set()
    for count in (1, 2, 3):
        set_threads(count)
        (got,) = f.run({"A": 300, "B": 1001}, [x])
        results.add(got.tobytes())
    assert len(results) == 1


def test_a_sum_is_as_close_as_a_sum_in_f64():
    f = compiled("let f [A] (x : F32[A]) : F32[] = reduce[sum, axis=0] x")
    x = np.random.default_rng(1).uniform(0, 1, 3_000_017).astype(np.float32)
    (got,) = f.run({"A": x.size}, [x])
    assert abs(float(got) / x.sum(dtype=np.float64) - 1) < 2e-7
