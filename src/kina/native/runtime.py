"""The thread pool as Python sees it: loaded once a process, sized by `KINA_THREADS` or `set_threads`.

Generated code calls these functions, whose addresses `runtime_symbols()` gives to the linker:

- `void kina_run(void (*body)(void *ctx, int64_t tid, int64_t n), void *ctx, int64_t n)`: runs `body` on n threads
  and returns when all are through. The body must use the `n` it is given: it may be less than was asked for.
- `void kina_barrier(int64_t n)`: inside a body, all n threads wait for one another.
- `void kina_reserve(struct { void *memory; int64_t size; } *slot, int64_t bytes)`: makes the memory at least so large,
  without what was in it; null where there is none. It is the caller's, to be given back with `free`.

Threads exist on Linux (x86-64 and 64-bit Arm); on other systems every run has one thread.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kina.diagnostics import KinaError
from kina.native.engine import Loaded, load, process_lock
from kina.native.machine import Machine
from kina.native.runtime_ir import MAX_CPUS, has_threads, runtime_ir

MAX_THREADS = 1024

_CALLED = ("kina_run", "kina_barrier", "kina_reserve")
_ENTRIES = (*_CALLED, "kina_set_cpus", "kina_after_fork")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The addresses of `kina_run` and `kina_barrier` in this process."""

    run: int
    barrier: int


_loaded: Loaded | None = None
_threads: int | None = None


def runtime() -> Runtime:
    """The runtime, loaded at the first call."""
    code = _load_once()
    return Runtime(code.address("kina_run"), code.address("kina_barrier"))


def runtime_symbols() -> Mapping[str, int]:
    """What generated code may call, for `load(..., symbols=...)`."""
    code = _load_once()
    return {name: code.address(name) for name in _CALLED}


def threads() -> int:
    """How many threads a run uses: what `set_threads` chose, else `KINA_THREADS`, else the number of usable cores.

    Raises `KinaError` if `KINA_THREADS` is no number from 1 to 1024.
    """
    if _threads is not None:
        return _threads
    text = os.environ.get("KINA_THREADS", "")
    if not text:
        return min(_physical_cores(), MAX_THREADS) if has_threads(Machine.host()) else 1
    return _checked(text, "KINA_THREADS")


def set_threads(count: int | None) -> None:
    """Chooses the number of threads for later runs, 1 to 1024 (else `KinaError`); None returns to `KINA_THREADS`."""
    global _threads
    _threads = None if count is None else _checked(str(count), "the number of threads")


def cpu_order() -> list[int]:
    """The CPUs this process may use: one of each physical core first, then their hyper-threads in the same order."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    rounds: dict[str, int] = {}
    ranked: list[tuple[int, int]] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        core = _siblings(cpu)
        ranked.append((rounds.get(core, 0), cpu))
        rounds[core] = rounds.get(core, 0) + 1
    return [cpu for _, cpu in sorted(ranked) if cpu < MAX_CPUS]


def _checked(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_THREADS):
        raise KinaError(f"{what} must be a whole number from 1 to {MAX_THREADS}, not {text!r}")
    return int(text)


def _physical_cores() -> int:
    return max(1, len({_siblings(cpu) for cpu in cpu_order()}))


def _siblings(cpu: int) -> str:
    """A name for the physical core a CPU belongs to."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(cpu)


def _load_once() -> Loaded:
    global _loaded
    with process_lock:
        if _loaded is None:
            machine = Machine.host()
            loaded = load(runtime_ir(machine), machine, _ENTRIES)
            # Workers run this code until the process ends: it must outlive the interpreter's own teardown.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
            _tell_cpus(loaded)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=lambda: _restart_in_child(loaded))
            _loaded = loaded
        return _loaded


def _tell_cpus(loaded: Loaded) -> None:
    order = cpu_order()
    cpus = (ctypes.c_int32 * len(order))(*order)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.address("kina_set_cpus"))(cpus, len(order))


def _restart_in_child(loaded: Loaded) -> None:
    ctypes.CFUNCTYPE(None)(loaded.address("kina_after_fork"))()
    _tell_cpus(loaded)
