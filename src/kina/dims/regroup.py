"""`reshape` regroups: it merges neighbouring axes and splits an axis into neighbours, and never mixes axes.

Equal volume is not enough: `[B, H, S, D] -> [B, S, H*D]` has the right volume and mixes heads with positions. Both
shapes are walked from the left at once. What is left of the current axis on one side must divide what is left on the
other; so the running products of both shapes form one chain of multiples. All equalities hold under the facts for
every size, 0 included: a quotient is taken only where `a = b * k` holds as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kina.dims.dim import Dim, constant, floor_div, product
from kina.dims.division import divide
from kina.dims.proposition import Comparison, Proposition, divides, equal
from kina.dims.prover import Facts, Status, settle

_ZERO = constant(0)
_ONE = constant(1)
_PERMUTATIONS = 400


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring axes of the source that hold the same elements as neighbouring axes of the target."""

    source: range
    target: range


@dataclass(frozen=True, slots=True)
class AxesMix:
    """The volumes agree, but elements of these source axes would have to be interleaved.

    `transpose` is the permutation of the source after which the reshape fits, if there is one.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    transpose: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class VolumesDiffer:
    source: Dim
    target: Dim
    counterexample: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What would have to be known."""

    missing: Proposition


Regrouping = tuple[Group, ...] | AxesMix | VolumesDiffer | Unsettled


def regroup(source: Sequence[Dim], target: Sequence[Dim], facts: Facts) -> Regrouping:
    """How the axes of `source` make up those of `target`, or why they do not.

    Groups cover both shapes in order. In each, one side has one axis (or none: axes of 1 come and go), or the running
    products inside form a chain of multiples, so that it is a split followed by a merge.
    """
    for size in (*source, *target):
        for denominator in size.denominators:
            positive = Comparison(">", denominator, _ZERO)
            if not settle(positive, facts).status.proved:
                return Unsettled(positive)
    walk = _Walk(source, target, facts)
    groups = walk.groups()
    if groups is not None:
        return groups
    volumes = product(list(source)), product(list(target))
    if all(facts.context.reduce(volume)[0] is _ZERO for volume in volumes):
        return (Group(range(len(source)), range(len(target))),)  # both are empty: there is nothing to mix
    verdict = settle(equal(*volumes), facts)
    if verdict.counterexample is not None:
        return VolumesDiffer(*volumes, verdict.counterexample)
    if verdict.status is Status.UNDECIDED:
        return Unsettled(equal(*volumes))
    return walk.missing or _mixed(walk)


def _mixed(walk: _Walk) -> AxesMix:
    """The axes between the group that failed and what agrees again at the end; the moved ones where that is known."""
    order = _fitting_order(walk.source, walk.target, walk.facts)
    if order is not None:
        moved = {position for position, axis in enumerate(order) if position != axis}
        groups = _Walk([walk.source[axis] for axis in order], walk.target, walk.facts).groups() or ()
        touched = [group.target for group in groups if not moved.isdisjoint(group.source)]
        return AxesMix(tuple(sorted(moved)), tuple(axis for axes in touched for axis in axes), order)
    end, end_target = len(walk.source), len(walk.target)
    while min(end - walk.first_source, end_target - walk.first_target) > 1 and (
        walk.source[end - 1] is walk.target[end_target - 1]
    ):
        end, end_target = end - 1, end_target - 1
    return AxesMix(tuple(range(walk.first_source, end)), tuple(range(walk.first_target, end_target)), None)


