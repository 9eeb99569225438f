"""Pages of forms: each form has one, and each program on them is what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from operations_page import page

from kina.diagnostics import Severity
from kina.diagnostics.pages import all_codes
from kina.diagnostics.render import render
from kina.doc.examples import answer, read_example
from kina.doc.forms import Form, all_forms, read_form
from kina.elaborate import elaborator  # noqa: F401  (registers the forms)
from kina.elaborate.dispatch import builtin_names
from kina.ops import lookup
from kina.pipeline import check
from kina.source import Source

FORMS = [pytest.param(form, id=form.name) for form in all_forms()]
_PROGRAM = re.compile(r"^```kina(?: rejected (?P<code>K\d{4}))?\n(?P<text>.*?)^```$", flags=re.S | re.M)


@pytest.mark.parametrize("form", FORMS)
def test_every_program_of_a_form_is_what_it_says_and_one_shows_a_value(form: Form):
    shown = 0
    for program in _PROGRAM.finditer(form.text):
        text = program["text"]
        example = read_example(text)
        if "let example" in text:
            assert example.says, "an example ends in a comment with its value"
            assert answer(example).value == example.says
            shown += 1
            continue
        checked = check(Source(form.name, text))
        errors = [d.code for d in checked.diagnostics if d.severity is Severity.ERROR]
        assert errors == ([program["code"]] if program["code"] else []), render(checked.diagnostics)
    assert shown, f"the page of {form.name} has no program with `let example`"


@pytest.mark.parametrize("form", FORMS)
def test_a_form_says_how_it_is_written_and_how_pytorch_spells_it(form: Form):
    assert form.head.get("usage") and form.head.get("torch"), form.name
    assert "## Errors" in form.text and "## Example" in form.text
    assert set(re.findall(r"`(K\d{4})`", form.text)) <= set(all_codes())


def test_every_name_with_a_form_of_its_own_has_a_page():
    known = {name for form in all_forms() for name in form.names}
    missing = [name for name in builtin_names() if name not in known and lookup(name) is None]
    assert not missing, f"write src/kina/doc/forms/NAME.md (see the others there) for: {', '.join(missing)}"


def test_no_name_has_two_pages():
    names = [name for form in all_forms() for name in form.names]
    assert len(names) == len(set(names))
    assert not [form.name for form in all_forms() if lookup(form.name)]


def test_a_page_that_cannot_be_read_says_why():
    with pytest.raises(ValueError, match="begin with its name"):
        read_form("einsum\n\ntext")
    with pytest.raises(ValueError, match="none of"):
        read_form("# einsum\ncolour: red\n\ntext")


def test_the_table_of_all_operations_is_as_they_are_declared(update_golden: bool):
    file = Path(__file__).parents[2] / "docs" / "operations.md"
    if update_golden:
        file.write_text(page(), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == page(), "run `make golden`"
