"""docs/from_pytorch.md: each Kina program checks, runs, and means what NumPy says; tests/torch asks PyTorch."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kina
from kina.diagnostics.pages import all_codes
from kina.doc.pages import reference
from pytorch_idioms import IDIOMS, PAGE, Pair, pairs

PAIRS = [pytest.param(pair, id=pair.name) for pair in pairs()]


@pytest.mark.parametrize("pair", PAIRS)
def test_an_idiom_means_in_kina_what_it_means_in_numpy(pair: Pair):
    idiom = IDIOMS[pair.name]
    function = getattr(kina.compile(pair.kina, backend="reference"), pair.name)
    got = function(*idiom.arguments, **{name: idiom.sizes[name] for name in idiom.opens})
    want = idiom.meaning(*idiom.arguments)
    for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)


def test_every_idiom_stands_on_the_page_once_with_a_meaning():
    names = [pair.name for pair in pairs()]
    assert sorted(names) == sorted(IDIOMS)
    assert len(names) >= 60


def test_every_block_of_python_has_a_program_beside_it():
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("```python\n") == text.count("```kina\n") == len(pairs())


def test_links_to_errors_and_names_of_operations_are_right():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"K\d{4}", text)) <= set(all_codes())
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert (PAGE.parent / path).is_file(), path
    for name in ("gather", "take_along", "reinterpret", "fold"):
        assert f"`{name}`" in text or name in text
        assert name in reference()
