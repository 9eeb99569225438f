"""Text -> tokens. Never fails: what is no token is reported and passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kina.diagnostics import Diagnostic, syntax_errors
from kina.source import Source, Span

KEYWORDS = frozenset(
    {
        *("let", "in", "dim", "requires", "if", "then", "else", "for", "while", "do", "with", "yield", "fun", "type"),
        *("import", "test", "exists", "match", "true", "false", "not", "mod", "div", "divides"),
    }
)
"""Words that are no names. The last four are operators."""

FAR = 1 << 30
"""The column of a token that is not the first of its line: right of everything."""


@dataclass(slots=True)
class Token:
    """`kind` is "name", "number", "string", "end", or the keyword or symbol itself.

    `column` is the 1-based column if the token is the first of its line, else `FAR`; `spaced` says whether white
    space stands before it.
    """

    kind: str
    text: str
    start: int
    end: int
    spaced: bool
    column: int


@dataclass(frozen=True, slots=True)
class Lexed:
    """The tokens with an "end" token last, the comments in order, and what was wrong."""

    tokens: list[Token]
    comments: list[Span]
    diagnostics: list[Diagnostic]


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v\u00a0\ufeff]+)
      | (?P<newline>\n)
      | (?P<name>[^\W\d][\w']*)
      | (?P<number>\d(?:[\w]|\.(?=\d)|(?<=[eE])[+-](?=\d))*)
      | (?P<comment>//[^\n]*)
      | (?P<block>/\*)
      | (?P<symbol>\.\.\.|\|>|\|\||&&|==|!=|<=|>=|->|:=|[-+*/@^=<>()\[\]{},:.?!])
      | (?P<string>"(?:[^"\\\n]|\\.)*"?)""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F](?:_?[0-9a-fA-F])*|\d(?:_?\d)*(?:\.\d(?:_?\d)*)?(?:[eE][+-]?\d+)?")
_DIGITS = re.compile(r"\d+")
_BLOCK_MARK = re.compile(r"/\*|\*/")


def lex(source: Source) -> Lexed:
    """All tokens of a source."""
    return _Lexer(source).run()


class _Lexer:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.tokens: list[Token] = []
        self.comments: list[Span] = []
        self.diagnostics: list[Diagnostic] = []

    def run(self) -> Lexed:
        text, tokens = self.text, self.tokens
        match_at = _TOKEN.match
        at, line_start, first, spaced = 0, 0, True, True
        end_of_text = len(text)
        while at < end_of_text:
            found = match_at(text, at)
            kind = found.lastgroup if found else "bad"
            end = found.end() if found else at + 1
            if kind == "space":
                spaced = True
            elif kind == "newline":
                line_start, first, spaced = end, True, True
            elif kind == "comment":
                self.comments.append(self._span(at, end))
                spaced = True
            elif kind == "block":
                end = self._block_end(at)
                self.comments.append(self._span(at, end))
                broken = text.rfind("\n", at, end)
                if broken >= 0:
                    line_start, first = broken + 1, True
                spaced = True
            elif kind == "bad":
                end = self._bad(at)
                spaced = True
            else:
                word, end = self._word(kind or "", at, end, spaced)
                token_kind = word if kind == "symbol" or (kind == "name" and word in KEYWORDS) else kind or ""
                tokens.append(Token(token_kind, word, at, end, spaced, at - line_start + 1 if first else FAR))
                first = spaced = False
            at = end
        tokens.append(Token("end", "", end_of_text, end_of_text, True, 0))
        return Lexed(tokens, self.comments, self.diagnostics)

    def _word(self, kind: str, at: int, end: int, spaced: bool) -> tuple[str, int]:
        """A token's text and end: numbers and strings are looked at more closely."""
        if kind == "number":
            after_dot = bool(self.tokens) and self.tokens[-1].kind == "." and not spaced
            exact = (_DIGITS if after_dot else _NUMBER).match(self.text, at)
            if after_dot and exact:  # e.0.1 takes apart a tuple in a tuple: no fraction here
                end = exact.end()
            elif exact is None or exact.end() != end:
                self.diagnostics.append(syntax_errors.malformed_number(self._span(at, end)))
                return "0", end
        elif kind == "string":
            self._check_string(at, end)
        return self.text[at:end], end

    def _check_string(self, at: int, end: int) -> None:
        body = self.text[at:end]
        if len(body) < 2 or not body.endswith('"') or (body.endswith('\\"') and not _closed(body)):
            self.diagnostics.append(syntax_errors.never_closed(self._span(at, end), "string"))
        for place, _ in _bad_escapes(body):
            self.diagnostics.append(syntax_errors.bad_escape(self._span(at + place, at + place + 2)))

    def _block_end(self, at: int) -> int:
        """The end of a comment that may hold others."""
        depth, position = 1, at + 2
        while depth:
            mark = _BLOCK_MARK.search(self.text, position)
            if mark is None:
                self.diagnostics.append(syntax_errors.never_closed(self._span(at, at + 2), "comment"))
                return len(self.text)
            depth += 1 if mark.group() == "/*" else -1
            position = mark.end()
        return position

    def _bad(self, at: int) -> int:
        """The end of a run of characters that begin no token: one error for the run."""
        end = at + 1
        while end < len(self.text) and _TOKEN.match(self.text, end) is None:
            end += 1
        self.diagnostics.append(syntax_errors.unexpected_character(self._span(at, end)))
        return end

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "0": "\0"}


def _closed(body: str) -> bool:
    """Whether the quote at the end is not itself escaped."""
    slashes = len(body) - 1 - len(body[:-1].rstrip("\\"))
    return slashes % 2 == 0


def _bad_escapes(body: str) -> Iterator[tuple[int, str]]:
    at = body.find("\\")
    while at >= 0:
        mark = body[at + 1 : at + 2]
        if mark and mark not in _ESCAPES:
            yield at, mark
        at = body.find("\\", at + 2)


def string_value(text: str) -> str:
    """What a string literal says; unknown escapes stand for themselves (they were reported)."""
    body = text[1:-1] if len(text) >= 2 and text.endswith('"') else text[1:]
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), body)


def string_text(value: str) -> str:
    """A string as a literal."""
    escaped = {v: f"\\{k}" for k, v in _ESCAPES.items()}
    return '"' + "".join(escaped.get(c, c) for c in value) + '"'


def number_value(text: str) -> int | float:
    """The value of a well-formed number literal; too large a float is infinite, which later stages refuse."""
    digits = text.replace("_", "")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if any(c in digits for c in ".eE"):
        return float(digits)
    return int(digits) if len(digits) < 4000 else float("inf")
