"""Random dimensions, propositions and hypotheses, over all operators."""

from __future__ import annotations

from hypothesis import strategies as st

from kina.dims.dim import BUILDERS, ceil_div, constant, floor_div, maximum, minimum, modulo, variable
from kina.dims.proposition import And, Comparison, Or, at_most, equal

NAMES = ("A", "B", "C")
_KINDS = (*BUILDERS.values(), floor_div, modulo)


def dims(names=NAMES[:2], depth=2):
    leaf = st.one_of(st.sampled_from([variable(n) for n in names]), st.integers(0, 6).map(constant))
    if depth == 0:
        return leaf
    inner = dims(names, depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.sampled_from(_KINDS).flatmap(lambda build: st.builds(build, inner, inner)),
    )


def comparisons(names=NAMES, depth=2):
    relation = st.sampled_from(["=", "=", "!=", "<", "<=", ">", ">="])
    multiple = st.builds(lambda a, b: equal(modulo(a, b), constant(0)), dims(names, 1), dims(names, 1))
    return st.one_of(multiple, st.builds(Comparison, relation, dims(names, depth), dims(names, depth)))


def propositions(names=NAMES, depth=2):
    one = comparisons(names, depth)
    pair = st.tuples(one, one)
    return st.one_of(one, one, st.builds(And, pair), st.builds(Or, pair))


def laws(names=NAMES):
    """Claims that hold wherever they are defined, so that many of the random goals are true."""
    shapes = [
        lambda a, b: equal(b * floor_div(a, b) + modulo(a, b), a),
        lambda a, b: at_most(a, b * ceil_div(a, b)),
        lambda a, b: equal(floor_div(a * b, b), a),
        lambda a, b: equal(minimum(a, b) + maximum(a, b), a + b),
        lambda a, b: Comparison("<", modulo(a, b), b),
        lambda a, b: equal(modulo(a * b, b), constant(0)),
    ]
    return st.sampled_from(shapes).flatmap(lambda law: st.builds(law, dims(names, 2), dims(names, 1)))


def hypotheses(names=NAMES):
    positive = st.sampled_from([Comparison(">", variable(n), constant(0)) for n in names])
    return st.lists(st.one_of(propositions(names, 1), positive, positive), max_size=4).map(tuple)
