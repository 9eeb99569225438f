"""The page of each error code: what it means, a program that has it, and the program mended."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable


def page(code: str) -> str | None:
    """The Markdown page of a code such as `K0301`, or None where there is no such code."""
    return (_folder() / f"{code}.md").read_text(encoding="utf-8") if code in all_codes() else None


def all_codes() -> tuple[str, ...]:
    """Every code that has a page, sorted."""
    return tuple(sorted(p.name.removesuffix(".md") for p in _folder().iterdir() if p.name.endswith(".md")))


def _folder() -> Traversable:
    return files("kina.diagnostics.pages")
