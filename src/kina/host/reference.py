"""The reference interpreter as an executable: slow, and by definition right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kina.core import interpreter
from kina.core.ir import Function
from kina.ops.base import Array


@dataclass(frozen=True)
class Reference:
    """Runs a function by its meaning in NumPy."""

    function: Function

    def run(self, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Fresh row-major arrays: a result that is an argument, or a view of one, is copied."""
        return tuple(np.array(a, order="C") for a in interpreter.run(self.function, sizes, inputs))
