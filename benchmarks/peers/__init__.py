"""Who is measured. A peer is made in a process of its own and builds calls for a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import numpy as np
import numpy.typing as npt

from workloads import Input, Workload

Call = Callable[[], object]


@dataclass(frozen=True)
class Candidate:
    """One way of doing the work; a call does it `repetitions` times."""

    call: Call
    repetitions: int = 1


class Missing(Exception):
    """This peer cannot do this here; the text says why."""


class Peer(Protocol):
    """Made with the number of threads that it may use; raises ImportError or Missing where it is not there."""

    def __init__(self, threads: int) -> None: ...

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        """The peer's own ways of doing it, of which the fastest counts."""

    def to_numpy(self, result: object) -> npt.NDArray[np.float32] | None:
        """A result for checking; None where there is nothing to check."""


# Name in the table -> module:class.
PEERS: Mapping[str, str] = {
    "Kina": "peers.kina_native:KinaNative",
    "eager": "peers.pytorch:Eager",
    "inductor": "peers.pytorch:Inductor",
    "XLA": "peers.xla:Xla",
    "ORT": "peers.onnx_runtime:OnnxRuntime",
    "NumPy": "peers.numpy_blas:NumPy",
    "limit": "limits:Limits",
}


def make_peer(name: str, threads: int) -> Peer:
    module, _, class_ = PEERS[name].partition(":")
    peer: Peer = getattr(import_module(module), class_)(threads)
    return peer
