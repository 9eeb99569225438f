"""From text to tokens: one compiled pattern, and a slow road for whatever it does not like.

Tokens are kept as parallel lists, since the parser looks at kinds far more often than at places.
A token's kind is its own text for keywords, operators and brackets, and one of `name`, `number`,
`string`, `hole`, `projection` for the rest. Lexing never stops: what cannot be read is reported,
and replaced by what was probably meant, or left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kina.diagnostics import Diagnostic, syntax_errors
from kina.source import Source, Span
from kina.syntax.literals import bad_escapes, number_problem

KEYWORDS = frozenset({
    "let", "in", "dim", "requires", "if", "then", "else", "for", "while", "do", "with", "yield", "fun", "type",
    "import", "test", "exists", "match", "true", "false",
})  # fmt: skip
WORD_OPERATORS = frozenset({"not", "mod", "div", "divides"})
RESERVED = KEYWORDS | WORD_OPERATORS
_KIND_OF_WORD = {word: word for word in RESERVED}

_TOKEN = re.compile(
    r"""[ \t\r\f\v]*(?:
      ((?:[A-Za-z_]|[^\x00-\x7f])(?:[A-Za-z0-9_']|[^\x00-\x7f])*)         # 1 word
    | (\n)                                                                # 2 line break
    | (//[^\n]*)                                                          # 3 line comment
    | (\.\.\.|->|\|>|\|\||&&|==|!=|<=|>=|:=                               # 4 operator or bracket
      |/(?!\*)|[\[\](){},:<>+@^!-]|=(?!>)|\*(?!\*)|\.(?![0-9]))
    | ((?:0[xX][0-9a-fA-F_]+
      |[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?)               # 5 number, with what sticks to it
      (?:[A-Za-z0-9_']|\.(?!\.))*)
    | ("(?:[^"\\\n]|\\[^\n])*")                                           # 6 string
    | (\?[A-Za-z_][A-Za-z0-9_']*)                                         # 7 named hole
    | (\.[0-9][A-Za-z0-9_']*)                                             # 8 projection
    | (/\*)                                                               # 9 block comment
    | (\Z)                                                                # 10 end
    | (.)                                                                 # 11 anything else
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD, _LINE, _COMMENT, _OPERATOR, _NUMBER, _STRING, _HOLE, _PROJECTION, _BLOCK, _END, _OTHER = range(1, 12)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_BYTE_ORDER_MARK = "\ufeff"

_MEANT = {
    "**": "^", "=>": "->", "×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "≤": "<=", "≥": ">=",
    "≠": "!=", "→": "->", "∧": "&&", "∨": "||", "¬": "not", "…": "...", "%": "mod", "&": "&&", "|": "||", "∃": "exists",
    "\\": "fun",
}  # fmt: skip
"""What is not Kina, and the token that goes on in its place."""


@dataclass(slots=True)
class Tokens:
    """`columns` holds the column of a token that starts a line, and 0 for any other.

    The last token is `eof`. Comments are ranges of offsets, in order. `strays` are where closing brackets
    stand that close nothing.
    """

    source: Source
    kinds: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    strays: set[int] = field(default_factory=set)

    def add(self, kind: str, start: int, end: int, column: int) -> None:
        self.kinds.append(kind)
        self.starts.append(start)
        self.ends.append(end)
        self.columns.append(column)

    def report(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)


def lex(source: Source) -> Tokens:
    """All tokens of a source, ending in `eof`. What is wrong with it is in `diagnostics`."""
    text = source.text
    tokens = Tokens(source)
    kinds, starts, ends, columns = tokens.kinds, tokens.starts, tokens.ends, tokens.columns
    position = line_start = 1 if text.startswith(_BYTE_ORDER_MARK) else 0
    fresh = True  # no token yet in this line
    while position >= 0:
        for match in _TOKEN.finditer(text, position):
            group = match.lastindex
            if group == _LINE:
                line_start = match.end()
                fresh = True
                continue
            assert group is not None
            start, end = match.span(group)
            if group == _WORD:
                word = match[group]
                kind = _KIND_OF_WORD.get(word, "name")
                if kind != "name" and _is_member(tokens, kind, start):
                    kind = "name"
                elif not (word.isascii() or word.replace("'", "_").isidentifier()):
                    count = len(kinds)
                    _mixed_word(tokens, start, end, start - line_start + 1 if fresh else 0)
                    fresh = fresh and len(kinds) == count
                    continue
            elif group == _OPERATOR:
                kind = match[group]
            elif group == _COMMENT:
                tokens.comments.append((start, end))
                continue
            elif group == _BLOCK:
                position = _block_comment(tokens, start)
                if (last := text.rfind("\n", start, position)) >= 0:
                    line_start = last + 1
                    fresh = True
                break
            elif group == _END:
                position = -1
                break
            elif group == _OTHER:
                count = len(kinds)
                position = _strange(tokens, start, start - line_start + 1 if fresh else 0)
                fresh = fresh and len(kinds) == count
                break
            else:
                kind = _checked(tokens, group, start, end)
            kinds.append(kind)
            starts.append(start)
            ends.append(end)
            columns.append(start - line_start + 1 if fresh else 0)
            fresh = False
    tokens.add("eof", len(text), len(text), 1)
    return tokens


def _is_member(tokens: Tokens, word: str, start: int) -> bool:
    """Whether a word touches a point after a value: then it is a name even if it is a keyword (`std.test`).

    `exists [n].exists [m]. T` is the one place where a keyword follows so.
    """
    kinds, starts, ends = tokens.kinds, tokens.starts, tokens.ends
    return (
        len(kinds) > 1
        and kinds[-1] == "."
        and ends[-1] == start
        and ends[-2] == starts[-1]
        and kinds[-2] in ("name", "projection", ")", "]", "}")
        and word != "exists"
    )


def _mixed_word(tokens: Tokens, start: int, end: int, column: int) -> None:
    """Reads a word in which there are characters that no name has: names, and what stands between them."""
    text = tokens.source.text
    while start < end:
        length = 0
        while start + length < end and _continues_name(text[start + length], length):
            length += 1
        count = len(tokens.kinds)
        if length:
            tokens.add("name", start, start + length, column)
            start += length
        else:
            start = _strange(tokens, start, column)
        if len(tokens.kinds) > count:
            column = 0


def _continues_name(c: str, length: int) -> bool:
    return ("a" + c).isidentifier() or c == "'" if length else c.isidentifier()


def _checked(tokens: Tokens, group: int, start: int, end: int) -> str:
    """The kind of a literal, a hole or a projection, after a look at what is in it."""
    text = tokens.source.text[start:end]
    span = Span(tokens.source, start, end)
    if group == _NUMBER:
        if not (text.isdecimal() and len(text) < 20) and (problem := number_problem(text)):
            tokens.report(syntax_errors.malformed_number(span, problem))
        return "number"
    if group == _STRING:
        for first, last in bad_escapes(text):
            tokens.report(syntax_errors.unknown_escape(Span(tokens.source, start + first, start + last)))
        return "string"
    if group == _HOLE:
        return "hole"
    if not text[1:].isdecimal() or len(text) > 9:
        tokens.report(syntax_errors.malformed_number(span, "a tuple's item is `.` and a number, as in `pair.0`"))
    return "projection"


def _block_comment(tokens: Tokens, start: int) -> int:
    """Where a nested `/* */` ends."""
    text = tokens.source.text
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            tokens.comments.append((start, edge.end()))
            return edge.end()
    tokens.report(syntax_errors.unterminated_comment(Span(tokens.source, start, start + 2)))
    tokens.comments.append((start, len(text)))
    return len(text)


def _strange(tokens: Tokens, start: int, column: int) -> int:
    """Reports what no token begins with, puts what was meant in its place, and says where to go on."""
    source, text = tokens.source, tokens.source.text
    found = text[start]
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    if found == '"':
        tokens.report(syntax_errors.unterminated_string(Span(source, start, line_end)))
        tokens.add("string", start, line_end, column)
        return line_end
    if found == "#":
        tokens.report(syntax_errors.unexpected_character(Span(source, start, start + 1)))
        return line_end
    if text.startswith(("**", "=>"), start):
        found = text[start : start + 2]
    end = start + len(found)
    if found in _MEANT:
        tokens.report(syntax_errors.unexpected_character(Span(source, start, end), _MEANT[found]))
        tokens.add(_MEANT[found], start, end, column)
        return end
    last = tokens.diagnostics[-1] if tokens.diagnostics else None
    if last is not None and last.code == "K0101" and last.span.end == start and not last.help:
        tokens.diagnostics.pop()  # a run of strange characters is one error
        start = last.span.start
    tokens.report(syntax_errors.unexpected_character(Span(source, start, end)))
    return end
