"""The layout rule: where `in` may be left out, and where a declaration ends.

After `let x = e` without `in`, the first token that starts a line at or left of the `let` stands for
an `in` before it. A token in column 1 ends the declaration. A closing bracket does neither, as long
as the bracket that it closes was opened inside. Both ends become tokens without width (`in`, `end`),
so that the parser need not look at columns.
"""

from __future__ import annotations

from kina.syntax.lexer import Tokens

CLOSERS = {")": "(", "]": "[", "}": "{"}
OPENERS = {opener: closer for closer, opener in CLOSERS.items()}
_MARKED = frozenset({*CLOSERS, *OPENERS, "let", "in"})


def lay_out(tokens: Tokens) -> Tokens:
    """The tokens with `in` and `end` put in where the layout stands for them."""
    out = Tokens(tokens.source, comments=tokens.comments, diagnostics=tokens.diagnostics)
    kinds, starts, ends, columns = out.kinds, out.starts, out.ends, out.columns
    open_: list[tuple[str, int]] = []  # brackets, and lets with their column
    for kind, start, end, column in zip(tokens.kinds, tokens.starts, tokens.ends, tokens.columns, strict=True):
        if column and not _closes(kind, open_):
            previous = ends[-1] if ends else start
            if column == 1:
                open_.clear()
                if kinds:
                    out.add("end", previous, previous, 0)
            elif kind != "in":
                while (let := _innermost_let(open_)) is not None and column <= open_[let][1]:
                    del open_[let:]
                    out.add("in", previous, previous, 0)
        if kind in _MARKED:
            _follow(open_, kind, start, column, tokens)
        kinds.append(kind)
        starts.append(start)
        ends.append(end)
        columns.append(column)
    return out


def _closes(kind: str, open_: list[tuple[str, int]]) -> bool:
    """Whether a token closes the innermost open bracket."""
    opener = CLOSERS.get(kind)
    return opener is not None and next((o == opener for o, _ in reversed(open_) if o != "let"), False)


def _innermost_let(open_: list[tuple[str, int]]) -> int | None:
    return next((i for i in range(len(open_) - 1, -1, -1) if open_[i][0] == "let"), None)


def _follow(open_: list[tuple[str, int]], kind: str, start: int, column: int, tokens: Tokens) -> None:
    """Keeps the open lets and brackets; an unclosed bracket does not outlive the `in` of its let."""
    if kind == "let":
        if column != 1:
            open_.append(("let", column or start - tokens.source.text.rfind("\n", 0, start)))
    elif kind == "in":
        if (let := _innermost_let(open_)) is not None:
            del open_[let:]
    elif kind in OPENERS:
        open_.append((kind, 0))
    else:
        opener = CLOSERS[kind]
        place = next((i for i in range(len(open_) - 1, -1, -1) if open_[i][0] == opener), None)
        if place is not None:
            del open_[place:]
