"""What a reference page is, whatever it is about, and the table of all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and Markdown below it."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page about one name.

    `folder` is the kind of thing (`operations`, `language`, `errors`, `modules`), `group` the family within it.
    `summary` is a line of Markdown, `text` all that is said before the first section.
    """

    name: str
    folder: str
    group: str
    summary: str
    text: str = ""
    usage: str = ""
    shapes: str = ""
    torch: str = ""
    sections: tuple[Section, ...] = ()

    @property
    def path(self) -> str:
        """Where its file lies in a site."""
        return f"{self.folder}/{file_name(self.name)}.html"

    @property
    def title(self) -> str:
        """What stands above the page; an error's code says little by itself."""
        return f"{self.name}: {self.summary}" if self.folder == "errors" else self.name

    @property
    def markdown(self) -> str:
        """The whole page as Markdown."""
        parts = [f"# {self.title}"]
        if self.usage:
            parts.append(f"```kina\n{self.usage}\n```")
        parts.append(self.text or self.summary)
        for section in self.sections:
            parts += [f"## {section.title}", section.text]
        return "\n\n".join(parts) + "\n"


def file_name(name: str) -> str:
    """A file name that stays inside its folder, whatever the module is called; names that differ stay different."""
    return re.sub(r"[^\w.-]", lambda m: f"%{ord(m[0]):x}", name).lstrip(".") or "_"


def summary_of(text: str) -> str:
    """The first sentence of Markdown, on one line."""
    first = " ".join(text.strip().split("\n\n", 1)[0].split())
    end = re.search(r"[.:](?= (?:[A-Z`]|$))|\.$", _without_code(first))
    return first[: end.start()].rstrip() if end and end.start() else first


def _without_code(text: str) -> str:
    """The text with the inside of code spans blanked, at the same places."""
    return re.sub(r"`[^`]*`", lambda m: "`" + "_" * (len(m[0]) - 2) + "`", text)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; `|` in cells is escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


@cache
def reference() -> Mapping[str, Page]:
    """The pages of all operations and forms by name: operations first, each in order of declaration."""
    from kina.doc.forms import form_pages
    from kina.doc.operations import operation_page
    from kina.ops import all_operations

    pages = [*(operation_page(entry) for entry in all_operations()), *form_pages()]
    found = {page.name: page for page in pages}
    if len(found) != len(pages):
        raise ValueError("two reference pages have one name")
    return found


@cache
def error_pages() -> Mapping[str, Page]:
    """The pages of error codes."""
    from kina.diagnostics.pages import all_codes, page

    found = {}
    for code in all_codes():
        title, _, text = (page(code) or "").partition("\n")
        found[code] = Page(code, "errors", "errors", title.partition(": ")[2], text.strip())
    return found
