"""Errors in the text itself: K01xx. One constructor a code; the page of each is in `pages/`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Label, Severity
from kina.diagnostics.names import edit_distance
from kina.source import Span


def _error(
    code: str,
    message: str,
    span: Span,
    label: str = "",
    *,
    labels: Sequence[Label] = (),
    notes: Sequence[str] = (),
    help: Sequence[Help] = (),
) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, tuple(labels), tuple(notes), tuple(help))


# ---------------------------------------------------------------- characters and literals

_ADVICE = {
    "#": "a comment starts with `//`",
    "'": "a string stands in double quotes",
    "`": "a string stands in double quotes",
    "“": "a string stands in straight double quotes",
    "”": "a string stands in straight double quotes",
    ";": "lines need no `;`: a `let` ends with `in` or at the next line",
    "?": "a hole has a name, as in `?scores`, or is `...`",
    "~": "negation is `not`",
    "$": "parentheses group; `x |> f` applies f to x",
    "|": "alternatives are written `||` between truth values; `|>` applies a function",
    ".": "a number starts with a digit, as in `0.5`",
}


def unexpected_character(span: Span, meant: str | None = None) -> Diagnostic:
    """K0101. `meant` is the token that is read in its place."""
    text = span.text
    if meant is not None:
        mended = Help(f"write `{meant}`", (Edit(span, meant),))
        return _error("K0101", f"{_quoted(text)} is not an operator of Kina", span, help=[mended])
    if len(text) > 1:
        return _error("K0101", "these characters mean nothing here", span)
    edits = (Edit(span, "//"),) if text == "#" else ()
    advice = [Help(_ADVICE[text], edits)] if text in _ADVICE else []
    return _error("K0101", f"{_quoted(text)} means nothing here", span, help=advice)


def _quoted(text: str) -> str:
    if all(c.isprintable() and not c.isspace() for c in text):
        return f"`{text}`"
    return "the character " + ", ".join(f"U+{ord(c):04X}" + _title(c) for c in text)


def _title(c: str) -> str:
    name = unicodedata.name(c, "").lower()
    return f" ({name})" if name else ""


def unterminated_string(span: Span) -> Diagnostic:
    """K0102. `span` runs from the quote to the end of the line."""
    end = Span(span.source, span.end, span.end)
    return _error(
        "K0102",
        "this string has no end",
        span,
        'no `"` before the end of the line',
        help=[Help("close it", (Edit(end, '"'),))],
    )


def unterminated_comment(span: Span) -> Diagnostic:
    """K0103. `span` is the `/*` that begins it."""
    return _error(
        "K0103", "this comment has no end", span, "opened here", notes=["comments nest: each `/*` needs its own `*/`"]
    )


def malformed_number(span: Span, problem: str) -> Diagnostic:
    """K0104."""
    return _error("K0104", "this is not a number", span, problem)


def unknown_escape(span: Span) -> Diagnostic:
    """K0105."""
    known = r"the escapes are \n \t \r \0 \\ \" \x41 and \u{1F600}"
    return _error("K0105", f"`{span.text}` is not an escape", span, notes=[known])


# ---------------------------------------------------------------- pieces that are missing or too many


def expected(
    span: Span, wanted: str, found: str, *, after: Label | None = None, help: Sequence[Help] = ()
) -> Diagnostic:
    """K0106. `after` is the place that makes `wanted` necessary."""
    labels = [after] if after else []
    return _error("K0106", f"expected {wanted}, found {found}", span, f"expected {wanted}", labels=labels, help=help)


def unclosed_bracket(opener: Span, span: Span, closer: str, found: str) -> Diagnostic:
    """K0107. `span` is where the bracket should have been closed at the latest."""
    return _error(
        "K0107",
        f"`{opener.text}` is never closed",
        span,
        f"expected `{closer}`, found {found}",
        labels=[Label(opener, "opened here")],
    )


def stray_closer(span: Span) -> Diagnostic:
    """K0108."""
    return _error("K0108", f"`{span.text}` closes nothing", span, "no bracket is open here")


def keyword_as_name(span: Span, wanted: str) -> Diagnostic:
    """K0109."""
    mended = f"{span.text}_"
    return _error(
        "K0109",
        f"`{span.text}` is a keyword, not {wanted}",
        span,
        help=[Help(f"`{mended}` is a name", (Edit(span, mended),))],
    )


def chained_comparison(first: Span, span: Span, between: str) -> Diagnostic:
    """K0110. `between` is the text that stands between the two comparisons."""
    mended = f"{first.text} {between} && {between} {span.text}"
    return _error(
        "K0110",
        "comparisons do not chain",
        span,
        "a second comparison",
        labels=[Label(first, "the first")],
        help=[Help(f"say both: `... {mended} ...`")],
    )


def meant_keyword(word: Span, keywords: Sequence[str]) -> tuple[Help, ...]:
    """The keyword of which a word is a slip of the pen: one letter, or two exchanged."""
    close = [k for k in keywords if edit_distance(word.text, k) == 1]
    return tuple(Help(f"did you mean `{keyword}`?", (Edit(word, keyword),)) for keyword in close)


def equals_as_comparison(span: Span, meant: tuple[Help, ...] = ()) -> Diagnostic:
    """K0111. `meant` is what else may have been meant."""
    return _error(
        "K0111",
        "`=` gives a name to a value; it does not compare here",
        span,
        notes=["`=` means equality inside parentheses and in the condition of an `if` or a `while`"],
        help=[*meant, Help("to compare, write `==`", (Edit(span, "=="),))],
    )


def let_without_body(let: Span, span: Span, found: str) -> Diagnostic:
    """K0112. `span` is where `in` or the body should stand."""
    return _error(
        "K0112",
        "this `let` has nothing after it",
        span,
        f"expected `in` and an expression, found {found}",
        labels=[Label(let, "the `let`")],
        notes=["`let x = e in body`; `in` may be left out where the body starts a line, not to the right of the `let`"],
    )


# ---------------------------------------------------------------- forms that cannot be


def not_a_declaration(span: Span, found: str, help: Sequence[Help] = ()) -> Diagnostic:
    """K0113."""
    return _error(
        "K0113",
        f"expected a declaration, found {found}",
        span,
        "`let`, `type`, `import` or `test` begins one",
        help=help,
    )


def indented_declaration(span: Span) -> Diagnostic:
    """K0113, for a declaration that does not start its line."""
    return _error("K0113", "a declaration starts in column 1", span, "this is indented")


def nested_too_deeply(span: Span, limit: int) -> Diagnostic:
    """K0114."""
    return _error(
        "K0114",
        "this is nested too deeply",
        span,
        f"more than {limit} levels",
        help=[Help("name parts of it with `let`")],
    )


def spaced_bracket(span: Span, space: Span, what: str, function: Span | None) -> Diagnostic:
    """K0115. `space` is the white space before the bracket at `span`, `function` the word before what it follows:
    in `softmax x [axis=1]` the bracket belongs there."""
    moved = []
    end = span.source.text.find("]", span.end) + 1
    if function is not None and end > 0:
        bracket, after = Span(span.source, span.start, end), Span(span.source, function.end, function.end)
        edits = (Edit(after, bracket.text), Edit(Span(span.source, space.start, end), ""))
        moved = [Help(f"put it after {function.text}", edits, guess=True)]
    return _error(
        "K0115",
        f"{what} in a bracket after a space",
        span,
        "after a space, a bracket is a list",
        help=[Help("let the bracket touch the name before it", (Edit(space, ""),)), *moved],
    )


def initial_values(span: Span, states: int, values: int | None) -> Diagnostic:
    """K0116. `values` is None where the initial value is not written as a tuple."""
    found = "one expression" if values is None else f"{values} value{'' if values == 1 else 's'}"
    return _error(
        "K0116",
        f"{states} states need {states} initial values",
        span,
        f"this is {found}",
        notes=["`with (k : ..., v : ...) = (k0, v0) do`: one value for each state, in parentheses"],
    )


def missing_else(span: Span, condition: Span, found: str) -> Diagnostic:
    """K0117."""
    return _error(
        "K0117",
        "this `if` has no `else`",
        span,
        f"expected `else`, found {found}",
        labels=[Label(condition, "the `if`")],
        notes=["an `if` is a value, so both branches have to be there"],
    )


def loop_without_result(span: Span, loop: Span) -> Diagnostic:
    """K0118."""
    return _error(
        "K0118",
        "this `for` makes nothing",
        span,
        "expected `with` or `yield`",
        labels=[Label(loop, "the `for`")],
        notes=["`for i < N with s = init do next` folds; `for i < N yield e` makes a tensor of N slices"],
    )


def loose_not(span: Span, operand: Span) -> Diagnostic:
    """K0119. `operand` is what `not` would apply to."""
    edits = (
        Edit(Span(span.source, span.start, span.start), "("),
        Edit(Span(span.source, operand.end, operand.end), ")"),
    )
    return _error(
        "K0119",
        "`not` needs parentheses here",
        span,
        "it binds looser than the operator before it",
        help=[Help("put it in parentheses", edits)],
    )


def foreign_word(span: Span, advice: str) -> Diagnostic:
    """K0120: a word of another language, where the text around it does not parse."""
    return _error("K0120", f"`{span.text}` is not a word of Kina", span, help=[Help(advice)])
