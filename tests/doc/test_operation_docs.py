"""Every operation is documented where it is declared, and what its documentation shows is so."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kina.doc.examples import answer, read_example
from kina.doc.formulas import derivatives
from kina.doc.pages import reference
from kina.ops import Entry, all_operations, lookup

OPERATIONS = [pytest.param(entry, id=entry.name) for entry in all_operations()]


@pytest.mark.parametrize("entry", OPERATIONS)
def test_an_operation_says_what_it_does_and_how_pytorch_spells_it(entry: Entry):
    missing = [what for what in ("documentation", "shapes", "torch") if not getattr(entry, what).strip()]
    assert not missing, f"the declaration of {entry.name} lacks {missing} (PyTorch's spelling may be 'none')"


@pytest.mark.parametrize("entry", OPERATIONS)
def test_its_example_gives_the_value_shown(entry: Entry):
    example = read_example(entry.example)
    assert example.says, f'the declaration of {entry.name} lacks example = "expression  // its value"'
    assert answer(example).value == example.says


@pytest.mark.parametrize(
    ("name", "meaning", "at"),
    [
        ("tanh", jnp.tanh, [0.3]), ("silu", jax.nn.silu, [-0.7]), ("pow", jnp.power, [1.5, 2.5]),
        ("clamp", jnp.clip, [0.5, 0.0, 1.0]), ("max", jnp.maximum, [2.0, 2.0]),
        ("sqrt", jnp.sqrt, [2.0]), ("recip", lambda x: 1 / x, [3.0]), ("div", jnp.divide, [2.0, 3.0]),
    ],
)  # fmt: skip
def test_a_derivative_on_a_page_is_a_program_that_gives_the_slope(name, meaning, at):
    """The formula is Kina: computed by the reference, it is JAX's derivative."""
    entry = lookup(name)
    given = [f"let {x} = {value} in" for x, value in zip(entry.operand_names, at, strict=True)]
    call = f"let result = {reference()[name].usage.splitlines()[0]} in"
    for number, formula in enumerate(derivatives(entry).values()):
        found = answer(read_example(" ".join([*given, call, f"let slope : F32 = {formula} in slope"])))
        want = jax.grad(meaning, argnums=number)(*map(np.float32, at))
        np.testing.assert_allclose(float(found.value), want, rtol=1e-5)


def test_pages_say_of_derivatives_what_declarations_say():
    def said(name: str) -> str:
        return next((s.text for s in reference()[name].sections if s.title == "Derivative"), "")

    assert said("transpose").startswith("Linear:") and said("matmul").startswith("Linear in each operand")
    assert "Linear for `sum` `mean`" in said("reduce")
    assert said("argsort").startswith("None") and said("stop_gradient").startswith("None")
    assert "- by `x`: `select (x <= 0) 0 1`" in said("relu")


def test_an_operation_without_samples_still_says_what_it_takes():
    pages = reference()
    assert "- `x`: I64 I32 I16 I8 U8\n- `y`: the dtype of `x`" in pages["floor_div"].markdown
    assert "- `mask`: Bool" in pages["nonzero_along"].markdown and "`Idx[A][N]`" in pages["nonzero_along"].markdown
