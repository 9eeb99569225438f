"""The commands, called in this process: what they print, what they write, how they end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import kina
from kina import cli

GOOD = """
/// Root-mean-square normalisation.
let rmsnorm [B, S, D]
    (x : Tensor[F32, [B, S, D]]) (weight : Tensor[F32, [D]]) (eps : Tensor[F32, []])
    : Tensor[F32, [B, S, D]] =
  let mean_sq = reduce_keep[mean, axis=2] (x * x) in
  x * rsqrt (mean_sq + eps) * weight

let heads [H, D] (x : F32[H * D]) : (F32[H, D], F32[D, H]) = (reshape x [H, D], reshape x [D, H])
let pair [A] (both : (F32[A], I64[A])) (on : Bool[]) : F32[A] = let (a, b) = both in a
let brain [n] (x : BF16[n]) : BF16[n] = x
let byte [n] (x : U8[n]) : U8[n] = x
"""
BAD = "let f [A, B] (x : F32[A]) (y : F32[B]) : F32[A] = x + y\nlet g [A] (x : F32[A]) : F32[A] = x\n"
CHECKED = "let f [Q, K] requires (Q mod K = 0) (x : F32[Q]) : F32[K, Q / K] = reshape x [K, Q / K]\n"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("check", "good.kina")` in a folder of its own, through the same door as the installed command."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"good.kina": GOOD, "bad.kina": BAD, "checked.kina": CHECKED}.items():
        Path(name).write_text(text)

    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def door(arguments: tuple[str, ...]) -> None:
        cli.main(list(arguments))

    return lambda *arguments, input=None: CliRunner().invoke(door, ["--", *arguments], input=input)


def run_ref(run: Run, *arguments: str) -> Result:
    return run("run", "--backend", "reference", *arguments)


# ---------------------------------------------------------------- in general


def test_the_version_is_the_project_s() -> None:
    import tomllib

    project = Path(__file__).parents[2] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == kina.__version__


def test_version_and_help_are_printed(run: Run) -> None:
    assert run("--version").output == f"kina {kina.__version__}\n"
    result = run("--help")
    assert result.exit_code == 0
    assert all(name in result.output for name in ("check", "run", "explain", "audit", "fmt"))


@pytest.mark.parametrize("arguments", [["chekc"], ["check"], ["check", "--nope", "x"], ["run"], ["fmt"], ["audit"]])
def test_misuse_ends_with_2(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: kina" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda p: None, "cannot read f.kina: No such file or directory"),
        (lambda p: p.mkdir(), "cannot read f.kina: Is a directory"),
        (lambda p: p.write_bytes(b"let f\xff"), "cannot read f.kina: not UTF-8 text (byte 5)"),
        (lambda p: p.write_bytes(bytes(range(256))), "cannot read f.kina: not UTF-8 text (byte 128)"),
    ],
)
@pytest.mark.parametrize("command", [["check"], ["run"], ["explain", "--core"], ["audit"], ["fmt"]])
def test_files_that_cannot_be_read_end_with_2(
    run: Run, command: list[str], prepare: Callable[[Path], Any], message: str
) -> None:
    prepare(Path("f.kina"))
    result = run(*command, "f.kina")
    assert (result.exit_code, result.stderr) == (2, f"kina: {message}\n")


def test_a_fault_in_kina_says_so_and_ends_with_70(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the floor is gone")

    monkeypatch.setattr("kina.pipeline.check", broken)
    result = run("check", "good.kina")
    assert result.exit_code == 70
    assert "a fault in Kina, not in your program: RuntimeError: the floor is gone" in result.stderr
    assert "KINA_DEBUG=1" in result.stderr
    assert "Traceback" not in result.output
    assert json.loads(run("check", "--json", "good.kina").stdout) == []
    assert json.loads(run("audit", "--json", "good.kina").stdout) == []
    monkeypatch.setenv("KINA_DEBUG", "1")
    assert isinstance(run("check", "good.kina").exception, RuntimeError)


def test_an_interrupt_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kina.pipeline.check", interrupted)
    result = run("check", "good.kina")
    assert (result.exit_code, result.stderr.strip()) == (130, "interrupted")


# ---------------------------------------------------------------- check


def test_check_sums_up_what_was_proved(run: Run) -> None:
    result = run("check", "good.kina", "checked.kina")
    assert result.exit_code == 0
    assert result.stdout.startswith("6 functions checked, ")
    assert result.stdout.endswith(", none left for run time\n")
    assert "by normal form" in result.stdout


def test_check_shows_errors_with_their_source_and_counts_them(run: Run) -> None:
    result = run("check", "bad.kina", "good.kina")
    assert result.exit_code == 1
    assert "bad.kina:1:" in result.stdout
    assert "x + y" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 error, 7 functions checked, ")
    assert "\x1b" not in result.stdout


def test_check_goes_on_after_a_file_that_cannot_be_read(run: Run) -> None:
    result = run("check", "nope.kina", "bad.kina")
    assert result.exit_code == 2
    assert "nope.kina" in result.stderr
    assert "bad.kina:1:" in result.stdout


def test_check_strict_refuses_sugar(run: Run) -> None:
    assert run("check", "--strict", "good.kina").exit_code == 1


def test_an_empty_file_is_a_program(run: Run) -> None:
    Path("empty.kina").write_text("")
    result = run("check", "empty.kina")
    assert result.stdout == "no functions checked, no obligations proved, none left for run time\n"


def test_check_as_json_has_every_field(run: Run) -> None:
    result = run("check", "--json", "bad.kina", "good.kina")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)
    assert set(finding) == {
        "code", "severity", "message", "file", "line", "column", "end_line", "end_column", "notes", "help",
        "counterexample",
    }  # fmt: skip
    assert (finding["file"], finding["line"], finding["severity"]) == ("bad.kina", 1, "error")
    assert finding["code"].startswith("K0")
    assert all(isinstance(text, str) for text in [*finding["notes"], *finding["help"]])
    assert finding["counterexample"] is None or all(type(v) is int for v in finding["counterexample"].values())


def test_check_as_json_is_a_list_whatever_happens(run: Run) -> None:
    assert json.loads(run("check", "--json", "good.kina").stdout) == []
    Path("raw.kina").write_bytes(b"\xff")
    result = run("check", "--json", "nope.kina", "raw.kina", "bad.kina")
    findings = json.loads(result.stdout)
    assert result.exit_code == 2
    assert [(f["file"], f["code"] is None) for f in findings] == [
        ("nope.kina", True), ("raw.kina", True), ("bad.kina", False)
    ]  # fmt: skip
    assert all(set(f) == set(findings[-1]) for f in findings)


# ---------------------------------------------------------------- audit


def test_audit_lists_obligations_with_their_status(run: Run) -> None:
    result = run("audit", "checked.kina")
    assert result.exit_code == 0
    *rows, summary = result.stdout.splitlines()
    assert rows
    assert all(row.startswith("f  1:") for row in rows)
    assert summary.endswith("none left for run time")


def test_audit_as_json_has_every_field(run: Run) -> None:
    obligations = json.loads(run("audit", "--json", "checked.kina").stdout)
    assert {"facts", "normal-form"} & {o["status"] for o in obligations}
    for o in obligations:
        assert set(o) == {"function", "line", "column", "obligation", "status"}
        assert o["status"] in {"normal-form", "facts", "smt", "runtime"}
        assert (o["function"], o["line"]) == ("f", 1)


def test_audit_leaves_out_functions_with_errors(run: Run) -> None:
    result = run("audit", "--json", "bad.kina")
    assert result.exit_code == 1
    assert {o["function"] for o in json.loads(result.stdout)} == {"g"}
    assert "bad.kina:1:" in result.stderr


def test_audit_as_json_is_a_list_even_without_a_file(run: Run) -> None:
    result = run("audit", "--json", "nope.kina")
    assert (result.exit_code, json.loads(result.stdout)) == (2, [])


# ---------------------------------------------------------------- run


def test_run_prints_dtype_shape_and_values(run: Run) -> None:
    result = run_ref(run, "good.kina:pair", "both.0=[1, 2.5]", "both.1=[3, 4]", "on=true")
    assert (result.exit_code, result.stdout) == (0, "F32[2]\n[1.  2.5]\n")


def test_run_numbers_several_results(run: Run) -> None:
    result = run_ref(run, "good.kina:heads", "x=[1, 2]", "--size", "H=2")
    assert result.stdout == "0: F32[2, 1]\n[[1.]\n [2.]]\n1: F32[1, 2]\n[[1. 2.]]\n"


def test_run_is_native_unless_told_otherwise(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("kina.host.reference.Reference.run", unused)
    assert run("run", "good.kina:brain", "x=[1, 2.5]").stdout == "BF16[2]\n[1.  2.5]\n"


def test_run_shortens_large_results(run: Run) -> None:
    result = run_ref(run, "good.kina:rmsnorm", "--random", "x=4,50,60", "--random", "weight=60", "eps=1e-6")
    assert result.stdout.startswith("F32[4, 50, 60]\n")
    assert "..." in result.stdout
    assert len(result.stdout) < 2000


def test_run_reads_and_writes_npy_files(run: Run) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.save("x.npy", x)
    np.save("w.npy", np.ones(4, np.float32))
    result = run_ref(run, "good.kina:rmsnorm", "x=x.npy", "weight=w.npy", "eps=.5", "-o", "y.npy")
    assert (result.exit_code, result.stdout) == (0, "wrote y.npy\n")
    expected = x / np.sqrt((x * x).mean(2, keepdims=True) + np.float32(0.5))
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-6)


def test_run_writes_several_results_to_numbered_files_or_an_archive(run: Run) -> None:
    arguments = ["good.kina:heads", "x=[1, 2, 3, 4, 5, 6]", "--size", "H=2"]
    assert run_ref(run, *arguments, "-o", "out.npy").stdout == "wrote out.0.npy\nwrote out.1.npy\n"
    assert [np.load(f"out.{k}.npy").shape for k in (0, 1)] == [(2, 3), (3, 2)]
    assert run_ref(run, *arguments, "-o", "out.npz").stdout == "wrote out.npz\n"
    with np.load("out.npz") as archive:
        assert {k: archive[k].shape for k in archive} == {"0": (2, 3), "1": (3, 2)}


def test_bfloat16_goes_through_npy_files_unchanged(run: Run) -> None:
    assert run_ref(run, "good.kina:brain", "x=[1.5, 2]", "-o", "b.npy").exit_code == 0
    assert run_ref(run, "good.kina:brain", "x=b.npy").stdout == "BF16[2]\n[1.5 2. ]\n"


def test_random_arrays_follow_the_seed_and_the_dtype(run: Run) -> None:
    def output(*more: str) -> str:
        return run_ref(run, "good.kina:pair", "--random", "both.0=3", "--random", "on=", *more).stdout

    given = ["both.1=[1, 2, 3]"]
    assert output(*given) == output(*given, "--seed", "0") != output(*given, "--seed", "1")
    # What one input draws does not depend on how the others are given.
    assert output(*given) == output("--random", "both.1=3")
    assert run_ref(run, "good.kina:byte", "--random", "x=2").stdout.startswith("U8[2]\n")


def test_a_function_that_is_alone_needs_no_name(run: Run) -> None:
    assert run_ref(run, "checked.kina", "x=[1, 2]", "--size", "K=2").stdout == "F32[2, 1]\n[[1.]\n [2.]]\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.kina"], "which function of good.kina? Say good.kina:NAME with one of: "),
        (["good.kina:rmsnrom"], "good.kina has no function rmsnrom; did you mean rmsnorm?\nfunctions in good.kina: "),
        (["good.kina:byte"], "byte needs x: give NAME=VALUE or --random NAME=SHAPE"),
        (["good.kina:byte", "y=[1]"], "byte has no input y (inputs: x)"),
        (["good.kina:rmsnorm", "wieght=[1]"], "rmsnorm has no input wieght; did you mean weight?"),
        (["good.kina:byte", "x"], "'x' does not have the form NAME=VALUE"),
        (["good.kina:byte", "=3"], "'=3' does not have the form NAME=VALUE"),
        (["good.kina:byte", "x=[1]", "x=[2]"], "x is given twice"),
        (["good.kina:byte", "x=[1]", "--random", "x=1"], "x is given twice, as a value and with --random"),
        (["good.kina:byte", "x=nope.npy"], "cannot read nope.npy: No such file or directory"),
        (["good.kina:byte", "x=dir.npy"], "cannot read dir.npy: Is a directory"),
        (["good.kina:byte", "x=broken.npy"], "cannot read broken.npy: not a .npy file that NumPy can read"),
        (["good.kina:byte", "x=cut.npy"], "cannot read cut.npy: not a .npy file that NumPy can read"),
        (["good.kina:byte", "x=objects.npy"], "cannot read objects.npy: not a .npy file that NumPy can read"),
        (["good.kina:byte", "x=archive.npy"], "cannot read archive.npy: it is an archive of several arrays"),
        (["good.kina:byte", "x=text"], "x=text: neither a .npy file nor a number nor a list of numbers"),
        (["good.kina:byte", 'x={"a": 1}'], "neither a .npy file nor a number nor a list of numbers"),
        (["good.kina:byte", "x=" + "[" * 100000], "neither a .npy file nor a number nor a list of numbers"),
        (["good.kina:byte", 'x=["a"]'], "byte: argument x is a list with str inside: 'a'"),
        (["good.kina:byte", "x=[300]"], "byte: argument x: 300 is outside the range of U8"),
        (["good.kina:byte", "x=wide.npy"], "byte: argument x has the wrong dtype"),
        (["good.kina:byte", "--random", "x=a"], "--random x=a: a shape is numbers with commas between, as in 2,3"),
        (["good.kina:byte", "--random", "x=-1"], "--random x=-1: a shape is numbers with commas between"),
        (["good.kina:byte", "--random", "x=99999999999999999"], "too large for this machine"),
        (["good.kina:byte", "--random", "x=999999999999999999999"], "too large for this machine"),
        (["good.kina:heads", "x=[1]"], "heads: the arguments do not determine H, D\n"),
        (["good.kina:heads", "x=[1]", "--size", "H"], "'H' does not have the form --size NAME=N"),
        (["good.kina:heads", "x=[1]", "--size", "H=-1"], "--size H=-1: a size is a whole number, 0 or more"),
        (["good.kina:heads", "x=[1]", "--size", "Q=1"], "heads has no size Q to give; its sizes: H, D"),
        (["good.kina:byte", "x=[1]", "-o", "out.txt"], "cannot write out.txt: the name has to end in .npy or .npz"),
        (["good.kina:byte", "x=[1]", "-o", "no/out.npy"], "cannot write no/out.npy: No such file or directory"),
    ],
)  # fmt: skip
def test_run_refuses_what_does_not_fit_with_2(run: Run, arguments: list[str], message: str) -> None:
    Path("dir.npy").mkdir()
    Path("broken.npy").write_bytes(b"\x93NUMPY\x01\x00nonsense")
    np.save("whole.npy", np.arange(100))
    Path("cut.npy").write_bytes(Path("whole.npy").read_bytes()[:-9])
    np.save("objects.npy", np.array([None, "a"]), allow_pickle=True)
    np.savez("archive.npz", np.ones(1))
    os.rename("archive.npz", "archive.npy")
    np.save("wide.npy", np.ones(2))
    result = run_ref(run, *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.startswith("kina: ")
    assert result.stdout == ""


def test_run_shows_the_errors_of_a_bad_program_and_ends_with_1(run: Run) -> None:
    result = run_ref(run, "bad.kina:g", "x=[1]")
    assert result.exit_code == 1
    assert "bad.kina:1:" in result.stderr


def test_a_check_that_fails_at_run_time_ends_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from kina.host.reference import Reference

    def fails(*_: Any) -> None:
        raise kina.KinaError("good.kina:3:1: the assertion A = 2 does not hold for A = 1")

    monkeypatch.setattr(Reference, "run", fails)
    result = run_ref(run, "good.kina:byte", "x=[1]")
    assert (result.exit_code, result.stderr) == (1, "good.kina:3:1: the assertion A = 2 does not hold for A = 1\n")


# ---------------------------------------------------------------- explain


def test_explain_prints_the_page_of_a_code(run: Run) -> None:
    from kina.diagnostics.pages import all_codes, page

    code = all_codes()[0]
    assert run("explain", code).stdout.strip() == (page(code) or "").strip()
    assert run("explain", code.lower()).exit_code == 0


def test_explain_knows_when_there_is_no_such_code(run: Run) -> None:
    result = run("explain", "K9999")
    assert result.exit_code == 2
    assert "there is no error code K9999" in result.stderr


def test_explain_shows_core_that_checks_again(run: Run) -> None:
    result = run("explain", "--core", "good.kina:heads")
    assert result.exit_code == 0
    Path("core.kina").write_text(result.stdout)
    assert run("check", "--strict", "core.kina").exit_code == 0


def test_explain_shows_kernels_unless_told_otherwise(run: Run) -> None:
    result = run("explain", "good.kina:heads")
    assert (result.exit_code, result.stdout) == (0, run("explain", "--kernels", "good.kina:heads").stdout)
    assert "kernel" in result.stdout
    assert "@kina_entry(ptr" in run("explain", "--llvm", "good.kina:heads").stdout


def test_explain_shows_a_whole_file(run: Run) -> None:
    result = run("explain", "--core", "good.kina")
    assert [result.stdout.count(f"let {name}") for name in ("rmsnorm", "heads", "pair", "brain", "byte")] == [1] * 5


def test_explain_refuses_a_function_that_is_not_there(run: Run) -> None:
    result = run("explain", "--core", "good.kina:zzz")
    assert (result.exit_code, "has no function zzz" in result.stderr) == (2, True)


def test_a_file_whose_name_has_a_colon_is_a_file(run: Run) -> None:
    Path("a:b.kina").write_text(CHECKED)
    assert run("explain", "--core", "a:b.kina").exit_code == 0
    assert run("explain", "--core", "a:b.kina:f").exit_code == 0


def test_a_machine_without_room_is_no_fault_of_kina(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kina.pipeline.check", full)
    result = run("check", "good.kina")
    assert (result.exit_code, result.stderr) == (2, "kina: [Errno 28] No space left on device\n")
