"""Pairs of programs after public bug reports: one with the fault, one without.

The first is refused with exactly one error, on the line that is marked `//!`; the second is accepted and gives the
values of `index.json`, which are NumPy expressions, by the reference and natively.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import kina
from kina.diagnostics import Severity
from kina.pipeline import check
from kina.source import Source

FOLDER = Path(__file__).parent
CASES = {case["name"]: case for case in json.loads((FOLDER / "index.json").read_text())}


def checked(name: str):
    path = FOLDER / f"{name}.kina"
    return check(Source(path.name, path.read_text(), str(FOLDER)))


def value(text: str):
    """What an expression of the index means: a list, and what NumPy makes F64, is F32."""
    found = np.asarray(eval(text, {"np": np}))
    return found.astype(np.float32) if text.startswith("[") or found.dtype == np.float64 else found


def test_every_file_is_listed_and_every_case_has_its_files():
    files = {path.name for path in FOLDER.glob("*.kina")}
    assert files == {f"{name}.{kind}.kina" for name in CASES for kind in ("buggy", "fixed")}
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", list(CASES))
def test_the_fault_is_found_on_its_line(name):
    found = checked(f"{name}.buggy")
    (marked,) = [n for n, line in enumerate(found.source.text.split("\n"), 1) if "//!" in line]
    errors = [d for d in found.diagnostics if d.severity is Severity.ERROR]
    assert [d.span.line for d in errors] == [marked], [(d.code, d.message, d.span.line) for d in errors]


@pytest.mark.parametrize("name", list(CASES))
def test_the_mended_program_gives_its_values(name):
    found = checked(f"{name}.fixed")
    assert found.ok, [(d.code, d.message, d.span.text) for d in found.diagnostics]
    run = CASES[name].get("run")
    if run is None:
        return
    (function,) = found.elaboration.program.functions
    f = getattr(kina.load(FOLDER / f"{name}.fixed.kina"), function)
    arguments = {k: value(v) for k, v in run["args"].items()}
    arguments |= {k: int(v) for k, v in (item.split("=") for item in run["sizes"].split(",") if item)}
    want = eval(run["expect"], {"np": np})
    for how in (f.reference, f):
        got = how(**arguments)
        for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert np.shape(g) == np.shape(w)
            np.testing.assert_allclose(g, w, rtol=1e-6, atol=1e-6)
