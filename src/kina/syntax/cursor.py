"""The parser's place among the tokens: looking, taking, layout, and what was wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kina.diagnostics import Diagnostic, syntax_errors
from kina.diagnostics.diagnostic import Help
from kina.source import Source, Span
from kina.syntax.lexer import KEYWORDS, Token, lex

MOST_LEVELS = 200
"""How deep expressions may nest: every later stage walks them recursively."""

_RECURSION_LIMIT = 12_000
_END = Token("end", "", 0, 0, True, 0)


class ParseError(Exception):
    """Raised once the error is recorded; caught where parsing can go on."""


@contextmanager
def room_for_nesting() -> Iterator[None]:
    """Lets Python recurse as deep as `MOST_LEVELS` needs, in any stage."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Cursor:
    """Tokens with a position.

    `limit` is the layout rule: a token that starts its line at or left of this column ends what is being
    parsed, so it reads as the end there. `equality` says whether `=` is an operator here (in propositions).
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        lexed = lex(source)
        self.tokens = lexed.tokens
        self.comments = lexed.comments
        self.diagnostics: list[Diagnostic] = lexed.diagnostics
        self.position = 0
        self.limit = 0
        self.equality = False
        self.level = 0
        self._opened: list[Token] = []

    # ------------------------------------------------------------ looking

    @property
    def token(self) -> Token:
        """The current token, or the end where layout ends what is being parsed."""
        token = self.tokens[self.position]
        return _END if token.column <= self.limit else token

    @property
    def kind(self) -> str:
        token = self.tokens[self.position]
        return "end" if token.column <= self.limit else token.kind

    @property
    def start(self) -> int:
        """Where the current token begins, layout aside."""
        return self.tokens[self.position].start

    def following(self, count: int = 1) -> str:
        """The kind of a token further on."""
        return self.tokens[min(self.position + count, len(self.tokens) - 1)].kind

    def is_word(self, word: str) -> bool:
        """Whether the current token is this name, which is a keyword only here."""
        token = self.token
        return token.kind == "name" and token.text == word

    # ------------------------------------------------------------ taking

    def next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.position += 1
        return token

    def accept(self, kind: str) -> bool:
        """Takes the current token if it is of this kind."""
        if self.kind != kind:
            return False
        self.position += 1
        return True

    def expect(self, kind: str, wanted: str | None = None, help: Help | None = None) -> Token:
        """Takes a token of this kind, or raises ParseError."""
        if self.kind != kind:
            raise self.error(wanted or f"`{kind}`", help)
        return self.next()

    def name(self, wanted: str = "a name") -> Token:
        token = self.token
        if token.kind in KEYWORDS and token.kind not in ("in", "then", "else", "do", "with", "yield", "let"):
            self.diagnostics.append(syntax_errors.keyword_as_name(self.span_of(token), token.text))
            raise ParseError
        return self.expect("name", wanted)

    @contextmanager
    def bracket(self, opening: str, closing: str, equality: bool) -> Iterator[Token]:
        """What stands between two brackets; a missing second one points at the first."""
        token = self.expect(opening)
        self._opened.append(token)
        kept, self.equality = self.equality, equality
        yield token
        self.equality = kept
        if self.kind != closing:
            self.diagnostics.append(
                syntax_errors.expected(
                    self.here(), f"`{closing}`", self.found(), opened=self.span_of(token), help=self._advice()
                )
            )
            raise ParseError
        self._opened.pop()
        self.next()

    @contextmanager
    def nested(self) -> Iterator[None]:
        """One level deeper; too deep is an error."""
        self.level += 1
        self.check_level(self.level)
        try:
            yield
        finally:
            self.level -= 1

    def check_level(self, level: int) -> None:
        if level > MOST_LEVELS:
            self.diagnostics.append(syntax_errors.nested_too_deeply(self.here(), MOST_LEVELS))
            raise ParseError

    # ------------------------------------------------------------ places and errors

    def span(self, start: int) -> Span:
        """From an offset to the end of the last token taken."""
        return Span(self.source, start, max(start, self.tokens[self.position - 1].end if self.position else start))

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def here(self) -> Span:
        """The current token; at the end of a line's code, the place right after it."""
        token = self.tokens[self.position]
        if self.kind == "end" and self.position:
            end = self.tokens[self.position - 1].end
            return Span(self.source, end, end)
        return self.span_of(token)

    def found(self) -> str:
        token = self.token
        if token.kind == "end":
            return "the end of the file" if self.tokens[self.position].kind == "end" else "the end of the expression"
        return f"`{token.text}`"

    def error(self, wanted: str, help: Help | None = None) -> ParseError:
        """Records what was wanted and found; to be raised."""
        self.diagnostics.append(
            syntax_errors.expected(self.here(), wanted, self.found(), help=help or self._advice())
        )
        return ParseError()

    def _advice(self) -> Help | None:
        """Advice for habits of other languages."""
        before = self.tokens[self.position - 1] if self.position else _END
        token = self.token
        if token.kind == "*" and before.kind == "*" and not token.spaced:
            return Help("powers are written with ^")
        if token.kind == "=" and not self.equality:
            return Help("a comparison of values is written ==")
        if token.kind == "name" and token.text in ("def", "fn", "lambda", "return", "where", "and", "or"):
            other = {
                "def": "let", "fn": "let", "lambda": "fun x -> ...", "and": "&&", "or": "||",
                "return": "nothing: the last expression is the result", "where": "requires",
            }[token.text]  # fmt: skip
            return Help(f"instead of `{token.text}`, Kina has {other}")
        return None

    # ------------------------------------------------------------ going on after an error

    def skip_to_column(self, column: int) -> None:
        """Passes over tokens up to one that starts its line at or left of a column."""
        self._opened.clear()
        while self.tokens[self.position].kind != "end" and self.tokens[self.position].column > column:
            self.position += 1
