"""The elementary functions of F32: within 2 ulp of the truth all over their range, and right where IEEE is special."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kina import native
from kina.native import Machine
from kina.pipeline import check, lower
from kina.source import Source

HOST = Machine.host()
NAMES = ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos")
SPECIAL = {
    "exp": [(0.0, 1), (math.inf, math.inf), (-math.inf, 0), (200.0, math.inf), (-200.0, 0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (math.inf, math.inf), (-math.inf, -1), (1e-45, 1e-45), (100.0, math.inf)],
    "log": [
        (0.0, -math.inf), (-0.0, -math.inf), (1.0, 0.0), (-1.0, math.nan), (math.inf, math.inf), (-math.inf, math.nan)
    ],
    "log1p": [
        (0.0, 0.0), (-0.0, -0.0), (-1.0, -math.inf), (-2.0, math.nan), (math.inf, math.inf), (-math.inf, math.nan),
        (1e-45, 1e-45),
    ],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (math.inf, 1), (-math.inf, -1), (1e-45, 1e-45)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (math.inf, 1), (-math.inf, -1)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (math.inf, math.nan), (-math.inf, math.nan), (1e-45, 1e-45)],
    "cos": [(0.0, 1), (-0.0, 1), (math.inf, math.nan), (-math.inf, math.nan)],
}  # fmt: skip


def function(name: str, machine: Machine = HOST):
    text = f"let f [A] (x : F32[A]) : F32[A] = {name} x\n"
    run = native.compile(lower(check(Source("test.kina", text)).function("f")), machine).run
    return lambda x: run({"A": len(x)}, [x])[0]


def dense() -> np.ndarray:
    """F32 numbers over the whole range, by their bits, and closely where the functions bend; both signs."""
    by_bits = np.arange(0, 0x7F800000, 9973, dtype=np.uint32).view(np.float32)
    near = np.concatenate([np.linspace(0, top, 40_000, dtype=np.float32) for top in (1e-3, 1, 2, 12, 110, 8300, 33000)])
    edges = np.concatenate(
        [np.float32(v) + np.arange(-300, 300, dtype=np.float32) * np.spacing(np.float32(v)) for v in
         (0.625, 0.9, 4.0, math.pi / 4, math.pi, 88.7228, 87.336, 103.97, 0.7071068, 1.4142135, 1.0, 8192.0, 32768.0)]
    ).astype(np.float32)  # fmt: skip
    positive = np.concatenate([by_bits, near, edges])
    return np.concatenate([positive, -positive])


def truth(name: str, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if name == "erf":
            return np.vectorize(math.erf, otypes=[np.float64])(wide)
        return np.asarray(getattr(np, name)(wide))


def errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In units of the last place of the true value."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        ulp = np.spacing(np.abs(rounded)).astype(np.float64)
        distance = np.abs(got.astype(np.float64) - want) / ulp
    same = (got == rounded) | (np.isnan(got) & np.isnan(want))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_two_ulp(name):
    x = dense()
    off = errors(function(name)(x), truth(name, x))
    worst = int(np.argmax(off))
    assert off[worst] <= 2, f"{name} {x[worst]!r} is off by {off[worst]} ulp"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [1, 64])
def test_special_values_are_exact_in_scalars_and_vectors(name, length):
    run = function(name)
    for given, wanted in [*SPECIAL[name], (math.nan, math.nan)]:
        got = run(np.full(length, given, np.float32))
        want = np.full(length, wanted, np.float32)
        np.testing.assert_array_equal(got, want)
        assert not np.any(np.signbit(got) != np.signbit(want)) or math.isnan(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_scalars_give_the_same_bits(name):
    run = function(name)
    x = dense()[::37]
    whole = run(x)
    assert run(x[::-1])[::-1].tobytes() == whole.tobytes()  # no vectors along a negative stride


@pytest.mark.skipif(HOST.vector_bytes < 64, reason="needs a CPU with AVX-512 and so AVX2")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("machine", [Machine.avx2(), Machine.sse2()], ids=["avx2", "sse2"])
def test_other_instruction_sets_are_as_exact(name, machine):
    x = dense()[::5]
    off = errors(function(name, machine)(x), truth(name, x))
    assert off.max() <= 2.5, f"{name} {x[np.argmax(off)]!r} is off by {off.max()} ulp"
