"""What commands share: reading programs, showing findings, wording counts."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from kina import pipeline
from kina.diagnostics import Diagnostic, Severity
from kina.dims.prover import Status
from kina.elaborate.result import Obligation
from kina.host.files import UnreadableFile, read_source
from kina.source import Source

if TYPE_CHECKING:
    from kina.host.module import Function, Module


class Misuse(click.ClickException):
    """The command cannot be carried out as given: exit status 2."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        click.echo(f"kina: {self.message}", err=True)


def source_of(path: str) -> Source:
    """A program file, or stdin for `-`. Raises UnreadableFile."""
    if path != "-":
        return read_source(path)
    try:
        return Source("<stdin>", sys.stdin.buffer.read().decode("utf-8").removeprefix("\ufeff"), ".")
    except UnicodeDecodeError as fault:
        raise UnreadableFile(f"cannot read stdin: not UTF-8 text (byte {fault.start})") from None


def read(path: str) -> Source:
    """A program file, or stdin for `-`; unreadable ones are misuse."""
    try:
        return source_of(path)
    except UnreadableFile as fault:
        raise Misuse(str(fault)) from None


def checked_without_errors(path: str, *, strict: bool = False) -> pipeline.Checked:
    """The module in a file. Its errors go to stderr and end the command with status 1."""
    checked = pipeline.check(read(path), strict=strict)
    if not checked.ok:
        show_findings((d for d in checked.diagnostics if d.severity is Severity.ERROR), sys.stderr)
        raise click.exceptions.Exit(1)
    return checked


def split_target(target: str) -> tuple[str, str | None]:
    """`FILE:FUNCTION` or `FILE` in two. A file whose own name has a colon is taken as a file."""
    path, colon, function = target.rpartition(":")
    if not colon or not path or Path(target).exists():
        return target, None
    return path, function


def find_function(module: Module, path: str, name: str) -> Function:
    """A function by name; misuse where there is none."""
    try:
        found: Function = getattr(module, name)
    except AttributeError as missing:
        raise Misuse(f"{missing}\nfunctions in {path}: {', '.join(dir(module)) or 'none'}") from None
    return found


def wants_colour(stream: TextIO) -> bool:
    """Only terminals get colour, and not where `NO_COLOR` or a dumb terminal ask for none."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_findings(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """Renders findings with their source; nothing for none."""
    found = list(diagnostics)
    if not found:
        return
    from kina.diagnostics.render import render

    width = shutil.get_terminal_size().columns if stream.isatty() else 100
    click.echo(render(found, color=wants_colour(stream), width=width), file=stream, color=True)


def count(number: int, noun: str) -> str:
    """`1 error`, `3 errors`, `no errors`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def obligations_summary(obligations: Sequence[Obligation]) -> str:
    """`12 obligations proved (9 by normal form, 3 by facts), none left for run time`."""
    by = Counter(o.status for o in obligations)
    ways = [(Status.NORMAL_FORM, "normal form"), (Status.FACTS, "facts"), (Status.SMT, "the solver")]
    proved = sum(by[status] for status, _ in ways)
    how = ", ".join(f"{by[status]} by {words}" for status, words in ways if by[status])
    left = by[Status.UNDECIDED]
    return (
        f"{count(proved, 'obligation')} proved" + (f" ({how})" if how else "") + f", {left or 'none'} left for run time"
    )


def settled(checked: pipeline.Checked) -> list[Obligation]:
    """The obligations that were settled, by place; in a function with errors, those met before and after them."""
    return sorted(checked.elaboration.obligations, key=lambda o: (o.span.start, o.span.end))
