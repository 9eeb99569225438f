"""The parser's place in the tokens, and how it says that something else was expected."""

from __future__ import annotations

from typing import NoReturn

from kina.diagnostics import Diagnostic, syntax_errors
from kina.diagnostics.diagnostic import Edit, Help, Label
from kina.source import Span
from kina.syntax.layout import CLOSERS
from kina.syntax.lexer import RESERVED, Tokens

MAX_DEPTH = 100
"""How many expressions may stand inside one another. Lists, chains of `let` and of operators do not count."""

_FOREIGN = {
    "def": "a function is `let f (x : F32[N]) : F32[N] = ...`",
    "fn": "a function is `let f (x : F32[N]) : F32[N] = ...`",
    "func": "a function is `let f (x : F32[N]) : F32[N] = ...`",
    "lambda": "a function without a name is `fun x -> ...`",
    "return": "the last expression is the result: leave `return` out",
    "elif": "write `else if`",
    "and": "write `&&`",
    "or": "write `||`",
    "class": "a record is `type Layer [D] = { weight : F32[D] }`",
    "var": "a name is given with `let x = ...`",
    "val": "a name is given with `let x = ...`",
    "const": "a name is given with `let x = ...`",
    "where": "say what callers must satisfy with `requires (...)`",
    "from": "write `import std.nn (softmax)`",
}
_AS_ARGUMENT = frozenset({"fun", "if", "for", "while", "not"})


class Failure(Exception):
    """Unwinds to the nearest place where parsing can go on."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Cursor:
    """Reads tokens one after the other. `position` is the token to read next."""

    def __init__(self, tokens: Tokens) -> None:
        self.source = tokens.source
        self.text = tokens.source.text
        self.kinds = tokens.kinds
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.columns = tokens.columns
        self.diagnostics = list(tokens.diagnostics)
        self.strays = tokens.strays
        self.wrong_lines = {d.span.line for d in self.diagnostics}
        self.position = 0
        self.depth = 0
        self.equals = False  # whether `=` compares here

    # ---------------------------------------------------------------- places

    def span(self, start: int) -> Span:
        """From an offset to the end of the token that was read last."""
        return Span(self.source, start, max(start, self.ends[self.position - 1]))

    def token_span(self, index: int) -> Span:
        return Span(self.source, self.starts[index], self.ends[index])

    def token_text(self, index: int) -> str:
        return self.text[self.starts[index] : self.ends[index]]

    def is_tight(self) -> bool:
        """Whether the next token touches the one before it."""
        return self.starts[self.position] == self.ends[self.position - 1]

    # ---------------------------------------------------------------- reading

    def take(self, kind: str) -> bool:
        """Reads the next token if it is of this kind."""
        if self.kinds[self.position] == kind:
            self.position += 1
            return True
        return False

    def need(self, kind: str, after: Label | None = None, *, instead: str = "") -> int:
        """Reads a token of this kind and gives its index. `instead` is what is often written for it."""
        if self.kinds[self.position] != kind:
            advice = []
            if instead and self.kinds[self.position] == instead:
                advice.append(Help(f"write `{kind}`", (Edit(self.token_span(self.position), kind),)))
            self.unexpected(f"`{kind}`", after=after, help=advice)
        self.position += 1
        return self.position - 1

    def name(self, wanted: str) -> str:
        """Reads a name; `wanted` says what it is for, as in `the name of a field`."""
        if self.kinds[self.position] != "name":
            self.no_name(wanted)
        self.position += 1
        return self.token_text(self.position - 1)

    def close(self, closer: str, opener: int) -> None:
        """Reads the bracket that closes the one at token `opener`."""
        if self.kinds[self.position] != closer:
            self.unclosed(closer, opener)
        self.position += 1

    def separated(self, closer: str, opener: int) -> bool:
        """After an item in brackets: reads `,` and says whether another item follows; else reads the closer."""
        if self.take(","):
            return not self.take(closer)
        self.close(closer, opener)
        return False

    def enter(self) -> None:
        """Goes one level deeper; the level is left by `depth -= 1`, or by a failure."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(syntax_errors.nested_too_deeply(self.token_span(self.position), MAX_DEPTH))

    # ---------------------------------------------------------------- errors

    def report(self, diagnostic: Diagnostic) -> None:
        """Records an error, unless something was already wrong in the same line."""
        line = diagnostic.span.line
        if line not in self.wrong_lines:
            self.wrong_lines.add(line)
            self.diagnostics.append(diagnostic)

    def fail(self, diagnostic: Diagnostic) -> NoReturn:
        raise Failure(diagnostic)

    def found(self) -> str:
        """The next token, in words."""
        kind = self.kinds[self.position]
        if kind == "eof" or (kind == "end" and self.kinds[self.position + 1] == "eof"):
            return "the end of the file"
        if kind == "end":
            return "the end of the declaration"
        if kind == "in" and self.starts[self.position] == self.ends[self.position]:
            return "a new line"
        if kind == "string":
            return "a string"
        return f"`{self.token_text(self.position)}`"

    def is_foreign(self, index: int) -> bool:
        return index >= 0 and self.kinds[index] == "name" and self.token_text(index) in _FOREIGN

    def no_name(self, wanted: str) -> NoReturn:
        if self.kinds[self.position] in RESERVED and self.token_text(self.position):
            self.fail(syntax_errors.keyword_as_name(self.token_span(self.position), wanted))
        self.unexpected(wanted)

    def unclosed(self, closer: str, opener: int) -> NoReturn:
        """The next token is not the closer that it should be: one of two brackets is wrong, or something between."""
        kind = self.kinds[self.position]
        if kind in ("end", "eof", "in", "let") or (kind in CLOSERS and kind != closer):
            here = self.token_span(self.position)
            self.fail(syntax_errors.unclosed_bracket(self.token_span(opener), here, closer, self.found()))
        opened = Label(self.token_span(opener), "inside this")
        self.unexpected(f"`,` or `{closer}`", after=opened)

    def meant_let(self, index: int) -> tuple[Help, ...]:
        """The help for a name that begins a line and stands before `=`."""
        if index < 0 or self.kinds[index] != "name" or not self.columns[index]:
            return ()
        at = self.token_span(index)
        return (Help("to give a name to a value, write `let`", (Edit(Span(at.source, at.start, at.start), "let "),)),)

    def unexpected(self, wanted: str, *, after: Label | None = None, help: list[Help] | None = None) -> NoReturn:
        """The next token is not what the grammar wants: the most telling error for it."""
        kind, span = self.kinds[self.position], self.token_span(self.position)
        if not help:
            for index in range(self.position, self.position - 3, -1):
                if self.is_foreign(index):
                    self.fail(syntax_errors.foreign_word(self.token_span(index), _FOREIGN[self.token_text(index)]))
            if kind == "=":
                before = self.token_span(self.position - 2) if self.position > 1 else span
                meant = syntax_errors.meant_keyword(before, ("let",)) or self.meant_let(self.position - 1)
                self.fail(syntax_errors.equals_as_comparison(span, meant))
            if kind in CLOSERS and span.start in self.strays:
                self.fail(syntax_errors.stray_closer(span))
            if kind == "match":
                self.fail(syntax_errors.keyword_as_name(span, wanted))
            if kind in _AS_ARGUMENT:
                help = [Help(f"as an argument or an operand it needs parentheses: `({kind} ...)`")]
        self.fail(syntax_errors.expected(span, wanted, self.found(), after=after, help=help or ()))
