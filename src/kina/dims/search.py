"""Counterexamples by trial: small sizes first, because they are cheap and make readable messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from kina.dims.context import Context
from kina.dims.dim import Dim, UndefinedSize
from kina.dims.proposition import Proposition, holds, variables

_LARGEST = {1: 64, 2: 15, 3: 7, 4: 4, 5: 3, 6: 2}
_TRIALS = 600


def breaks(goal: Proposition, hypotheses: Sequence[Proposition], sizes: Mapping[str, int]) -> bool:
    """Whether all hypotheses are defined and true at these sizes, and the goal is false or undefined."""
    return all(is_true(p, sizes) for p in hypotheses) and not is_true(goal, sizes)


def is_true(p: Proposition, sizes: Mapping[str, int]) -> bool:
    """Whether `p` is defined and true at these sizes."""
    try:
        return holds(p, sizes)
    except UndefinedSize:
        return False


def counterexample(goal: Proposition, hypotheses: Sequence[Proposition], context: Context) -> dict[str, int] | None:
    """Small sizes at which the hypotheses hold and the goal does not, or None where none were found.

    Walks the unknowns that the context has left, so that `H mod 8 = 0` tries multiples of 8 only.
    """
    names = sorted(variables(goal).union(*map(variables, hypotheses)))
    values = {name: context.value_of(name) for name in names}
    unknowns = sorted(frozenset().union(*(value.variables for value in values.values())))
    hypotheses = sorted(hypotheses, key=lambda p: len(variables(p)))
    for numbers in _small(len(unknowns)):
        sizes = complete(dict(zip(unknowns, numbers, strict=True)), values)
        if sizes is not None and breaks(goal, hypotheses, sizes):
            return sizes
    return None


def complete(unknowns: Mapping[str, int], values: Mapping[str, Dim]) -> dict[str, int] | None:
    """The sizes that follow from the unknowns, or None where one would be negative."""
    sizes: dict[str, int] = {}
    for name, value in values.items():
        try:
            size = value.evaluate(unknowns)
        except UndefinedSize:
            return None
        if size < 0:
            return None
        sizes[name] = size
    return sizes


@lru_cache(maxsize=16)
def _small(count: int) -> tuple[tuple[int, ...], ...]:
    """The first tuples of naturals to try: positive before zero, small sums before large ones."""
    if count == 0:
        return ((),)
    if count > 6:
        return tuple(_mostly_one(count))
    candidates = product(range(_LARGEST[count] + 1), repeat=count)
    return tuple(sorted(candidates, key=lambda t: (0 in t, sum(t), t))[:_TRIALS])


def _mostly_one(count: int) -> Iterator[tuple[int, ...]]:
    """All ones, then one or two places changed."""
    ones = (1,) * count
    yield ones
    for other in (2, 3, 0):
        for i in range(count):
            yield (*ones[:i], other, *ones[i + 1 :])
    for i in range(count):
        for j in range(i):
            for a, b in ((2, 2), (2, 3), (3, 2)):
                changed = list(ones)
                changed[i], changed[j] = a, b
                yield tuple(changed)
