"""The formatter: one layout for every program, with its comments kept.

What fits on a line stands on a line; what does not is broken at its outermost form. A body that the
author put on a line of its own stays there.
"""

from __future__ import annotations

from collections.abc import Sequence

from kina.source import Source
from kina.syntax import ast
from kina.syntax import flat as one_line
from kina.syntax.breaking import Breaker
from kina.syntax.flat import print_expr
from kina.syntax.lines import Lines
from kina.syntax.literals import written_string
from kina.syntax.parser import parse

_MOST_ROUNDS = 8
__all__ = ["format_module", "print_declaration", "print_expr"]


def format_module(module: ast.Module, source: Source) -> str:
    """A module that parsed without errors, laid out anew. `source` is the text that it was parsed from.

    A comment in the middle of a line moves to the line's end, and then the line may need no break any
    more: so the text is laid out until it stays as it is, which nearly always means once.
    """
    text = _laid_out(module, source)
    for _ in range(_MOST_ROUNDS):
        source = Source(source.name, text)
        following = _laid_out(parse(source).module, source)
        if following == text:
            break
        text = following
    return text


def _laid_out(module: ast.Module, source: Source) -> str:
    printer = _Printer(source, module.comments)
    for declaration in module.declarations:
        printer.declaration(declaration)
    printer.end()
    return printer.lines.text()


def print_declaration(d: ast.Declaration) -> str:
    """A declaration in as few lines as possible: its documentation, and one line."""
    match d:
        case ast.FunctionDeclaration():
            line = f"let {one_line.signature(d)} = {print_expr(d.body)}"
        case ast.TypeDeclaration():
            line = f"{_type_head(d)} = {_type_body(d)}"
        case ast.ImportDeclaration():
            line = _import(d)
        case ast.TestDeclaration():
            line = f"test {written_string(d.name)} = {print_expr(d.body)}"
    return "\n".join([*_documentation(d), line])


def _documentation(d: ast.Declaration) -> list[str]:
    text = "" if isinstance(d, ast.ImportDeclaration) else d.documentation
    return [f"/// {line}".rstrip() for line in text.split("\n")] if text else []


def _type_head(d: ast.TypeDeclaration) -> str:
    return f"type {d.name} {one_line.binders(d.binders)}" if d.binders else f"type {d.name}"


def _type_body(d: ast.TypeDeclaration) -> str:
    if d.fields is None:
        assert d.definition is not None
        return print_expr(d.definition)
    fields = ", ".join(f"{f.name} : {print_expr(f.type)}" for f in d.fields)
    return f"{{ {fields} }}" if fields else "{}"


def _import(d: ast.ImportDeclaration) -> str:
    names = None if d.names is None else [n.name + (f" as {n.alias}" if n.alias else "") for n in d.names]
    path = written_string(d.path) if d.quoted else d.path
    alias = f" as {d.alias}" if d.alias else ""
    return f"import {path}{alias}" + ("" if names is None else f" ({', '.join(names)})")


class _Printer(Breaker):
    def __init__(self, source: Source, comments: tuple[ast.Comment, ...]) -> None:
        super().__init__(Lines(source, comments))
        self.previous_is_long = False  # whether the declaration before takes several lines

    def end(self) -> None:
        self.lines.newline(0, len(self.lines.source.text), keep_blank=True)

    def declaration(self, d: ast.Declaration) -> None:
        """Writes a declaration; between two there is a blank line, if only one of them has several lines."""
        lines = self.lines
        lines.finish()
        start = self.documentation_start(d)
        while lines.waiting and lines.waiting[0].span.start < d.span.start and lines.attach(lines.waiting[0]):
            lines.waiting.popleft()
        first = len(lines.done)
        wants_blank = lines.blank_before(lines.waiting[0].span.start if lines.holds_comment(start) else start)
        lines.comments_before(d.span.start, 0, keep_blank=True)
        if lines.blank_before(start) and len(lines.done) > first:
            lines.blank()
        code = len(lines.done)
        for line in _documentation(d):
            lines.write(line)
            lines.finish()
        self.code(d)
        lines.finish()
        is_long = len(lines.done) - code > 1
        if first and (wants_blank or is_long or self.previous_is_long) and lines.done[first].text:
            lines.done.insert(first, type(lines.done[0])(""))
        self.previous_is_long = is_long

    def documentation_start(self, d: ast.Declaration) -> int:
        """Where the `///` lines before a declaration begin."""
        text, start = self.lines.source.text, d.span.start
        if not _documentation(d):
            return start
        while start > 0:
            line_start = text.rfind("\n", 0, start - 1) + 1
            line = text[line_start:start].strip("\ufeff \t\r\f\v\n")
            if line and not line.startswith("///"):
                break
            start = line_start
        return start + len(text[start:]) - len(text[start:].lstrip("\ufeff \t\r\f\v\n"))

    def code(self, d: ast.Declaration) -> None:
        match d:
            case ast.FunctionDeclaration():
                self.lines.write("let ")
                self.function(d, 0)
            case ast.TypeDeclaration():
                self.type_declaration(d)
            case ast.ImportDeclaration():
                self.import_declaration(d)
            case ast.TestDeclaration():
                self.lines.write(f"test {written_string(d.name)} =")
                self.body(d.body, 2, self.is_broken_before(d.body))

    def type_declaration(self, d: ast.TypeDeclaration) -> None:
        lines = self.lines
        lines.write(f"{_type_head(d)} =")
        parts: Sequence[ast.Node] = d.fields or ([] if d.definition is None else [d.definition])
        was_broken = bool(d.fields) and "\n" in lines.source.text[parts[0].span.start : parts[-1].span.end]
        if not parts or not (was_broken or lines.holds_comment(parts[-1].span.end)):
            text = _type_body(d)
            if lines.fits(f" {text}"):
                lines.write(f" {text}")
                return
        if d.definition is not None:
            self.block(d.definition, 2)
        for index, field in enumerate(d.fields or ()):
            lines.write("," if index else "")
            lines.newline(4 if index else 2, field.span.start)
            lines.write(f"{'' if index else '{ '}{field.name} : ")
            self.expression(field.type, tail=2)
        lines.write(" }" if d.fields else "")

    def import_declaration(self, d: ast.ImportDeclaration) -> None:
        text = _import(d)
        if self.lines.fits(text) or not d.names:
            self.lines.write(text)
            return
        head, _, _ = text.partition("(")
        self.lines.write(f"{head}(")
        indent = self.lines.column if self.lines.column < 60 else 4
        for index, name in enumerate(d.names):
            word = name.name + (f" as {name.alias}" if name.alias else "") + ("," if index + 1 < len(d.names) else ")")
            if not self.lines.fits(word):
                self.lines.newline(indent, name.span.start)
            self.lines.write(word + (" " if word.endswith(",") else ""))
