"""The idioms of docs/from_pytorch.md: what each program is called with, and what that means in NumPy.

Sizes of a case name what the program's binders are; arguments stand in the order of its parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "from_pytorch.md"
_PAIR = re.compile(r"^```python\n(?P<python>.*?)^```\n\n```kina\n(?P<kina>.*?)^```$", flags=re.S | re.M)
_NAME = re.compile(r"^let (\w+)", flags=re.M)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pair:
    """A block of PyTorch and the program beside it, by the name of the program's last function."""

    python: str
    kina: str

    @property
    def name(self) -> str:
        return _NAME.findall(self.kina)[-1]


def pairs() -> list[Pair]:
    return [Pair(m["python"], m["kina"]) for m in _PAIR.finditer(PAGE.read_text(encoding="utf-8"))]


@dataclass(frozen=True)
class Idiom:
    meaning: Callable[..., Any]
    arguments: tuple[Any, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    """All that Python needs; Kina is given those that its arguments leave open (`opens`)."""
    opens: tuple[str, ...] = ()


_random = np.random.default_rng(5)


def f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def ids(below: int, *shape: int) -> Array:
    return np.asarray(_random.integers(0, below, shape))


def flags(*shape: int) -> Array:
    return np.asarray(_random.random(shape) < 0.6)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def attend(q: Array, k: Array, v: Array, mask: Array | bool = True) -> Array:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(np.where(mask, scores, -np.inf)) @ v


def silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def rms(x: Array, w: Array, eps: float) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w)


def ffn(x: Array, gate: Array, up: Array, down: Array) -> Array:
    return np.asarray((silu(x @ gate) * (x @ up)) @ down)


