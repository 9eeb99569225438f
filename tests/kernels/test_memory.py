"""The memory plan: what is needed at once lies apart, and threads wait where they would meet."""

from __future__ import annotations

from textwrap import dedent

from hypothesis import given, settings
from hypothesis import strategies as st

from kina.core.ir import Apply, Function, Parameter, Value
from kina.dims.dim import variable
from kina.kernels import KernelProgram, fuse
from kina.kernels.memory import bytes_of, plan_memory
from kina.ops.contractions import Matmul
from kina.pipeline import check, lower
from kina.source import Source
from kina.types import DType, Tensor, Tuple

SQUARE = Tensor(DType.F32, (variable("A"), variable("A")))


def program_of(text: str) -> KernelProgram:
    module = check(Source("memory.kina", dedent(text)))
    assert module.ok, module.diagnostics
    return lower(module.function("f"))


def assert_sound(program: KernelProgram) -> None:
    """Follows the kernels with all threads as far apart as the waits let them be."""
    plan = plan_memory(program)
    where = {value: n for n, place in enumerate(plan.places) for value in place.values}
    assert set(where) == set(program.temporaries)
    holds: dict[int, object] = {}
    fresh: set[object] = set()
    used: dict[int, set[object]] = {}
    for number, kernel in enumerate(program.kernels):
        if number in plan.waits:
            fresh, used = set(), {}
        for value in kernel.inputs:
            assert value not in fresh, "read before all threads have written it"
            if value in where:
                assert holds[where[value]] is value, "read after something else was written there"
        for value in (*kernel.inputs, kernel.output):
            if value in where:
                used.setdefault(where[value], set()).add(value)
        assert all(len(values) == 1 for values in used.values()), "two values in one place without a wait"
        fresh.add(kernel.output)
        if kernel.output in where:
            holds[where[kernel.output]] = kernel.output
            for size in [dict.fromkeys(program.function.dimensions, n) for n in (0, 1, 5, 1000)]:
                place = plan.places[where[kernel.output]]
                assert bytes_of(kernel.output).evaluate(size) <= place.size.evaluate(size)


CHAIN = """
    let f [S, D] (x : F32[S, D]) (w : F32[D, D]) : F32[S, D] =
      let a = exp (x @ w) @ w in
      let b = exp (a @ w) @ w in
      exp (b @ w) @ w
"""


def test_a_chain_of_layers_needs_two_places():
    program = program_of(CHAIN)
    assert len(program.temporaries) == 5
    assert len(plan_memory(program).places) == 2
    assert_sound(program)


def test_products_wait_only_for_what_they_read():
    program = program_of("let f [A] (x : F32[A, A]) (y : F32[A, A]) : F32[A, A] = (x @ x) * (y @ y)")
    assert plan_memory(program).waits == {1}  # the second, which multiplies them, reads the first


def test_a_place_is_as_large_as_the_largest_of_its_values():
    program = program_of("""
        let f [S, D, H] (x : F32[S, D]) (u : F32[D, H]) (v : F32[H, H]) (w : F32[H, D]) : F32[S, D] =
          (((exp (x @ u) @ v) @ w) @ u) @ w
    """)
    assert_sound(program)
    assert len(plan_memory(program).places) == 2


def products(pairs: list[tuple[int, int]], results: list[int]) -> Function:
    """A function of products of square matrices, each stored: of pairs of earlier values, by number from the last."""
    values = [Value("x", SQUARE)]
    statements = []
    for left, right in pairs:
        made = Value(f"t{len(values)}", SQUARE)
        operands = (values[-1 - left % len(values)], values[-1 - right % len(values)])
        statements.append(Apply(made, Matmul(), operands))
        values.append(made)
    tree = (values[-1], *(values[-1 - n % len(values)] for n in results))
    types = Tuple(tuple(SQUARE for _ in tree))
    return Function("f", ("A",), (), (Parameter("x", values[0]),), types, tuple(statements), tree)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
)
def test_plans_of_random_products_are_sound(pairs, results):
    assert_sound(fuse(products(pairs, results)))


def test_a_place_is_written_again_only_when_all_threads_have_read_it():
    program = program_of("""
        let f [A] (x : F32[A, A]) (y : F32[A, A]) (w : F32[A, A]) : (F32[A, A], F32[A, A]) =
          ((x @ w) @ w, (y @ w) @ w)
    """)
    plan = plan_memory(program)
    assert len(plan.places) == 1
    assert plan.waits == {1, 2, 3}
    assert_sound(program)
