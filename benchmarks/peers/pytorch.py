"""PyTorch on the CPU: eager, and `torch.compile` with inductor."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch.nn.functional as nn

import torch
from peers import Candidate, Missing
from torch import Tensor
from workloads import EPS, Input, Workload, attention_scale

Function = Callable[..., Tensor]


def _rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def _rmsnorm_function(x: Tensor, weight: Tensor) -> Tensor:
    return nn.rms_norm(x, weight.shape, weight, EPS)


def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    return (nn.silu(x @ w_gate) * (x @ w_up)) @ w_down


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * attention_scale(q), dim=-1) @ v


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * attention_scale(q)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1) @ v


def _causal_function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.scaled_dot_product_attention(q, k, v, is_causal=True)


def _append(cache: Tensor, rows: Tensor) -> Tensor:
    for n in range(len(rows)):
        cache = torch.cat([cache, rows[n : n + 1]])
    return cache


def _append_allocated(cache: Tensor, rows: Tensor) -> Tensor:
    whole = torch.empty(len(cache) + len(rows), cache.shape[1])
    whole[: len(cache)] = cache
    for n in range(len(rows)):
        whole[len(cache) + n] = rows[n]
    return whole


# Every spelling that a PyTorch user might choose; the fastest counts.
SPELLINGS: Mapping[str, Mapping[str, Function]] = {
    "rmsnorm": {"formula": _rmsnorm, "rms_norm": _rmsnorm_function},
    "softmax": {"softmax": _softmax},
    "swiglu": {"formula": _swiglu},
    "attention": {"formula": _attention, "SDPA": nn.scaled_dot_product_attention},
    "causal_attention": {"formula": _causal, "SDPA": _causal_function},
    "cross_entropy": {"cross_entropy": nn.cross_entropy},
    "append": {"cat": _append, "allocated": _append_allocated},
    "gemm": {"matmul": torch.matmul},
}


class Eager:
    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def prepare(self, function: Function) -> Function:
        return function

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        tensors = [torch.from_numpy(a) for a in inputs]

        def candidate(function: Function) -> Candidate:
            prepared = self.prepare(function)
            return Candidate(lambda: prepared(*tensors))

        return {name: candidate(function) for name, function in SPELLINGS[workload.kind].items()}

    def to_numpy(self, result: object) -> npt.NDArray[np.float32]:
        assert isinstance(result, Tensor)
        array: npt.NDArray[np.float32] = result.numpy()
        return array


class Inductor(Eager):
    """Compiled for the exact sizes, which suits it best."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        if not any(map(shutil.which, ("g++", "c++", "clang++"))):
            raise Missing("torch.compile needs a C++ compiler")

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        if workload.kind == "append":
            raise Missing("torch.compile writes out all steps of the loop")
        return super().candidates(workload, inputs)

    def prepare(self, function: Function) -> Function:
        torch._dynamo.reset()
        compiled: Function = torch.compile(function, fullgraph=True, dynamic=False)
        return compiled
