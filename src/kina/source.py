"""Source files and places in them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


@dataclass(frozen=True, eq=False)
class Source:
    """A file's text under the name that messages show for it, and the folder where its imports are looked for."""

    name: str
    text: str
    folder: str | None = None

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset of the first character of each line."""
        return (0, *(i + 1 for i, c in enumerate(self.text) if c == "\n"))

    def line_of(self, offset: int) -> int:
        """The 1-based line that holds `offset`."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line break."""
        start = self.line_starts[line - 1]
        end = self.line_starts[line] - 1 if line < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


class Span(NamedTuple):
    """The half-open range `[start, end)` of characters in a source. Lines and columns are 1-based.

    A tuple, since every node of every tree has one, and a tuple is made in half the time.
    """

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.line_of(self.start)

    @property
    def column(self) -> int:
        return self.start - self.source.line_starts[self.line - 1] + 1

    @property
    def end_line(self) -> int:
        return self.source.line_of(max(self.start, self.end - 1)) if self.end > self.start else self.line

    @property
    def end_column(self) -> int:
        """One past the last column."""
        return self.end - self.source.line_starts[self.end_line - 1] + 1

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"
