"""An operation that may end the program in two: what it demands, and what it is where that holds.

They stand in programs that are to be compiled (`kina.passes.guard`), and have no names in the language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kina.dims.dim import Dim
from kina.lazy import np
from kina.ops.base import Array, Fault, Operation, Parameter, Rule
from kina.ops.scalar import Index, Scalar
from kina.types import DType, Tensor


@dataclass(frozen=True, slots=True)
class _Around(Operation):
    guarded: Operation

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return ()

    def substitute(self, replacement: Mapping[str, Dim]) -> Operation:
        return replace(self, guarded=self.guarded.substitute(replacement))


@dataclass(frozen=True, slots=True)
class Holds(_Around):
    """Whether each element of the result of `guarded` can be computed: what it demands, as a tensor of Bool."""

    name = "holds"
    keeps_dtype = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(DType.BOOL, operands[0].shape)

    def reference(self, *operands: Array) -> Array:
        """All true or all false: it is only ever asked whether all hold."""
        try:
            return np.ones_like(self.guarded.reference(*operands), bool)
        except Fault:
            return np.zeros(operands[0].shape, bool)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        demanded = self.guarded.demands(operands, index)
        if demanded is None:
            raise TypeError(f"{self.guarded.name} does not say what it demands")
        return demanded


@dataclass(frozen=True, slots=True)
class Safe(_Around):
    """What `guarded` is where all that it demands holds."""

    name = "safe"
    may_end = True
    """The reference ends the program here; native code at the check before."""

    @property
    def fusible(self) -> bool:  # type: ignore[override]
        return self.guarded.fusible

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return self.guarded.type(rule, *operands)

    def reference(self, *operands: Array) -> Array:
        return self.guarded.reference(*operands)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return self.guarded.lower(operands, index)
