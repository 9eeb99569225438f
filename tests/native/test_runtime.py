"""The thread pool: teams, barriers, forks, crowds and exits."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kina.diagnostics import KinaError
from kina.native.engine import Loaded, compile_object, load
from kina.native.machine import Machine
from kina.native.object_cache import ObjectCache
from kina.native.runtime import cpu_order, runtime_symbols, set_threads, threads
from kina.native.runtime_ir import has_threads, runtime_ir

pool = pytest.mark.skipif(not has_threads(Machine.host()), reason="runs have one thread on this system")

# In each of `rounds` rounds every thread publishes the round, waits, and checks that all others have published
# it too; a thread that passes a barrier too early counts an error. Layout of ctx: team size, errors, marks[64].
PROGRAM = """
declare void @kina_barrier(i64)
declare void @kina_run(ptr, ptr, i64)

define void @body(ptr %ctx, i64 %tid, i64 %n) {
entry:
  store atomic i64 %n, ptr %ctx monotonic, align 8
  %errors = getelementptr i64, ptr %ctx, i64 1
  %rounds_at = getelementptr i64, ptr %ctx, i64 2
  %rounds = load i64, ptr %rounds_at
  %marks = getelementptr i64, ptr %ctx, i64 3
  %mine = getelementptr i64, ptr %marks, i64 %tid
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %next, %after ]
  %mark = load i64, ptr %mine
  %raised = add i64 %mark, 1
  store atomic i64 %raised, ptr %mine monotonic, align 8
  call void @kina_barrier(i64 %n)
  br label %check
check:
  %i = phi i64 [ 0, %round ], [ %j, %check ]
  %other = getelementptr i64, ptr %marks, i64 %i
  %value = load atomic i64, ptr %other monotonic, align 8
  %wrong = icmp ne i64 %value, %raised
  %count = zext i1 %wrong to i64
  %old = atomicrmw add ptr %errors, i64 %count monotonic
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %check, label %after
after:
  call void @kina_barrier(i64 %n)
  %next = add i64 %r, 1
  %again = icmp slt i64 %next, %rounds
  br i1 %again, label %round, label %done
done:
  ret void
}

define void @nested(ptr %ctx, i64 %tid, i64 %n) {
  %slot = getelementptr [80 x i64], ptr %ctx, i64 %tid
  call void @kina_run(ptr @body, ptr %slot, i64 2)
  ret void
}

define void @run(ptr %ctx, i64 %n) {
  call void @kina_run(ptr @body, ptr %ctx, i64 %n)
  ret void
}

define void @run_nested(ptr %ctx, i64 %n) {
  call void @kina_run(ptr @nested, ptr %ctx, i64 %n)
  ret void
}
"""

TEAM, ERRORS, ROUNDS, MARKS = 0, 1, 2, 3


@cache
def program() -> Loaded:
    return load(PROGRAM, Machine.host(), ["run", "run_nested"], symbols=runtime_symbols(), cache=ObjectCache(None))


def function(name: str) -> Callable[[int, int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(program().address(name))


def run(wanted: int, rounds: int = 1) -> np.ndarray:
    context = np.zeros(80, np.int64)
    context[ROUNDS] = rounds
    function("run")(context.ctypes.data, wanted)
    return context


@pool
@pytest.mark.parametrize("wanted", [1, 2, 3, 7])
def test_every_thread_of_the_team_runs_the_body_once_and_barriers_hold(wanted: int) -> None:
    context = run(wanted, rounds=50)
    assert context[TEAM] == wanted
    assert context[ERRORS] == 0
    assert list(context[MARKS : MARKS + wanted + 1]) == [50] * wanted + [0]


@pool
def test_teams_of_changing_size_never_run_a_job_twice() -> None:
    for step in range(2000):
        wanted = (2, 5, 3, 4)[step % 4]
        context = run(wanted)
        assert list(context[MARKS : MARKS + 6]) == [1] * wanted + [0] * (6 - wanted)


@pytest.mark.parametrize("wanted", [1, 0, -3])
def test_a_team_of_one_runs_in_the_caller(wanted: int) -> None:
    context = run(wanted, rounds=3)
    assert (context[TEAM], context[ERRORS], context[MARKS]) == (1, 0, 3)


@pool
def test_a_run_after_the_workers_fell_asleep_wakes_them() -> None:
    for _ in range(5):
        run(2)
        time.sleep(0.01)
        assert run(2)[TEAM] == 2


@pool
def test_a_run_inside_a_run_has_a_team_of_one() -> None:
    context = np.zeros((2, 80), np.int64)
    context[:, ROUNDS] = 1
    function("run_nested")(context.ctypes.data, 2)
    assert list(context[:, TEAM]) == [1, 1]
    assert list(context[:, MARKS]) == [1, 1]


@pool
def test_several_python_threads_may_run_at_once() -> None:
    failures: list[object] = []

    def work() -> None:
        for _ in range(200):
            context = run(2, rounds=3)
            team = int(context[TEAM])
            if context[ERRORS] or list(context[MARKS : MARKS + team]) != [3] * team:
                failures.append(context)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert failures == []


@pool
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_has_workers_of_its_own() -> None:
    run(3)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        good = all(run(3, rounds=5)[TEAM] == 3 for _ in range(10))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run(3)[TEAM] == 3


@pool
def test_more_threads_than_cpus_finish_promptly() -> None:
    allowed = os.sched_getaffinity(0)
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import os; os.sched_setaffinity(0, {{{min(allowed)}}})\n"
        "from test_runtime import run\n"
        "context = run(4, rounds=200)\n"
        "assert context[0] == 4 and context[1] == 0, context"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


@pool
@pytest.mark.parametrize("daemon", [False, True])
def test_the_process_exits_cleanly_with_workers_spinning_or_running(daemon: bool) -> None:
    script = (
        f"import sys, threading, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_runtime import run\n"
        "run(2)\n"
        "work = lambda: [run(2, 1000) for _ in range(10**6)]\n"
        f"{daemon} and (threading.Thread(target=work, daemon=True).start(), time.sleep(0.02))\n"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_the_number_of_threads_comes_from_the_call_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINA_THREADS", "3")
    assert threads() == 3
    set_threads(5)
    try:
        assert threads() == 5
    finally:
        set_threads(None)
    monkeypatch.delenv("KINA_THREADS")
    assert 1 <= threads() <= len(cpu_order() or [0])


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "1025", " ", "²"])
def test_a_bad_number_of_threads_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("KINA_THREADS", text)
    with pytest.raises(KinaError, match="KINA_THREADS must be a whole number from 1 to 1024"):
        threads()


def test_the_runtime_compiles_for_arm_and_falls_back_elsewhere() -> None:
    assert compile_object(runtime_ir(Machine.neon()), Machine.neon())[:4] == b"\x7fELF"
    assert "pthread" not in runtime_ir(Machine("arm64-apple-darwin", "apple-m1", "", 16, 32, 8))
