"""Lines of formatted text, and the comments of the source put back between them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import groupby

from kina.source import Source
from kina.syntax import ast

WIDTH = 100
_BLANKS = " \t\r\f\v\ufeff"


@dataclass(slots=True)
class Line:
    """Code, or a comment that has the line for itself; `trailing` are the comments after code."""

    text: str
    trailing: list[str] = field(default_factory=list)
    is_comment: bool = False


class Lines:
    """What has been written so far. Comments wait in order until a line breaks after their place."""

    def __init__(self, source: Source, comments: tuple[ast.Comment, ...]) -> None:
        self.source = source
        self.done: list[Line] = []
        self.current = ""
        self.waiting = deque(comments)

    # ---------------------------------------------------------------- writing

    @property
    def column(self) -> int:
        """Where the next character goes, from 0."""
        return len(self.current)

    def write(self, text: str) -> None:
        self.current += text

    def fits(self, text: str, tail: int = 0) -> bool:
        """Whether `text` and `tail` more characters fit into the line."""
        return self.column + len(text) + tail <= WIDTH

    def newline(self, indent: int, before: int, *, keep_blank: bool = False) -> None:
        """Ends the line, writes the comments that stand before an offset of the source, and begins a line.

        `keep_blank` keeps one blank line where the source has some.
        """
        self.finish()
        self.comments_before(before, indent, keep_blank=keep_blank)
        if keep_blank and self.blank_before(before):
            self.blank()
        self.current = " " * indent

    def finish(self) -> None:
        if self.current.strip():
            self.done.append(Line(self.current.rstrip()))
        self.current = ""

    def blank(self) -> None:
        if self.done and self.done[-1].text:
            self.done.append(Line(""))

    # ---------------------------------------------------------------- comments

    def holds_comment(self, end: int) -> bool:
        """Whether a comment that still waits stands before an offset."""
        return bool(self.waiting) and self.waiting[0].span.start < end

    def comments_before(self, offset: int, indent: int, *, keep_blank: bool = False) -> None:
        """Between two lines: writes the comments before an offset, those after code to the line before."""
        while self.holds_comment(offset):
            comment = self.waiting.popleft()
            if not self.attach(comment):
                if keep_blank and self.blank_before(comment.span.start):
                    self.blank()
                self.done.append(Line(" " * indent + comment.text, is_comment=True))

    def attach(self, comment: ast.Comment) -> bool:
        """Puts a comment that followed code after the last line, if there is room for it."""
        last = self.done[-1] if self.done else None
        if last is None or last.is_comment or not last.text or "\n" in comment.text:
            return False
        if not self.follows_code(comment.span.start) or (last.trailing and last.trailing[-1].startswith("//")):
            return False
        last.trailing.append(comment.text)
        return True

    def follows_code(self, offset: int) -> bool:
        line_start = self.source.text.rfind("\n", 0, offset) + 1
        return bool(self.source.text[line_start:offset].strip(_BLANKS))

    def blank_before(self, offset: int) -> bool:
        """Whether the source has a blank line before an offset."""
        text = self.source.text
        start = offset
        while start > 0 and text[start - 1] in " \t\r\f\v\n":
            start -= 1
        return text.count("\n", start, offset) > 1

    # ---------------------------------------------------------------- the end

    def text(self) -> str:
        """All lines; comments after code stand in one column within a paragraph."""
        lines: list[str] = []
        for is_blank, group in groupby(self.done, key=lambda line: not line.text):
            if is_blank:
                lines.append("")
                continue
            paragraph = list(group)
            column = max((len(x.text) for x in paragraph if x.trailing and len(x.text) <= _FAR), default=0)
            lines += [f"{x.text:<{column}}  {' '.join(x.trailing)}" if x.trailing else x.text for x in paragraph]
        return "\n".join(lines).rstrip("\n") + "\n" if lines else ""


_FAR = 72
"""Code that reaches further has its comment right after it and does not push those of other lines out."""
