"""`kina fmt`: what it writes, what it leaves alone."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kina import cli

pytest.importorskip("kina.syntax.printer")

UGLY = "let   f [ A ]  (x:F32[A])   : F32[A]=x+x // twice\n"


@pytest.fixture
def fmt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    Path("ugly.kina").write_text(UGLY)
    Path("broken.kina").write_text("let f (x =\n")
    command = cli.commands.get_command(None, "fmt")  # type: ignore[arg-type]
    assert command is not None
    return lambda *arguments, input=None: CliRunner().invoke(
        command, list(arguments), input=input, standalone_mode=True
    )


def pretty(fmt: Callable[..., Result]) -> str:
    return fmt("-", input=UGLY).stdout


def test_stdin_goes_to_stdout(fmt: Callable[..., Result]) -> None:
    text = pretty(fmt)
    assert text != UGLY
    assert "// twice" in text
    assert fmt("-", input=text).stdout == text


def test_files_are_laid_out_in_place_and_keep_their_mode(fmt: Callable[..., Result]) -> None:
    Path("ugly.kina").chmod(0o640)
    Path("link.kina").symlink_to("ugly.kina")
    assert fmt("link.kina").stdout == "formatted link.kina\n"
    assert Path("ugly.kina").read_text() == pretty(fmt)
    assert stat.S_IMODE(Path("ugly.kina").stat().st_mode) == 0o640
    assert Path("link.kina").is_symlink()
    assert fmt("ugly.kina").stdout == ""
    assert sorted(p.name for p in Path().iterdir()) == ["broken.kina", "link.kina", "ugly.kina"]


def test_check_changes_nothing_and_says_what_would(fmt: Callable[..., Result]) -> None:
    result = fmt("--check", "ugly.kina")
    assert result.stdout == "would format ugly.kina\n"
    assert Path("ugly.kina").read_text() == UGLY
    assert "would format <stdin>" in fmt("--check", "-", input=UGLY).stdout
    fmt("ugly.kina")
    assert fmt("--check", "ugly.kina").stdout == ""


def test_a_program_with_syntax_errors_is_left_as_it_is(fmt: Callable[..., Result]) -> None:
    for arguments in (["broken.kina"], ["--check", "broken.kina"]):
        result = fmt(*arguments)
        assert "broken.kina:1:" in result.stderr
        assert Path("broken.kina").read_text() == "let f (x =\n"


def test_input_that_is_no_text_is_refused(fmt: Callable[..., Result]) -> None:
    result = fmt("-", input=b"\xff")
    assert result.exit_code == 2
    assert "cannot read stdin: not UTF-8 text (byte 0)" in result.stderr
