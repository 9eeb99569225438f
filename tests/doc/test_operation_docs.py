"""Every operation is documented where it is declared, and what its documentation shows is so."""

from __future__ import annotations

import pytest

from kina.doc.examples import answer, read_example
from kina.ops import Entry, all_operations

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
