"""The programs in the documentation are what they say: right, or rejected with the error that is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kina.diagnostics import Severity
from kina.diagnostics.render import render
from kina.pipeline import check
from kina.source import Source

DOCS = Path(__file__).parents[1] / "docs"
_PROGRAM = re.compile(r"^```kina(?P<wrong> rejected (?P<code>K\d{4}))?\n(?P<text>.*?)^```$", flags=re.S | re.M)

PROGRAMS = [
    pytest.param(found["text"], found["code"], id=f"{page.stem}:{page_text.count(chr(10), 0, found.start()) + 1}")
    for page in sorted(DOCS.glob("*.md"))
    for page_text in [page.read_text(encoding="utf-8")]
    for found in _PROGRAM.finditer(page_text)
]


@pytest.mark.parametrize(("text", "code"), PROGRAMS)
def test_a_program_of_the_documentation_is_what_it_says(text, code):
    checked = check(Source("docs.kina", text))
    errors = [d.code for d in checked.diagnostics if d.severity is Severity.ERROR]
    assert errors == ([code] if code else []), render(checked.diagnostics)


@pytest.mark.parametrize(("page", "least"), [("types", 15), ("effects", 9)])
def test_every_program_of_a_tour_is_among_them(page, least):
    tour = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert tour.count("```kina") == sum(p.id.startswith(f"{page}:") for p in PROGRAMS) >= least