class _Walk:
    """One walk along both shapes. After a failure, `first_source` and `first_target` say where its group began."""

    def __init__(self, source: Sequence[Dim], target: Sequence[Dim], facts: Facts) -> None:
        self.source = source
        self.target = target
        self.facts = facts
        self.first_source = 0
        self.first_target = 0
        self.missing: Unsettled | None = None
        """Set when the walk stopped because a divisibility could not be decided."""

    def groups(self) -> tuple[Group, ...] | None:
        groups: list[Group] = []
        i = j = 0
        while i < len(self.source) or j < len(self.target):
            self.first_source, self.first_target = i, j
            end = self._inserted_one(i, j) or self._group(i, j)
            if end is None:
                return None
            groups.append(Group(range(i, end[0]), range(j, end[1])))
            i, j = end
        return tuple(groups)

    def _inserted_one(self, i: int, j: int) -> tuple[int, int] | None:
        """The end of a group that is an axis of literally 1 on one side only."""
        here = self.source[i] if i < len(self.source) else None
        there = self.target[j] if j < len(self.target) else None
        if here is _ONE and there is not _ONE:
            return i + 1, j
        if there is _ONE and here is not _ONE:
            return i, j + 1
        return None

    def _group(self, i: int, j: int) -> tuple[int, int] | None:
        """The end of the smallest group that begins at these axes."""
        a = b = _ONE
        while True:
            if a is _ONE and b is _ONE and (i, j) != (self.first_source, self.first_target):
                return i, j
            if a is _ONE:
                if i == len(self.source):
                    return None
                a, i = self._reduced(self.source[i]), i + 1
            if b is _ONE:
                if j == len(self.target):
                    return None
                b, j = self._reduced(self.target[j]), j + 1
            rest = self._cancel(a, b)
            if rest is None:
                return None
            a, b = rest

    def _cancel(self, a: Dim, b: Dim) -> tuple[Dim, Dim] | None:
        """What is left on both sides when the smaller is taken out of the larger; None where neither divides."""
        rest = _cancelled(a, b)
        if rest is not None:
            return rest
        undecided = None
        for large, small, on_left in ((a, b, True), (b, a, False)):
            claim = divides(small, large)
            verdict = settle(claim, self.facts)
            if verdict.status.proved:
                quotient = self._reduced(floor_div(large, small))
                return (quotient, _ONE) if on_left else (_ONE, quotient)
            if verdict.status is Status.UNDECIDED:
                undecided = undecided or Unsettled(claim)
        self.missing = undecided
        return None

    def _reduced(self, size: Dim) -> Dim:
        return self.facts.context.reduce(size)[0]


def _cancelled(a: Dim, b: Dim) -> tuple[Dim, Dim] | None:
    """`(a / b, 1)` or `(1, b / a)`, whichever divides as a polynomial; `(1, 1)` where they are equal."""
    if a is b:
        return _ONE, _ONE
    for large, small, on_left in ((a, b, True), (b, a, False)):
        if small is _ZERO or large is _ZERO:
            continue
        quotient, remainder = divide(large, small)
        if remainder is _ZERO:
            return (quotient, _ONE) if on_left else (_ONE, quotient)
    return None


def _fitting_order(source: Sequence[Dim], target: Sequence[Dim], facts: Facts) -> tuple[int, ...] | None:
    """The first permutation of the source that regroups into the target, found axis by axis."""
    context = facts.context
    sizes = [context.reduce(size)[0] for size in source]
    wanted = [context.reduce(size)[0] for size in target]
    tries = 0

    def extend(order: tuple[int, ...], a: Dim, b: Dim, j: int) -> tuple[int, ...] | None:
        nonlocal tries
        while b is _ONE and j < len(wanted):
            b, j = wanted[j], j + 1
        if a is not _ONE:
            rest = _cancelled(a, b)
            return extend(order, *rest, j) if rest is not None and b is not _ONE else None
        if len(order) == len(sizes):
            return order if b is _ONE else None
        for axis in range(len(sizes)):
            tries += 1
            if axis in order or tries > _PERMUTATIONS:
                continue
            rest = _cancelled(sizes[axis], b)
            found = extend((*order, axis), *rest, j) if rest is not None else None
            if found is not None:
                return found
        return None

    return extend((), _ONE, _ONE, 0)
