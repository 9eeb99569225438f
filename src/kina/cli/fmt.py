"""`kina fmt`: programs in the one layout there is."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import click

from kina.cli.common import Misuse, read, show_findings
from kina.diagnostics import Severity
from kina.source import Source


@click.command("fmt")
@click.option("--check", "only_check", is_flag=True, help="Change nothing; status 1 if something would change.")
@click.argument("files", nargs=-1, required=True)
def command(only_check: bool, files: tuple[str, ...]) -> int:
    """Lay programs out anew, in place. `-` reads a program from stdin and writes it to stdout.

    A program with syntax errors is left as it is, and the status is 1.
    """
    return max(_format_stdin(only_check) if file == "-" else _format_file(file, only_check) for file in files)


def _format_stdin(only_check: bool) -> int:
    source = read("-")
    text = _formatted(source)
    if text is None:
        return 1
    if not only_check:
        click.echo(text.encode("utf-8"), nl=False)
        return 0
    return _would_change("<stdin>") if text != source.text else 0


def _format_file(file: str, only_check: bool) -> int:
    source = read(file)
    text = _formatted(source)
    if text is None:
        return 1
    if text == source.text:
        return 0
    if only_check:
        return _would_change(file)
    try:
        _replace(Path(file), text)
    except OSError as fault:
        raise Misuse(f"cannot write {file}: {fault.strerror or fault}") from None
    click.echo(f"formatted {file}")
    return 0


def _would_change(file: str) -> int:
    click.echo(f"would format {file}")
    return 1


def _formatted(source: Source) -> str | None:
    """The program anew; None, with its errors shown, where it cannot be read."""
    from kina.syntax.parser import parse
    from kina.syntax.printer import format_module

    parsed = parse(source)
    errors = [d for d in parsed.diagnostics if d.severity is Severity.ERROR]
    if errors:
        show_findings(errors, sys.stderr)
        return None
    text: str = format_module(parsed.module, source)
    return text


def _replace(path: Path, text: str) -> None:
    """Writes beside the file and renames, so that a program is never half written."""
    target = path.resolve()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
