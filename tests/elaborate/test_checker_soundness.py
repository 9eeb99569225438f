"""What the checker accepts is right at every size, and what it rejects it rejects in words.

`KINA_SOUNDNESS_CASES=5000 python -m pytest tests/elaborate/test_checker_soundness.py` makes a long run.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_texts import HELPERS, Writer, admissible, arrays, garble, make_mistake

from kina.core.interpreter import run
from kina.core.ir import Check
from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.diagnostics import KinaError, Severity
from kina.diagnostics.render import render
from kina.passes.simplify import simplify
from kina.passes.specialise import specialise
from kina.pipeline import Checked, check
from kina.source import Source

CASES = int(os.environ.get("KINA_SOUNDNESS_CASES", "60"))
cases = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))


def checked(text, *, strict=False):
    return check(Source("random.kina", text), strict=strict)


def errors(program: Checked):
    return [d for d in program.diagnostics if d.severity is Severity.ERROR]


def choosing(data):
    return lambda items: data.draw(st.sampled_from(list(items)))


def written(data):
    choose = choosing(data)
    return Writer(choose).write(data.draw(st.integers(1, 8))), choose


def is_right(program: Checked):
    """Every function, run at small sizes: each intermediate shape agrees with its type, before and after the passes."""
    for function in program.elaboration.program.functions.values():
        verify(function)
        flat = specialise(function)
        verify(flat)
        simple = simplify(flat)
        verify(simple)
        for at in admissible(function, most=25):
            given_arrays = arrays(function, at, np.random.default_rng(1))
            try:
                expected = run(function, at, given_arrays)
            except KinaError:
                assert any(isinstance(s, Check) for s in flat.statements)
                continue
            for other in (flat, simple):
                for left, right in zip(expected, run(other, at, given_arrays), strict=True):
                    np.testing.assert_array_equal(left, right)


def prints_the_same_core(program: Checked):
    for function in program.elaboration.program.functions.values():
        printed = print_program(function)
        again = checked(printed, strict=True)
        assert not errors(again), f"{render(errors(again))}\n{printed}"
        (*_, same) = again.elaboration.program.functions.values()
        assert print_program(same) == printed


@cases
@given(st.data())
def test_an_accepted_program_is_right_at_every_size(data):
    text, _ = written(data)
    program = checked(text)
    assert not errors(program), f"{text}\n{render(errors(program))}"
    is_right(program)
    prints_the_same_core(program)


@cases
@given(st.data())
def test_a_mistake_is_found_or_is_none(data):
    text, choose = written(data)
    wrong = make_mistake(text, choose)
    program = checked(wrong)
    found = errors(program)
    if not found:
        is_right(program)
        prints_the_same_core(program)
        return
    assert render(found)
    changed = next(n for n, (a, b) in enumerate(zip(text.split("\n"), wrong.split("\n"), strict=False), 1) if a != b)
    assert all(d.span.line >= changed for d in found) or wrong.count("\n") != text.count("\n")
    if re.match(r"  let \w+ : ", text.split("\n")[changed - 1]) and wrong.count("\n") == text.count("\n"):
        assert len(found) == 1, f"one mistake, in a let that says its type, gives one error\n{render(found)}"


@cases
@given(st.data(), st.integers(1, 6))
def test_nonsense_is_refused_in_words(data, times):
    text, choose = written(data)
    program = checked(garble(text, choose, times))
    render(program.diagnostics).encode("utf-8")
    if program.ok:
        is_right(program)


@pytest.mark.parametrize("name", HELPERS)
def test_a_function_that_random_programs_call_is_right(name):
    program = checked(HELPERS[name])
    assert not errors(program)
    is_right(program)
