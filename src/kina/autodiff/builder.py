"""Emits core: what the rules of operations write as expressions becomes statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NoReturn

from kina.core.copying import Naming
from kina.core.ir import Apply, Statement, Value
from kina.core.names import made_up
from kina.ops.base import Operation, result_type
from kina.ops.creation import Constant, Full, Zeros
from kina.ops.shape import Broadcast
from kina.ops.terms import Term, named
from kina.source import Span
from kina.types import Tensor


class _Trusting:
    """A type rule's demands, all taken as met: what a derivative demands holds where its operation's does."""

    def __getattr__(self, name: str) -> Any:
        return self._refuse if name == "refuse" else lambda *_args, **_named: None

    def _refuse(self, message: str, **_named: object) -> NoReturn:
        raise AssertionError(f"a derivative is not well typed: {message}")


_TRUSTING: Any = _Trusting()
_MUL, _ZERO_MUL = named("mul"), named("zero_mul")


@dataclass(slots=True)
class Builder:
    """A block that is being built. Names are those of the function that it is part of."""

    names: Naming
    statements: list[Statement] = field(default_factory=list)
    made: dict[Value, Apply] = field(default_factory=dict)
    """What was emitted here, to know constants by."""
    span: Span | None = None
    """Where in the source what is emitted comes from."""

    def term(self, value: Value) -> Term:
        return Term(value.type, value, self)

    def apply(self, operation: Operation, operands: Sequence[Term]) -> Term:
        return self.term(self.emit(operation, tuple(x.value for x in operands)))

    def emit(self, operation: Operation, arguments: tuple[Value, ...], name: str | None = None) -> Value:
        """Appends `result = operation(arguments)`."""
        if operation == _ZERO_MUL and any(map(self._finite, arguments)):
            operation = _MUL  # 0 times a number is 0
        result = self.value(name, result_type(_TRUSTING, operation, tuple(a.type for a in arguments)))
        self.copy(Apply(result, operation, arguments, self.span))
        return result

    def copy(self, statement: Apply) -> None:
        """Appends a statement as it is."""
        self.made[statement.result] = statement
        self.statements.append(statement)

    def value(self, name: str | None, type_: Tensor) -> Value:
        """A new value, for a statement that the caller makes."""
        return Value(self.names.values.fresh(name), type_)

    def beside(self, prefix: str, value: Value, type_: Tensor | None = None) -> Value:
        """A new value that is called after another, if that one has a name of its own."""
        name = None if made_up(value.name) else prefix + value.name
        return self.value(name, value.type if type_ is None else type_)

    def zeros(self, type_: Tensor) -> Value:
        return self.emit(Zeros(type_.dtype, type_.shape), ())

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """What is emitted inside goes into a list of its own."""
        outside, self.statements = self.statements, []
        try:
            yield self.statements
        finally:
            self.statements = outside

    def _finite(self, value: Value) -> bool:
        """Whether it is a number everywhere, known here."""
        statement = self.made.get(value)
        while statement is not None and isinstance(statement.operation, Full | Broadcast):
            statement = self.made.get(statement.arguments[0])
        return (
            statement is not None
            and isinstance(statement.operation, Constant)
            and all(map(isfinite, statement.operation.values))
        )
