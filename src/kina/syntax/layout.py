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
        if column and not (kind in CLOSERS and scopes.innermost_bracket() == CLOSERS[kind]):
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
                scopes.enter_bracket(kind)
            elif kind in CLOSERS:
                if not scopes.close(CLOSERS[kind]):
                    tokens.strays.add(tokens.starts[index])
            elif kind == "in":
                scopes.leave_let()
            elif column != 1:
                start = tokens.starts[index]
                scopes.enter_let(column or start - tokens.source.text.rfind("\n", 0, start))
    if missing:
        _put_in(tokens, missing)


def _put_in(tokens: Tokens, missing: list[tuple[int, str]]) -> None:
    """Puts tokens without width before others, each at the end of the token before it."""
    kinds, starts, ends, columns = tokens.kinds, tokens.starts, tokens.ends, tokens.columns
    tokens.kinds, tokens.starts, tokens.ends, tokens.columns = [], [], [], []
    done = 0
    for index, kind in [*missing, (len(kinds), "")]:
        tokens.kinds += kinds[done:index]
        tokens.starts += starts[done:index]
        tokens.ends += ends[done:index]
        tokens.columns += columns[done:index]
        done = index
        if kind:
            tokens.add(kind, ends[index - 1], ends[index - 1], 0)


class _Scopes:
    """The brackets and lets that are open at a token, outermost first."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.lets: list[int] = []  # where in `open` the lets are
        self.columns: list[int] = []  # and in which column of the source
        self.counts = dict.fromkeys(OPENERS, 0)  # of each bracket, so that a stray closer is seen at once

    def enter_let(self, column: int) -> None:
        self.lets.append(len(self.open))
        self.columns.append(column)
        self.open.append("let")

    def enter_bracket(self, opener: str) -> None:
        self.counts[opener] += 1
        self.open.append(opener)

    def leave_let(self) -> None:
        """Leaves the innermost let, and the brackets inside it that were never closed."""
        if self.lets:
            self._leave(self.lets[-1])

    def _leave(self, place: int) -> None:
        """Leaves what was entered at a place in `open`, and all that is inside it."""
        while len(self.open) > place:
            kind = self.open.pop()
            if kind == "let":
                self.lets.pop()
                self.columns.pop()
            else:
                self.counts[kind] -= 1

    def innermost_bracket(self) -> str | None:
        place = len(self.open) - 1
        while place >= 0 and self.open[place] == "let":
            place -= 1
        return self.open[place] if place >= 0 else None

    def close(self, opener: str) -> bool:
        """Closes the innermost bracket of a kind, and whatever is open inside it; False where there is none."""
        if not self.counts[opener]:
            return False
        place = len(self.open) - 1
        while self.open[place] != opener:
            place -= 1
        self._leave(place)
        return True
