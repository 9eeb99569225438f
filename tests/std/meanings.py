"""What the functions of the standard library compute, written a second time in NumPy (float64) and with `math`.

Sizes are `(rows, n, d)`: the axes that `...S` stands for, and two more, of which d is even.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kina.ops.random import threefry

Sizes = tuple[tuple[int, ...], int, int]
Draw = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Meaning:
    """Arguments for sizes, what the function gives for them, and the sizes that the arguments leave open."""

    arguments: Callable[[Draw, Sizes], tuple[Any, ...]]
    oracle: Callable[..., Any]
    named: Callable[[Sizes], dict[str, int]] = field(default=lambda sizes: {})
    takes_sizes: bool = False
    """Whether the oracle gets the sizes by name too."""
    draws: bool = False
    """Whether it draws, from a `seed` among the names: then the oracle gets what it draws first."""


@dataclass(frozen=True)
class Drawn:
    """What the first draw of a function gives for a seed: bits as JAX makes them, told apart in tests/ops."""

    seed: int
    dtype: str

    def bits(self, *shape: int, of: int = 1) -> np.ndarray:
        """`of` words for each place."""
        key = threefry(np.int64(self.seed), np.int64(0))
        return threefry(key, np.arange(math.prod(shape) * of).reshape(*shape, of)).astype(np.uint64)

    def uniform(self, *shape: int) -> np.ndarray:
        count = 53 if self.dtype == "float64" else 24
        return (self.bits(*shape)[..., 0] >> np.uint64(64 - count)) / 2.0**count

    def normal(self, *shape: int) -> np.ndarray:
        if self.dtype == "float64":
            words = self.bits(*shape, of=2)
            u, v = ((words[..., 0] >> np.uint64(1)) + 0.5) / 2.0**63, (words[..., 1] >> np.uint64(11)) / 2.0**53
        else:
            words = self.bits(*shape)[..., 0]
            u = ((words >> np.uint64(32)) + 0.5) / 2.0**32
            v = ((words & np.uint64(0xFFFFFFFF)) >> np.uint64(8)) / 2.0**24
        return np.sqrt(-2 * np.log(u)) * np.cos(2 * math.pi * v)

    def gumbel(self, *shape: int) -> np.ndarray:
        return -np.log(-np.log1p(-((self.bits(*shape)[..., 0] >> np.uint64(1)) + 0.5) / 2.0**63))


def one(f: Callable[..., Any], low: float = -2.0, high: float = 2.0) -> Meaning:
    """A function of one tensor of any shape, whose elements lie between two numbers."""
    return Meaning(lambda draw, z: (draw(*z[0], z[2], low=low, high=high),), f)


def pointwise(f: Callable[..., float], *bounds: tuple[float, float]) -> Meaning:
    """A function of numbers, told by what it is for each."""
    table = np.vectorize(f, otypes=[np.float64])
    return Meaning(lambda draw, z: tuple(draw(*z[0], z[2], low=a, high=b) for a, b in bounds), table)


def rows(f: Callable[..., Any], count: int = 1, *numbers: float) -> Meaning:
    """A function of tensors `[..., d]` of one shape, then of numbers."""
    return Meaning(lambda draw, z: (*(draw(*z[0], z[2]) for _ in range(count)), *numbers), f)


# ---------------------------------------------------------------- std.math

WIDE = (-3.0, 3.0)
MATH = {
    "square": pointwise(lambda x: x**2, WIDE),
    "cube": pointwise(lambda x: x**3, WIDE),
    "log2": pointwise(math.log2, (0.01, 9)),
    "log10": pointwise(math.log10, (0.01, 9)),
    "exp2": pointwise(lambda x: 2.0**x, WIDE),
    "hypot": pointwise(math.hypot, WIDE, WIDE),
    "log_add_exp": pointwise(lambda x, y: math.log(math.exp(x) + math.exp(y)), WIDE, WIDE),
    "logit": pointwise(lambda p: math.log(p / (1 - p)), (0.01, 0.99)),
    "log_sigmoid": pointwise(lambda x: math.log(1 / (1 + math.exp(-x))), WIDE),
    "sinh": pointwise(math.sinh, WIDE),
    "cosh": pointwise(math.cosh, WIDE),
    "asinh": pointwise(math.asinh, WIDE),
    "acosh": pointwise(math.acosh, (1.001, 9)),
    "atanh": pointwise(math.atanh, (-0.95, 0.95)),
    "lerp": pointwise(lambda x, y, t: (1 - t) * x + t * y, WIDE, WIDE, (0, 1)),
    "smoothstep": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), -0.5, 1.0),
        lambda x, a, b: np.polyval([-2, 3, 0, 0], np.interp(x, [a, b], [0, 1])),
    ),
    "safe_divide": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), np.trunc(draw(*z[0], z[2]))),
        np.vectorize(lambda x, y: x / y if y else 0.0, otypes=[np.float64]),
    ),
    "radians": one(np.deg2rad),
    "degrees": one(np.rad2deg),
    "leaky_relu": rows(lambda x, a: np.maximum(x, 0) + a * np.minimum(x, 0), 1, 0.1),
    "elu": rows(lambda x, a: np.maximum(x, 0) + a * (np.exp(np.minimum(x, 0)) - 1), 1, 1.5),
    "selu": one(lambda x: 1.05070098735548 * np.where(x > 0, x, 1.67326324235438 * (np.exp(x) - 1))),
    "mish": pointwise(lambda x: x * math.tanh(math.log(1 + math.exp(x))), WIDE),
    "relu6": one(lambda x: np.clip(x, 0, 6), -9, 9),
    "hard_sigmoid": one(lambda x: np.clip(x + 3, 0, 6) / 6, -9, 9),
    "hard_swish": one(lambda x: x * np.clip(x + 3, 0, 6) / 6, -9, 9),
    "quick_gelu": pointwise(lambda x: x / (1 + math.exp(-1.702 * x)), WIDE),
    "softsign": pointwise(lambda x: x / (1 + abs(x)), WIDE),
    "pi": Meaning(lambda draw, z: (), lambda: math.pi),
    "e": Meaning(lambda draw, z: (), lambda: math.e),
}

# ---------------------------------------------------------------- std.nn


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def standardised(x: np.ndarray, axes: Any, eps: float) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def per_channel(x: np.ndarray) -> np.ndarray:
    return x[:, None, None]


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: np.ndarray | None = None) -> np.ndarray:
    """One head at a time."""
    out = np.empty((*q.shape[:3], v.shape[3]))
    group = q.shape[1] // max(1, k.shape[1])
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = q[b, h] @ k[b, h // group].T * scale
            if mask is not None:
                scores = np.where(mask, scores, -np.inf)
            out[b, h] = softmax(scores) @ v[b, h // group]
    return out


def visible(q: int, k: int, window: int) -> np.ndarray:
    return np.array([[0 <= i + k - q - j < window for j in range(k)] for i in range(q)]).reshape(q, k)


def cached(q, k, v, old_k, old_v, scale):  # type: ignore[no-untyped-def]
    keys, values = np.concatenate([old_k, k], 2), np.concatenate([old_v, v], 2)
    return attend(q, keys, values, scale, visible(q.shape[2], keys.shape[2], 10**6)), keys, values


def rotated(x: np.ndarray, angles: np.ndarray, first: Any, second: Any) -> np.ndarray:
    """Rotation by multiplication of complex numbers."""
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angles)
    out = np.empty_like(x)
    out[..., first], out[..., second] = turned.real, turned.imag
    return out


def pairs(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    return rotated(x, angles, slice(0, None, 2), slice(1, None, 2))


def halves(x: np.ndarray, angles: np.ndarray) -> np.ndarray:
    return rotated(x, angles, slice(0, x.shape[-1] // 2), slice(x.shape[-1] // 2, None))


def angles_of(positions: np.ndarray, base: float, D: int) -> np.ndarray:  # noqa: N803
    return np.array([[p * base ** (-2 * i / D) for i in range(D // 2)] for p in positions]).reshape(-1, D // 2)


def sinusoids(positions: np.ndarray, D: int) -> np.ndarray:  # noqa: N803
    angles = angles_of(positions, 10000.0, D)
    return np.array([[f(a) for a in row for f in (math.sin, math.cos)] for row in angles]).reshape(-1, D)


def merged(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x[:, h] for h in range(x.shape[1])], -1) if x.shape[1] else np.zeros((*x.shape[:3:2], 0))


def feed(draw: Draw, z: Sizes) -> tuple[Any, ...]:
    rows, n, d = z
    return draw(*rows, n, d), draw(d, n), draw(d, n), draw(n, d)


def heads(draw: Draw, z: Sizes, shared: int = 1) -> tuple[Any, ...]:
    """Six query heads, each key head shared by some of them; n queries, d more keys."""
    _, n, d = z
    return draw(2, 6, n, d), draw(2, 6 // shared, n + d, d), draw(2, 6 // shared, n + d, 3)


NN = {
    "dropout": Meaning(
        lambda draw, z: (0.3, draw(*z[0], z[2])),
        lambda drawn, p, x: np.where(drawn.uniform(*x.shape) < p, 0.0, x / (1 - p)), lambda z: {"seed": 2}, draws=True,
    ),
    "linear": Meaning(lambda draw, z: (draw(*z[0], z[1], z[2]), draw(z[2], 3), draw(3)), lambda x, w, b: x @ w + b),
    "rms_norm": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), draw(z[2]), 1e-5),
        lambda x, w, eps: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * w,
    ),
    "layer_norm": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), draw(z[2]), draw(z[2]), 1e-3),
        lambda x, w, b, eps: standardised(x, -1, eps) * w + b,
    ),
    "batch_norm": Meaning(
        lambda draw, z: (draw(2, z[2], z[1], 3), draw(z[2]), draw(z[2], low=0.1), *(draw(z[2]) for _ in "wb"), 1e-5),
        lambda x, m, v, w, b, eps: (
            (x - per_channel(m)) / np.sqrt(per_channel(v) + eps) * per_channel(w) + per_channel(b)
        ),
    ),
    "group_norm": Meaning(
        lambda draw, z: (draw(2, z[2], z[1], 3), draw(z[2]), draw(z[2]), 1e-3),
        lambda x, w, b, eps, G: (  # noqa: N803
            np.concatenate([standardised(g, (1, 2, 3), eps) for g in np.split(x, G, 1)], 1) * per_channel(w)
            + per_channel(b)
        ),
        lambda z: {"G": 2}, True,
    ),
    "rope_angles": Meaning(
        lambda draw, z: (np.arange(z[1]).astype(draw.dtype), 10000.0), angles_of, lambda z: {"D": z[2]}, True
    ),
    "rope_halves": Meaning(lambda draw, z: (draw(*z[0], z[1], z[2]), draw(z[1], z[2] // 2)), halves),
    "rope_pairs": Meaning(lambda draw, z: (draw(*z[0], z[1], z[2]), draw(z[1], z[2] // 2)), pairs),
    "sinusoidal_positions": Meaning(
        lambda draw, z: (np.arange(z[1]).astype(draw.dtype),), sinusoids, lambda z: {"D": z[2]}, True
    ),
    "causal_mask": Meaning(
        lambda draw, z: (), lambda Q, K: visible(Q, K, 10**6), lambda z: {"Q": z[1], "K": z[1] + z[2]}, True  # noqa: N803
    ),
    "sliding_mask": Meaning(
        lambda draw, z: (2,), lambda w, Q, K: visible(Q, K, w), lambda z: {"Q": z[1], "K": z[1] + z[2]}, True  # noqa: N803
    ),
    "split_heads": Meaning(
        lambda draw, z: (draw(2, z[1], 3 * z[2]),), lambda x, H: np.stack(np.split(x, H, -1), 1),  # noqa: N803
        lambda z: {"H": 3}, True,
    ),
    "merge_heads": Meaning(lambda draw, z: (draw(2, 3, z[1], z[2]),), merged),
    "attention": Meaning(lambda draw, z: (*heads(draw, z), 0.3), attend),
    "masked_attention": Meaning(
        lambda draw, z: (*heads(draw, z), visible(z[1], z[1] + z[2], 3), 0.3),
        lambda q, k, v, mask, scale: attend(q, k, v, scale, mask),
    ),
    "share_heads": Meaning(
        lambda draw, z: (draw(2, 3, z[1], z[2]),), lambda x, H: np.repeat(x, H // 3, 1), lambda z: {"H": 6}, True  # noqa: N803
    ),
    "grouped_attention": Meaning(
        lambda draw, z: (*heads(draw, z, 3), visible(z[1], z[1] + z[2], 3), 0.3),
        lambda q, k, v, mask, scale: attend(q, k, v, scale, mask),
    ),
    "cache_append": Meaning(
        lambda draw, z: tuple(draw(2, 3, n, d) for n, d in ((z[1], z[2]), (z[1], 3), (2, z[2]), (2, 3))),
        lambda a, b, k, v: (np.concatenate([a, k], 2), np.concatenate([b, v], 2)),
    ),
    "cached_attention": Meaning(
        lambda draw, z: (
            draw(2, 6, 2, z[2]), draw(2, 2, 2, z[2]), draw(2, 2, 2, 3),
            draw(2, 2, z[1], z[2]), draw(2, 2, z[1], 3), 0.3,
        ),
        cached,
    ),
    "swiglu": Meaning(feed, lambda x, g, u, d: (silu(x @ g) * (x @ u)) @ d),
    "geglu": Meaning(feed, lambda x, g, u, d: (gelu(x @ g) * (x @ u)) @ d),
    "mlp": Meaning(
        lambda draw, z: (draw(*z[0], z[1], z[2]), draw(z[2], 5), draw(5), draw(5, 3), draw(3)),
        lambda x, u, ub, d, db: gelu(x @ u + ub) @ d + db,
    ),
}  # fmt: skip

# ---------------------------------------------------------------- std.loss


def log_softmax(x: np.ndarray) -> np.ndarray:
    return np.log(softmax(x))


def probabilities(draw: Draw, z: Sizes) -> np.ndarray:
    """Rows that sum to 1, with zeros among them."""
    raw = np.maximum(draw(*z[0], z[2]), 0)
    raw[..., 0] += 0.1
    return (raw / raw.sum(-1, keepdims=True)).astype(draw.dtype)


def cross(log_q: np.ndarray, p: np.ndarray) -> np.ndarray:
    return -np.mean(np.sum(p * log_q, -1))


def terms(p: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda x: x * math.log(x) if x else 0.0, otypes=[np.float64])(p)


def binary(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    p = 1 / (1 + np.exp(-x))
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


def focal(x: np.ndarray, t: np.ndarray, gamma: float) -> np.ndarray:
    p = 1 / (1 + np.exp(-x))
    return np.mean((1 - np.where(t == 1, p, 1 - p)) ** gamma * binary(x, t))


def zero_or_one(draw: Draw, z: Sizes) -> np.ndarray:
    return (draw(*z[0], z[2]) > 0).astype(draw.dtype)


def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x - y, axis=-1) ** 2


LOSS = {
    "mse": rows(lambda x, y: np.mean((x - y) ** 2), 2),
    "mae": rows(lambda x, y: np.mean(np.abs(x - y)), 2),
    "huber": rows(
        lambda x, y, d: np.mean(np.where(abs(x - y) <= d, (x - y) ** 2 / 2, d * (abs(x - y) - d / 2))), 2, 0.7
    ),
    "log_cosh": rows(lambda x, y: np.mean(np.log(np.cosh(x - y))), 2),
    "bce_with_logits": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), draw(*z[0], z[2], low=0, high=1)), lambda x, t: np.mean(binary(x, t))
    ),
    "focal_with_logits": Meaning(lambda draw, z: (draw(*z[0], z[2]), zero_or_one(draw, z), 2.0), focal),
    "hinge": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), zero_or_one(draw, z) * 2 - 1),
        lambda x, y: np.mean(np.clip(1 - x * y, 0, None)),
    ),
    "cross_entropy": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), probabilities(draw, z)), lambda x, p: cross(log_softmax(x), p)
    ),
    "smooth_labels": Meaning(
        lambda draw, z: (probabilities(draw, z), 0.1), lambda p, a: p * (1 - a) + a / p.shape[-1]
    ),
    "nll": Meaning(lambda draw, z: (draw(*z[0], z[2]), probabilities(draw, z)), cross),
    "kl_divergence": Meaning(
        lambda draw, z: (draw(*z[0], z[2]), probabilities(draw, z)),
        lambda log_q, p: np.mean(np.sum(terms(p) - p * log_q, -1)),
    ),
    "entropy": Meaning(lambda draw, z: (probabilities(draw, z),), lambda p: -np.sum(terms(p), -1)),
    "triplet": rows(lambda a, p, n, m: np.mean(np.maximum(distance(a, p) - distance(a, n) + m, 0)), 3, 0.2),
}

# ---------------------------------------------------------------- std.linalg


def by_rows(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the last axis, applied one row at a time."""

    def apply(*xs: np.ndarray) -> np.ndarray:
        shape = xs[0].shape[:-1]
        made = [f(*(x[at] for x in xs)) for at in np.ndindex(shape)]
        return np.array(made).reshape(*shape, *np.shape(made[0])) if made else np.zeros(shape)

    return apply


