"""`test` declarations: what they may say, and what `kina test` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kina import cli
from kina.pipeline import check as check_source
from kina.source import Source

Run = Callable[..., Result]

HALF = "let half [T : Float, ...S] (x : T[...S]) : T[...S] = x * 0.5\n"
CHECKED = 'let positive (x : F32) : F32 ! {fail} = let _ = check (x > 0.0) "x has to be positive" in x\n'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(text, "-k", "name")`: `kina test` of a program."""
    monkeypatch.chdir(tmp_path)

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def door(arguments: tuple[str, ...]) -> None:
        cli.main(list(arguments))

    def call(text: str, *options: str) -> Result:
        Path("p.kina").write_text(text)
        return CliRunner().invoke(door, ["--", "test", *options, "p.kina"])

    return call


@pytest.mark.parametrize("options", [(), ("--native",)])
def test_what_holds_is_counted(run: Run, options: tuple[str, ...]) -> None:
    text = HALF + 'test "a" = half 2.0 == 1.0\ntest "b" = (half 1.0 < 1.0, half 1.0 > 0.0)\n'
    result = run(text, *options)
    assert (result.exit_code, result.output) == (0, "2 tests: 2 passed, 0 failed\n")
    assert run(text, "-v", *options).output.splitlines()[:2] == ["ok      p.kina: a", "ok      p.kina: b"]


@pytest.mark.parametrize("options", [(), ("--native",)])
@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("half 2.0 == 3.0", "p.kina:3:12: left == right does not hold\n"
                            "      left   F32[]  1.0\n      right  F32[]  3.0\n"),
        ("1 == 1 && half 2.0 > 3.0", "p.kina:3:22: left > right does not hold\n      left   F32[]  1.0\n"),
        ("(half 2.0 == 1.0, half 4.0 == 1.0)", "p.kina:3:30: left == right"),
        ("reduce[all, axis=0] (half [2.0, 4.0, 6.0] == [1.0, 2.5, 3.5])",
         "2 of 3 differ, most at [1]: 2.0 and 2.5\n"),
        ("close (half [2.0, 4.0]) [1.0, 2.5]",
         "close (half [2.0, 4.0]) [1.0, 2.5] does not hold\n      got   F32[2]  [1., 2.]\n"
         "      want  F32[2]  [1. , 2.5]\n"
         "      1 of 2 differ, most at [1]: 2.0 and 2.5\n"),
        ("not close (half 2.0) 1.0", "not close (half 2.0) 1.0 does not hold\n      got   F32[]  1.0\n"),
        ("not true", "p.kina:3:12: not true does not hold\n"),
        ("close (half [2.0]) (full (0.0 / 0.0) [1])", "1 of 1 differ, most at [0]: 1.0 and nan\n"),
        ("close (half (ones[BF16] [2])) (ones[BF16] [2])", "got   BF16[2]  [0.5, 0.5]"),
        ("same (iota[I64] 40) (flip[axis=0] (iota[I64] 40))", "40 of 40 differ, most at [0]: 0 and 39"),
    ],
)  # fmt: skip
def test_a_failure_shows_the_values_that_differ(run: Run, claim: str, said: str, options: tuple[str, ...]) -> None:
    result = run(f'import std.test (close, same)\n{HALF}test "a" = {claim}\n', *options)
    assert result.exit_code == 1
    assert result.output.startswith("FAILED  p.kina: a\n")
    assert said in result.output
    assert result.output.endswith("1 test: 0 passed, 1 failed\n")


def test_only_what_is_false_is_shown(run: Run) -> None:
    result = run('test "a" = 1 == 1 && 2 == 3 && 4 == 4\n')
    assert [line for line in result.output.splitlines() if "left ==" in line] == [
        "    p.kina:1:22: left == right does not hold"
    ]


def test_names_choose(run: Run) -> None:
    text = 'test "of sums" = 1 == 2\ntest "of means" = 1 == 1\n'
    assert run(text, "-k", "means").exit_code == 0
    assert run(text, "-k", "sums").output.endswith("1 test: 0 passed, 1 failed\n")
    none = run(text, "-k", "medians")
    assert (none.exit_code, none.output) == (2, "kina: no test with 'medians' in its name in p.kina\n")