def norm(x: Array, w: Array, b: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def convolve(x: Array, w: Array) -> Array:
    """Stride 2, padding 1, kernel 3, by its definition."""
    n, _, height, width = x.shape
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.zeros((n, w.shape[0], (height - 1) // 2 + 1, (width - 1) // 2 + 1), np.float32)
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            window = x[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            out[:, :, i, j] = np.einsum("nchw,ochw->no", window, w)
    return out


def pools(x: Array) -> tuple[Array, Array]:
    height, width = x.shape[2] // 2, x.shape[3] // 2
    blocks = x[:, :, : 2 * height, : 2 * width].reshape(*x.shape[:2], height, 2, width, 2)
    return blocks.max((3, 5)), blocks.mean((3, 5))


def erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf)(x))


def added(x: Array, at: Array, updates: Array) -> Array:
    out = np.array(x)
    np.add.at(out, at, updates)
    return out


def highest(x: Array, at: Array, updates: Array) -> Array:
    out = np.array(x)
    np.maximum.at(out, at, updates)
    return out


def written(x: Array, part: Array, start: int) -> tuple[Array, Array]:
    out = np.array(x)
    out[start : start + 2] = part
    return x[start : start + 2], out


def smoothed(x: Array, a: float) -> Array:
    h, out = 0.0, []
    for y in x:
        h = a * h + (1 - a) * y
        out.append(h)
    return np.array(out)


def through(x: Array, weights: Array) -> Array:
    for w in weights:
        x = np.maximum(x @ w, 0)
    return x


def halves_of(x: float) -> float:
    while x > 1:
        x = x / 2
    return x


def rotated(x: Array, angles: Array) -> Array:
    a, b = np.split(x, 2, -1)
    c, s = np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def entropy(logits: Array, targets: Array) -> Array:
    return -np.log(softmax(logits))[np.arange(len(targets)), targets].mean()


_BEHIND = np.tril(np.ones((2, 5), bool), 3)

IDIOMS: dict[str, Idiom] = {
    "rmsnorm": Idiom(rms, (f(2, 3, 4), f(4), 1e-6)),
    "swiglu_ffn": Idiom(ffn, (f(2, 3, 4), f(4, 5), f(4, 5), f(5, 4))),
    "mha": Idiom(lambda q, k, v, s: softmax(q @ k.swapaxes(-1, -2) * s) @ v, (*(f(2, 3, 5, 4) for _ in "qkv"), 0.5)),
    "kv_append": Idiom(
        lambda a, b, c, d: (np.concatenate([a, c], 2), np.concatenate([b, d], 2)),
        (f(2, 3, 5, 4), f(2, 3, 5, 4), f(2, 3, 1, 4), f(2, 3, 1, 4)),
    ),
    "expand_kv_for_gqa": Idiom(
        lambda k, v: (np.repeat(k, 3, 1), np.repeat(v, 3, 1)), (f(2, 2, 5, 4), f(2, 2, 5, 4)), {"Q": 6}, ("Q",)
    ),
    "embed": Idiom(lambda i, t: t[i], (ids(7, 2, 3), f(7, 4))),
    "cross_entropy": Idiom(entropy, (f(5, 7), ids(7, 5))),
    "transformer_block_partial": Idiom(
        lambda x, n, g, u, d, e: x + ffn(rms(x, n, e), g, u, d), (f(2, 3, 4), f(4), f(4, 5), f(4, 5), f(5, 4), 1e-5)
    ),
    "linear_of": Idiom(lambda x, w, b: x @ w.T + b, (f(3, 4), f(5, 4), f(5))),
    "causal_attention": Idiom(
        lambda q, k, v: attend(q, k, v, np.tril(np.ones((5, 5), bool))), tuple(f(2, 3, 5, 4) for _ in "qkv")
    ),
    "attention_behind_a_cache": Idiom(
        lambda q, k, v: attend(q, k, v, _BEHIND), (f(1, 2, 2, 4), f(1, 2, 5, 4), f(1, 2, 5, 4)), {"Q": 2, "K": 5}
    ),
    "layer_norm_of": Idiom(norm, (f(3, 4), f(4), f(4)), {"D": 4}),
    "split_heads": Idiom(
        lambda x: x.reshape(2, 5, 3, 2).swapaxes(1, 2), (f(2, 5, 6),), {"B": 2, "S": 5, "H": 3}, ("H",)
    ),
    "merge_heads": Idiom(
        lambda x: x.swapaxes(1, 2).reshape(2, 5, 12), (f(2, 3, 5, 4),), {"B": 2, "S": 5, "H": 3, "D": 4}
    ),
    "filled": Idiom(lambda x: (np.zeros((3, 4)), np.ones(4)), (f(3, 4),), {"N": 3, "D": 4}),
    "full_of": Idiom(lambda x, v: np.full(4, v), (f(4), 2.5), {"N": 4}),
    "arange": Idiom(lambda x: np.arange(4), (f(4),), {"N": 4}),
    "arange_in_steps": Idiom(lambda x: np.arange(1, 6, 2), (f(6),), {"N": 6}),
    "linspace": Idiom(lambda x: np.linspace(0, 1, 5), (f(5),), {"N": 5}),
    "constants": Idiom(lambda x: (np.eye(3), np.array([[1, 2], [3, 4]])), (f(3),), {"N": 3}),
    "like": Idiom(lambda x: np.full((3, 4), 3.0), (f(3, 4),)),
    "rows": Idiom(lambda x: x.reshape(6, 4), (f(2, 3, 4),), {"B": 2, "S": 3, "D": 4}),
    "in_row_major_order": Idiom(lambda x: x.reshape(4, 3), (f(3, 4),), {"N": 3, "D": 4}),
    "flat_and_back": Idiom(lambda x: (x.reshape(2, 12), x), (f(2, 3, 4),), {"S": 3, "D": 4}),
    "permuted": Idiom(lambda x: (x.transpose(2, 0, 1), x.swapaxes(1, 2)), (f(2, 3, 4),)),
    "ones_in_and_out": Idiom(lambda x, y: (x[:, None], y[:, 0]), (f(3, 4), f(3, 1))),
    "expanded": Idiom(lambda x, w: np.broadcast_to(w, (2, 3, 4)), (f(2, 3, 4), f(4)), {"B": 2, "S": 3, "D": 4}),
    "joined": Idiom(lambda x, y: (np.concatenate([x, y], 1), np.stack([x, x])), (f(3, 2), f(3, 4))),
    "head_and_tail": Idiom(lambda x: (x[:1], x[1:]), (f(4, 3),), {"N": 4}),
    "halves": Idiom(lambda x: (x[:, :3], x[:, 3:]), (f(2, 6),)),
    "repeated": Idiom(lambda x: (np.tile(x, (3, 1)), np.repeat(x, 3, 0)), (f(2, 3),)),
    "repeat_new_axis": Idiom(
        lambda x, y: np.repeat(x[:, None], 5, 1), (f(2, 3), f(5)), {"N": 2, "H": 5, "D": 3}
    ),
    "rearranged": Idiom(
        lambda x: x.reshape(2, 5, 3, 2).swapaxes(1, 2), (f(2, 5, 6),), {"H": 3, "D": 6}, ("H",)
    ),
    "turned": Idiom(lambda x: (x[::-1], np.roll(x, 1)), (f(5),)),
    "padded": Idiom(lambda x: np.pad(x, ((0, 0), (1, 2))), (f(2, 3),)),
    "windows_of_three": Idiom(lambda x: np.stack([x[0:3], x[2:5], x[4:7]]), (f(8),)),
    "channel_bias": Idiom(lambda x, b: x + b[:, None, None], (f(2, 3, 4, 5), f(3)), {"C": 3}),
    "mse": Idiom(lambda p, t: ((p[:, 0] - t) ** 2).mean(), (f(5, 1), f(5))),
    "all_pairs": Idiom(lambda x, y: x[:, None] - y, (f(3), f(4))),
    "centred": Idiom(lambda x: x - x.mean(1, keepdims=True), (f(3, 4),)),
    "reduced": Idiom(lambda x: (x.sum(-1), x.max((1, 2)), x.mean()), (f(2, 3, 4),)),
    "variance": Idiom(lambda x: x.var(-1), (f(3, 4),)),
    "over_rows": Idiom(
        lambda x: (np.log(np.exp(x).sum(-1)), (x > 0).any(-1), (x > 0).all(-1)), (f(3, 4),)
    ),
    "best": Idiom(lambda x: x.argmax(-1), (f(3, 4),)),
    "unit_rows": Idiom(lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True), (f(3, 4),)),
    "running": Idiom(lambda x: (x.cumsum(1), x.cumprod(1), np.maximum.accumulate(x, 1)), (f(3, 4),)),
    "bounded": Idiom(lambda x: (np.clip(x, -1, 1), np.where(x > 0, x, 0.1 * x)), (f(9),)),
    "whole": Idiom(lambda a, b: (a // b, a % b), (np.array([7, -7, 7]), np.array([2, 2, -3]))),
    "casts": Idiom(lambda x, n: (x.astype("f8"), n * 0.5), (f(4), np.array([1, 2, -3, 4]))),
    "rounded_to_bf16": Idiom(
        lambda x: np.array([1.0, 1.0078125, -3.140625]), (np.array([1.001, 1.0078, -3.1416], np.float32),)
    ),
    "activations": Idiom(
        lambda x: (
            0.5 * x * (1 + erf(x / math.sqrt(2))),
            0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
            silu(x), np.log1p(np.exp(x)), np.maximum(x, 0),
        ),
        (f(9),),
    ),
    "batched": Idiom(np.matmul, (f(2, 3, 4, 5), f(5, 6))),
    "scores": Idiom(lambda q, k: q @ k.swapaxes(-1, -2), (f(2, 3, 5, 4), f(2, 3, 6, 4))),
    "products": Idiom(lambda x, y: (np.outer(x, y), x @ x), (f(3), f(4))),
    "diagonals": Idiom(lambda a: (np.diagonal(a), np.trace(a)), (f(4, 4),)),
    "convolved": Idiom(convolve, (f(2, 3, 5, 6), f(4, 3, 3, 3))),
    "pooled": Idiom(pools, (f(2, 3, 5, 6),)),
    "ranges": Idiom(lambda x: (x[1:, :2], x[::2], x[-1]), (f(5, 3),), {"N": 5}),
    "by_position": Idiom(lambda x, i: (x[i], x[:, i]), (f(4, 5), ids(4, 3))),
    "along_rows": Idiom(lambda x, i: np.take_along_axis(x, i, 1), (f(4, 5), ids(5, 4, 3))),
    "selected": Idiom(lambda x, i: x[:, i], (f(4, 5), ids(5, 3))),
    "summed_by_id": Idiom(
        lambda i, u: added(np.zeros((4, 3)), i, u), (np.array([1, 3, 1]), f(3, 3)), {"V": 4, "D": 3}, ("V",)
    ),
    "counts": Idiom(lambda i: np.bincount(i, minlength=5), (np.array([1, 3, 1, 0]),), {"V": 5}, ("V",)),
    "greatest_by_id": Idiom(highest, (f(4), np.array([1, 3, 1]), f(3))),
    "at_a_place": Idiom(written, (f(5, 3), f(2, 3), 2)),
    "hot": Idiom(lambda i: np.eye(5)[i], (ids(5, 4),), {"V": 5}, ("V",)),
    "ordered": Idiom(
        lambda x: (-np.sort(-x, -1)[:, :2], np.sort(x, -1), np.argsort(x, -1)), (f(3, 5),)
    ),
    "kept": Idiom(lambda x, m: (x[m].sum(), m.nonzero()[0].sum()), (f(6), flags(6))),
    "masked_fill": Idiom(lambda s, m: np.where(m, s, -np.inf), (f(4, 4), flags(4, 4))),
    "triangles": Idiom(lambda a: (np.tril(a), np.triu(a, 1)), (f(4, 5),)),
    "mask_of": Idiom(lambda x: np.tril(np.ones((4, 4), bool)), (f(4),), {"S": 4}),
    "length_mask": Idiom(lambda n, x: np.arange(5) < n[:, None], (np.array([0, 3, 5]), f(3, 5)), {"S": 5}),
    "layers": Idiom(through, (f(2, 3), f(4, 3, 3))),
    "generate": Idiom(lambda c, n: np.concatenate([c, n]), (f(2, 3), f(4, 3))),
    "smooth": Idiom(smoothed, (f(6), 0.75), {"N": 6}),
    "halved": Idiom(halves_of, (20.0,)),
    "outers": Idiom(lambda x, y: x[:, :, None] * y[:, None], (f(2, 3), f(2, 4))),
    "first_or_zero": Idiom(lambda x: x[0], (f(3),), {"N": 3}),
    "sums_of_pairs": Idiom(lambda x: x.reshape(-1, 2).sum(1), (f(6),)),
    "dropout": Idiom(
        lambda x, d, p: np.where(d >= p, x, 0) / (1 - p), (f(3, 4), np.abs(f(3, 4)) % 1, 0.25)
    ),
    "losses": Idiom(
        lambda x, y: (
            (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))).mean(),
            np.abs(x - y).mean(),
            np.where(np.abs(x - y) < 1, 0.5 * (x - y) ** 2, np.abs(x - y) - 0.5).mean(),
        ),
        (f(6), np.abs(f(6)) % 1),
    ),
    "rotate": Idiom(rotated, (f(2, 3, 4), f(3, 2))),
}