def cosine(x: np.ndarray, y: np.ndarray, eps: float) -> np.ndarray:
    length = [np.maximum(np.linalg.norm(a, axis=-1), eps) for a in (x, y)]
    return np.einsum("...n,...n->...", x, y) / (length[0] * length[1])


LINALG = {
    "dot": rows(lambda x, y: np.einsum("...n,...n->...", x, y), 2),
    "outer": Meaning(lambda draw, z: (draw(z[1]), draw(z[2])), np.outer),
    "cross": Meaning(lambda draw, z: (draw(*z[0], 3), draw(*z[0], 3)), lambda x, y: np.cross(x, y)),
    "norm": rows(lambda x: np.linalg.norm(x, axis=-1)),
    "normalise": rows(lambda x, eps: x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps), 1, 1.0),
    "cosine_similarity": rows(cosine, 2, 1e-6),
    "transposed": Meaning(lambda draw, z: (draw(z[1], z[2]),), np.transpose),
    "matvec": Meaning(lambda draw, z: (draw(z[1], z[2]), draw(z[2])), np.dot),
    "vecmat": Meaning(lambda draw, z: (draw(z[1]), draw(z[1], z[2])), np.dot),
    "bilinear": Meaning(
        lambda draw, z: (draw(z[1]), draw(z[1], z[2]), draw(z[2])), lambda y, a, x: np.einsum("m,mn,n->", y, a, x)
    ),
    "diagonal_matrix": Meaning(lambda draw, z: (draw(z[2]),), np.diag),
    "diagonal": Meaning(lambda draw, z: (draw(*z[0], z[2], z[2]),), lambda a: np.diagonal(a, axis1=-2, axis2=-1)),
    "trace": Meaning(lambda draw, z: (draw(*z[0], z[2], z[2]),), lambda a: np.trace(a, axis1=-2, axis2=-1)),
    "lower_triangle": Meaning(
        lambda draw, z: (1,), lambda k, M, N: np.tri(M, N, k, dtype=bool), lambda z: {"M": z[1], "N": z[2]}, True  # noqa: N803
    ),
    "upper_triangle": Meaning(
        lambda draw, z: (1,), lambda k, M, N: ~np.tri(M, N, k - 1, dtype=bool), lambda z: {"M": z[1], "N": z[2]}, True  # noqa: N803
    ),
    "frobenius_norm": Meaning(
        lambda draw, z: (draw(*z[0], z[1], z[2]),), lambda a: np.linalg.norm(a, axis=(-2, -1))
    ),
    "gram": Meaning(lambda draw, z: (draw(z[1], z[2]),), lambda a: a @ a.T),
    "squared_distances": Meaning(
        lambda draw, z: (draw(z[1], z[2]), draw(3, z[2])), lambda x, y: distance(x[:, None], y[None])
    ),
    "kronecker": Meaning(lambda draw, z: (draw(z[1], 3), draw(2, z[2])), np.kron),
}  # fmt: skip

