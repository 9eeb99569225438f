"""Functions of scalars, lifted to tensors of one shape: what all elementwise operations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kina.dims.dim import Dim, variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Entry, Kind, Operation, Parameter, Rule, Sample, declare, total
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Element, Index, Scalar
from kina.ops.terms import Term
from kina.types import DType, Tensor

Expand = Callable[[tuple[Scalar, ...], DType, str], Scalar]
"""From operands, their dtype and the variant to the scalar expression."""


@dataclass(frozen=True, eq=False)
class ElementwiseFunction:
    """A function of scalars, lifted to tensors of one shape."""

    name: str
    documentation: str
    torch: str
    operands: tuple[str, ...]
    accepts: DTypeClass
    reference: Callable[..., Any]
    lower: Expand
    gives_bool: bool = False
    choices: tuple[str, ...] = ()
    positive: bool = False
    """Whether samples should be positive (the function is undefined or NaN below zero)."""
    condition: bool = False
    """Whether the first operand is a Bool beside the others (`select`)."""
    d: Callable[..., Any] | None = None
    """From operands and result (and the variant) to the partial derivative by each operand: a term, or 1, -1 or 0."""
    linear: bool = False
    """Whether it is linear in its operands, together or in each, so that `d` does not depend on what it is by."""
    example: str = ""
    """An expression with its value behind it (see `Operation.example`)."""


@dataclass(frozen=True, slots=True)
class Elementwise(Operation):
    """An elementwise function applied to operands of one shape."""

    function: ElementwiseFunction
    variant: str = ""

    family = "elementwise"

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.function.name

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return ()

    def arguments(self) -> Mapping[str, Any]:
        return {"variant": self.variant} if self.variant else {}

    def substitute(self, replacement: Mapping[str, Dim]) -> Operation:
        return self

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        f = self.function
        for position in range(1, len(operands)):
            rule.same_rank(0, position)
            for axis in range(operands[0].rank):
                rule.same_size((0, axis), (position, axis), "the size")
        if f.condition:
            rule.dtype(0, DTypeClass.BOOL)
        first = 1 if f.condition else 0
        rule.dtype(first, f.accepts)
        for position in range(first + 1, len(operands)):
            rule.same_dtype(first, position)
        return operands[first].with_dtype(DType.BOOL) if f.gives_bool else operands[first]

    def reference(self, *operands: Array) -> Array:
        f = self.function
        given = operands[-1].dtype
        wide = [_widen(x) for x in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(f.reference(*wide, self.variant) if f.choices else f.reference(*wide))
        return result.astype(np.bool_ if f.gives_bool else given)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        dtype = operands[-1].dtype
        elements = tuple(widened(Element(i, index), x.dtype) for i, x in enumerate(operands))
        result = self.function.lower(elements, dtype.accumulator, self.variant)
        return result if self.function.gives_bool else narrowed(result, dtype)

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term | None:
        if self.function.condition:
            zero = result.zeros()
            return self(operands[0], *(t or zero for t in tangents[1:]))
        partials = self._partials(*operands, result)
        scaled = (_scaled(t, d) for t, d in zip(tangents, partials, strict=True) if t is not None)
        return total(t for t in scaled if t is not None)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term | None:
        if self.function.condition:
            either = [cotangent.zeros(), cotangent.zeros()]
            either[number - 1] = cotangent
            return self(operands[0], *either)
        if not self.function.linear:
            return Operation.transpose(self, cotangent, operands, number)
        return _scaled(cotangent, self._partials(*operands, cotangent)[number])

    def _partials(self, *terms: Term) -> Sequence[Term | int]:
        f = self.function
        if f.d is None:
            raise NotImplementedError(f"{f.name} declares no derivative")
        found = f.d(*terms, self.variant) if f.choices else f.d(*terms)
        return found if isinstance(found, tuple) else (found,)


def _scaled(tangent: Term, by: Term | int) -> Term | None:
    """A tangent times a partial derivative. That of 0 stays 0, also where the derivative is infinite or NaN."""
    if isinstance(by, Term):
        return tangent.zero_mul(by)
    return None if by == 0 else tangent if by == 1 else -tangent


def _widen(x: Array) -> Array:
    """Half-precision operands are computed in F32 and rounded once at the end."""
    return x.astype(np.float32) if DType.of_numpy(x.dtype) in (DType.F16, DType.BF16) else x


def _samples(f: ElementwiseFunction) -> Sequence[Sample]:
    shape = (variable("A"), variable("B"))
    dtypes = {
        DTypeClass.FLOAT: (DType.F32, DType.F64, DType.F16, DType.BF16),
        DTypeClass.NUM: (DType.F32, DType.F64, DType.BF16, DType.I32, DType.I64, DType.U8),
        DTypeClass.INT: (DType.I32, DType.I64),
        DTypeClass.BOOL: (DType.BOOL,),
        DTypeClass.ANY: (DType.F32, DType.I8, DType.BOOL),
    }[f.accepts]
    found = []
    for dtype in dtypes:
        for variant in f.choices or ("",):
            operands = [Tensor(dtype, shape) for _ in f.operands]
            if f.condition:
                operands[0] = Tensor(DType.BOOL, shape)
            found.append(Sample(Elementwise(f, variant), tuple(operands), f.positive))
    return found


def _shapes(f: ElementwiseFunction) -> str:
    operands = ["Bool[...S]" if f.condition and n == 0 else "[...S]" for n in range(len(f.operands))]
    return f"{', '.join(operands)} -> {'Bool[...S]' if f.gives_bool else '[...S]'}"


def declare_function(f: ElementwiseFunction) -> ElementwiseFunction:
    parameters = (Parameter("variant", Kind.CHOICE, True, f.choices),) if f.choices else ()

    def build(variant: str = "") -> Operation:
        return Elementwise(f, variant)

    declare(
        Entry(
            f.name, "elementwise", f.torch, f.documentation, f.operands, False, parameters, build, lambda: _samples(f),
            keeps_dtype=not f.gives_bool, condition=f.condition, shapes=_shapes(f), example=f.example,
        )
    )  # fmt: skip
    return f
