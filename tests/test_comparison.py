"""The programs of docs/comparison: what the page says of Kina is so.

The other tools have an environment of their own: `make comparison`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kina.diagnostics import Severity
from kina.pipeline import check
from kina.source import Source

DOCS = Path(__file__).parent.parent / "docs"
CHECKED = check(Source("programs.kina", (DOCS / "comparison" / "programs.kina").read_text()))
FINDINGS = CHECKED.elaboration.state.context.findings


@pytest.mark.parametrize("name", list(FINDINGS))
def test_kina_accepts_the_right_version_and_refuses_the_wrong_one(name):
    errors = [d for d in FINDINGS[name].diagnostics if d.severity is Severity.ERROR]
    assert len(errors) == name.endswith("_wrong")


@pytest.mark.parametrize("name", [n for n in FINDINGS if not n.endswith("_wrong")])
def test_the_page_has_each_function_in_its_table(name):
    assert f"{name}_wrong" in FINDINGS
    assert f"| `{name}` | **tells them apart** |" in (DOCS / "comparison.md").read_text()