# ---------------------------------------------------------------- std.init


def weights(start: Callable[[Drawn, int, int], Any]) -> Meaning:
    """A weight that is drawn, of the sizes I and O."""
    return Meaning(
        lambda draw, z: (), lambda drawn, I, O: start(drawn, I, O),  # noqa: N803, E741
        lambda z: {"I": z[2], "O": z[1], "seed": z[1]}, True, draws=True,
    )  # fmt: skip


INIT = {
    "xavier_bound": Meaning(
        lambda draw, z: (), lambda I, O: math.sqrt(6 / (I + O)), lambda z: {"I": z[1], "O": z[2]}, True  # noqa: N803, E741
    ),
    "kaiming_deviation": Meaning(lambda draw, z: (), lambda I: math.sqrt(2 / I), lambda z: {"I": z[2]}, True),  # noqa: N803, E741
    "lecun_deviation": Meaning(lambda draw, z: (), lambda I: math.sqrt(1 / I), lambda z: {"I": z[2]}, True),  # noqa: N803, E741
    "xavier_uniform": weights(lambda draw, i, o: (2 * draw.uniform(i, o) - 1) * math.sqrt(6 / (i + o))),
    "xavier_normal": weights(lambda draw, i, o: draw.normal(i, o) * math.sqrt(2 / (i + o))),
    "kaiming_uniform": weights(lambda draw, i, o: (2 * draw.uniform(i, o) - 1) * math.sqrt(6 / i)),
    "kaiming_normal": weights(lambda draw, i, o: draw.normal(i, o) * math.sqrt(2 / i)),
    "lecun_normal": weights(lambda draw, i, o: draw.normal(i, o) / math.sqrt(i)),
    "identity_map": Meaning(
        lambda draw, z: (), lambda I, O: np.eye(I, O), lambda z: {"I": z[1], "O": z[2]}, True  # noqa: N803, E741
    ),
    "alibi_slopes": Meaning(
        lambda draw, z: (), lambda H: np.exp2([-8 * i / H for i in range(1, H + 1)]),  # noqa: N803
        lambda z: {"H": z[2]}, True,
    ),
}  # fmt: skip

