"""Splits a differentiated block in two: what does not depend on the tangents, and what is linear in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kina.autodiff.errors import Unsupported
from kina.core.ir import Apply, Statement, Value, made_by


@dataclass(frozen=True, slots=True)
class Halves:
    """`first` computes everything that `linear`, which is linear in the tangents, needs."""

    first: tuple[Statement, ...]
    linear: tuple[Statement, ...]


def unzip(statements: Iterable[Statement], linear: set[Value]) -> Halves:
    """The halves of statements as `forward` makes them; `linear` has what depends on the tangents."""
    first: list[Statement] = []
    rest: list[Statement] = []
    for statement in statements:
        if linear.isdisjoint(made_by(statement)):
            first.append(statement)
        elif isinstance(statement, Apply):
            rest.append(statement)
        else:
            form = type(statement).__name__.lower()
            raise Unsupported(f"the derivative of `{form}` in reverse", statement.span)
    return Halves(tuple(first), tuple(rest))
