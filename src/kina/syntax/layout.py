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


def lay_out(tokens: Tokens) -> None:
    """Puts `in` and `end` where the layout stands for them."""
    columns = tokens.columns
    scopes = _Scopes()
    missing: list[tuple[int, str]] = []  # what to put in, before which token
    for index, kind in enumerate(tokens.kinds):
        column = columns[index]
        if column and not (kind in CLOSERS and scopes.close(kind, peek=True)):
            if column == 1:
                scopes = _Scopes()
                if index:
                    missing.append((index, "end"))
            elif kind != "in":
                while scopes.lets and column <= scopes.columns[-1]:
                    scopes.leave_let()
                    missing.append((index, "in"))
        if kind in _MARKED:
            if kind in OPENERS:
                scopes.open.append(kind)
            elif kind in CLOSERS:
                scopes.close(kind)
            elif kind == "in":
                scopes.leave_let()
            elif column != 1:
                start = tokens.starts[index]
                scopes.enter_let(column or start - tokens.source.text.rfind("\n", 0, start))
    for index, kind in reversed(missing):
        end = tokens.ends[index - 1]
        tokens.kinds.insert(index, kind)
        tokens.starts.insert(index, end)
        tokens.ends.insert(index, end)
        tokens.columns.insert(index, 0)


class _Scopes:
    """The brackets and lets that are open at a token, outermost first."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.lets: list[int] = []  # where in `open` the lets are
        self.columns: list[int] = []  # and in which column of the source

    def enter_let(self, column: int) -> None:
        self.lets.append(len(self.open))
        self.columns.append(column)
        self.open.append("let")

    def leave_let(self) -> None:
        """Leaves the innermost let, and the brackets inside it that were never closed."""
        if self.lets:
            del self.open[self.lets.pop() :]
            self.columns.pop()

    def close(self, closer: str, *, peek: bool = False) -> bool:
        """Closes a bracket, and whatever is open inside it; whether that bracket is the innermost one open.

        With `peek` nothing is closed.
        """
        opener = CLOSERS[closer]
        place = len(self.open) - 1
        innermost = True
        while place >= 0 and self.open[place] != opener:
            innermost = innermost and self.open[place] == "let"
            place -= 1
        if place >= 0 and not peek:
            del self.open[place:]
            while self.lets and self.lets[-1] >= place:
                self.lets.pop()
                self.columns.pop()
        return innermost and place >= 0
