"""Findings as text for people: the source with the place marked, what is known, what would help.

error[K0301]: shapes do not match
  ┌─ attention.kina:14:23
  │
14│   let scores = matmul q k in
  │                ^^^^^^^^^^ K would have to be both D_h and S
  = they differ for S = 2, D_h = 1
help: transpose the last two axes of k
14│   let scores = matmul q (transpose k [0, 1, 3, 2]) in
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Severity
from kina.source import Source, Span

_TAB = 4
_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_MOST_LINES = 6
"""A span over more lines is shown by its first and last ones."""
_LEAST_ROOM = 40


@dataclass(frozen=True, slots=True)
class _Paint:
    """ANSI colours, or none."""

    on: bool

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text


@dataclass(frozen=True, slots=True)
class _Mark:
    """A stretch of one line to underline: display columns, sign, and the words at its end."""

    start: int
    end: int
    sign: str
    text: str


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, width: int = 100) -> str:
    """All findings, one after the other, ready to print.

    Of a source line longer than `width` the part around its marks is shown; messages are left whole.
    """
    paint = _Paint(color)
    return "\n".join("\n".join(_one(d, paint, width)) + "\n" for d in diagnostics)


def _one(d: Diagnostic, paint: _Paint, width: int) -> Iterator[str]:
    colour = _COLOURS[d.severity]
    yield paint(f"1;{colour}", f"{d.severity.value}[{d.code}]") + paint("1", f": {d.message}")
    lines = _marked_lines(d)
    gutter = max(2, len(str(max(lines, default=1))))
    bar = " " * gutter
    yield paint("34", f"{bar}┌─") + f" {d.span.source.name}:{d.span.line}:{d.span.column}"
    previous = None
    for number in sorted(lines):
        if previous is not None and number > previous + 1:
            yield paint("34", f"{'·' * gutter}│")
        previous = number
        text, marks = _cropped(_shown(d.span.source.line_text(number)), lines[number], width - gutter - 2)
        yield paint("34", f"{number:>{gutter}}│") + f" {text}".rstrip()
        for mark_line in _underlines(marks, paint, colour):
            yield paint("34", f"{bar}│") + f" {mark_line}"
    for note in d.notes:
        first, *rest = note.split("\n")
        yield paint("34", f"{bar}=") + f" {first}"
        yield from (f"{bar}  {line}" for line in rest)
    for advice in d.help:
        yield from _help(advice, gutter, paint)


# ---------------------------------------------------------------- the marked source


def _marked_lines(d: Diagnostic) -> dict[int, list[_Mark]]:
    """The marks of each line to show, by line number: secondary labels first, so that the main one stands last."""
    lines: dict[int, list[_Mark]] = {}
    for label in d.labels:
        if label.span.source is d.span.source and label.span != d.span:
            _mark(lines, label.span, "-", label.text)
    _mark(lines, d.span, "^", d.label)
    return lines


def _mark(lines: dict[int, list[_Mark]], span: Span, sign: str, text: str) -> None:
    source = span.source
    numbers = list(range(span.line, span.end_line + 1))
    if len(numbers) > _MOST_LINES:
        numbers = [*numbers[:2], numbers[-1]]
    for number in numbers:
        content = source.line_text(number)
        start = span.column - 1 if number == span.line else len(content) - len(content.lstrip())
        end = span.end_column - 1 if number == span.end_line else len(content)
        left = _width(content[:start])
        right = max(_width(content[:end]), left + 1)
        words = text if number == numbers[-1] else ""
        lines.setdefault(number, []).append(_Mark(left, right, sign, words))


def _cropped(text: str, marks: list[_Mark], room: int) -> tuple[str, list[_Mark]]:
    """A line and its marks, cut to `room` columns around the first mark where the line is longer."""
    room = max(room, _LEAST_ROOM)
    if _width(text) <= room:
        return text, marks
    first = min(mark.start for mark in marks)
    left = 0 if max(mark.end for mark in marks) < room else max(0, first - room // 4)
    cut, column = "", 0
    for c in text:
        if left <= column < left + room - 2:
            cut += c
        column += _columns(c)
    before = "…" if left else ""
    after = "…" if column > left + room - 2 else ""
    shift = left - len(before)
    moved = [
        _Mark(m.start - shift, min(m.end - shift, room + 1), m.sign, m.text) for m in marks if m.start < left + room
    ]
    return before + cut + after, [_Mark(m.start, max(m.end, m.start + 1), m.sign, m.text) for m in moved]


def _underlines(marks: Iterable[_Mark], paint: _Paint, colour: str) -> Iterator[str]:
    """One line a mark, the main one (`^`) first."""
    for mark in sorted(marks, key=lambda m: (m.sign != "^", m.start)):
        text = f"{mark.sign * (mark.end - mark.start)} {mark.text}".rstrip()
        yield " " * mark.start + paint(colour if mark.sign == "^" else "34", text)


def _shown(text: str) -> str:
    """A line with tabs as spaces, and what would disturb a terminal as `�`."""
    return "".join(" " * _TAB if c == "\t" else c if c.isprintable() else "\ufffd" for c in text)


def _width(text: str) -> int:
    """Columns that a text takes on a terminal: wide characters take two, combining ones none."""
    return sum(_columns(c) for c in text)


def _columns(c: str) -> int:
    if c == "\t":
        return _TAB
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


# ---------------------------------------------------------------- help


def _help(advice: Help, gutter: int, paint: _Paint) -> Iterator[str]:
    yield paint("1;32", "help") + f": {advice.message}"
    if advice.edits:
        source = advice.edits[0].span.source
        for number in sorted({e.span.line for e in advice.edits}):
            edited = _edited_line(source, number, advice.edits)
            for after, line in enumerate(edited.split("\n")):
                yield paint("34", f"{number + after:>{gutter}}│") + " " + paint("32", _shown(line))


def _edited_line(source: Source, number: int, edits: Sequence[Edit]) -> str:
    """A line after the edits that begin in it."""
    line_start = source.line_starts[number - 1]
    text = source.line_text(number)
    for edit in sorted((e for e in edits if e.span.line == number), key=lambda e: -e.span.start):
        start, end = edit.span.start - line_start, min(edit.span.end - line_start, len(text))
        text = text[:start] + edit.text + text[end:]
    return text
