"""Tokens -> tree: declarations, and how parsing picks up again after an error.

Any text at all gives a tree and a list of errors, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from kina.diagnostics import Diagnostic, syntax_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.source import Source, Span
from kina.syntax import ast
from kina.syntax.cursor import MAX_DEPTH, Failure
from kina.syntax.forms import FormParser, Signature
from kina.syntax.layout import lay_out
from kina.syntax.lexer import Tokens, lex
from kina.syntax.literals import string_value

_DECLARATIONS = frozenset({"let", "type", "import", "test"})


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The tree of what could be read. Where a value is missing in it stands a hole with an empty name."""

    module: ast.Module
    diagnostics: tuple[Diagnostic, ...]


def parse(source: Source) -> ParseResult:
    """Reads a file."""
    tokens = lex(source)
    lay_out(tokens)
    parser = _Parser(tokens)
    module = parser.module()
    return ParseResult(module, tuple(sorted(parser.diagnostics, key=lambda d: d.span.start)))


class _Parser(FormParser):
    def __init__(self, tokens: Tokens) -> None:
        super().__init__(tokens)
        self.comments = tokens.comments
        self.documented: set[int] = set()  # comments that are a declaration's documentation
        self.comment = 0  # the first comment that is not before a declaration already read

    def module(self) -> ast.Module:
        declarations: list[ast.Declaration] = []
        while self.kinds[self.position] != "eof":
            self.depth, self.equals = 0, False
            try:
                declarations.append(self.declaration())
                self.end_declaration()
            except Failure as failure:
                self.report(failure.diagnostic)
                self.skip_declaration()
            except RecursionError:  # the caller had little of Python's stack left
                self.report(syntax_errors.nested_too_deeply(self.token_span(self.position), MAX_DEPTH))
                self.skip_declaration()
            self.position += 1
        spans = [Span(self.source, *c) for i, c in enumerate(self.comments) if i not in self.documented]
        comments = tuple(ast.Comment(s.text.rstrip(), span=s) for s in spans)
        return ast.Module(tuple(declarations), comments, span=Span(self.source, 0, len(self.text)))

    def end_declaration(self) -> None:
        kind = self.kinds[self.position]
        if kind == "end":
            return
        if kind in _DECLARATIONS and self.columns[self.position]:
            self.fail(syntax_errors.indented_declaration(self.token_span(self.position)))
        advice = [Help("only a `let` inside another declaration has an `in`")] if kind == "in" else None
        self.unexpected("the end of the declaration", help=advice)

    def skip_declaration(self) -> None:
        while self.kinds[self.position] != "end":
            self.position += 1

    # ---------------------------------------------------------------- declarations

    def declaration(self) -> ast.Declaration:
        index = self.position
        kind = self.kinds[index]
        start = self.starts[index]
        documentation = self.documentation(start) if self.comments and kind != "import" else ""
        if kind not in _DECLARATIONS:
            self.refuse_declaration()
        if self.columns[index] != 1:
            self.report(syntax_errors.indented_declaration(self.token_span(index)))
        self.position += 1
        match kind:
            case "let":
                return self.function_declaration(start, documentation)
            case "type":
                return self.type_declaration(start, documentation)
            case "import":
                return self.import_declaration(start)
            case _:
                return self.test_declaration(start, documentation)

    def refuse_declaration(self) -> NoReturn:
        if self.is_foreign(self.position):
            self.unexpected("a declaration")
        here, following = self.token_span(self.position), self.kinds[self.position + 1]
        if self.kinds[self.position] == "name" and following in ("=", "(", "[", ":"):
            start = Span(self.source, here.start, here.start)
            advice = [Help("a function or a constant begins with `let`", (Edit(start, "let "),))]
            self.fail(syntax_errors.not_a_declaration(here, self.found(), advice))
        if self.kinds[self.position] == "name":
            meant = syntax_errors.meant_keyword(here, ("let", "type", "import", "test"))
            self.fail(syntax_errors.not_a_declaration(here, self.found(), meant))
        self.fail(syntax_errors.not_a_declaration(here, self.found()))

    def body(self) -> ast.Expr:
        """What stands after the `=` of a declaration. An error in it does not lose the declaration."""
        start = self.starts[self.position]
        try:
            value = self.naming()
            self.end_declaration()
        except Failure as failure:
            self.report(failure.diagnostic)
            self.skip_declaration()
            return self.broken(start)
        return value

    def function_declaration(self, start: int, documentation: str) -> ast.FunctionDeclaration:
        if self.kinds[self.position] == "dim":
            self.fail(syntax_errors.not_a_declaration(
                self.token_span(self.position), "`let dim`", [Help("at the top level a constant is `let N = 4`")]
            ))  # fmt: skip
        name = self.name("the name of a function or a constant")
        name_span = self.token_span(self.position - 1)
        try:
            signature = self.signature()
            if self.kinds[self.position] == "->":
                advice = Help("the result's type stands after `:`", (Edit(self.token_span(self.position), ":"),))
                self.unexpected("`:` and the type of the result", help=[advice])
            self.need("=")
        except Failure as failure:
            self.report(failure.diagnostic)
            broken = self.broken(start)
            self.skip_declaration()
            return self.function(name, name_span, Signature((), (), (), broken, None), broken, start, documentation)
        return self.function(name, name_span, signature, self.body(), start, documentation)

    def type_declaration(self, start: int, documentation: str) -> ast.TypeDeclaration:
        name = self.name("the name of a type")
        name_span = self.token_span(self.position - 1)
        binders = self.binders() if self.kinds[self.position] == "[" else ()
        self.need("=")
        opener = self.position
        fields: list[ast.TypeField] | None = None
        definition: ast.Expr | None = None
        if self.take("{"):
            fields = []
            if not self.take("}"):
                fields.append(self.type_field())
                while self.separated("}", opener):
                    fields.append(self.type_field())
        else:
            definition = self.naming()
        return ast.TypeDeclaration(
            name, binders, None if fields is None else tuple(fields), definition, name_span, documentation,
            span=self.span(start),
        )  # fmt: skip

    def type_field(self) -> ast.TypeField:
        start = self.starts[self.position]
        name = self.name("the name of a field")
        self.need(":", instead="=")
        return ast.TypeField(name, self.naming(), span=self.span(start))

    def import_declaration(self, start: int) -> ast.ImportDeclaration:
        index = self.position
        quoted = self.take("string")
        if quoted:
            path = string_value(self.token_text(index))
        else:
            path = self.name("a module's name or its path in quotes")
            while self.take("."):
                path += "." + self.module_name()
        alias = self.alias()
        names: tuple[ast.ImportedName, ...] | None = None
        opener = self.position
        if self.take("("):
            imported: list[ast.ImportedName] = []
            if not self.take(")"):
                imported.append(self.imported_name())
                while self.separated(")", opener):
                    imported.append(self.imported_name())
            names = tuple(imported)
        return ast.ImportDeclaration(path, quoted, alias or self.alias(), names, span=self.span(start))

    def module_name(self) -> str:
        """A name after a dot. Here `test` is one: `std.test`."""
        if not self.take("test"):
            return self.name("the name of a module")
        return self.token_text(self.position - 1)

    def imported_name(self) -> ast.ImportedName:
        start = self.starts[self.position]
        name = self.name("the name of a declaration")
        return ast.ImportedName(name, self.alias(), span=self.span(start))

    def alias(self) -> str | None:
        """`as name`. Only here is `as` a keyword."""
        if self.kinds[self.position] != "name" or self.token_text(self.position) != "as":
            return None
        self.position += 1
        return self.name("a name after `as`")

    def test_declaration(self, start: int, documentation: str) -> ast.TestDeclaration:
        index = self.position
        if not self.take("string"):
            self.unexpected("the name of the test in quotes")
        self.need("=")
        return ast.TestDeclaration(
            string_value(self.token_text(index)), self.body(), documentation, span=self.span(start)
        )

    # ---------------------------------------------------------------- documentation

    def documentation(self, start: int) -> str:
        """The `///` lines between the declaration before and this one."""
        lines: list[str] = []
        mine: list[int] = []
        previous = 0
        while self.comment < len(self.comments) and self.comments[self.comment][0] < start:
            first, end = self.comments[self.comment]
            if self.is_documentation(first):
                if lines and self.text.count("\n", previous, first) > 1:
                    lines.append("")
                lines.append(self.text[first + 3 : end].removeprefix(" ").rstrip())
                mine.append(self.comment)
                previous = end
            self.comment += 1
        if not any(lines):
            return ""
        self.documented.update(mine)
        return "\n".join(lines)

    def is_documentation(self, offset: int) -> bool:
        """Whether a comment is a `///` on a line of its own, outside any declaration."""
        if not self.text.startswith("///", offset) or self.text.startswith("////", offset):
            return False
        line_start = self.text.rfind("\n", 0, offset) + 1
        is_alone = not self.text[line_start:offset].strip("\ufeff \t\r\f\v")
        return is_alone and (self.position == 0 or offset >= self.ends[self.position - 1])
