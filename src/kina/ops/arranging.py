"""Operations that pick, order, repeat and surround elements along one axis."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import Dim, constant, modulo, variable
from kina.dims.proposition import Comparison, equal
from kina.lazy import np
from kina.ops.base import Array, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.ops.quantised import keep_rows_whole
from kina.ops.scalar import Element, Index, Literal, Pieces, Scalar
from kina.ops.shape import Reshape
from kina.ops.terms import Term
from kina.types import DType, Shape, Tensor

_A, _B, _C, _N = map(variable, "ABCN")
_ZERO, _ONE = constant(0), constant(1)


def _f32(*shape: Dim) -> Tensor:
    return Tensor(DType.F32, shape)


def _moved(index: Index, axis: int, position: Dim) -> Index:
    """The index with another position along one axis."""
    return (*index[:axis], position, *index[axis + 1 :])


@operation("slice", family="shape", torch="x.narrow(axis, start, stop - start)")
class Slice(Operation):
    """The elements from `start` up to but not including `stop` along `axis`: `slice[axis=1] x 2 n`.

    The bounds are dimensions, proved to lie inside: `0 <= start <= stop <= size`. `x[:, 2:n]` is the same.
    """

    shapes = "[..., N, ...] -> [..., stop - start, ...]"
    example = "slice[axis=0] [10, 20, 30, 40] 1 3  // [20, 30]"

    axis: int = attribute(Kind.AXIS)
    start: Dim = argument(Kind.SIZE)
    stop: Dim = argument(Kind.SIZE)
    linear = True
    moves = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        keep_rows_whole(rule, x, self.axis, "a slice along it")
        size = x.shape[self.axis]
        inside = f"inside axis {self.axis} of size {size}"
        rule.require(Comparison("<=", _ZERO, self.start), f"the slice has to start {inside}")
        rule.require(Comparison("<=", self.start, self.stop), "a slice cannot end before it starts")
        rule.require(Comparison("<=", self.stop, size), f"the slice has to end {inside}")
        return x.with_axis(self.axis, self.stop - self.start)

    def reference(self, *operands: Array) -> Array:
        inside = slice(int(self.start), int(self.stop))
        return operands[0][(*[slice(None)] * self.axis, inside)]

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, _moved(index, self.axis, index[self.axis] + self.start))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        size = operands[0].shape[self.axis]
        return Pad(self.axis, self.start, size - self.stop)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _ZERO, _A), (_f32(_A + _C, _B),)),
            Sample(cls(1, _A, _A + _B), (_f32(_C, _A + _B),)),
            Sample(cls(1, _ONE, _B + 1), (_f32(_A, _B + 2, _C),)),
        ]


@operation("flip", family="shape", torch="x.flip(axis)")
class Flip(Operation):
    """The slices along `axis` in reverse order."""

    shapes = "[..., N, ...] -> [..., N, ...]"
    example = "flip[axis=0] [1, 2, 3]  // [3, 2, 1]"

    axis: int = attribute(Kind.AXIS)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        return np.flip(operands[0], self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        last = operands[0].shape[self.axis] - 1
        return Element(0, _moved(index, self.axis, last - index[self.axis]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return self(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(axis), (_f32(_A, _B, _C),)) for axis in (0, 1, 2)]


@operation("repeat", family="shape", torch="torch.cat([x] * n, dim=axis)")
class Repeat(Operation):
    """The whole of `axis` `n` times: `[a, b] -> [a, b, a, b]`. See `repeat_interleave` for `[a, a, b, b]`."""

    shapes = "[..., N, ...] -> [..., N * n, ...]"
    example = "repeat[axis=0] [1, 2] 2  // [1, 2, 1, 2]"

    axis: int = attribute(Kind.AXIS)
    n: Dim = argument(Kind.SIZE)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        return x.with_axis(self.axis, x.shape[self.axis] * self.n)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        times = [1] * x.ndim
        times[self.axis] = int(self.n)
        return np.tile(x, times)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        position = modulo(index[self.axis], operands[0].shape[self.axis])
        return Element(0, _moved(index, self.axis, position))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.unflatten(self.axis, (self.n, operands[0].shape[self.axis])).sum([self.axis])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(0, _C), (_f32(_A, _B),)), Sample(cls(1, constant(3)), (_f32(_A, _B),))]


@operation("pad", family="shape", torch="F.pad(x, ...)")
class Pad(Operation):
    """Zeros (`false` for Bool) around the elements along one axis: `pad[axis=1, lo=1, hi=2] x`."""

    shapes = "[..., N, ...] -> [..., lo + N + hi, ...]"
    example = "pad[axis=0, lo=1, hi=2] [5.0]  // [0.0, 5.0, 0.0, 0.0]"

    axis: int = attribute(Kind.AXIS)
    lo: Dim = attribute(Kind.SIZE)
    hi: Dim = attribute(Kind.SIZE)
    linear = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        return x.with_axis(self.axis, x.shape[self.axis] + self.lo + self.hi)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        widths = [(0, 0)] * x.ndim
        widths[self.axis] = (int(self.lo), int(self.hi))
        return np.pad(x, widths)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        (x,) = operands
        position, size = index[self.axis], x.shape[self.axis]
        zero = Literal(False if x.dtype is DType.BOOL else 0, x.dtype)
        inside = Element(0, _moved(index, self.axis, position - self.lo))
        return Pieces(position, ((self.lo, zero), (self.lo + size, inside), (self.lo + size + self.hi, zero)))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.slice(self.axis, self.lo, self.lo + operands[0].shape[self.axis])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _ONE, _ZERO), (_f32(_A, _B),)),
            Sample(cls(1, _C, constant(2)), (_f32(_A, _B),)),
            Sample(cls(1, _ONE, _ONE), (Tensor(DType.BOOL, (_A, _B)),)),
        ]


@operation("stack", family="shape", torch="torch.stack([a, b], dim=axis)")
class Stack(Operation):
    """The operands, all of one shape, side by side along a new axis."""

    shapes = "[..., ...], [..., ...] -> [..., K, ...] for K operands"
    example = "stack[axis=1] [1, 2] [3, 4]  // [[1, 3], [2, 4]]"

    axis: int = attribute(Kind.NEW_AXIS)
    operand_names = ("first", "rest")
    variadic = True
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        first = operands[0]
        for position in range(1, len(operands)):
            rule.same_dtype(0, position)
            rule.same_rank(0, position)
            for axis in range(first.rank):
                rule.same_size((0, axis), (position, axis), f"axis {axis}")
        return first.with_shape((*first.shape[: self.axis], constant(len(operands)), *first.shape[self.axis :]))

    def reference(self, *operands: Array) -> Array:
        return np.stack(operands, self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        inner = (*index[: self.axis], *index[self.axis + 1 :])
        if len(operands) == 1:
            return Element(0, inner)
        pieces = tuple((constant(n + 1), Element(n, inner)) for n in range(len(operands)))
        return Pieces(index[self.axis], pieces)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        one = cotangent.slice(self.axis, constant(number), constant(number + 1))
        return one.squeeze(self.axis)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        pair, three = (_f32(_A, _B),) * 2, (_f32(_A),) * 3
        return [*(Sample(cls(axis), pair) for axis in (0, 1, 2)), Sample(cls(1), three), Sample(cls(0), (_f32(_A),))]


@operation("unflatten", family="shape", torch="x.unflatten(axis, sizes)")
class Unflatten(Operation):
    """Splits `axis` into axes of the given sizes, whose product is its size: the dual of `flatten_pair`."""

    shapes = "[..., N, ...] -> [..., ...sizes, ...]"
    example = "unflatten[axis=0] [1, 2, 3, 4] [2, 2]  // [[1, 2], [3, 4]]"

    axis: int = attribute(Kind.AXIS)
    sizes: Shape = argument(Kind.SHAPE)
    linear = True

    def _inner(self, position: int) -> Dim:
        """How many elements of the axis one step along a new axis is."""
        total = _ONE
        for size in self.sizes[position + 1 :]:
            total = total * size
        return total

    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        size = x.shape[self.axis]
        rule.require(
            equal(self._inner(-1), size), f"the sizes multiply to {size}, the size of axis {self.axis}"
        )
        return x.with_shape((*x.shape[: self.axis], *self.sizes, *x.shape[self.axis + 1 :]))

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        return x.reshape(*x.shape[: self.axis], *map(int, self.sizes), *x.shape[self.axis + 1 :])

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        end = self.axis + len(self.sizes)
        merged = _ZERO
        for n, i in enumerate(index[self.axis : end]):
            merged = merged + i * self._inner(n)
        return Element(0, (*index[: self.axis], merged, *index[end:]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        end = self.axis + len(self.sizes)
        shape = cotangent.shape
        return Reshape((*shape[: self.axis], operands[0].shape[self.axis], *shape[end:]))(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, (_A, _B)), (_f32(_A * _B, _C),)),
            Sample(cls(1, (_A, _B, _C)), (_f32(_N, _A * _B * _C),)),
        ]
