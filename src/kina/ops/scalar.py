"""What one element of a result is: the scalar expressions that operations lower to.

An operation's lowering says, for a symbolic index into its result, which scalar expression gives
that element. Index arithmetic is dimension arithmetic (`Dim`): loop variables are dimension
variables whose names begin with `%`, so that indices normalise, substitute and compare as sizes do.

    rsqrt x        at [i, j]    Call("rsqrt", (Element(0, (i, j)),))
    transpose x    at [i, j]    Element(0, (j, i))
    reduce[sum]    at [i]       Reduce("sum", "%r1", D, Element(0, (i, %r1)))

Nothing here knows of loops, buffers or vectors: the kernel compiler decides those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from kina.dims.dim import Dim
from kina.types import DType

Index = tuple[Dim, ...]

Function = Choice[
    "add", "sub", "mul", "div", "floor_div", "remainder", "neg", "abs", "min", "max", "pow",
    "exp", "log", "log1p", "expm1", "sqrt", "sin", "cos", "tan", "tanh", "erf",
    "floor", "ceil", "round",
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select", "is_nan",
    "shift_right", "threefry",
]  # fmt: skip
"""The primitives every backend must know. IEEE throughout: `min`/`max` give NaN if either operand is
NaN; `round` goes to even; integer `add sub mul neg` wrap; `abs` of the smallest integer wraps.
`floor_div` and `remainder` are of integers, and their divisors are not 0.
`shift_right` of an integer brings zeros in from the left. `threefry` is of a key and a counter, I64, and gives the 64
bits that `ops.random` says."""

Reduction = Choice["sum", "prod", "max", "min", "any", "all"]
"""Identities: 0, 1, the least value (-inf), the greatest (inf), false, true. `max`/`min` propagate NaN."""


@dataclass(frozen=True, slots=True)
class Element:
    """The element of operand number `operand` at `index`."""

    operand: int
    index: Index


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant, rounded once to `dtype`."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True, slots=True)
class SizeValue:
    """A dimension or index expression as an `I64` value."""

    dim: Dim


@dataclass(frozen=True, slots=True)
class Call:
    """A primitive on scalars of one dtype (`select` has a Bool first; comparisons give Bool)."""

    function: Function
    arguments: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion: float to integer truncates towards zero, number to Bool is `!= 0`."""

    operand: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
class Reduce:
    """`body` combined over `variable` from 0 to `extent`; the identity where the extent is 0."""

    kind: Reduction
    variable: str
    extent: Dim
    body: Scalar


@dataclass(frozen=True, slots=True)
class Pieces:
    """The first piece whose bound is above `position`; the last one has no bound that matters.

    Only the chosen piece is evaluated, so that an index outside the others is never read.
    """

    position: Dim
    pieces: tuple[tuple[Dim, Scalar], ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """`body` where `variable` is `position`, an I64 that is known to lie in [0, `extent`).

    So a computed number takes part in index arithmetic like a loop variable:

        gather table ids   at [i, d]   Lookup("%at", V, Element(1, (i,)), Element(0, (%at, d)))
    """

    variable: str
    extent: Dim
    position: Scalar
    body: Scalar


Scalar = Element | Literal | SizeValue | Call | Cast | Reduce | Pieces | Lookup
