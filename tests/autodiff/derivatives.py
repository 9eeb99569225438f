"""Derivatives held against finite differences and against each other, in F64, by the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kina import autodiff
from kina.core.interpreter import run
from kina.core.ir import Function
from kina.ops.base import has_tangent

Sizes = Mapping[str, int]
Arrays = Sequence[np.ndarray]
STEP = 1e-6


def _floats(function: Function) -> list[int]:
    return [n for n, v in enumerate(function.inputs) if has_tangent(v.type)]


def directions(function: Function, inputs: Arrays, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.standard_normal(inputs[n].shape) for n in _floats(function)]


def only_floats(function: Function, outputs: Arrays) -> list[np.ndarray]:
    return [o for v, o in zip(function.outputs, outputs, strict=True) if has_tangent(v.type)]


def tangents(function: Function, sizes: Sizes, inputs: Arrays, v: Arrays) -> list[np.ndarray]:
    pushed = autodiff.jvp(function)
    return list(run(pushed, sizes, [*inputs, *v])[len(function.outputs) :])


def cotangents(function: Function, sizes: Sizes, inputs: Arrays, w: Arrays) -> list[np.ndarray]:
    pulled = autodiff.vjp(function)
    return list(run(pulled, sizes, [*inputs, *w])[len(function.outputs) :])


def differences(
    function: Function, sizes: Sizes, inputs: Arrays, v: Arrays
) -> list[np.ndarray]:
    """Central differences of the float outputs along a direction."""

    def at(step: float) -> list[np.ndarray]:
        moved = list(inputs)
        for n, direction in zip(_floats(function), v, strict=True):
            moved[n] = inputs[n] + step * direction
        return only_floats(function, run(function, sizes, moved))

    with np.errstate(invalid="ignore"):
        return [(b - a) / (2 * STEP) for a, b in zip(at(-STEP), at(STEP), strict=True)]


def agree_with_differences(
    function: Function, sizes: Sizes, inputs: Arrays, rng: np.random.Generator
) -> None:
    v = directions(function, inputs, rng)
    got = tangents(function, sizes, inputs, v)
    want = differences(function, sizes, inputs, v)
    assert len(got) == len(want)
    outputs = only_floats(function, run(function, sizes, inputs))
    for g, w, y in zip(got, want, outputs, strict=True):
        finite = np.isfinite(y)  # the maximum of nothing has no derivative
        scale = max(1.0, float(np.max(np.abs(w[finite]), initial=0)))
        np.testing.assert_allclose(g[finite], w[finite], rtol=1e-5, atol=1e-6 * scale)


def are_adjoint(function: Function, sizes: Sizes, inputs: Arrays, rng: np.random.Generator) -> None:
    """`<J v, w> = <v, J^T w>`."""
    v = directions(function, inputs, rng)
    outputs = only_floats(function, run(function, sizes, inputs))
    w = [rng.standard_normal(o.shape) * np.isfinite(o) for o in outputs]
    pushed = tangents(function, sizes, inputs, v)
    left = sum(float(np.sum(a[b != 0] * b[b != 0])) for a, b in zip(pushed, w, strict=True))
    pulled = cotangents(function, sizes, inputs, w)
    for a, b in zip(pulled, v, strict=True):
        assert a.shape == b.shape
    right = sum(float(np.sum(a * b)) for a, b in zip(pulled, v, strict=True))
    assert abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right)), (left, right)
