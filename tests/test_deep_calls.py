"""Functions that call functions: each is looked at once, and what would be endless when written out is refused."""

from __future__ import annotations

import numpy as np
import pytest

import kina


def tower(levels: int) -> str:
    """Each function calls the one below twice."""
    lines = ["let f0 [N] (x : F32[N]) : F32[N] = x + 1.0"]
    lines += [f"let f{n} [N] (x : F32[N]) : F32[N] = f{n - 1} x * f{n - 1} x" for n in range(1, levels + 1)]
    return "\n".join(lines)


def test_checking_takes_no_longer_for_functions_that_are_called_often():
    module = kina.compile(tower(60))  # with each call followed this would never end
    assert "f59" in module.f60.explain("core")


def test_calls_are_written_out_and_shared_again():
    f = kina.compile(tower(5)).f5
    np.testing.assert_allclose(f(np.float32([0.0, 0.5])), np.float32([1.0, 1.5**32]), rtol=1e-5)


def test_a_program_that_is_too_large_when_written_out_is_refused_with_what_to_do():
    f = kina.compile(tower(30)).f30
    with pytest.raises(kina.KinaError, match=r"f30 calls functions .* statements .*`for`"):
        f(np.zeros(3, np.float32))
