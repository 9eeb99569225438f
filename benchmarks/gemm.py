"""Speed of Kina's gemm beside NumPy's OpenBLAS, one thread each, in the same run.

Every shape is timed in short repetitions, taking turns; the best of each counts, so that other work on the machine
disturbs neither more than the other. Run: `python benchmarks/gemm.py f32 host square skinny small turned`.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kina.native.gemm_driver import Gemm
from kina.native.machine import Machine

Array = np.ndarray[Any, np.dtype[np.floating[Any]]]

SHAPES: dict[str, list[tuple[int, int, int]]] = {
    "square": [(s, s, s) for s in (256, 512, 1024, 2048)],
    "skinny": [(m, n, k) for m in (1, 2, 4, 8, 32) for n, k in ((576, 576), (1536, 576), (2048, 768), (5632, 2048))],
    "small": [(8, 8, 8), (16, 16, 16), (32, 32, 32), (64, 64, 64), (100, 100, 100), (128, 128, 128)],
    "turned": [(m, n, k) for m in (1, 2, 4, 8, 64, 512) for n, k in ((768, 768), (2048, 2048))],
}


def best_of(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """The shortest time of each, in seconds; they take turns until `seconds` have passed."""
    for run in runs:
        run()
    best = [float("inf")] * len(runs)
    once = max(_time(run, 1) for run in runs)
    repeats = max(1, int(2e-4 / once))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(runs):
            best[i] = min(best[i], _time(run, repeats))
    return best


def _time(run: Callable[[], object], repeats: int) -> float:
    start = time.thread_time()  # of this thread alone: what others take from a crowded machine does not count
    for _ in range(repeats):
        run()
    return (time.thread_time() - start) / repeats


def row(gemm: Gemm, dtype: type[np.floating[Any]], shape: tuple[int, int, int], turned: bool, seconds: float) -> str:
    """One line of the table: GFLOP/s of both, and ours over theirs."""
    m, n, k = shape
    generator = np.random.default_rng(0)
    a: Array = generator.standard_normal((m, k)).astype(dtype)
    b: Array = generator.standard_normal((n, k)).astype(dtype).T if turned else generator.standard_normal((k, n)).astype(dtype)
    ours: Array = np.zeros((m, n), dtype)
    theirs: Array = np.zeros((m, n), dtype)
    own, blas = best_of([gemm.bind(a, b, ours), lambda: np.matmul(a, b, out=theirs)], seconds)
    assert np.allclose(ours, theirs, rtol=1e-3, atol=1e-3 * k**0.5)
    work = 2e-9 * m * n * k
    name = f"{m}x{n}x{k}" + (" B^T" if turned else "")
    return f"{name:>20} {work / own:8.1f} {work / blas:8.1f} {blas / own:6.2f}   {own * 1e6:9.1f} us"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtype", nargs="?", default="f32", choices=["f32", "f64"])
    parser.add_argument("machine", nargs="?", default="host", choices=["host", "avx2"])
    parser.add_argument("groups", nargs="*", default=list(SHAPES))
    parser.add_argument("--seconds", type=float, default=0.5, help="time a shape")
    options = parser.parse_args()
    machine = Machine.host() if options.machine == "host" else Machine.avx2()
    gemm = Gemm(machine, options.dtype)
    dtype: type[np.floating[Any]] = {"f32": np.float32, "f64": np.float64}[options.dtype]
    print(f"{'M x N x K':>20} {'kina':>8} {'OpenBLAS':>8} {'ratio':>6}    GFLOP/s, {options.dtype}, {options.machine}")
    for group in options.groups:
        for shape in SHAPES[group]:
            print(row(gemm, dtype, shape, group == "turned", options.seconds), flush=True)


if __name__ == "__main__":
    main()
