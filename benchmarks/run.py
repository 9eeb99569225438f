"""Kina beside its peers and the machine's limits, all measured in this run: `make bench` (or `make bench QUICK=1`).

Every peer has a process of its own; they are asked in turns, round after round, so that a disturbance meets
all of them. Each is measured on one thread and on all, with the system's malloc as it comes and with malloc tuned to
keep its pages. Times are medians, of the limits the minimum. Writes benchmarks/results/*.json.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import Progress

from peers import PEERS
from report import LIMIT, show
from workloads import WORKLOADS, Workload

HERE = Path(__file__).parent
RESULTS = HERE / "results"
TUNED = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}
# Some systems set these for old builds of OpenBLAS; they would slow NumPy down.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "KINA_THREADS")


@dataclass(frozen=True)
class Setting:
    """How every peer is run."""

    threads: int
    tuned: bool

    def environment(self) -> dict[str, str]:
        environment = {k: v for k, v in os.environ.items() if k not in (*UNSET, *TUNED)}
        environment |= dict.fromkeys(THREAD_VARIABLES, str(self.threads))
        environment |= {"PYTHONPATH": str(HERE), "JAX_PLATFORMS": "cpu"}
        return environment | (TUNED if self.tuned else {})

    def __str__(self) -> str:
        malloc = "malloc tuned to keep its pages" if self.tuned else "malloc as it comes"
        return f"{self.threads} thread{'s' * (self.threads > 1)}, {malloc}"


@dataclass
class Result:
    """One peer on one workload: seconds of each run, or why there are none."""

    peer: str
    workload: str
    way: str = ""
    error: float = 0.0
    missing: str = ""
    times: list[float] = field(default_factory=list)

    @property
    def median(self) -> float | None:
        return statistics.median(self.times) if self.times else None

    @property
    def minimum(self) -> float | None:
        return min(self.times, default=None)

    @property
    def seconds(self) -> float | None:
        """What stands in the table: the typical run of a program, the best that the machine can do."""
        return self.minimum if self.peer == LIMIT else self.median

    def summary(self) -> dict[str, Any]:
        numbers = {"median": self.median, "minimum": self.minimum, "runs": len(self.times)}
        return {k: v for k, v in asdict(self).items() if k != "times"} | numbers


class PeerProcess:
    """A worker process; what it cannot do comes back as an answer with a reason."""

    def __init__(self, name: str, setting: Setting) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), name, str(setting.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=setting.environment(),
        )

    def ask(self, **request: object) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"missing": "its process ended"}
        return answer

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()


@contextmanager
def peer_processes(names: Sequence[str], setting: Setting) -> Iterator[list[PeerProcess]]:
    processes = [PeerProcess(name, setting) for name in names]
    try:
        yield processes
    finally:
        for process in processes:
            process.end()


def measure(workload: Workload, peers: list[PeerProcess], rounds: int, seconds: float) -> list[Result]:
    """All peers on one workload, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        reference = Path(folder) / "reference.npy"
        np.save(reference, workload.reference())
        results = [_prepare(peer, workload, str(reference)) for peer in peers]
    ready = [(peer, result) for peer, result in zip(peers, results, strict=True) if not result.missing]
    for _ in range(rounds):
        for peer, result in ready:
            answer = peer.ask(do="measure", seconds=seconds)
            result.times += answer.get("times", [])
            result.missing = result.missing or answer.get("missing", "")
    return results


def _prepare(peer: PeerProcess, workload: Workload, reference: str) -> Result:
    answer = peer.ask(do="prepare", workload=workload.name, reference=reference)
    return Result(peer.name, workload.name, **answer)


def settings(quick: bool) -> list[Setting]:
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    counts = sorted({1, min(2, most)})
    if quick:
        return [Setting(counts[-1], tuned=False)]
    return [Setting(threads, tuned) for threads in counts for tuned in (False, True)]


def save(measured: dict[Setting, list[Result]]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("%Y%m%d-%H%M%S.json")
    rows = [asdict(setting) | result.summary() for setting, results in measured.items() for result in results]
    machine = {"machine": platform.machine(), "system": platform.system(), "python": platform.python_version()}
    path.write_text(json.dumps({"platform": machine, "results": rows}, indent=1) + "\n", encoding="utf-8")
    return path


@click.command()
@click.option("--quick", is_flag=True, help="Only the smaller workloads, one setting, one round.")
@click.option("--only", default="", help="Only workloads whose name contains this.")
@click.option("--peers", default=",".join(PEERS), help="Which peers, by name, with commas between.")
def main(quick: bool, only: str, peers: str) -> None:
    """Measures Kina beside its peers and the machine's limits."""
    names = peers.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise click.UsageError(f"no peer is called {unknown[0]}; there are: {', '.join(PEERS)}")
    workloads = [w for w in WORKLOADS if only.lower() in w.name.lower() and (w.quick or not quick)]
    if not workloads:
        raise click.UsageError(f"no workload is called {only}; there are: {', '.join(w.name for w in WORKLOADS)}")
    rounds, seconds = (1, 0.15) if quick else (5, 0.2)
    console = Console()
    measured: dict[Setting, list[Result]] = {}
    with Progress(console=console, transient=True) as progress:
        chosen = settings(quick)
        task = progress.add_task("", total=len(chosen) * len(workloads))
        for setting in chosen:
            with peer_processes(names, setting) as processes:
                measured[setting] = []
                for workload in workloads:
                    progress.update(task, description=f"{workload.name} ({setting.threads})")
                    measured[setting] += measure(workload, processes, rounds, seconds)
                    progress.advance(task)
            show(console, str(setting), names, measured[setting])
    console.print(f"saved: {os.path.relpath(save(measured))}")


if __name__ == "__main__":
    main()
