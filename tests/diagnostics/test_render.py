"""The excerpt under a message: marks stand under what they mark, whatever is in the line."""

from __future__ import annotations

import re

import pytest

from kina.diagnostics import Diagnostic, Edit, Help, Label, Severity
from kina.diagnostics.render import render
from kina.source import Source, Span


def finding(text, marked, *labels, label="", **more):
    source = Source("a.kina", text)

    def span(piece):
        start = text.index(piece)
        return Span(source, start, start + len(piece))

    found = tuple(Label(span(piece), words) for piece, words in labels)
    return Diagnostic("K0999", Severity.ERROR, "wrong", span(marked), label, found, **more)


def test_the_whole_form():
    d = finding(
        "let a = 1\nlet b = f a c\n", "f a", ("c", "because of this"), label="here", notes=("one\n  two",),
    )  # fmt: skip
    assert render([d]) == (
        "error[K0999]: wrong\n"
        "  ┌─ a.kina:2:9\n"
        " 2│ let b = f a c\n"
        "  │         ^^^ here\n"
        "  │             - because of this\n"
        "  = one\n"
        "      two\n"
    )


def test_help_shows_the_edited_line():
    source = Source("a.kina", "x ** y\n")
    d = Diagnostic(
        "K0999",
        Severity.ERROR,
        "wrong",
        Span(source, 2, 4),
        help=(Help("write `^`", (Edit(Span(source, 2, 4), "^"),)),),
    )
    assert render([d]).endswith("help: write `^`\n 1│ x ^ y\n")


def test_tabs_and_wide_characters_keep_marks_in_place():
    shown = render([finding('\tg "変数" x', "x")]).split("\n")
    line, marks = shown[2], shown[3]
    assert line == ' 1│     g "変数" x'
    assert marks == "  │ " + " " * (4 + 2 + 6 + 1) + "^"


def test_a_span_of_several_lines_is_marked_on_each():
    shown = render([finding("let a = (b\n  + c)\nlet d = 1\n", "(b\n  + c)", label="all of it")])
    assert " 1│ let a = (b\n  │         ^^\n 2│   + c)\n  │   ^^^^ all of it\n" in shown


def test_a_long_span_is_shown_by_its_ends():
    text = "(" + "\n".join(f"x{n}" for n in range(30)) + ")"
    shown = render([finding(text, text)])
    assert "··│" in shown
    assert "30│ x29)" in shown
    assert "x15" not in shown


@pytest.mark.parametrize("text", ["", "\n", "let f =", "let f =\n"])
def test_the_end_of_a_file_can_be_marked(text):
    source = Source("a.kina", text)
    shown = render([Diagnostic("K0999", Severity.ERROR, "wrong", Span(source, len(text), len(text)), "here")])
    assert "^ here" in shown


def test_a_line_wider_than_the_terminal_is_cut_around_its_mark():
    text = "a " * 300 + "mark" + " b" * 300
    shown = render([finding(text, "mark", label="here")], width=80).split("\n")
    line, marks = shown[2], shown[3]
    assert len(line) <= 80
    assert line.startswith(" 1│ …") and line.endswith("…")
    at = marks.index("^^^^ here")
    assert line[at : at + 4] == "mark"


def test_characters_that_would_disturb_a_terminal_are_replaced():
    shown = render([finding("a \x1b[31m \ud800 b", "b")])
    assert "\x1b" not in shown
    shown.encode("utf-8")


def test_colour_changes_nothing_but_colour():
    d = finding("let a = b\n", "b", ("a", "this"), label="here", notes=("note",), help=(Help("do this"),))
    assert re.sub(r"\x1b\[[0-9;]*m", "", render([d], color=True)) == render([d])
    assert "\x1b[" in render([d], color=True)
