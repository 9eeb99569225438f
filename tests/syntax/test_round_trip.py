"""What is printed reads back as the same tree; formatting changes neither the tree nor the comments."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from syntax_trees import declarations, expressions, modules

from kina.source import Source
from kina.syntax.lexer import lex
from kina.syntax.lines import WIDTH
from kina.syntax.parser import parse
from kina.syntax.printer import format_module, print_declaration, print_expr

thorough = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def read(text):
    source = Source("printed.kina", text)
    parsed = parse(source)
    assert not parsed.diagnostics, (text, parsed.diagnostics[0].message, parsed.diagnostics[0].span)
    return source, parsed.module


def comments(text):
    """All comments of a text, documentation too, as they are written."""
    return Counter(text[start:end].rstrip() for start, end in lex(Source("", text)).comments)


def formatted(text):
    source, module = read(text)
    return format_module(module, source)


@thorough
@given(expressions)
def test_a_printed_expression_reads_back_as_itself(e):
    _, module = read(f"let it = ({print_expr(e)})\n" if not _is_tuple(e) else f"let it = {print_expr(e)}\n")
    assert module.declarations[0].body == e


def _is_tuple(e):
    return type(e).__name__ == "TupleLiteral"


@thorough
@given(declarations)
def test_a_printed_declaration_reads_back_as_itself(d):
    _, module = read(print_declaration(d) + "\n")
    assert module.declarations == (d,)


@thorough
@given(modules)
def test_formatting_keeps_the_tree_and_is_done_after_one_time(all_declarations):
    text = "\n".join(map(print_declaration, all_declarations)) + "\n"
    once = formatted(text)
    assert read(once)[1].declarations == all_declarations
    assert formatted(once) == once
    assert all(line == line.rstrip() for line in once.split("\n"))


@st.composite
def commented_programs(draw):
    """A formatted program with comments put in between its tokens."""
    text = formatted("\n".join(map(print_declaration, draw(modules))) + "\n")
    tokens = lex(Source("", text))
    places = draw(st.lists(st.integers(0, len(tokens.starts) - 1), max_size=5, unique=True))
    for number, place in enumerate(sorted(places, reverse=True)):
        at = tokens.starts[place]
        if at > 0 and text[at - 1] not in " \n":
            continue  # a comment would part what has to touch
        indent = "" if tokens.columns[place] == 1 else " " * 60
        block = f"/* c{number} */\n" if tokens.columns[place] == 1 else f"/* c{number} */"
        forms = [f"// c{number}\n{indent}", f"\n{indent}// c{number}\n{indent}", block]
        text = text[:at] + draw(st.sampled_from(forms)) + text[at:]
    assume(not parse(Source("", text)).diagnostics)  # a comment that pushes a `let` to the right can break the layout
    return text


@thorough
@given(commented_programs())
def test_formatting_loses_no_comment(text):
    once = formatted(text)
    assert read(once)[1] == read(text)[1]
    assert comments(once) == comments(text)


@thorough
@given(commented_programs())
def test_a_formatted_program_with_comments_stays_as_it_is(text):
    once = formatted(text)
    assert formatted(once) == once


def test_lines_are_kept_within_the_width_where_the_grammar_allows_it():
    arguments = " ".join(f"(gelu some_long_name_{n} + bias_{n})" for n in range(12))
    text = formatted(f"let f (x : F32) : F32 = let y = combine {arguments} in y * 2.0 + y\n")
    assert max(map(len, text.split("\n"))) <= WIDTH
