"""Counterexamples by trial: small sizes first, because they are cheap and make readable messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product

from kina.dims.context import Context
from kina.dims.dim import Dim, UndefinedSize, constant, variable
from kina.dims.proposition import Proposition, at_most, holds, variables

_LARGEST = {1: 64, 2: 15, 3: 7, 4: 4, 5: 3, 6: 2}
_TRIALS = 600
_REPAIRS = 40
_REPAIR_SIZES = (1, 2, 3, 4, 5, 6, 8, 0)


def breaks(goal: Proposition, hypotheses: Sequence[Proposition], sizes: Mapping[str, int]) -> bool:
    """Whether all hypotheses are defined and true at these sizes, and the goal is false or undefined."""
    return all(is_true(p, sizes) for p in hypotheses) and not is_true(goal, sizes)


def is_true(p: Proposition, sizes: Mapping[str, int]) -> bool:
    """Whether `p` is defined and true at these sizes."""
    try:
        return holds(p, sizes)
    except UndefinedSize:
        return False


def counterexample(
    goal: Proposition, hypotheses: Sequence[Proposition], context: Context, witness: Mapping[str, int] | None
) -> dict[str, int] | None:
    """Small sizes at which the hypotheses hold and the goal does not, or None where none were found.

    Walks the unknowns that the context has left, so that `H mod 8 = 0` tries multiples of 8 only: first those of the
    goal, with the others as in `witness`, then all.
    """
    values = values_of((goal, *hypotheses), context)
    everything = _unknowns(values.values())
    near = _unknowns(values[name] for name in variables(goal))
    hypotheses = sorted(hypotheses, key=lambda p: len(variables(p)))
    for varied in (near, everything) if len(near) < len(everything) else (everything,):
        base = dict.fromkeys(everything, 1) | dict(witness or {})
        for numbers in _small(len(varied)):
            base.update(zip(varied, numbers, strict=True))
            sizes = complete(base, values)
            if sizes is not None and breaks(goal, hypotheses, sizes):
                return sizes
    return None


def satisfy(hypotheses: Sequence[Proposition], context: Context) -> dict[str, int] | None:
    """Unknowns of the context at which all hypotheses hold, or None where none were found.

    Starts from all ones and repairs one broken hypothesis after the other, by the change of one unknown that breaks the
    fewest others.
    """
    values = values_of(hypotheses, context)
    point = dict.fromkeys(_unknowns(values.values()), 1)
    conditions = [*hypotheses, *(at_most(constant(0), variable(name)) for name in values)]
    touched = [_unknowns(values[name] for name in variables(p)) for p in conditions]

    def broken(at: Mapping[str, int], among: Iterable[int]) -> list[int]:
        return [i for i in among if not _holds_at(conditions[i], at, values)]

    seen: set[tuple[int, ...]] = set()
    while tuple(point.values()) not in seen and len(seen) < _REPAIRS:
        seen.add(tuple(point.values()))
        wrong = broken(point, range(len(conditions)))
        if not wrong:
            return point
        changes = ((name, size) for name in touched[wrong[0]] for size in _REPAIR_SIZES)
        cost = {
            (name, size): len(broken(point | {name: size}, (i for i, t in enumerate(touched) if name in t)))
            - sum(name in touched[i] for i in wrong)
            for name, size in changes
        }
        if not cost:
            return None
        name, size = min(cost, key=lambda change: cost[change])
        point[name] = size
    return None


def _holds_at(p: Proposition, point: Mapping[str, int], values: Mapping[str, Dim]) -> bool:
    try:
        return is_true(p, {name: values[name].evaluate(point) for name in variables(p)})
    except UndefinedSize:
        return False


def values_of(propositions: Iterable[Proposition], context: Context) -> dict[str, Dim]:
    """What each variable that occurs equals in the unknowns of the context."""
    names = frozenset[str]().union(*map(variables, propositions))
    return {name: context.value_of(name) for name in sorted(names)}


def _unknowns(values: Iterable[Dim]) -> tuple[str, ...]:
    return tuple(sorted(frozenset[str]().union(*(value.variables for value in values))))


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
