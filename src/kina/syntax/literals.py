"""What numbers and strings say, and how a string is written."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*"
    r"|[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*)?(?:[eE][+-]?[0-9]+)?"
)
_ESCAPE = re.compile(r"\\(?:([ntr0\"\\])|u\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2}))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\"}
_WRITTEN = {value: f"\\{letter}" for letter, value in _SIMPLE.items()}
_MOST_DIGITS = 1000


def number_problem(text: str) -> str | None:
    """What is wrong with a number as it was written, or None."""
    if len(text) > _MOST_DIGITS:
        return f"it has more than {_MOST_DIGITS} digits"
    if _NUMBER.fullmatch(text):
        return "it is too large for a float" if math.isinf(number_value(text)) else None
    if text.endswith("."):
        return "digits have to follow the point"
    if "__" in text or text.endswith("_"):
        return "`_` may only stand between digits"
    if text[:2].lower() in ("0b", "0o"):
        return "only decimal and `0x` numbers exist"
    if text[:2].lower() == "0x":
        return "the digits of a `0x` number are 0-9 and a-f"
    if text.count(".") > 1:
        return "it has more than one point"
    if re.fullmatch(r"[0-9_.]+[eE]", text):
        return "digits have to follow the `e`"
    return "a name cannot begin with a digit"


def number_value(text: str) -> int | float:
    """The value of a well-formed number; 0 for any other text."""
    if text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return 0
    plain = text.replace("_", "")
    if plain[:2] in ("0x", "0X"):
        return int(plain, 16)
    return float(plain) if "." in plain or "e" in plain or "E" in plain else int(plain)


def bad_escapes(text: str) -> list[tuple[int, int]]:
    """Where, in a string as it was written, an escape means nothing: ranges of offsets."""
    found = []
    at = text.find("\\")
    while at != -1:
        match = _ESCAPE.match(text, at)
        if match is None or _character(match) is None:
            found.append((at, match.end() if match else at + 2))
        at = text.find("\\", match.end() if match else at + 2)
    return found


def string_value(text: str) -> str:
    """The value of a string written with its quotes. An escape that means nothing stays as it is."""
    body = text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]
    return _ESCAPE.sub(lambda match: _character(match) or match.group(), body) if "\\" in body else body


def _character(match: re.Match[str]) -> str | None:
    simple, *digits = match.groups()
    if simple:
        return _SIMPLE[simple]
    point = int(digits[0] or digits[1], 16)
    return chr(point) if point < 0xD800 or 0xE000 <= point <= 0x10FFFF else None


def written_string(value: str) -> str:
    """A string with quotes and escapes, such that `string_value` gives it back."""
    return '"' + "".join(_WRITTEN.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in value) + '"'
