"""The normal form of dimension expressions."""

from __future__ import annotations

import gc
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import dim_of
from propositions import dims

from kina.dims.dim import (
    BUILDERS,
    UndefinedSize,
    Variable,
    _interned,
    constant,
    floor_div,
    of_monomial,
    parts,
    variable,
)

SAME = [
    ("B*H*S*D", "(B*H)*(D*S)"),
    ("(a + b)*(a + b)", "a*a + 2*a*b + b*b"),
    ("(W - P) // P + 1", "W // P"),
    ("(i*B + j) // B", "i + j // B"),
    ("(i*B + j) % B", "j % B"),
    ("(H - 1) // 2 + 1", "(H + 1) // 2"),
    ("(4*N + 7) // 2", "2*N + 3"),
    ("(4*N + 7) % 4", "3"),
    ("cdiv(A*B + c, B)", "A + cdiv(c, B)"),
    ("min(S, S + 1)", "S"),
    ("max(S, S + 1)", "S + 1"),
    ("min(a, b)", "min(b, a)"),
    ("N // 1", "N"),
    ("N % 1", "0"),
    ("7 // 2 + 7 % 2 + cdiv(7, 2)", "3 + 1 + 4"),
]


@pytest.mark.parametrize(("left", "right"), SAME, ids=[f"{a} is {b}" for a, b in SAME])
def test_equal_polynomials_are_the_same_object(left, right):
    assert dim_of(left) is dim_of(right)


@pytest.mark.parametrize("text", ["A // 0", "3 % 0", "cdiv(A, 0)", "(A*B) // B", "(A*B) % B", "0 // B", "A // (0 - 2)"])
def test_a_division_that_may_be_undefined_stays_visible(text):
    assert dim_of(text).denominators
    with pytest.raises(UndefinedSize):
        dim_of(text).evaluate({"A": 1, "B": 0})


def test_denominators_come_innermost_first():
    assert dim_of("A // (B // C)").denominators == (variable("C"), dim_of("B // C"))


PRINTED = [
    ("B*H + 1", "B * H + 1"),
    ("2*(A // B)", "2 * (A div B)"),
    ("A // (B*C)", "A div (B * C)"),
    ("0 - A", "-A"),
    ("A % B - 3", "(A mod B) - 3"),
    ("min(A, cdiv(B, 2))", "min(A, cdiv(B, 2))"),
]


@pytest.mark.parametrize(("text", "printed"), PRINTED)
def test_dimensions_print_as_they_are_written(text, printed):
    assert str(dim_of(text)) == printed


def by_definition(expression, sizes):
    """The value by Python's own arithmetic, atom by atom, without the normal form's help."""
    total = 0
    for monomial, coefficient in expression.terms:
        for atom in monomial:
            if isinstance(atom, Variable):
                coefficient *= sizes[atom.name]
            else:
                a, b = (by_definition(part, sizes) for part in parts(atom))
                coefficient *= BUILDERS[type(atom)](constant(a), constant(b)).value
        total += coefficient
    return total


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(BUILDERS)), dims(), dims())
def test_building_keeps_the_value_and_where_it_is_undefined(kind, left, right):
    built = BUILDERS[kind](left, right)
    for numbers in product(range(4), repeat=2):
        sizes = dict(zip("AB", numbers, strict=True))
        try:
            a, b = left.evaluate(sizes), right.evaluate(sizes)
            direct = BUILDERS[kind](constant(a), constant(b)).value
        except UndefinedSize:
            continue
        if direct is None:
            with pytest.raises(UndefinedSize):
                built.evaluate(sizes)
        else:
            assert built.evaluate(sizes) == direct == by_definition(built, sizes)


@settings(max_examples=200, deadline=None)
@given(dims(), dims(), dims())
def test_arithmetic_is_a_commutative_ring(a, b, c):
    assert a * b is b * a
    assert a + b is b + a
    assert (a + b) * c is a * c + b * c
    assert (a * b) * c is a * (b * c)
    assert a - a is constant(0)


@settings(max_examples=100, deadline=None)
@given(dims(), dims())
def test_substitution_commutes_with_evaluation(a, b):
    replaced = a.substitute({"A": b})
    for numbers in product(range(3), repeat=2):
        sizes = dict(zip("AB", numbers, strict=True))
        try:
            inner = b.evaluate(sizes)
            expected = a.evaluate(sizes | {"A": inner})
        except UndefinedSize:
            continue
        assert replaced.evaluate(sizes) == expected


def test_the_table_of_dimensions_does_not_grow_when_they_are_dropped():
    gc.collect()
    before = len(_interned)
    for n in range(5000):
        floor_div(variable(f"leak{n}") * n + 1, variable("B"))
    gc.collect()
    kept = constant.cache_info().maxsize + variable.cache_info().maxsize
    assert len(_interned) <= before + kept + 5


def test_a_monomial_is_the_product_of_its_atoms():
    assert of_monomial((Variable("A"), Variable("B"))) is variable("A") * variable("B")
