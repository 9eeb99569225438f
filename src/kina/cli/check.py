"""`kina check`: all findings of files, for people or as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kina import pipeline
from kina.cli.common import count, obligations_summary, settled, show_findings, source_of
from kina.diagnostics import Diagnostic, Severity
from kina.elaborate.result import Obligation
from kina.host.files import UnreadableFile


@click.command("check")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as a JSON list.")
@click.option("--strict", is_flag=True, help="Refuse surface sugar: accept core as it is printed.")
@click.argument("files", nargs=-1, required=True)
def command(as_json: bool, strict: bool, files: tuple[str, ...]) -> int:
    """Check that programs fit together, for every size. `-` is stdin.

    Ends with status 1 if a program has errors, 2 if a file cannot be read.
    """
    return _check_as_json(files, strict) if as_json else _check_for_people(files, strict)


def _check_for_people(files: tuple[str, ...], strict: bool) -> int:
    status, functions = 0, 0
    findings: list[Diagnostic] = []
    obligations: list[Obligation] = []
    for file in files:
        try:
            checked = pipeline.check(source_of(file), strict=strict)
        except UnreadableFile as fault:
            click.echo(f"kina: {fault}", err=True)
            status = 2
            continue
        show_findings(checked.diagnostics, sys.stdout)
        findings += checked.diagnostics
        obligations += settled(checked)
        functions += len(checked.elaboration.signatures)
        status = max(status, 0 if checked.ok else 1)
    if functions or findings or not status:
        click.echo(_summary(functions, findings, obligations))
    return status


def _summary(functions: int, findings: list[Diagnostic], obligations: list[Obligation]) -> str:
    found = {s: sum(d.severity is s for d in findings) for s in (Severity.ERROR, Severity.WARNING)}
    counts = [count(number, severity.value) for severity, number in found.items() if number]
    return ", ".join([*counts, f"{count(functions, 'function')} checked", obligations_summary(obligations)])


def _check_as_json(files: tuple[str, ...], strict: bool) -> int:
    status = 0
    found: list[dict[str, Any]] = []
    try:
        for file in files:
            try:
                checked = pipeline.check(source_of(file), strict=strict)
            except UnreadableFile as fault:
                found.append(_unreadable(file, str(fault)))
                status = 2
                continue
            found += map(_as_json, checked.diagnostics)
            status = max(status, 0 if checked.ok else 1)
    finally:
        # Whatever goes wrong, what reads this gets a list.
        click.echo(json.dumps(found, indent=2))
    return status


def _as_json(d: Diagnostic) -> dict[str, Any]:
    return {
        "code": d.code,
        "severity": d.severity.value,
        "message": d.message,
        "file": d.span.source.name,
        "line": d.span.line,
        "column": d.span.column,
        "end_line": d.span.end_line,
        "end_column": d.span.end_column,
        "notes": list(d.notes),
        "help": [h.message for h in d.help],
        "counterexample": dict(d.counterexample) if d.counterexample is not None else None,
    }


def _unreadable(file: str, message: str) -> dict[str, Any]:
    place = {"line": 1, "column": 1, "end_line": 1, "end_column": 1}
    more: dict[str, Any] = {"notes": [], "help": [], "counterexample": None}
    return {"code": None, "severity": "error", "message": message, "file": file} | place | more
