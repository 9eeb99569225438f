"""The obligations of the catalogue as a user writes them: assertions in functions with `requires`."""

from __future__ import annotations

import re

import pytest
from catalogue import PROVED, REFUTED

from kina.diagnostics import Severity
from kina.pipeline import check
from kina.source import Source

_KINA = {"//": "div", "%": "mod", "==": "=", " and ": " && ", " or ": " || "}

_GUARDED = {"second_case_divides_by_zero", "scaled_remainder_of_zero"}
"""False only where a case of `or` is undefined, and a program takes such a case as false and reads on."""


def in_kina(text: str) -> str:
    for python, kina in _KINA.items():
        text = text.replace(python, kina)
    return text


def program(name: str, requires: str, claim: str) -> str:
    words = re.findall(r"[A-Za-z]\w*", f"{requires} {claim}")
    names = sorted(set(words) - {"and", "or", "cdiv", "min", "max"})
    needs = f"requires ({in_kina(requires)}) " if requires else ""
    size = f"F32[{names[0]}]"
    return (
        f"let {name} [{', '.join(names)}] {needs}(x : {size}) : {size} =\n"
        f"  let assert ({in_kina(claim)}) in\n  x\n"
    )


@pytest.fixture(scope="module")
def proved():
    return check(Source("proved.kina", "\n".join(program(*row) for row in PROVED)))


def test_what_is_true_is_accepted_and_leaves_nothing_for_run_time(proved):
    assert [str(d.message) for d in proved.diagnostics if d.severity is Severity.ERROR] == []
    left = {o.function: str(o.proposition) for o in proved.elaboration.obligations if o.status_text == "runtime"}
    assert left == {}


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in REFUTED if row[0] not in _GUARDED])
def test_what_is_false_is_an_error_that_shows_sizes(row):
    checked = check(Source("refuted.kina", program(*row)))
    errors = [d for d in checked.diagnostics if d.severity is Severity.ERROR]
    assert len(errors) == 1
    assert errors[0].counterexample
