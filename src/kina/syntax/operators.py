"""How tightly operators bind, from loosest to tightest. Parser and printer read the same table."""

from __future__ import annotations

from typing import Final

from kina.syntax.ast import BinaryOperator

ARROW: Final = 0
ASSIGNMENT: Final = 1
NOT: Final = 5
COMPARISON: Final = 6
SUM: Final = 7
NEGATION: Final = 9
POWER: Final = 10
APPLICATION: Final = 11
ARGUMENT: Final = 12
POSTFIX: Final = 13

BINARY: Final[dict[BinaryOperator, int]] = {
    ":=": ASSIGNMENT,
    "|>": 2,
    "||": 3,
    "&&": 4,
    "==": COMPARISON, "=": COMPARISON, "!=": COMPARISON, "<": COMPARISON, "<=": COMPARISON, ">": COMPARISON,
    ">=": COMPARISON, "divides": COMPARISON,
    "+": SUM, "-": SUM,
    "*": 8, "/": 8, "@": 8, "mod": 8, "div": 8,
    "^": POWER,
}  # fmt: skip
"""Comparisons do not chain, `^` and `:=` group to the right, the others to the left."""

RIGHT_ASSOCIATIVE: Final = frozenset({"^", ":="})
COMPARISONS: Final = frozenset(o for o, level in BINARY.items() if level == COMPARISON)
EXTENDING: Final = frozenset({"let", "fun", "if", "for", "while", "exists"})
"""Forms that reach as far to the right as they can."""