# ---------------------------------------------------------------- std.sample


def logits(f: Callable[..., Any], *numbers: float, draws: bool = False) -> Meaning:
    """A function of numbers and logits `[..., n]`."""
    seed = {"seed": 5} if draws else {}
    return Meaning(lambda draw, z: (*numbers, draw(*z[0], z[1])), f, lambda z: dict(seed), draws=draws)


def places(x: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(-x, -1, kind="stable"), -1, kind="stable")


def nucleus(p: float, x: np.ndarray) -> np.ndarray:
    """The tokens before which, in their order, there is less than p."""
    likely = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    before = (likely[..., None, :] * (places(x)[..., None, :] < places(x)[..., :, None])).sum(-1)
    return np.where(before < p, x, -np.inf)


SAMPLE = {
    "greedy": logits(lambda x: x.argmax(-1)),
    "draw": logits(lambda drawn, x: (x + drawn.gumbel(*x.shape)).argmax(-1), draws=True),
    "warmer": logits(lambda t, x: x / t, 0.7),
    "keep": Meaning(
        lambda draw, z: (draw(*z[0], z[1]) > 0, draw(*z[0], z[1])), lambda kept, x: np.where(kept, x, -np.inf)
    ),
    "places": logits(places),
    "keep_top_k": logits(lambda k, x: np.where(places(x) < k, x, -np.inf), 2),
    "keep_top_p": logits(nucleus, 0.6),
    "keep_min_p": logits(lambda p, x: np.where(x >= x.max(-1, keepdims=True) + math.log(p), x, -np.inf), 0.3),
}

MEANINGS = {"math": MATH, "nn": NN, "loss": LOSS, "linalg": LINALG, "init": INIT, "sample": SAMPLE}
