"""docs/from_pytorch.md: PyTorch gives, on the same inputs, what the Kina program beside it gives."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import numpy as np
import pytest

import kina
from pytorch_idioms import IDIOMS, Idiom, Pair, pairs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def evaluated(pair: Pair, idiom: Idiom, parameters: list[str]) -> Any:
    """The value of a block: of an expression over the parameters, or of its function called with them."""
    tensors = [torch.from_numpy(np.array(a)) if isinstance(a, np.ndarray) else a for a in idiom.arguments]
    known = {"torch": torch, "F": torch.nn.functional, **idiom.sizes, **dict(zip(parameters, tensors, strict=False))}
    (statement,) = ast.parse(pair.python).body
    if isinstance(statement, ast.Expr):
        return eval(pair.python.strip(), known)
    assert isinstance(statement, ast.FunctionDef)
    exec(pair.python, known)
    return known[statement.name](*(known[a.arg] for a in statement.args.args))


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.name) for pair in pairs()])
def test_an_idiom_gives_in_pytorch_what_it_gives_in_kina(pair: Pair):
    idiom = IDIOMS[pair.name]
    function = getattr(kina.compile(pair.kina), pair.name)
    want = evaluated(pair, idiom, list(inspect.signature(function).parameters))
    got = function(*idiom.arguments, **{name: idiom.sizes[name] for name in idiom.opens})
    for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert np.shape(g) == tuple(np.shape(w))
        np.testing.assert_allclose(g, np.asarray(w), rtol=1e-4, atol=1e-5)
