"""What the README shows is what the program says."""

from __future__ import annotations

import re
from pathlib import Path

from kina.diagnostics.render import render
from kina.pipeline import check
from kina.source import Source

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_readmes_program_gives_the_error_shown_and_its_help_mends_it():
    (program,) = re.findall(r"```kina\n(.*?)```", README, flags=re.S)
    (shown,) = re.findall(r"```text\n(error.*?)```", README, flags=re.S)
    checked = check(Source("attend.kina", program))
    assert render(checked.diagnostics).strip() == shown.strip()
    (error,) = checked.diagnostics
    (edit,) = error.help[0].edits
    assert check(Source("attend.kina", program[: edit.span.start] + edit.text + program[edit.span.end :])).ok
