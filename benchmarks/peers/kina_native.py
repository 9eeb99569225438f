"""Kina's native backend, called as a user calls it: `kina.load`, then NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

import kina
from peers import Candidate
from workloads import EPS, Input, Workload, attention_scale

PROGRAMS = Path(__file__).parents[1] / "programs"
ENTRIES = {"softmax": "softmax_last"}


class KinaNative:
    """The number of threads comes by the environment, set before this process starts."""

    def __init__(self, threads: int) -> None:
        pass

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        module = kina.load(PROGRAMS / f"{workload.kind}.kina")
        function = getattr(module, ENTRIES.get(workload.kind, workload.kind))
        scalars: list[np.float32] = []
        if workload.kind == "rmsnorm":
            scalars = [np.float32(EPS)]
        elif workload.kind in ("attention", "causal_attention"):
            scalars = [np.float32(attention_scale(inputs[0]))]
        arguments = [*inputs, *scalars]
        return {"native": Candidate(lambda: function(*arguments))}

    def to_numpy(self, result: object) -> npt.NDArray[np.float32]:
        return np.asarray(result)