def test_a_check_that_fails_fails_the_test(run: Run) -> None:
    result = run(CHECKED + 'test "a" = positive (-1.0) < 0.0\ntest "b" = check (1 == 2) "one is not two"\n')
    assert result.exit_code == 1
    assert "x has to be positive" in result.output
    assert "p.kina:3:12: one is not two" in result.output


def test_what_is_to_fail_when_it_runs(run: Run) -> None:
    wanted = 'test "a" = rejects "positive" (positive (-1.0))\n'
    assert run(CHECKED + wanted).exit_code == 0
    runs = run(CHECKED + 'test "a" = rejects "positive" (positive 1.0)\n')
    assert runs.exit_code == 1 and 'it ran to its end, and was to be refused with "positive"' in runs.output
    other = run(CHECKED + 'test "a" = rejects "negative" (positive (-1.0))\n')
    assert other.exit_code == 1 and 'it was to be refused with "negative"' in other.output


def test_what_the_checker_is_to_refuse(run: Run) -> None:
    text = "let f [N] requires (N >= 2) (x : F32[N]) : F32[N] = x\n"
    assert run(text + 'test "a" = rejects "K0" (f [1.0])\n').exit_code == 0
    assert run(text + 'test "a" = rejects "N >= 2" (f [1.0])\n').exit_code == 0
    other = run(text + 'test "a" = rejects "K0999" (f [1.0])\n')
    assert other.exit_code == 1 and 'the test expects an error that says "K0999"' in other.output
    accepted = run(text + 'test "a" = rejects "K0" (f [1.0, 2.0])\n')
    assert accepted.exit_code == 1 and "it ran to its end" in accepted.output


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('test "a" = 3\n', "K0302", "what a test claims should be Tensor[Bool, []]"),
        ('test "a" = [1, 2] == [1, 2]\n', "K0302", "what a test claims"),
        ('test "a" = true\ntest "a" = true\n', "K0204", "`a` is defined twice"),
        ('test "a" = rejects (1 == 2) "late"\n', "K0203", "`rejects` wants a message"),
        ('let f (x : F32) : F32 = x\ntest "a" = f\n', "K02", "function"),
        ('test "a" = nothing 1\n', "K0201", "nothing"),
    ],
)
def test_what_a_test_may_not_say(run: Run, text: str, code: str, said: str) -> None:
    result = run(text)
    assert result.exit_code == 1
    assert f"error[{code}" in result.output and said in result.output
    assert "passed" not in result.output


def test_a_file_without_tests_or_that_is_missing_is_misuse(run: Run) -> None:
    assert run(HALF).exit_code == 2
    assert run('test "a" = true\n', "missing.kina").exit_code == 2


def test_tests_are_no_functions_of_the_module() -> None:
    checked = check_source(Source("p.kina", HALF + 'test "a" = half 2.0 == 1.0\n'))
    assert checked.ok
    assert [t.name for t in checked.elaboration.tests] == ["a"]
    assert list(checked.elaboration.signatures) == ["half"]
    assert not checked.elaboration.program.functions


def test_tests_of_an_imported_module_are_not_run_and_not_checked(tmp_path: Path) -> None:
    (tmp_path / "m.kina").write_text(HALF + 'test "wrong" = [1.0] @ [2.0]\n')
    text = 'import "m.kina" (half)\ntest "a" = half 2.0 == 1.0\n'
    checked = check_source(Source("p.kina", text, str(tmp_path)))
    assert checked.ok, checked.diagnostics
    assert [t.name for t in checked.elaboration.tests] == ["a"]


def test_a_test_is_checked_again_after_an_edit() -> None:
    first = check_source(Source("p.kina", HALF + 'test "a" = half 2.0 == 1.0\n'))
    edited = Source("p.kina", HALF.replace("0.5", "0.25") + 'test "a" = half 2.0 == 1\n')
    assert [t.name for t in check_source(edited, earlier=first).elaboration.tests] == ["a"]
    broken = Source("p.kina", HALF + 'test "a" = half 2.0\n')
    assert [d.code for d in check_source(broken, earlier=first).diagnostics] == ["K0302"]
