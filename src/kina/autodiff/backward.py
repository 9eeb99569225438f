"""Reverse mode, second half: the adjoint of statements that are linear in the tangents.

They are walked from the last to the first; each hands the cotangent of what it made on to what it was made from
(`Operation.transpose`). A value that was used several times gets the sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kina.autodiff.builder import Builder
from kina.core.ir import Apply, Statement, Value
from kina.ops.terms import Term


@dataclass(slots=True)
class Backward:
    """`linear` are the values that stand for tangents: they exist no longer, only their cotangents do."""

    builder: Builder
    linear: set[Value]
    cotangents: dict[Value, Term] = field(default_factory=dict)
    """Those that are not zero, of what has been reached so far."""

    def add(self, value: Value, cotangent: Term | None) -> None:
        if cotangent is not None and value in self.linear:
            known = self.cotangents.get(value)
            self.cotangents[value] = cotangent if known is None else known + cotangent

    def statements(self, statements: Iterable[Statement]) -> None:
        """Emits the adjoint of statements of which each makes linear values."""
        for statement in reversed(tuple(statements)):
            match statement:
                case Apply():
                    self._apply(statement)
                case _:
                    raise TypeError(f"{statement} is not linear")

    def _apply(self, statement: Apply) -> None:
        cotangent = self.cotangents.pop(statement.result, None)
        if cotangent is None:
            return
        self.builder.span = statement.span
        operands = [self.builder.term(a) for a in statement.arguments]
        for number, operand in enumerate(statement.arguments):
            if operand in self.linear:
                self.add(operand, statement.operation.transpose(cotangent, operands, number))
