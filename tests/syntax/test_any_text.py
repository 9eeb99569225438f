"""Parsing never raises and never hangs, whatever the text; every finding has a place in it and can be rendered."""

from __future__ import annotations

import inspect
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kina.diagnostics.render import render
from kina.source import Source
from kina.syntax.lexer import KEYWORDS, WORD_OPERATORS
from kina.syntax.parser import parse
from kina.syntax.printer import format_module

PROGRAM = (Path(__file__).parent / "every_form.kina").read_text(encoding="utf-8")
SYMBOLS = r"""... -> |> || && == != <= >= := ( ) [ ] { } , : = < > + - * / @ ^ ! . ? | ; # ** " /* */ // ' \\"""
WORDS = ["x", "F32", "assert", "assert_eq", "einsum", "1", "0.5", "\n", "\n  ", " "]
PIECES = [*sorted(KEYWORDS | WORD_OPERATORS), *SYMBOLS.split(), *WORDS]
TINY = ["", "\n", "\ufeff", "\0", "\ud800", "\r\n\r\n", "\f", "\t", "//", "/*", '"', '"\\', "?", "'", "0x", "1e", "1."]
many = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def survives(text):
    source = Source("any.kina", text)
    parsed = parse(source)
    for d in parsed.diagnostics:
        assert 0 <= d.span.start <= d.span.end <= len(text)
        assert d.code.startswith("K01")
        assert all(0 <= e.span.start <= e.span.end <= len(text) for h in d.help for e in h.edits)
    render(parsed.diagnostics).encode("utf-8")
    if not parsed.diagnostics:
        format_module(parsed.module, source)
    return parsed


@many
@given(st.text())
def test_any_text_is_survived(text):
    survives(text)


@many
@given(st.text(st.characters(), max_size=40))
def test_any_characters_are_survived(text):
    survives(text)


@many
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["", " "]))
def test_any_tokens_in_any_order_are_survived(pieces, between):
    survives(between.join(pieces))
    survives("let f [N] (x : F32[N]) : F32[N] = " + between.join(pieces))


def test_a_good_program_with_pieces_cut_out_doubled_or_swapped_is_survived():
    generator = random.Random(0)
    for _ in range(400):
        text = PROGRAM
        for _ in range(generator.randint(1, 4)):
            start = generator.randrange(len(text))
            end = min(len(text), start + generator.randint(0, 12))
            new = generator.choice(["", text[start:end] * 2, generator.choice(PIECES), "\n", "\t", "é"])
            text = text[:start] + new + text[end:]
        survives(text)


def test_a_good_program_cut_off_anywhere_is_survived():
    for end in range(0, len(PROGRAM), 7):
        survives(PROGRAM[:end])


@pytest.mark.parametrize("text", TINY)
def test_tiny_texts_are_survived(text):
    survives(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(", ")"), ("[", "]"), ("f (", ")"), ("x[", "]"), ("{ a = ", " }"), ("-", ""), ("not ", ""), ("!", ""),
        ("(", ""), ("x ^ ", ""), ("if a then b else ", ""), ("fun x -> ", ""), ("x -> ", ""), ("exists [n]. ", ""),
        ("for i < N yield ", ""), ("let x = let y = ", " in y in x"), ("let (", ") = x in x"), ("/*", "*/"),
        ("let f (x : ", ") = x in x"),
    ],
)  # fmt: skip
def test_deep_nesting_is_an_error_and_no_crash(before, after):
    text = f"let it = {before * 20_000}x{after * 20_000}\n"
    parsed = parse(Source("deep.kina", text))
    if before != "/*":
        assert parsed.diagnostics
        assert len(parsed.diagnostics) < 5


def test_a_hundred_levels_are_read():
    assert not survives("let it = " + "(" * 90 + "x" + ")" * 90 + "\n").diagnostics


def test_little_room_on_pythons_stack_is_an_error_and_no_crash():
    text = "let it = " + "(" * 90 + "x" + ")" * 90

    def deeper(levels):
        return deeper(levels - 1) if levels else parse(Source("deep.kina", text))

    parsed = deeper(sys.getrecursionlimit() - len(inspect.stack()) - 120)
    assert [d.code for d in parsed.diagnostics] == ["K0114"]


def test_long_programs_are_read():
    lets = "".join(f"  let x{n} = x + {n}.0 in\n" for n in range(3000))
    survives("let f (x : F32) : F32 =\n" + lets + "  x")
    assert not survives("let f (x : F32) : F32 = " + " + ".join(["x"] * 900)).diagnostics


def test_binary_files_give_few_errors():
    noise = bytes(random.Random(1).randrange(256) for _ in range(3000)).decode("latin-1")
    assert len(survives(noise).diagnostics) < 500
