"""One peer in a process of its own: it answers requests, one JSON line each, on its standard streams.

    python worker.py PEER THREADS

`{"do": "prepare", "workload": NAME, "reference": FILE}` -> `{"way": NAME, "error": FLOAT}`
`{"do": "measure", "seconds": FLOAT}` -> `{"times": [FLOAT, ...]}`, seconds a run
Anything that goes wrong comes back as `{"missing": REASON}`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from typing import Any

import numpy as np

from peers import Candidate, Missing, Peer, make_peer
from workloads import WORKLOADS

TOLERANCE = 1e-3  # of the largest value: far above rounding, far below a wrong result
SHORTEST_SAMPLE = 50e-6  # seconds; shorter calls are timed several at a time


class Worker:
    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.best: Candidate | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "prepare":
            return self.prepare(request["workload"], request["reference"])
        assert self.best is not None
        return {"times": samples(self.best, request["seconds"])}

    def prepare(self, name: str, reference: str) -> dict[str, Any]:
        self.best = None
        workload = next(w for w in WORKLOADS if w.name == name)
        want = np.load(reference, mmap_mode="r")
        fastest, way, error = float("inf"), "", 0.0
        for candidate_name, candidate in self.peer.candidates(workload, workload.inputs()).items():
            got = self.peer.to_numpy(candidate.call())
            wrong = 0.0 if got is None else float(np.abs(got - want).max() / np.abs(want).max())
            if not wrong <= TOLERANCE:
                raise Missing(f"wrong by {wrong:.1e} ({candidate_name})")
            seconds = min(samples(candidate, 0.1))
            if seconds < fastest:
                fastest, self.best, way, error = seconds, candidate, candidate_name, wrong
        return {"way": way, "error": error}


def samples(candidate: Candidate, seconds: float) -> list[float]:
    """Seconds of one run, again and again for about `seconds`; at least three."""
    call = candidate.call
    start = time.perf_counter()
    call()
    inner = max(1, int(SHORTEST_SAMPLE / (time.perf_counter() - start)))
    times: list[float] = []
    end = start + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - start) / inner / candidate.repetitions)
    return times


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come between the answers
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(make_peer(name, threads))
            answer = worker.answer(json.loads(line))
        except Exception as error:  # whatever a peer raises, the bench goes on without it
            text = str(error).strip().splitlines()
            answer = {"missing": f"{type(error).__name__}: {text[0] if text else ''}"[:200]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
