"""The pages of `kina explain`: the first program gives the error, the second is accepted."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

PAGES = {p.name[:-3]: p.read_text() for p in (files("kina.diagnostics") / "pages").iterdir() if p.name.startswith("K0")}


def blocks(code: str) -> list[str]:
    return re.findall(r"```kina\n(.*?)```", PAGES[code], flags=re.S)


@pytest.mark.parametrize("code", [c for c in sorted(PAGES) if blocks(c)])
def test_the_first_program_of_a_page_gives_its_error_and_the_second_is_accepted(check, code):
    first, *second = blocks(code)
    strict = code == "K0212"
    check(first, strict=strict).rejects(code)
    for text in second:
        check(text, strict=strict).accepts()
