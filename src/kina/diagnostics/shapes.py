"""Shapes lined up under each other, axis by axis, with the axes that differ marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A shape under a label ("x is", "it got"); `marks` are the axes to underline."""

    label: str
    shape: Sequence[object]
    marks: Set[int] = frozenset()


def line_up(rows: Sequence[Row], from_right: bool = True) -> str:
    """The rows as lines of text, columns aligned at the right end, as broadcasting lays shapes.

    >>> print(line_up([Row("x", ["B", "S", "D"]), Row("w", ["H"], {0})]))
    x  [B, S, D]
    w        [H]
              ‾
    """
    gutter = max(len(row.label) for row in rows) + 3
    rank = max(len(row.shape) for row in rows)
    cells = [_placed(row, rank, from_right) for row in rows]
    widths = [max((len(row[c]) for row in cells if c in row), default=0) for c in range(rank)]
    starts = [gutter + sum(widths[:c]) + 2 * c for c in range(rank + 1)]
    return "\n".join(
        line for row, placed in zip(rows, cells, strict=True) for line in _lines(row, placed, starts, from_right)
    )


def _placed(row: Row, rank: int, from_right: bool) -> dict[int, str]:
    """The text of each size by its column."""
    offset = rank - len(row.shape) if from_right else 0
    return {offset + n: str(size) for n, size in enumerate(row.shape)}


def _lines(row: Row, placed: dict[int, str], starts: Sequence[int], from_right: bool) -> Iterator[str]:
    """A row's text, and under it the line of marks if it has any."""
    first = min(placed, default=len(starts) - 1 if from_right else 0)
    text = row.label.ljust(max(starts[first] - 1, 0)) + "["
    marks = ""
    for n, (column, size) in enumerate(placed.items()):
        text = text.ljust(starts[column]) + size + ("," if n < len(placed) - 1 else "")
        if n in row.marks:
            marks = marks.ljust(starts[column]) + "‾" * len(size)
    yield text + "]"
    if marks:
        yield marks
