"""The standard library: every function against NumPy, by reference and natively, and what each module promises."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from meanings import MEANINGS, Drawn, Meaning, Sizes
from std_page import page

import kina
from kina import std
from kina.host.api import Backend, executable_of
from kina.host.module import Module
from kina.host.testing import run_test
from kina.pipeline import Checked
from kina.pipeline import check as check_source
from kina.source import Source
from kina.syntax.parser import parse
from kina.syntax.printer import format_module

FOLDER = Path(std.__file__).parent
SIZES: list[Sizes] = [((), 1, 2), ((3,), 2, 4), ((2, 3), 5, 6), ((1, 1, 2), 3, 2), ((0,), 3, 4), ((2,), 67, 130)]
NATIVE_SIZES: list[Sizes] = [((3,), 2, 4), ((0,), 3, 4), ((5,), 1, 2), ((2,), 67, 130)]
FUNCTIONS = [(module, name) for module, meanings in MEANINGS.items() for name in meanings]


@cache
def module(name: str, backend: Backend) -> Module:
    return kina.load(FOLDER / f"{name}.kina", backend=backend)


@cache
def checked(name: str) -> Checked:
    source = std.find(name)
    assert source is not None
    return check_source(source)


class Draws:
    """Random arrays of one dtype, always the same ones."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.random = np.random.default_rng(7)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        return self.random.uniform(low, high, shape).astype(self.dtype)


def compare(function, meaning: Meaning, sizes: Sizes, dtype: str) -> None:  # type: ignore[no-untyped-def]
    arguments = meaning.arguments(Draws(dtype), sizes)
    named = meaning.named(sizes)
    given = {"T": dtype} if "T :" in function.signature and not arguments else {}
    got = function(*arguments, **named, **given)
    exact = [a.astype("f8") if isinstance(a, np.ndarray) and a.dtype.kind == "f" else a for a in arguments]
    with np.errstate(all="ignore"):
        drawn = [Drawn(named["seed"], dtype)] if meaning.draws else []
        sizes_named = {k: v for k, v in named.items() if k != "seed"} if meaning.takes_sizes else {}
        want = meaning.oracle(*drawn, *exact, **sizes_named)
    for g, w in zip(*((x,) if not isinstance(x, tuple) else x for x in (got, want)), strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape
        assert (g.dtype == bool) == (w.dtype == bool)
        if w.dtype == bool:
            np.testing.assert_array_equal(g, w)
            continue
        scale = float(np.max(np.nan_to_num(np.abs(w)), initial=1.0))
        tolerance = 3e-5 if g.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("where", "name"), FUNCTIONS)
def test_the_meaning_is_numpy_s(where: str, name: str, dtype: str) -> None:
    for sizes in SIZES:
        compare(getattr(module(where, "reference"), name), MEANINGS[where][name], sizes, dtype)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
@pytest.mark.parametrize(("where", "name"), FUNCTIONS)
def test_native_code_computes_the_same_with_one_compilation(where: str, name: str) -> None:
    function = getattr(module(where, "native"), name)
    for sizes in NATIVE_SIZES:
        compare(function, MEANINGS[where][name], sizes, "float32")
    assert function.compilations == 1


# ---------------------------------------------------------------- what every module promises


def public() -> Iterator[tuple[str, str]]:
    for name in std.names():
        for function in checked(name).elaboration.signatures:
            yield name.removeprefix("std."), function


def test_every_function_is_compared_with_numpy() -> None:
    """Those of std.test judge, and are judged by their own tests."""
    assert {(m, f) for m, f in public() if m != "test"} == set(FUNCTIONS)


@pytest.mark.parametrize("name", std.names())
def test_a_module_is_checked_with_nothing_left_for_run_time(name: str) -> None:
    found = checked(name)
    assert found.ok and not found.diagnostics, found.diagnostics
    assert {o.status_text for o in found.elaboration.obligations} <= {"normal-form", "facts", "smt"}


@pytest.mark.parametrize("backend", ["reference", "native"])
@pytest.mark.parametrize("name", std.names())
def test_a_module_s_own_tests_hold(name: str, backend: Backend) -> None:
    tests = checked(name).elaboration.tests
    assert tests
    for test in tests:
        assert run_test(test, executable_of(backend)).failures == (), test.name


@pytest.mark.parametrize("name", std.names())
def test_a_module_is_formatted(name: str) -> None:
    source = std.find(name)
    assert source is not None
    parsed = parse(source)
    assert format_module(parsed.module, source) == source.text
    assert max(map(len, source.text.splitlines())) <= 120


def test_every_function_says_what_it_does() -> None:
    for name in std.names():
        found = checked(name).elaboration
        documentation = {n: f.documentation for n, f in found.program.functions.items()}
        documentation |= {n: g.declaration.documentation for n, g in found.generic.items()}
        assert set(documentation) == set(found.signatures)
        assert all(text.rstrip(".") for text in documentation.values()), documentation


def test_a_dtype_that_no_argument_tells_is_given_by_name() -> None:
    slopes = module("init", "reference").alibi_slopes
    assert slopes(H=2, T=np.float64).dtype == slopes(H=2, T="F64").dtype == np.float64
    with pytest.raises(kina.KinaError, match=r'T is a dtype, as in T="F32" or T=np.float32, not 3'):
        slopes(H=2, T=3)
    with pytest.raises(kina.KinaError, match="T would be I64, and has to be Float"):
        slopes(H=2, T="I64")


def test_the_modules_are_in_the_wheel(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    assert {f"kina/std/{name.removeprefix('std.')}.kina" for name in std.names()} <= set(inside)


def test_the_page_lists_every_function_as_it_is(update_golden: bool) -> None:
    file = Path(__file__).parents[2] / "docs" / "std.md"
    if update_golden:
        file.write_text(page(), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == page(), "run `make golden`"


def test_the_program_on_the_page_is_right() -> None:
    program = page().split("```kina\n")[1].split("```")[0]
    assert check_source(Source("page.kina", program)).diagnostics == ()
