"""Programs with the exact diagnostics, core and kernels beside them.

`make golden` writes the files anew; the diff is for reading.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kina.core.printer import print_program
from kina.diagnostics.render import render
from kina.pipeline import Checked
from kina.pipeline import check as check_source
from kina.source import Source

FOLDER = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.kina"))


def checked(name: str) -> Checked:
    return check_source(Source(f"{name}.kina", (FOLDER / f"{name}.kina").read_text()))


def diagnostics(name: str) -> str:
    return render(checked(name).diagnostics)


def core(name: str) -> str:
    return print_program(*checked(name).elaboration.program.functions.values())


def kernels(name: str) -> str:
    from kina.pipeline import lower

    return "\n\n".join(str(lower(f)) for f in checked(name).elaboration.program.functions.values()) + "\n"


def compare(name: str, kind: str, text: str, update: bool) -> None:
    path = FOLDER / f"{name}.{kind}"
    if update:
        path.write_text(text)
    assert path.exists(), f"no golden file {path.name}: run `make golden`"
    assert text == path.read_text()


@pytest.mark.parametrize("name", [p for p in PROGRAMS if p.startswith(("err_", "note_"))])
def test_the_diagnostics_are_what_a_person_should_see(name, update_golden):
    text = diagnostics(name)
    assert text
    compare(name, "diagnostics", text, update_golden)


@pytest.mark.parametrize("name", [p for p in PROGRAMS if not p.startswith("err_")])
def test_core_is_as_expected(name, update_golden):
    assert checked(name).ok
    compare(name, "core", core(name), update_golden)


@pytest.mark.parametrize("name", [p for p in PROGRAMS if not p.startswith(("err_", "note_"))])
def test_kernels_are_as_expected(name, update_golden):
    compare(name, "kernels", kernels(name), update_golden)
