"""The way of arrays into machine code and back: sizes beyond memory, misplaced arrays, the life of results."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from kina import native
from kina.diagnostics import KinaError
from kina.native.calling import safe_size
from kina.native.pool import MOST_KEPT, Pool
from kina.pipeline import check, lower
from kina.source import Source

MACHINE = native.Machine.host()


def program(text: str) -> object:
    checked = check(Source("test.kina", text))
    assert checked.ok, [d.message for d in checked.diagnostics]
    return lower(checked.function("f"))


def executable(text: str, **options) -> native.Executable:
    return native.Executable(program(text), MACHINE, **options)  # type: ignore[arg-type]


ADD = "let f [A] (x : F32[A]) (y : F32[A]) : F32[A] = x + y\n"
LARGE = 1 << 20


def test_arrays_off_their_own_steps_are_copied_first():
    run = executable(ADD).run
    raw = np.zeros(41, np.uint8)
    x = raw[1:41].view(np.float32)
    x[:] = np.arange(10)
    record = np.zeros(10, np.dtype([("tag", np.uint8), ("value", np.float32)]))
    record["value"] = 1
    (got,) = run({"A": 10}, [x, record["value"]])
    np.testing.assert_array_equal(got, np.arange(10) + 1)


def test_arrays_of_other_shapes_are_refused():
    run = executable(ADD).run
    for x in (np.zeros(3, np.float32), np.zeros((4, 1), np.float32), np.float32(1)):
        with pytest.raises(AssertionError, match="not of the program's shapes"):
            run({"A": 4}, [np.zeros(4, np.float32), x])


def test_numbers_of_numpy_are_taken_for_arrays():
    (got,) = executable("let f (x : F32) : F32 = x * 2\n").run({}, [np.float32(21)])
    assert got == 42 and got.shape == ()


def test_values_beyond_any_memory_are_refused_and_not_computed():
    text = "let f [A, B, C] (x : F32[A]) : F32[] = reduce[sum, axes=[0, 1, 2]] (broadcast x [C, B, A])\n"
    run = executable(text).run
    x = np.zeros(4, np.float32)
    with pytest.raises(KinaError, match="too large for A = 4, B = 1073741824, C = 2147483648"):
        run({"A": 4, "B": 1 << 30, "C": 1 << 31}, [x])
    with pytest.raises(KinaError, match="too large"):
        run({"A": 4, "B": 1 << 70, "C": 1}, [x])
    assert run({"A": 4, "B": 3, "C": 2}, [x]) == (0,)


def test_results_that_do_not_fit_in_memory_are_refused():
    run = executable("let f [A, B] (x : F32[A]) : F32[B, A] = broadcast x [B, A]\n").run
    with pytest.raises(KinaError, match="no memory for"):
        run({"A": 4, "B": 1 << 50}, [np.zeros(4, np.float32)])


def test_sizes_below_the_safe_one_cannot_overflow():
    found = safe_size(
        program(
            "let f [A, B] (x : F32[A, B]) : F32[A * B * A] = f_ x\n".replace(
                "f_ x", "reshape (broadcast x [A, A, B]) [A * B * A]"
            )
        )
    )  # type: ignore[arg-type]
    assert 4 * found**3 < 1 << 62 <= 4 * (2 * found) ** 3


def test_views_keep_the_memory_of_a_result():
    run = executable(ADD).run
    x = np.arange(LARGE, dtype=np.float32)
    (got,) = run({"A": LARGE}, [x, x])
    view = got[5:100:3]
    del got
    gc.collect()
    others = [run({"A": LARGE}, [x, x * 0])[0] for _ in range(3)]
    np.testing.assert_array_equal(view, 2 * np.arange(5, 100, 3))
    assert not any(np.shares_memory(view, y) for y in others)


def test_the_memory_of_dropped_results_is_used_again():
    pool = Pool()
    run = executable(ADD, pool=pool).run
    x = np.zeros(LARGE, np.float32)
    first = run({"A": LARGE}, [x, x])[0].ctypes.data
    gc.collect()
    assert run({"A": LARGE}, [x, x])[0].ctypes.data == first


def test_results_outlive_the_executable():
    x = np.arange(LARGE, dtype=np.float32)
    (got,) = executable(ADD).run({"A": LARGE}, [x, x])
    gc.collect()
    np.testing.assert_array_equal(got, 2 * x)


def test_a_pool_keeps_no_more_than_its_limit():
    pool = Pool()
    blocks = [np.empty(MOST_KEPT // 2, np.uint8) for _ in range(3)]
    for block in blocks:
        pool.give(block)
    assert pool.kept <= MOST_KEPT


def test_threads_of_python_may_call_at_the_same_time():
    run = executable("let f [A, B] (x : F32[A, B]) : F32[A, B] = softmax[axis=1] (x @ transpose x [1, 0] @ x)\n").run
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((n, 2 * n)).astype(np.float32) for n in (40, 150, 220)]
    wanted = [run({"A": x.shape[0], "B": x.shape[1]}, [x])[0] for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        x = inputs[number]
        for _ in range(30):
            (got,) = run({"A": x.shape[0], "B": x.shape[1]}, [x])
            if got.tobytes() != wanted[number].tobytes():
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(n % 3,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_function_without_inputs_runs():
    (got,) = executable("let f [A] : F32[A] = broadcast 2.5 [A]\n").run({"A": 3}, [])
    assert got.tolist() == [2.5, 2.5, 2.5]


@pytest.mark.parametrize("shape", [(2100, 2000), (2100, 2001), (3, 1_500_007)])
def test_results_too_large_for_the_caches_are_whole(shape):
    run = executable("let f [A, B] (x : F32[A, B]) (y : F32[B]) : F32[A, B] = x * 2 + y\n").run
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (got,) = run({"A": shape[0], "B": shape[1]}, [x, x[0].copy()])
    np.testing.assert_allclose(got, x * 2 + x[0], rtol=1e-6, atol=1e-6)
