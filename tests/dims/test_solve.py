"""Equations solved for one variable."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notation import dim_of, prop

from kina.dims.proposition import holds
from kina.dims.solve import solve_linear

SOLVED = [
    ("2*n", "D", "D // 2", ["D % 2 == 0"]),
    ("S + n", "T", "T - S", ["S <= T"]),
    ("n*H", "D", "D // H", ["H > 0", "D % H == 0"]),
    ("n*H", "D*H", "D", ["H > 0"]),
    ("2*n + 1", "D", "(D - 1) // 2", ["(D - 1) % 2 == 0", "1 <= D"]),
    ("T - n", "S", "T - S", ["S <= T"]),
    ("n", "D + 1", "D + 1", []),
    ("4*n", "8*D", "2*D", []),
    ("D", "2*n", "D // 2", ["D % 2 == 0"]),
    ("n*H*K", "D", "D // (H*K)", ["H*K > 0", "D % (H*K) == 0"]),
]


@pytest.mark.parametrize(("left", "right", "value", "conditions"), SOLVED, ids=[f"{r[0]} = {r[1]}" for r in SOLVED])
def test_a_linear_equation_has_one_solution_under_conditions(left, right, value, conditions):
    found = solve_linear(dim_of(left), dim_of(right), "n")
    assert found is not None
    assert found.value is dim_of(value)
    assert list(found.conditions) == [prop(c) for c in conditions]


UNSOLVED = [("n*n", "D"), ("n // 2", "D"), ("n - n", "3"), ("n + n // 2", "D"), ("S", "T")]


@pytest.mark.parametrize(("left", "right"), UNSOLVED)
def test_what_is_not_linear_in_the_unknown_is_not_solved(left, right):
    assert solve_linear(dim_of(left), dim_of(right), "n") is None


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([(row[0], row[1]) for row in SOLVED]), st.lists(st.integers(0, 12), min_size=5, max_size=5))
def test_the_solution_solves_where_its_conditions_hold_and_is_the_only_one(equation, numbers):
    left, right = map(dim_of, equation)
    sizes = dict(zip("DHKST", numbers, strict=True))
    found = solve_linear(left, right, "n")
    assert found is not None
    solutions = [n for n in range(200) if left.evaluate(sizes | {"n": n}) == right.evaluate(sizes | {"n": n})]
    if all(holds(c, sizes) for c in found.conditions):
        assert solutions == [found.value.evaluate(sizes)]
    elif len(solutions) == 1:
        raise AssertionError(f"{solutions} solves although {found.conditions} do not hold")
