"""What a dimension polynomial is made of: variables, and the operations that are not polynomial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kina.dims.dim import Dim

AtomKey = tuple[int, str]
"""What atoms are sorted by: variables by name, then the others by text."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A named size. Names are unique within a function."""

    name: str
    key: AtomKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (0, self.name))

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Binary:
    first: Dim
    second: Dim
    key: AtomKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (1, str(self)))

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class FloorDiv(_Binary):
    """`first div second`, rounded towards minus infinity; defined where `second` is positive, as are all divisions."""

    __hash__ = _Binary.__hash__

    def __str__(self) -> str:
        return f"{self.first.factor_text()} div {self.second.factor_text()}"


@dataclass(frozen=True, slots=True)
class Modulo(_Binary):
    """`first mod second`, in `[0, second)`."""

    __hash__ = _Binary.__hash__

    def __str__(self) -> str:
        return f"{self.first.factor_text()} mod {self.second.factor_text()}"


@dataclass(frozen=True, slots=True)
class CeilDiv(_Binary):
    """`first / second`, rounded up."""

    __hash__ = _Binary.__hash__

    def __str__(self) -> str:
        return f"cdiv({self.first}, {self.second})"


@dataclass(frozen=True, slots=True)
class Minimum(_Binary):
    """The smaller of the two."""

    __hash__ = _Binary.__hash__

    def __str__(self) -> str:
        return f"min({self.first}, {self.second})"


@dataclass(frozen=True, slots=True)
class Maximum(_Binary):
    """The larger of the two."""

    __hash__ = _Binary.__hash__

    def __str__(self) -> str:
        return f"max({self.first}, {self.second})"


Atom = Variable | FloorDiv | Modulo | CeilDiv | Minimum | Maximum
Monomial = tuple[Atom, ...]
"""Atoms of a product, sorted, with repetition; the empty monomial stands for 1."""


def parts(atom: Atom) -> tuple[Dim, ...]:
    """The dimension expressions inside an atom, in order; none for a variable."""
    return () if isinstance(atom, Variable) else (atom.first, atom.second)


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The atoms of `monomial` left when those of `divisor` are taken out, or None where one is missing."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
