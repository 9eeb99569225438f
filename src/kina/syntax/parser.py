"""Source -> tree. Never raises: what is wrong is reported, and parsing goes on at the next declaration."""

from __future__ import annotations

from dataclasses import dataclass

from kina.diagnostics import Diagnostic
from kina.source import Source, Span
from kina.syntax import ast
from kina.syntax.bindings import function_declaration
from kina.syntax.cursor import Cursor, ParseError, room_for_nesting
from kina.syntax.expressions import expression
from kina.syntax.lexer import string_value
from kina.syntax.types import binders, type_expression


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The tree of all declarations that could be read, and the findings.

    `broken` names the functions that could not be read, so that later stages do not call them unknown.
    """

    module: ast.Module
    diagnostics: tuple[Diagnostic, ...]
    broken: frozenset[str]


def parse(source: Source) -> ParseResult:
    """Parses a file."""
    with room_for_nesting():
        return _Parser(source).module()


class _Parser:
    def __init__(self, source: Source) -> None:
        self.cursor = Cursor(source)
        self.source = source
        self.documentation = _documentation(self.cursor.comments)

    def module(self) -> ParseResult:
        c = self.cursor
        declarations: list[ast.Declaration] = []
        broken: set[str] = set()
        while c.tokens[c.position].kind != "end":
            begin = c.position
            try:
                declarations.append(self._declaration())
            except ParseError:
                if c.tokens[begin].kind == "let" and c.tokens[begin + 1].kind == "name":
                    broken.add(c.tokens[begin + 1].text)
                c.position = max(c.position, begin + 1)
                c.limit, c.level, c.equality = 0, 0, False
                c.skip_to_column(1)
        comments = tuple(ast.Comment(span.text, span=span) for span in c.comments)
        whole = Span(self.source, 0, len(self.source.text))
        diagnostics = sorted(c.diagnostics, key=lambda d: d.span.start)
        return ParseResult(ast.Module(tuple(declarations), comments, span=whole), tuple(diagnostics), frozenset(broken))

    def _declaration(self) -> ast.Declaration:
        c = self.cursor
        c.limit = 0
        start = c.start
        keyword = c.kind
        if keyword not in ("let", "type", "import", "test"):
            raise c.error("a declaration: `let`, `type`, `import` or `test`")
        c.next()
        c.limit = 1
        documentation = self.documentation.get(self.source.line_of(start) - 1, "")
        declaration: ast.Declaration
        match keyword:
            case "let":
                declaration = function_declaration(c, start, documentation)
            case "type":
                declaration = _type_declaration(c, start, documentation)
            case "import":
                declaration = _import_declaration(c, start)
            case _:
                name = string_value(c.expect("string", "the test's name in quotes").text)
                c.expect("=")
                body = expression(c)
                declaration = ast.TestDeclaration(name, body, documentation, span=c.span(start))
        if c.kind != "end":
            raise c.error("the end of the declaration")
        return declaration


def _documentation(comments: list[Span]) -> dict[int, str]:
    """The text of `///` comments on neighbouring lines, by the line of the last one."""
    found: dict[int, str] = {}
    for span in comments:
        if span.text.startswith("///"):
            line = span.line
            text = span.text[3:].removeprefix(" ").rstrip()
            above = found.pop(line - 1, None)
            found[line] = text if above is None else f"{above}\n{text}"
    return found


def _type_declaration(c: Cursor, start: int, documentation: str) -> ast.TypeDeclaration:
    name = c.name("the type's name")
    bound = binders(c)
    c.expect("=")
    fields: list[ast.TypeField] = []
    if c.kind != "{":
        definition = type_expression(c)
        return ast.TypeDeclaration(
            name.text, bound, None, definition, c.span_of(name), documentation, span=c.span(start)
        )
    with c.bracket("{", "}", equality=False):
        while c.kind != "}":
            begin = c.start
            field = c.name("a field's name").text
            c.expect(":")
            fields.append(ast.TypeField(field, type_expression(c), span=c.span(begin)))
            if not c.accept(","):
                break
    return ast.TypeDeclaration(
        name.text, bound, tuple(fields), None, c.span_of(name), documentation, span=c.span(start)
    )


def _import_declaration(c: Cursor, start: int) -> ast.ImportDeclaration:
    quoted = c.kind == "string"
    if quoted:
        path = string_value(c.next().text)
    else:
        path = c.name("a module such as std.nn, or a path in quotes").text
        while c.accept("."):
            path += "." + c.name().text
    names: list[ast.ImportedName] | None = None
    if c.kind == "(":
        names = []
        with c.bracket("(", ")", equality=False):
            while c.kind != ")":
                begin = c.start
                name = c.name("a name to import").text
                names.append(ast.ImportedName(name, _alias(c), span=c.span(begin)))
                if not c.accept(","):
                    break
    alias = _alias(c)
    return ast.ImportDeclaration(path, quoted, alias, None if names is None else tuple(names), span=c.span(start))


def _alias(c: Cursor) -> str | None:
    if not c.is_word("as"):
        return None
    c.next()
    return c.name("the name to give it").text
