"""Values from nothing: literals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kina.dims.dim import constant
from kina.ops.base import Array, Operation, Parameter, Rule, Sample
from kina.ops.scalar import Index, Literal, Pieces, Scalar
from kina.types import DType, Tensor


@dataclass(frozen=True, slots=True)
class Constant(Operation):
    """A literal scalar or a rectangular tensor literal. `values` are in row-major order."""

    dtype: DType
    sizes: tuple[int, ...]
    values: tuple[float | int | bool, ...]

    name = "constant"
    family = "creation"
    operand_names = ()

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return ()

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return Tensor(self.dtype, tuple(map(constant, self.sizes)))

    def reference(self, *operands: Array) -> Array:
        wide = np.float64 if self.dtype.is_float else self.dtype.numpy
        return np.array(self.values, dtype=wide).astype(self.dtype.numpy).reshape(self.sizes)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        if not self.sizes:
            return Literal(self.values[0], self.dtype)
        position = constant(0)
        for i, size in zip(index, self.sizes, strict=True):
            position = position * size + i
        literals = tuple((constant(n + 1), Literal(v, self.dtype)) for n, v in enumerate(self.values))
        return Pieces(position, literals) if literals else Literal(0, self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(DType.F32, (), (2.5,)), ()),
            Sample(cls(DType.F32, (2, 3), (1.0, 2.0, 3.0, -1.0, 0.5, 1e-6)), ()),
            Sample(cls(DType.I64, (4,), (1, 2, 3, 4)), ()),
            Sample(cls(DType.BOOL, (), (True,)), ()),
        ]
