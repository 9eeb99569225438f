"""Reference pages in the terminal, and the list of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TextIO

from kina.doc.examples import worked_out
from kina.doc.pages import Page

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text without control characters, so that a comment in a file cannot steer the terminal."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def show(page: Page, stream: TextIO, *, colour: bool) -> None:
    """Renders a page where a person reads it; elsewhere it stays Markdown."""
    text = plain(worked_out(page).markdown)
    if not stream.isatty():
        stream.write(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(file=stream, no_color=not colour).print(Markdown(text, hyperlinks=False))


def listing(pages: Iterable[Page]) -> Sequence[str]:
    """One line a page: name, shapes, summary. The first column holds nothing but the name."""
    rows = [(p.name.replace(" ", "_"), p.shapes.replace("\n", "; "), p.summary) for p in pages]
    first, second = (max((len(row[n]) for row in rows), default=0) for n in (0, 1))
    return [f"{name.ljust(first)}  {shapes.ljust(second)}  {summary}".rstrip() for name, shapes, summary in rows]
