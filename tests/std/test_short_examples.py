"""The companion's programs over the standard library, in few lines: the same as the long ones, at every size."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from meanings import attend, halves, silu, visible

import kina
from kina.host.api import Backend
from kina.pipeline import check
from kina.source import Source

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = sorted((EXAMPLES / "short").glob("*.kina"))
BACKENDS: tuple[Backend, ...] = ("reference", "native")
SIZES = [(1, 1, 1, 1), (2, 3, 8, 5), (0, 3, 4, 2), (2, 0, 5, 3), (3, 17, 70, 33)]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@cache
def function(folder: str, name: str, backend: Backend) -> Any:
    return getattr(kina.load(EXAMPLES / folder / f"{name}.kina", backend=backend), name)


ARGUMENTS = {
    "rmsnorm": lambda b, s, d, h: (draw(b, s, d), draw(d), 1e-5),
    "swiglu_ffn": lambda b, s, d, h: (draw(b, s, d), draw(d, h), draw(d, h), draw(h, d)),
    "mha": lambda b, s, d, h: (*(draw(b, h, s, d) for _ in "qkv"), 0.25),
    "kv_append": lambda b, s, d, h: (*(draw(b, h, s, d) for _ in "kv"), *(draw(b, h, 1, d) for _ in "kv")),
    "transformer_block_partial": lambda b, s, d, h: (
        draw(b, s, d), draw(d), draw(d, h), draw(d, h), draw(h, d), 1e-5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_a_short_program_is_accepted_with_every_obligation_proved(path: Path) -> None:
    checked = check(Source(path.name, path.read_text(), str(path.parent)))
    assert checked.diagnostics == ()
    assert all(o.status.proved for o in checked.elaboration.obligations)


@pytest.mark.parametrize("name", ["rmsnorm", "swiglu_ffn", "mha", "kv_append", "transformer_block_partial"])
def test_a_short_program_has_a_body_of_one_line(name: str) -> None:
    text = (EXAMPLES / "short" / f"{name}.kina").read_text()
    _, body = text.rsplit("=\n", 1)
    assert len(body.splitlines()) == 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_a_short_program_computes_what_the_long_one_does(name: str, backend: Backend) -> None:
    for sizes in SIZES:
        arguments = ARGUMENTS[name](*sizes)
        short = function("short", name, backend)(*arguments)
        long = function("companion", name, backend)(*arguments)
        for got, want in zip(*(x if isinstance(x, tuple) else (x,) for x in (short, long)), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5 * max(1, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("heads", "shared"), [(4, 1), (4, 2), (6, 6)])
def test_the_unfinished_program_is_finished(heads: int, shared: int, backend: Backend) -> None:
    k, v = draw(2, heads // shared, 5, 3), draw(2, heads // shared, 5, 3) + 1
    for got, x in zip(function("short", "expand_kv_for_gqa", backend)(k, v, Q=heads), (k, v), strict=True):
        np.testing.assert_array_equal(got, np.stack([x[:, h // shared] for h in range(heads)], 1))


# ---------------------------------------------------------------- a whole block


def weights(d: int, h: int, kv: int, e: int, f: int) -> dict[str, np.ndarray]:
    shapes = {
        "norm": (d,), "q": (d, h * e), "k": (d, kv * e), "v": (d, kv * e), "out": (h * e, d), "ffn_norm": (d,),
        "gate": (d, f), "up": (d, f), "down": (f, d),
    }  # fmt: skip
    return {name: draw(*shape) / np.float32(shape[0] ** 0.5) for name, shape in shapes.items()}


def block(w: dict[str, np.ndarray], x: np.ndarray, angles: np.ndarray, h: int, kv: int) -> np.ndarray:
    """All positions at once, in float64."""
    w, x = {name: a.astype("f8") for name, a in w.items()}, x.astype("f8")

    def norm(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-5) * weight

    def heads(y: np.ndarray, count: int) -> np.ndarray:
        return np.stack(np.split(y, count, -1), 1)

    y = norm(x, w["norm"])
    q, k = (halves(heads(y @ w[name], count), angles) for name, count in (("q", h), ("k", kv)))
    seen = visible(x.shape[1], x.shape[1], 10**6)
    y = attend(q, k, heads(y @ w["v"], kv), q.shape[-1] ** -0.5, seen)
    x = x + np.concatenate(list(np.moveaxis(y, 1, 0)), -1) @ w["out"]
    y = norm(x, w["ffn_norm"])
    return x + (silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("steps", [(7,), (4, 3), (1, 1, 5), (0, 7)])
def test_a_block_with_a_cache_is_the_block_without_one(steps: tuple[int, ...], backend: Backend) -> None:
    d, h, kv, e = 12, 4, 2, 6
    w, x, angles = weights(d, h, kv, e, 20), draw(2, 7, d), draw(7, e // 2)
    run = getattr(kina.load(EXAMPLES / "short" / "attention_block.kina", backend=backend), "block")  # noqa: B009
    keys = values = np.zeros((2, kv, 0, e), np.float32)
    done, out = 0, []
    for n in steps:
        part = slice(done, done + n)
        y, keys, values = run(w, x[:, part], angles[part], keys, values, 1e-5, H=h)
        out.append(y)
        done += n
    assert keys.shape == values.shape == (2, kv, 7, e)
    np.testing.assert_allclose(np.concatenate(out, 1), block(w, x, angles, h, kv), rtol=2e-4, atol=2e-4)
