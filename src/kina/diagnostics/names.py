"""Which known names are close to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant, if one is close."""
    return next(iter(closest(name, known)), None)


def closest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are close, the closest first; of equally close ones, the one known first."""
    candidates = list(dict.fromkeys(known))
    folded = [k for k in candidates if k.lower() == name.lower()]
    near = [c for c in candidates if abs(len(c) - len(name)) <= 2]
    found = set(get_close_matches(name, near, n=5, cutoff=0.6))
    distance = {match: edit_distance(name, match) for match in near if match in found and match not in folded}
    return [*folded, *sorted(distance, key=distance.__getitem__)]


def edit_distance(a: str, b: str) -> int:
    """How many letters to insert, leave out, replace, or exchange with their neighbour make `b` of `a`
    (the distance of Damerau and Levenshtein, between neighbours that are exchanged nothing else is changed)."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, c in enumerate(a):
        row = [i + 1]
        for j, d in enumerate(b):
            best = min(row[j] + 1, last[j + 1] + 1, last[j] + (c != d))
            if i and j and c == b[j - 1] and a[i - 1] == d:
                best = min(best, before[j - 1] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]
