"""Operations that walk along an axis in steps: every n-th slice, windows that may overlap, and a turn of the axis."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import Dim, ceil_div, constant, floor_div, maximum, modulo, variable
from kina.dims.proposition import Comparison, equal
from kina.lazy import np
from kina.ops.arranging import Pad
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Element, Index, Literal, Pieces, Reduce, Scalar
from kina.ops.shape import FlattenPair
from kina.ops.terms import Term
from kina.types import DType, Tensor

_A, _B, _C, _N = map(variable, "ABCN")
_ONE, _TWO, _THREE = map(constant, (1, 2, 3))


def _f32(*shape: Dim) -> Tensor:
    return Tensor(DType.F32, shape)


def _moved(index: Index, axis: int, *position: Dim, drop: int = 1) -> Index:
    """The index with other positions for the `drop` axes from `axis` on."""
    return (*index[:axis], *position, *index[axis + drop :])


@operation("every", family="shape", torch="x[::n]")
class Every(Operation):
    """Every n-th slice along `axis`, from the first: `[a, b, c, d, e] -> [a, c, e]`. `x[::2]` is the same."""

    shapes = "[..., N, ...] -> [..., cdiv(N, n), ...]"
    example = "every[axis=0] [1, 2, 3, 4, 5] 2  // [1, 3, 5]"

    axis: int = attribute(Kind.AXIS)
    n: Dim = argument(Kind.SIZE)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        rule.require(Comparison(">=", self.n, _ONE), "the step has to be positive")
        return x.with_axis(self.axis, ceil_div(x.shape[self.axis], self.n))

    def reference(self, *operands: Array) -> Array:
        return operands[0][(*[slice(None)] * self.axis, slice(None, None, int(self.n)))]

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, _moved(index, self.axis, index[self.axis] * self.n))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        """Each element at the head of a row of zeros; what is over at the end goes."""
        size, axis = operands[0].shape[self.axis], self.axis
        rows = Pad(axis + 1, constant(0), self.n - 1)(cotangent.expand_dims(axis + 1))
        return FlattenPair(axis)(rows).slice(axis, constant(0), size)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _TWO), (_f32(_A, _B),)),
            Sample(cls(1, _THREE), (_f32(_A, _B),)),
            Sample(cls(1, _C + 1), (_f32(_A, _B, _N),)),
        ]


@operation("roll", family="shape", torch="x.roll(n, dims=axis)")
class Roll(Operation):
    """The slices along `axis` moved `n` places on, round the end: `roll[axis=0] [a, b, c] 1` is `[c, a, b]`.

    `n` may be negative, and more than the size of the axis.
    """

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "roll[axis=0] [1, 2, 3] 1  // [3, 1, 2]"

    axis: int = attribute(Kind.AXIS)
    n: Dim = argument(Kind.DIM)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        return np.roll(operands[0], int(self.n), self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        """The slices that went round the end, then the others: an empty axis has neither."""
        size, position = operands[0].shape[self.axis], index[self.axis]
        shift = modulo(self.n, maximum(size, _ONE))
        around, others = (Element(0, _moved(index, self.axis, position + by - shift)) for by in (size, constant(0)))
        return Pieces(position, ((shift, around), (size, others)))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return Roll(self.axis, -self.n)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _ONE), (_f32(_A, _B),)),
            Sample(cls(1, -_C), (_f32(_A, _B, _N),)),
            Sample(cls(1, _C * 3 + 2), (_f32(_A, _B),)),
        ]


@operation("windows", family="shape", torch="x.unfold(axis, size, step)")
class Windows(Operation):
    """Windows of `size` elements along `axis`, `step` apart: `[..., L, ...] -> [..., W, size, ...]`.

    The elements of a window are `dilation` apart, so that it reaches over `dilation * (size - 1) + 1`, and as many
    windows are taken as fit: `W = (L - dilation * (size - 1) - 1) div step + 1`. Costs nothing by itself.
    """

    shapes = "[..., L, ...] -> [..., W, size, ...]"
    example = "windows[axis=0, size=2, step=1, dilation=1] [1, 2, 3]  // [[1, 2], [2, 3]]"

    axis: int = attribute(Kind.AXIS)
    size: Dim = attribute(Kind.SIZE)
    step: Dim = attribute(Kind.SIZE)
    dilation: Dim = attribute(Kind.SIZE)
    linear = True
    moves = True

    @property
    def reach(self) -> Dim:
        """Over how many elements a window reaches."""
        return self.dilation * (self.size - 1) + 1

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        length = x.shape[self.axis]
        rule.require(Comparison(">=", self.step, _ONE), "the step from window to window has to be positive")
        rule.require(Comparison(">=", self.size, _ONE), "a window has to have an element")
        why = f"a window has to fit into axis {self.axis} of size {length}"
        rule.require(Comparison("<=", self.reach, length), why)
        count = floor_div(length - self.reach, self.step) + 1
        return x.with_shape((*x.shape[: self.axis], count, self.size, *x.shape[self.axis + 1 :]))

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        count = (x.shape[self.axis] - int(self.reach)) // int(self.step) + 1
        starts = np.arange(count)[:, None] * int(self.step)
        return np.take(x, starts + np.arange(int(self.size)) * int(self.dilation), axis=self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        window, element = index[self.axis : self.axis + 2]
        return Element(0, _moved(index, self.axis, window * self.step + element * self.dilation, drop=2))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return OverlapAdd(self.axis, operands[0].shape[self.axis], self.step, self.dilation)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _ONE, _ONE, _ONE), (_f32(_A + 1, _B),)),
            Sample(cls(1, _THREE, _TWO, _ONE), (_f32(_A, _B + 3, _C),)),
            Sample(cls(1, _TWO, _ONE, _N), (_f32(_A, _B + _N + 1),)),
            Sample(cls(0, _THREE, _N + 1, _TWO), (_f32(_A + 5, _B),)),
        ]


@operation("overlap_add", family="shape", torch="F.fold(x, length, size, dilation, stride=step)")
class OverlapAdd(Operation):
    """Windows added up where they came from: `[..., W, size, ...] -> [..., L, ...]`, the adjoint of `windows`.

    Elements in several windows are summed, those in none are 0. Halves are summed in F32.
    """

    shapes = "[..., W, size, ...] -> [..., length, ...]"
    example = "overlap_add[axis=0, length=3, step=1, dilation=1] [[1.0, 2.0], [3.0, 4.0]]  // [1.0, 5.0, 4.0]"

    axis: int = attribute(Kind.AXIS)
    length: Dim = attribute(Kind.SIZE)
    step: Dim = attribute(Kind.SIZE)
    dilation: Dim = attribute(Kind.SIZE)
    linear = True

    def _windows(self, size: Dim) -> Windows:
        return Windows(self.axis, size, self.step, self.dilation)

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        rule.dtype(0, DTypeClass.NUM)
        rule.rank(0, 2)
        if self.axis + 1 >= x.rank:
            rule.refuse(f"overlap_add takes windows along axis {self.axis}, their elements along the next", operand=0)
        count, size = x.shape[self.axis : self.axis + 2]
        reach = self._windows(size).reach
        rule.require(Comparison(">=", self.step, _ONE), "the step from window to window has to be positive")
        rule.require(Comparison(">=", size, _ONE), "a window has to have an element")
        rule.require(Comparison("<=", reach, self.length), f"a window has to fit into {self.length} elements")
        why = f"as many windows are added up as {self.length} elements have"
        rule.require(equal(count, floor_div(self.length - reach, self.step) + 1), why)
        return x.with_shape((*x.shape[: self.axis], self.length, *x.shape[self.axis + 2 :]))

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        windows = np.moveaxis(x, (self.axis, self.axis + 1), (0, 1)).astype(dtype.accumulator.numpy)
        count, size, *others = windows.shape
        total = np.zeros((int(self.length), *others), windows.dtype)
        starts = np.arange(count) * int(self.step)
        for element in range(size):
            total[starts + element * int(self.dilation)] += windows[:, element]
        return np.moveaxis(total.astype(x.dtype), 0, self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        """Over the elements of a window: the one that begins so far ahead, if a window begins there."""
        (x,) = operands
        count, size = x.shape[self.axis : self.axis + 2]
        element = variable("%e")
        zero = Literal(0, x.dtype.accumulator)
        ahead = index[self.axis] - element * self.dilation
        window = floor_div(ahead, self.step)
        here = widened(Element(0, (*index[: self.axis], window, element, *index[self.axis + 1 :])), x.dtype)
        begins = Pieces(modulo(ahead, self.step), ((_ONE, here), (self.step, zero)))
        body = Pieces(ahead, ((constant(0), zero), (count * self.step, begins), (self.length, zero)))
        return narrowed(Reduce("sum", "%e", size, body), x.dtype)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return self._windows(operands[0].shape[self.axis + 1])(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        step = _N + 1
        return [
            Sample(cls(0, _A + 1, _ONE, _ONE), (_f32(_A + 1, _ONE, _B),)),
            Sample(cls(1, _B + 3, _TWO, _ONE), (_f32(_A, floor_div(_B, _TWO) + 1, _THREE, _C),)),
            Sample(cls(1, _B + _N + 1, _ONE, _N), (_f32(_A, _B + 1, _TWO),)),
            Sample(cls(0, _A + 5, step, _TWO), (_f32(floor_div(_A, step) + 1, _THREE, _B),)),
            *(
                Sample(cls(0, _A + 3, _TWO, _ONE), (Tensor(dtype, (floor_div(_A, _TWO) + 1, _THREE)),))
                for dtype in (DType.F64, DType.BF16, DType.I32)
            ),
        ]
