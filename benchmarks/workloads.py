"""What is measured: each workload with its sizes, inputs, meaning in float64 and physical limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating]
Positions = npt.NDArray[np.int64]
Input = npt.NDArray[np.float32] | Positions

EPS = 1e-6


@dataclass(frozen=True)
class Limit:
    """The least that the machine has to do: `copy` or `read` so many bytes, or so many `flops`."""

    kind: str
    amount: int


@dataclass(frozen=True)
class Workload:
    """One row of the table. `kind` chooses the program, `shapes` are those of its tensors."""

    name: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    limit: Limit | None
    quick: bool = True

    def inputs(self) -> list[Input]:
        """The same numbers in every process: normal, weights scaled so that results stay near one; or positions."""
        random = np.random.default_rng(0)
        arrays: list[Input] = [random.standard_normal(shape, dtype=np.float32) for shape in self.shapes]
        if self.kind in ("swiglu", "gemm"):
            arrays[1:] = [w * np.float32(w.shape[-2] ** -0.5) for w in arrays[1:]]
        if self.kind == "cross_entropy":
            arrays[1] = random.integers(0, self.shapes[0][1], self.shapes[1])
        return arrays

    def reference(self) -> Array:
        """What it means, in float64 throughout."""
        return _MEANINGS[self.kind](*(a.astype(np.float64) if a.dtype == np.float32 else a for a in self.inputs()))


def rmsnorm(x: Array, weight: Array) -> Array:
    result: Array = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + x.dtype.type(EPS)) * weight
    return result


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


def swiglu(x: Array, w_gate: Array, w_up: Array, w_down: Array) -> Array:
    gate = x @ w_gate
    result: Array = (gate / (1 + np.exp(-gate)) * (x @ w_up)) @ w_down
    return result


def attention_scale(q: Input | Array) -> float:
    return float(q.shape[-1] ** -0.5)


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(attention_scale(q))
    result: Array = softmax(scores) @ v
    return result


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(attention_scale(q))
    later = np.triu(np.ones(scores.shape[-2:], bool), 1)
    result: Array = softmax(np.where(later, scores.dtype.type(-np.inf), scores)) @ v
    return result


def cross_entropy(logits: Array, targets: Positions) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    picked = np.take_along_axis(shifted, targets[:, None], axis=-1)[:, 0]
    result: Array = np.mean(np.log(np.exp(shifted).sum(axis=-1)) - picked, keepdims=True)[0]
    return np.asarray(result)


def append(cache: Array, rows: Array) -> Array:
    """A row at a time, as a cache of keys grows token by token."""
    for row in rows:
        cache = np.concatenate([cache, row[None]])
    return cache


def gemm(a: Array, b: Array) -> Array:
    result: Array = a @ b
    return result


_MEANINGS: dict[str, Callable[..., Array]] = {
    "rmsnorm": rmsnorm,
    "softmax": softmax,
    "swiglu": swiglu,
    "attention": attention,
    "causal_attention": causal_attention,
    "cross_entropy": cross_entropy,
    "append": append,
    "gemm": gemm,
}


def _size(*shape: int) -> str:
    return "x".join(map(str, shape))


def _rmsnorm(*shape: int, limit: bool = True) -> Workload:
    least = Limit("copy", 4 * prod(shape)) if limit else None
    return Workload(f"RMSNorm {_size(*shape)}", "rmsnorm", (shape, shape[-1:]), least)


def _softmax(*shape: int) -> Workload:
    return Workload(f"softmax {_size(*shape)}", "softmax", (shape,), Limit("copy", 4 * prod(shape)))


def _swiglu(s: int, d: int, h: int) -> Workload:
    # A single row uses each weight once: then reading them is the limit, not multiplying.
    limit = Limit("read", 4 * 3 * d * h) if s == 1 else Limit("flops", 2 * 3 * s * d * h)
    return Workload(f"SwiGLU S={s} {d}/{h}", "swiglu", ((1, s, d), (d, h), (d, h), (h, d)), limit)


def _attention(*shape: int, quick: bool = True) -> Workload:
    b, h, s, d = shape
    limit = Limit("flops", 4 * b * h * s * s * d)
    return Workload(f"attention {_size(*shape)}", "attention", (shape,) * 3, limit, quick)


def _causal(*shape: int, quick: bool = True) -> Workload:
    b, h, s, d = shape
    limit = Limit("flops", 2 * b * h * s * (s + 1) * d)  # half of the pairs
    return Workload(f"causal attention {_size(*shape)}", "causal_attention", (shape,) * 3, limit, quick)


def _cross_entropy(n: int, v: int) -> Workload:
    return Workload(f"cross-entropy {_size(n, v)}", "cross_entropy", ((n, v), (n,)), Limit("read", 4 * n * v))


def _append(s: int, n: int, d: int, quick: bool = True) -> Workload:
    return Workload(f"append {n} rows to {_size(s, d)}", "append", ((s, d), (n, d)), None, quick)  # it fits in caches


def _gemm(m: int, k: int, n: int, quick: bool = True) -> Workload:
    limit = Limit("flops", 2 * m * k * n)
    return Workload(f"gemm {_size(m, k, n)}", "gemm", ((m, k), (k, n)), limit, quick)


WORKLOADS = (
    _rmsnorm(8, 512, 2048),
    _rmsnorm(1, 1, 64, limit=False),
    _softmax(64, 512, 512),
    _swiglu(256, 768, 2048),
    _swiglu(1, 2048, 5632),
    _attention(2, 12, 512, 64),
    _attention(1, 12, 2048, 64, quick=False),
    _causal(1, 12, 2048, 64, quick=False),
    _cross_entropy(512, 32000),
    _append(2048, 64, 512),
    _append(2048, 256, 512, quick=False),
    _gemm(256, 256, 256),
    _gemm(512, 512, 512, quick=False),
    _gemm(1024, 1024, 1024),
    _gemm(2048, 2048, 2048, quick=False),
)
