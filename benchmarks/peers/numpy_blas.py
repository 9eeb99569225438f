"""NumPy as one would write it, with the BLAS it comes with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

import workloads
from peers import Candidate
from workloads import Input, Workload


class NumPy:
    """The number of threads comes by the environment, set before this process starts."""

    def __init__(self, threads: int) -> None:
        pass

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        meaning = getattr(workloads, workload.kind)
        return {"numpy": Candidate(lambda: meaning(*inputs))}

    def to_numpy(self, result: object) -> npt.NDArray[np.float32]:
        return np.asarray(result)
