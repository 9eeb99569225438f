"""Division of integers, rounded down, and its remainder. Division by zero ends the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Fault, Operation, Rule, Sample, operation
from kina.ops.scalar import Call, Element, Function, Index, Literal, Scalar
from kina.types import Tensor


class IntegerDivision(Operation):
    """What both share. Operands have one shape: the surface stretches the smaller one first."""

    operand_names = ("x", "y")
    family = "elementwise"
    may_end = True
    primitive: ClassVar[Function]

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.same_rank(0, 1)
        for axis in range(operands[0].rank):
            rule.same_size((0, axis), (1, axis), "the size")
        rule.dtype(0, DTypeClass.INT)
        rule.same_dtype(0, 1)
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        x, y = operands
        zeros = np.argwhere(y == 0)
        if len(zeros):
            place = f" at {zeros[0].tolist()}" if y.ndim else ""
            raise Fault(f"`{self.name}` divides {x[tuple(zeros[0])]} by zero{place}")
        with np.errstate(all="ignore"):
            return np.asarray(getattr(np, _NUMPY[self.primitive])(x, y)).astype(x.dtype)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Call(self.primitive, (Element(0, index), Element(1, index)))

    def demands(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Call("ne", (Element(1, index), Literal(0, operands[1].dtype)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        """None: most drawn operands have a zero among them, which ends the program."""
        return []


_NUMPY = {"floor_div": "floor_divide", "remainder": "remainder"}


@operation("floor_div", family="elementwise", torch="x // y")
class FloorDiv(IntegerDivision):
    """`x / y` of integers, rounded down: `-7 / 2` is -4. The least integer by -1 wraps. By zero it is an error."""

    shapes = "[...S], [...S] -> [...S]"
    example = "[7, -7] div 2  // [3, -4]"

    primitive = "floor_div"


@operation("remainder", family="elementwise", torch="x % y")
class Remainder(IntegerDivision):
    """`x mod y` of integers, with the sign of y: `x = floor_div x y * y + remainder x y`. By zero it is an error."""

    shapes = "[...S], [...S] -> [...S]"
    example = "[7, -7] mod 3  // [1, 2]"

    primitive = "remainder"
