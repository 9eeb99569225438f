"""Partial derivatives of elementwise functions as formulas: their declarations, run by a builder that writes Kina."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kina.ops.base import Entry, Operation
from kina.ops.creation import Constant
from kina.ops.elementwise import OPERATORS
from kina.ops.lifting import Elementwise
from kina.ops.terms import Term
from kina.types import DType, Tensor

_SIGNS: dict[str, str] = {name: sign for sign, name in OPERATORS.items() if sign != "="}
_SCALAR = Tensor(DType.F32, ())


@dataclass(frozen=True, slots=True)
class _Writer:
    """A builder whose values are Kina."""

    def apply(self, operation: Operation, operands: Sequence[Term]) -> Term:
        return Term(_SCALAR, _written(operation, [str(x.value) for x in operands]), self)


def _written(operation: Operation, operands: list[str]) -> str:
    if isinstance(operation, Constant):
        return f"{operation.values[0]:.6g}"
    if not operands:
        return "0"
    inside = [f"({x})" if " " in x or x.startswith("-") else x for x in operands]
    if operation.name == "neg":
        return f"-{inside[0]}"
    sign = _SIGNS.get(operation.name)
    return f" {sign} ".join(inside) if sign else " ".join([operation.name, *inside])


def derivatives(entry: Entry) -> dict[str, str]:
    """By operand and variant (`x`, `x, tanh`) the partial derivative; `result` stands for what the function gives.

    Empty for what is no elementwise function, or declares none.
    """
    found: dict[str, str] = {}
    for sample in entry.samples():
        operation = sample.operation
        slopes = operation.function.d if isinstance(operation, Elementwise) else None
        if not isinstance(operation, Elementwise) or slopes is None:
            return {}
        names = operation.function.operands
        writer = _Writer()
        terms = [Term(_SCALAR, name, writer) for name in [*names, "result"]]
        partials = slopes(*terms, operation.variant) if operation.function.choices else slopes(*terms)
        for name, partial in zip(names, partials if isinstance(partials, tuple) else (partials,), strict=True):
            shown = str(partial.value) if isinstance(partial, Term) else str(partial)
            found[f"{name}, {operation.variant}" if operation.variant else name] = shown
    return found
