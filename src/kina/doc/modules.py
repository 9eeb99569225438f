"""The page of a module: its types and functions as written, their `///` comments, and the tests that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kina.diagnostics import Diagnostic, Severity
from kina.doc.pages import Page, Section, summary_of
from kina.source import Source
from kina.syntax import ast
from kina.syntax.parser import parse

Declared = ast.FunctionDeclaration | ast.TypeDeclaration
_FEW = 3


@dataclass(frozen=True, slots=True)
class Member:
    """A declaration of a module: `head` is its type as written, `text` what its comment says."""

    name: str
    head: str
    text: str
    tests: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return summary_of(self.text)


@dataclass(frozen=True, slots=True)
class ModulePage:
    """A module's page and, for the search, what is on it. `errors` is what kept parts of it from being read."""

    page: Page
    members: tuple[Member, ...]
    errors: tuple[Diagnostic, ...] = ()


def module_page(source: Source, name: str | None = None) -> ModulePage:
    """Reads a module. It is parsed and not checked: documentation of what is still being written is worth having."""
    parsed = parse(source)
    name = name or source.name
    declared = [d for d in parsed.module.declarations if isinstance(d, Declared)]
    tests = [d for d in parsed.module.declarations if isinstance(d, ast.TestDeclaration)]
    members = tuple(_member(d, tests) for d in declared)
    intro = _intro(source, parsed.module)
    example = f"import {name}" if name.startswith("std.") else f'import "{name}"'
    sections = tuple(Section(m.name, _member_text(m)) for m in members)
    page = Page(name, "modules", "modules", summary_of(intro) or name, intro, example, sections=sections)
    errors = tuple(d for d in parsed.diagnostics if d.severity is Severity.ERROR)
    return ModulePage(page, members, errors)


def member_page(module: ModulePage, name: str) -> Page | None:
    """A function or type of a module by itself."""
    found = next((m for m in module.members if m.name == name), None)
    if found is None:
        return None
    text = _member_text(found)
    return Page(f"{module.page.name}.{name}", "modules", "modules", found.summary, text)


def _member(d: Declared, tests: Sequence[ast.TestDeclaration]) -> Member:
    about = [t for t in tests if _uses(t.span.text, d.name)]
    return Member(d.name, _head(d), d.documentation.strip(), tuple(t.span.text.rstrip() for t in about[:_FEW]))


def _uses(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w'.\"]){re.escape(name)}(?![\w'])", text.partition("=")[2]) is not None


def _head(d: Declared) -> str:
    """A declaration as written, of a function without its body."""
    text = d.span.text
    if isinstance(d, ast.FunctionDeclaration):
        text = text[: d.body.span.start - d.span.start].rstrip()
        text = re.sub(r"(\s*//[^\n]*)+$", "", text).rstrip().removesuffix("=").rstrip()
    return text.rstrip()


def _member_text(m: Member) -> str:
    return "\n\n".join(_member_parts(m))


def _member_parts(m: Member) -> Iterator[str]:
    yield _fenced(m.head)
    if m.text:
        yield m.text
    for test in m.tests:
        yield _fenced(test)


def _fenced(text: str) -> str:
    """A block of Kina; its fence is longer than any that the text holds."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}kina\n{text}\n{fence}"


def _intro(source: Source, module: ast.Module) -> str:
    """What a file says of itself: the comments before anything else in it, unless they document a declaration."""
    lines = []
    for line in source.text.splitlines():
        text = line.strip()
        if not text.startswith("//") or text.startswith("///"):
            break
        lines.append(text.removeprefix("//").strip())
    return "\n".join(lines).strip()
