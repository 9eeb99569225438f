"""Errors of the lexer and parser: K01xx. One constructor a code; the page of each is in `pages/`."""

from __future__ import annotations

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Label, Severity
from kina.source import Span


def _error(code: str, message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, **more)  # type: ignore[arg-type]


def unexpected_character(span: Span) -> Diagnostic:
    shown = span.text if span.text.isprintable() else " ".join(f"U+{ord(c):04X}" for c in span.text[:4])
    help_ = (Help("a comment begins with //"),) if span.text.startswith("#") else ()
    return _error("K0101", f"`{shown}` means nothing in Kina", span, help=help_)


def expected(
    span: Span, wanted: str, found: str, *, opened: Span | None = None, help: Help | None = None
) -> Diagnostic:
    """The parser wanted one thing and found another. `opened` is the bracket that is still open."""
    labels = (Label(opened, "opened here"),) if opened is not None else ()
    return _error(
        "K0102", f"expected {wanted}, found {found}", span, f"{wanted} is wanted here", labels=labels,
        help=(help,) if help else (),
    )  # fmt: skip


def never_closed(span: Span, what: str) -> Diagnostic:
    return _error("K0103", f"this {what} is never closed", span, "begins here")


def malformed_number(span: Span) -> Diagnostic:
    return _error(
        "K0104", f"`{span.text}` is not a number", span, notes=("numbers look like 12, 1_000, 0.5, 1e-6, 0xff",)
    )


def chained_comparison(span: Span) -> Diagnostic:
    return _error(
        "K0105", "comparisons do not chain", span, "a second comparison",
        help=(Help("write both, joined by &&: a < b && b < c"),),
    )  # fmt: skip


def nested_too_deeply(span: Span, most: int) -> Diagnostic:
    return _error(
        "K0106", f"this is nested more than {most} levels deep", span, help=(Help("name a part of it with `let`"),)
    )


def keyword_as_name(span: Span, word: str) -> Diagnostic:
    return _error(
        "K0107", f"`{word}` is a keyword, not a name", span, "a name is wanted here",
        help=(Help(f"add a `'` or `_`: `{word}'`", (Edit(span, f"{word}'"),)),),
    )  # fmt: skip


def bad_escape(span: Span) -> Diagnostic:
    return _error("K0108", f"`{span.text}` is not an escape", span, notes=('escapes are \\n \\t \\r \\0 \\" \\\\',))


def states_and_initials(span: Span, states: int, initials: int) -> Diagnostic:
    return _error("K0109", f"{states} states need a tuple of {states} initial values, and there are {initials}", span)
