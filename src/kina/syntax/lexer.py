"""Text -> tokens. (Provisional.)"""
from __future__ import annotations

import re
from dataclasses import dataclass

from kina.source import Source

FAR = 10**9
KEYWORDS = frozenset(["let", "in", "dim", "requires", "if", "then", "else", "for", "while", "do", "with", "yield", "fun", "type", "import", "test", "exists", "match", "true", "false", "mod", "div", "divides", "not"])
_TOKEN = re.compile(r"""
  (?P<space>[ \t\r\f\v\ufeff]+)|(?P<newline>\n)|(?P<doc>///[^\n]*)|(?P<comment>//[^\n]*)|(?P<block>/\*)
 |(?P<number>0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)
 |(?P<name>[^\W\d][\w']*)|(?P<string>"(?:[^"\\\n]|\\.)*")
 |(?P<symbol>\.\.\.|\|>|\|\||&&|==|!=|<=|>=|->|:=|[-+*/@^=<>()\[\]{},:.?!|])
 |(?P<bad>.)""", re.X | re.S)

@dataclass(slots=True)
class Token:
    kind: str
    text: str
    start: int
    end: int
    spaced: bool
    column: int  # of the first token of a line, else FAR

def lex(source: Source) -> tuple[list[Token], list[tuple[int, int, str]], list[tuple[int, int, str]]]:
    text, at, out, comments, errors = source.text, 0, [], [], []
    line_start, first, spaced = 0, True, True
    docs: list[str] = []
    while at < len(text):
        m = _TOKEN.match(text, at)
        assert m is not None
        kind, piece, end = m.lastgroup, m.group(), m.end()
        if kind == "space":
            spaced = True
        elif kind == "newline":
            line_start, first, spaced = end, True, True
        elif kind in ("doc", "comment"):
            comments.append((at, end, piece)); spaced = True
        elif kind == "block":
            depth, end = 1, at + 2
            while depth and end < len(text):
                if text.startswith("/*", end): depth += 1; end += 2
                elif text.startswith("*/", end): depth -= 1; end += 2
                else: end += 1
            if depth: errors.append((at, at + 2, "this comment is never closed"))
            comments.append((at, end, text[at:end])); spaced = True
            nl = text.rfind("\n", at, end)
            if nl >= 0: line_start, first = nl + 1, True
        elif kind == "bad":
            errors.append((at, end, f"unexpected character {piece!r}"))
        else:
            if kind == "number" and out and out[-1].text == "." and not spaced:
                end = at + len(re.match(r"\d+", piece).group()); piece = text[at:end]
            kind = "keyword" if kind == "name" and piece in KEYWORDS else piece if kind == "symbol" else kind
            if kind == "keyword": kind = piece
            out.append(Token(kind, piece, at, end, spaced, at - line_start + 1 if first else FAR))
            first = spaced = False
        at = end
    out.append(Token("end", "", len(text), len(text), True, 0))
    return out, comments, errors
