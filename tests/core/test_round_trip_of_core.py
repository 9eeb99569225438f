"""`print_program` of every program there is checks again under --strict, and is the same core."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from all_programs import ROOT, fences, files, texts_in_tests
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from random_sugar import programs

from kina.cli import commands
from kina.core.ir import Function
from kina.core.printer import print_program
from kina.elaborate.generics import stand_ins
from kina.pipeline import Checked
from kina.pipeline import check as check_source
from kina.source import Source

ACCEPTED = {files: 30, fences: 40, texts_in_tests: 150}
"""At least so many of each are accepted."""


def checked(place: str, text: str) -> Checked:
    path = ROOT / place.partition(":")[0].partition("#")[0]
    return check_source(Source(path.name, text, str(path.parent)))


def cases(found: Checked) -> Iterator[Function]:
    """Every generic function for what its binders are tried with where it is declared."""
    for generic in found.elaboration.generic.values():
        yield from (generic.instance(choice) for choice in stand_ins(generic.declaration)[:2])


def print_again(printed: str) -> str:
    """What strictly checked core prints as; fails with the error where it is refused."""
    again = check_source(Source("printed.kina", printed), strict=True)
    assert again.ok, (printed, [(d.code, d.message, d.span.text) for d in again.diagnostics])
    return print_program(*again.elaboration.program.functions.values())


@pytest.mark.parametrize("source", list(ACCEPTED), ids=lambda source: source.__name__)
def test_every_program_that_is_accepted_prints_as_core_that_is_the_same_core(source):
    accepted = 0
    for place, text in source():
        found = checked(place, text)
        functions = [*found.elaboration.program.functions.values(), *cases(found)] if found.ok else []
        if not functions:
            continue
        accepted += 1
        for function in functions:
            printed = print_program(function)
            assert print_again(printed) == printed, place
        whole = print_program(*functions)
        assert print_again(whole) == whole, place
    assert accepted >= ACCEPTED[source]


@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_sugar_prints_as_core_that_is_the_same_core(text):
    found = check_source(Source("random.kina", text))
    assert found.ok, (text, [(d.code, d.message, d.span.text) for d in found.diagnostics])
    printed = print_program(*found.elaboration.program.functions.values())
    assert print_again(printed) == printed


def test_two_functions_of_one_name_are_told_apart_in_print(tmp_path):
    (tmp_path / "other.kina").write_text("let half [N] (x : F32[N]) : F32[N] = x / 2.0\n")
    text = 'import "other.kina"\nlet half [N] (x : F32[N]) : F32[N] = other.half (x + 1.0)\n'
    found = check_source(Source("own.kina", text, str(tmp_path)))
    assert found.ok, found.diagnostics
    printed = print_program(*found.elaboration.program.functions.values())
    assert "let half'" in printed
    assert print_again(printed) == printed


def test_what_explain_prints_of_a_file_is_checked_from_stdin(tmp_path: Path):
    path = tmp_path / "program.kina"
    path.write_text(
        "let double [T : Float, ...S] (x : T[...S]) : T[...S] = 2.0 * x\n"
        "let f [N] (x : F32[N]) : F32[N] = double x\n"
        "let g [N] (x : F32[N, N]) : F32[N] = f (reduce[sum, axis=-1] (double x))\n"
    )
    core = CliRunner().invoke(commands, ["explain", "--core", str(path)]).output
    result = CliRunner().invoke(commands, ["check", "--strict", "-"], input=core)
    assert (result.exit_code, result.output.partition(",")[0]) == (0, "4 functions checked"), result.output


def test_a_generic_function_is_explained_by_a_case(tmp_path: Path):
    path = tmp_path / "program.kina"
    path.write_text("let double [T : Float, ...S] (x : T[...S]) : T[...S] = 2.0 * x\n")
    result = CliRunner().invoke(commands, ["explain", "--core", f"{path}:double"])
    assert (result.exit_code, result.output.partition("\n")[0]) == (0, "let double_F32_2 [S_1, S_2]")
