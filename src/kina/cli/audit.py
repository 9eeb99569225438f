"""`kina audit`: how every obligation of a file was settled, and what is left for run time."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kina import pipeline
from kina.cli.common import obligations_summary, read, settled, show_findings
from kina.diagnostics import Severity
from kina.elaborate.result import Obligation


@click.command("audit")
@click.option("--json", "as_json", is_flag=True, help="Print the obligations as a JSON list.")
@click.argument("file")
def command(as_json: bool, file: str) -> int:
    """List every obligation of a program with how it was settled.

    Errors go to stderr; what was settled beside them is listed all the same. Statuses: normal-form, facts, smt
    (proved, in that order of cost), runtime (checked when the program runs).
    """
    obligations: list[Obligation] = []
    try:
        checked = pipeline.check(read(file))
        obligations = settled(checked)
    finally:
        if as_json:
            click.echo(json.dumps([_as_json(o) for o in obligations], indent=2))
    if not as_json:
        _show(obligations)
    show_findings((d for d in checked.diagnostics if d.severity is Severity.ERROR), sys.stderr)
    return 0 if checked.ok else 1


def _as_json(o: Obligation) -> dict[str, Any]:
    return {
        "function": o.function,
        "line": o.span.line,
        "column": o.span.column,
        "obligation": str(o.proposition),
        "status": o.status_text,
    }


def _show(obligations: list[Obligation]) -> None:
    rows = [(o.function, f"{o.span.line}:{o.span.column}", o.status_text, f"{o.proposition}") for o in obligations]
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[3]]))
    click.echo(obligations_summary(obligations))
