"""`kina test`: runs the tests of programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from kina import pipeline
from kina.cli.common import count, show_findings
from kina.diagnostics import Severity
from kina.host.api import executable_of
from kina.host.files import UnreadableFile, read_source
from kina.host.testing import Compile, Outcome, run_test


@click.command("test")
@click.option("-k", "wanted", metavar="TEXT", help="Only tests with TEXT in their names.")
@click.option("--native", is_flag=True, help="Run native code instead of the reference interpreter.")
@click.option("-v", "--verbose", is_flag=True, help="Also list the tests that hold.")
@click.argument("files", nargs=-1, required=True)
def command(wanted: str | None, native: bool, verbose: bool, files: Sequence[str]) -> int:
    """Run the `test` declarations of programs.

    Ends with status 1 if a test fails or a program has errors, 2 if a file cannot be read or no test is there to run.
    """
    compile = executable_of("native" if native else "reference")
    outcomes: list[Outcome] = []
    status = 0
    for file in files:
        try:
            checked = pipeline.check(read_source(file))
        except UnreadableFile as fault:
            click.echo(f"kina: {fault}", err=True)
            status = 2
            continue
        if not checked.ok:
            show_findings((d for d in checked.diagnostics if d.severity is Severity.ERROR), sys.stderr)
            status = max(status, 1)
            continue
        outcomes += _run(file, checked, wanted, compile, verbose)
    if not outcomes and not status:
        among = f" with {wanted!r} in its name" if wanted is not None else ""
        click.echo(f"kina: no test{among} in {', '.join(files)}", err=True)
        return 2
    if not outcomes:
        return status
    failed = sum(not outcome.ok for outcome in outcomes)
    click.echo(f"{count(len(outcomes), 'test')}: {len(outcomes) - failed} passed, {failed} failed")
    return max(status, 1 if failed else 0)


def _run(
    file: str, checked: pipeline.Checked, wanted: str | None, compile: Compile, verbose: bool
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for test in checked.elaboration.tests:
        if wanted is not None and wanted not in test.name:
            continue
        outcome = run_test(test, compile)
        outcomes.append(outcome)
        if verbose or not outcome.ok:
            click.echo(f"{'ok    ' if outcome.ok else 'FAILED'}  {file}: {test.name}")
        for first, *details in outcome.failures:
            click.echo("\n".join([f"    {first}", *(f"      {line}" for line in details)]))
    return outcomes
