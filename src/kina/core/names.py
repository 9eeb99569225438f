"""Names for values: each is used once in a function."""

from __future__ import annotations

import re
from collections.abc import Iterable


def made_up(name: str) -> bool:
    """Whether a name is one that `fresh` gives where none is wanted."""
    return re.fullmatch(r"t\d+", name) is not None


class Names:
    """The names that a function's values have so far."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def copy(self) -> Names:
        """The same names; what either gives from here on, the other does not know."""
        other = Names(self._taken)
        other._last = dict(self._last)
        return other

    def fresh(self, wanted: str | None) -> str:
        """The wanted name, or that with a number: `x`, `x'2`, `x'3`; `t1`, `t2` where none is wanted."""
        name, stem = (wanted, f"{wanted}'") if wanted else ("t1", "t")
        if name in self._taken:
            number = self._last.get(stem, 1) + 1
            while (name := f"{stem}{number}") in self._taken:
                number += 1
            self._last[stem] = number
        self._taken.add(name)
        return name

    def apart(self, wanted: str) -> str:
        """The wanted name, with primes where it is taken. It is free afterwards: it means something only in a type."""
        while wanted in self._taken:
            wanted += "'"
        return wanted
