"""Tokens, and what is said about text that is none."""

from __future__ import annotations

import pytest

from kina.source import Source
from kina.syntax.lexer import lex
from kina.syntax.literals import number_value, string_value, written_string


def kinds(text):
    tokens = lex(Source("t.kina", text))
    assert not tokens.diagnostics, tokens.diagnostics
    return tokens.kinds[:-1]


def pieces(text):
    tokens = lex(Source("t.kina", text))
    return [text[s:e] for s, e in zip(tokens.starts, tokens.ends, strict=True)][:-1]


def only_error(text):
    (d,) = lex(Source("t.kina", text)).diagnostics
    return d


def test_keywords_and_operators_are_their_own_kind():
    assert kinds("let x' = y |> f divides 2") == ["let", "name", "=", "name", "|>", "name", "divides", "number"]


def test_the_longest_operator_wins():
    assert pieces("a<=b->c:=d...e|>f||g") == ["a", "<=", "b", "->", "c", ":=", "d", "...", "e", "|>", "f", "||", "g"]


def test_a_name_may_have_letters_of_any_script_and_primes():
    assert kinds("größe мир' 変数 _x1") == ["name"] * 4


def test_a_word_after_a_point_is_a_name():
    assert kinds("std.test.let") == ["name", ".", "name", ".", "name"]
    assert kinds("exists [n]. exists") == ["exists", "[", "name", "]", ".", "exists"]


def test_items_of_tuples_are_no_decimal_numbers():
    assert pieces("x.0.1 + 0.1") == ["x", ".0", ".1", "+", "0.1"]


def test_comments_nest_and_are_kept_apart():
    text = "a /* b /* c */ d */ e // f\ng"
    tokens = lex(Source("t.kina", text))
    assert [text[s:e] for s, e in tokens.comments] == ["/* b /* c */ d */", "// f"]
    assert pieces(text) == ["a", "e", "g"]


def test_only_the_first_token_of_a_line_has_a_column():
    assert lex(Source("t.kina", "a b\n  c d\r\n\te")).columns[:-1] == [1, 0, 3, 0, 2]


def test_a_token_after_a_comment_of_several_lines_starts_its_line():
    assert lex(Source("t.kina", "a /* \n */ b")).columns[:-1] == [1, 5]


def test_a_byte_order_mark_takes_no_column():
    assert lex(Source("t.kina", "\ufefflet")).columns[:-1] == [1]


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("1_000", 1000), ("0xff", 255), ("0xFF_FF", 65535), ("1e-6", 1e-6), ("0.5", 0.5), ("2.5E3", 2500.0)],
)
def test_numbers_have_their_value(text, value):
    assert kinds(text) == ["number"]
    assert number_value(text) == value
    assert type(number_value(text)) is type(value)


@pytest.mark.parametrize(
    "text", ["12abc", "1.", "1.2.3", "0x", "0xg", "0b1", "1__0", "1_", "1e", "0.5f", "1e999", "9" * 2000]
)
def test_what_is_no_number_is_one_error_over_all_of_it(text):
    d = only_error(text)
    assert d.code == "K0104"
    assert d.span.text == text
    assert d.label


@pytest.mark.parametrize("value", ["", "plain", 'a "quote"', "back\\slash", "line\nbreak\ttab\0", "é😀\u200b"])
def test_a_written_string_has_its_value(value):
    assert kinds(written_string(value)) == ["string"]
    assert string_value(written_string(value)) == value


def test_escapes():
    assert string_value(r'"\n\t\r\0\"\\\x41\u{1F600}"') == '\n\t\r\0"\\A😀'


@pytest.mark.parametrize("escape", [r"\q", r"\u{110000}", r"\u{d800}", r"\u12", r"\xg1", r"\ "])
def test_an_unknown_escape_is_marked(escape):
    d = only_error(f'"ab{escape}"')
    assert d.code == "K0105"
    assert d.span.start == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [("**", "^"), ("≤", "<="), ("→", "->"), ("×", "*"), ("%", "mod"), ("=>", "->"), ("&", "&&")],
)
def test_operators_of_other_languages_are_read_as_what_was_meant(text, meant):
    source = Source("t.kina", f"a {text} b")
    tokens = lex(source)
    assert tokens.kinds[1] == meant
    (d,) = tokens.diagnostics
    assert d.help[0].edits[0].text == meant


def test_a_run_of_strange_characters_is_one_error():
    d = only_error("a €¥£ b")
    assert d.code == "K0101"
    assert d.span.text == "€¥£"


def test_a_no_break_space_is_named():
    assert "U+00A0 (no-break space)" in only_error("a\u00a0b").message


def test_a_string_ends_with_its_line():
    tokens = lex(Source("t.kina", '"abc\nlet'))
    assert [d.code for d in tokens.diagnostics] == ["K0102"]
    assert tokens.kinds == ["string", "let", "eof"]
