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
    two = [
        lambda a, b: equal(b * floor_div(a, b) + modulo(a, b), a),
        lambda a, b: at_most(a, b * ceil_div(a, b)),
        lambda a, b: equal(floor_div(a * b, b), a),
        lambda a, b: equal(minimum(a, b) + maximum(a, b), a + b),
        lambda a, b: Comparison("<", modulo(a, b), b),
        lambda a, b: equal(modulo(a * b, b), constant(0)),
        lambda a, b: equal(ceil_div(a, b), floor_div(a + b - 1, b)),
        lambda a, b: at_most(4 * a * b, (a + b) * (a + b)),
        lambda a, b: equal(modulo(modulo(a, 2 * b), b), modulo(a, b)),
        lambda a, b: Or((equal(modulo(b - modulo(a, b), b), constant(0)), Comparison("<", constant(0), modulo(a, b)))),
    ]
    three = [
        lambda a, b, c: equal(floor_div(floor_div(a, b), c), floor_div(a, b * c)),
        lambda a, b, c: equal(ceil_div(ceil_div(a, b), c), ceil_div(a, b * c)),
        lambda a, b, c: equal(modulo(modulo(a, c) + modulo(b, c), c), modulo(a + b, c)),
        lambda a, b, c: equal(modulo(modulo(a, c) * b, c), modulo(a * b, c)),
        lambda a, b, c: equal(floor_div(minimum(a, b), c), minimum(floor_div(a, c), floor_div(b, c))),
        lambda a, b, c: equal(maximum(a, minimum(b, c)), minimum(maximum(a, b), maximum(a, c))),
        lambda a, b, c: at_most(floor_div(a, c) + floor_div(b, c), floor_div(a + b, c)),
        lambda a, b, c: at_most(minimum(a, b) * maximum(c, 0), maximum(a, b) * maximum(c, 0)),
    ]
    law = st.one_of(
        st.sampled_from(two).flatmap(lambda law: st.builds(law, dims(names, 2), dims(names, 1))),
        st.sampled_from(three).flatmap(lambda law: st.builds(law, dims(names, 1), dims(names, 1), dims(names, 1))),
    )
    return st.one_of(law, law.flatmap(_nearly))


def _nearly(law):
    """The claim with another relation, or off by one: what a wrong proof would get wrong."""
    if not isinstance(law, Comparison):
        return st.just(law)
    relations = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    return st.builds(lambda r, more: Comparison(r, law.left + more, law.right), relations, st.integers(-1, 1))


def arithmetic(names=NAMES):
    """Claims on remainders by numbers, nested division, flat indices and powers: what case distinctions are for."""
    size, number = st.sampled_from([variable(n) for n in names]), st.integers(2, 6).map(constant)
    shapes = [
        lambda a, b, c, k, m, r: equal(modulo(a * a + b, k), r),
        lambda a, b, c, k, m, r: equal(floor_div(floor_div(a + r, k) + b, m), floor_div(a + r + k * b, k * m)),
        lambda a, b, c, k, m, r: Comparison("!=", modulo(a * (a + r), k), m),
        lambda a, b, c, k, m, r: at_most(a * b + c, b * (a + 1) - r),
        lambda a, b, c, k, m, r: Comparison("<", floor_div(a, b) * c + modulo(a, b), a + c + r),
        lambda a, b, c, k, m, r: equal(ceil_div(ceil_div(a, k), m), ceil_div(a + r, k * m)),
        lambda a, b, c, k, m, r: at_most(a * a, b * c + r),
        lambda a, b, c, k, m, r: equal(floor_div(a + b, c), floor_div(a, c) + floor_div(b, c) + r),
        lambda a, b, c, k, m, r: at_most(a * (b - c), b * (a - c) + r),
        lambda a, b, c, k, m, r: equal(modulo(a, k * b), modulo(a, b) + r * b),
    ]
    small = st.integers(0, 2).map(constant)
    return st.sampled_from(shapes).flatmap(lambda shape: st.builds(shape, size, size, size, number, number, small))


def hypotheses(names=NAMES):
    size, number = st.sampled_from([variable(n) for n in names]), st.integers(1, 6).map(constant)
    positive = st.builds(lambda n: Comparison(">", n, constant(0)), size)
    relation = st.sampled_from(["<", "<=", "!=", "="])
    remainder = st.integers(0, 2).map(constant)
    simple = st.one_of(
        st.builds(Comparison, relation, size, size),
        st.builds(lambda a, b, r: equal(modulo(a, b), r), size, st.one_of(size, number), remainder),
        st.builds(lambda a, b, c: Comparison("<", a, ceil_div(b, c)), size, size, st.one_of(size, number)),
        st.builds(lambda a, b, c: at_most(c, minimum(a, b)), size, size, size),
        st.builds(lambda r, a, b, c: Comparison(r, a * b, c), relation, size, size, st.one_of(size, number)),
    )
    either = st.builds(lambda p, q: Or((p, q)), simple, simple)
    fact = st.one_of(propositions(names, 1), positive, positive, simple, simple, either)
    return st.lists(fact, max_size=4).map(tuple)
