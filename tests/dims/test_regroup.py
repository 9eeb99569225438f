"""Which reshapes only merge and split neighbouring axes."""

from __future__ import annotations

from itertools import pairwise
from itertools import product as sizes_of
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import dim_of, facts, prop

from kina.dims.dim import constant, variable
from kina.dims.dim import product as volume
from kina.dims.prover import Facts
from kina.dims.regroup import AxesMix, Group, Unsettled, VolumesDiffer, regroup


def shape(text):
    return [dim_of(part) for part in text.split()]


def grouping(source, target, *requires):
    """The groups as `source axes -> target axes`, or the failure."""
    found = regroup(shape(source), shape(target), facts(*requires))
    if isinstance(found, tuple):
        return [(list(g.source), list(g.target)) for g in found]
    return found


FITTING = [
    ("an axis for an axis", "B S", "B S", [], [([0], [0]), ([1], [1])]),
    ("merged heads", "B S H D", "B S H*D", [], [([0], [0]), ([1], [1]), ([2, 3], [2])]),
    ("split heads", "B S D", "B S H D//H", ["D%H==0"], [([0], [0]), ([1], [1]), ([2], [2, 3])]),
    ("grouped queries", "B K Q//K S", "B Q S", ["Q%K==0"], [([0], [0]), ([1, 2], [1]), ([3], [2])]),
    ("a named product", "BH S D", "B H S D", ["BH==B*H"], [([0], [0, 1]), ([1], [2]), ([2], [3])]),
    ("a chain", "A*B C", "A B*C", [], [([0, 1], [0, 1])]),
    ("numbers", "6", "2 3", [], [([0], [0, 1])]),
    ("a longer chain of numbers", "4 3", "2 6", [], [([0, 1], [0, 1])]),
    ("ones that go", "B 1 S", "B S", [], [([0], [0]), ([1], []), ([2], [1])]),
    ("ones that move", "1 S", "S 1", [], [([0], []), ([1], [0]), ([], [1])]),
    ("ones out of nothing", "", "1 1", [], [([], [0]), ([], [1])]),
    ("a size that the facts say is 1", "n S", "S", ["n==1"], [([0, 1], [0])]),
    ("experts", "T*k", "E (T*k)//E", ["(T*k)%E==0"], [([0], [0, 1])]),
    ("patches", "C H W", "C H//P P W//P P", ["H%P==0", "W%P==0"], [([0], [0]), ([1], [1, 2]), ([2], [3, 4])]),
    ("a half", "n", "2 n//2", ["n%2==0"], [([0], [0, 1])]),
    ("everything empty", "0 5", "B 0", [], [([0, 1], [0, 1])]),
    ("all into one", "B H S", "B*H*S", [], [([0, 1, 2], [0])]),
    ("a size equal by a fact", "S D", "T D", ["S==T"], [([0], [0]), ([1], [1])]),
]


def cases(rows):
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


@pytest.mark.parametrize(("source", "target", "requires", "groups"), cases(FITTING))
def test_neighbouring_axes_merge_and_split(source, target, requires, groups):
    assert grouping(source, target, *requires) == groups


MIXING = [
    ("a forgotten transpose before merging heads", "B H S D", "B S H*D", [], (1, 2), (1, 2), (0, 2, 1, 3)),
    ("a transpose spelled as a reshape", "B H S D", "B S H D", [], (1, 2), (1, 2), (0, 2, 1, 3)),
    ("two numbers swapped", "2 3", "3 2", [], (0, 1), (0, 1), (1, 0)),
    ("merged and split at other places", "4 9", "6 6", [], (0, 1), (0, 1), None),
    ("a product equal by a fact", "A B", "C D", ["A*B==C*D"], (0, 1), (0, 1), None),
    ("experts across tokens", "T k", "E (T*k)//E", ["(T*k)%E==0"], (0, 1), (0, 1), None),
    ("what agrees at the end is left out", "4 9 S", "6 6 S", [], (0, 1), (0, 1), None),
]


@pytest.mark.parametrize(("source", "target", "requires", "axes", "into", "order"), cases(MIXING))
def test_axes_that_would_mix_are_named_with_the_forgotten_transpose(source, target, requires, axes, into, order):
    assert grouping(source, target, *requires) == AxesMix(axes, into, order)


def test_a_wrong_volume_is_refuted_with_sizes():
    found = grouping("Q 4", "Q 5")
    assert isinstance(found, VolumesDiffer)
    assert found.source.evaluate(found.counterexample) != found.target.evaluate(found.counterexample)


@pytest.mark.parametrize(("source", "target"), [("B", ""), ("", "B"), ("N", "N//4 4"), ("B S", "B"), ("A+B", "A*B")])
def test_volumes_that_differ_at_some_size_are_found_out(source, target):
    assert isinstance(grouping(source, target), VolumesDiffer)


def test_a_division_that_may_be_undefined_is_not_reshaped():
    assert grouping("B D", "B H D//H") == Unsettled(prop("H > 0"))


def numeric_chain(groups, source, target):
    """Whether, at concrete sizes, groups have equal volumes and inner running products that divide one another."""
    for group in groups:
        inside = [source[a] for a in group.source], [target[a] for a in group.target]
        if prod(inside[0]) != prod(inside[1]):
            return False
        running = sorted({prod(side[:n]) for side in inside for n in range(len(side) + 1)})
        if 0 not in running and any(b % a for a, b in pairwise(running)):
            return False
    return True


factors = st.lists(st.sampled_from(["A", "B", "C", "2", "3"]), min_size=0, max_size=4)


@settings(max_examples=150, deadline=None)
@given(st.lists(factors, max_size=3), st.lists(factors, max_size=3))
def test_an_accepted_reshape_has_equal_groups_at_all_small_sizes(left, right):
    atoms = {name: variable(name) for name in "ABC"} | {"2": constant(2), "3": constant(3)}
    source = [volume([atoms[f] for f in axis]) for axis in left]
    target = [volume([atoms[f] for f in axis]) for axis in right]
    found = regroup(source, target, Facts())
    for numbers in sizes_of(range(4), repeat=3):
        sizes = dict(zip("ABC", numbers, strict=True))
        a, b = [s.evaluate(sizes) for s in source], [t.evaluate(sizes) for t in target]
        if isinstance(found, tuple):
            assert numeric_chain(found, a, b)
    if isinstance(found, VolumesDiffer):
        assert found.source.evaluate(found.counterexample) != found.target.evaluate(found.counterexample)
    if isinstance(found, AxesMix) and found.transpose is not None:
        assert isinstance(regroup([source[a] for a in found.transpose], target, Facts()), tuple)
    if isinstance(found, tuple):
        assert [a for g in found for a in g.source] == list(range(len(source)))
        assert [a for g in found for a in g.target] == list(range(len(target)))
        assert all(isinstance(g, Group) for g in found)
