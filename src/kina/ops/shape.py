"""Operations that move elements without changing them."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import Dim, constant, floor_div, modulo, product, variable
from kina.dims.proposition import equal
from kina.lazy import np
from kina.ops.base import Array, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.ops.quantised import keep_rows_whole
from kina.ops.scalar import Element, Index, Pieces, Scalar
from kina.ops.terms import Term
from kina.types import DType, Shape, Tensor, shape_text

_A, _B, _C, _D = map(variable, "ABCD")
_ONE = constant(1)


def _f32(*shape: Dim) -> Tensor:
    return Tensor(DType.F32, shape)


def _numbers(shape: Shape) -> tuple[int, ...]:
    return tuple(map(int, shape))


def row_major(index: Index, shape: Shape) -> Dim:
    """The flat position of an index."""
    flat = constant(0)
    for i, size in zip(index, shape, strict=True):
        flat = flat * size + i
    return flat


def unflatten_index(flat: Dim, shape: Shape) -> Index:
    """The index whose flat position this is; the first axis needs no `mod`."""
    index: list[Dim] = []
    for axis in range(len(shape)):
        inner = floor_div(flat, product(shape[axis + 1 :]))
        index.append(inner if axis == 0 else modulo(inner, shape[axis]))
    return tuple(index)


def _agreeing(left: Shape, right: Shape) -> int:
    """How many sizes agree from the left: these axes keep their indices."""
    count = 0
    while count < min(len(left), len(right)) and left[count] is right[count]:
        count += 1
    return count


@operation("broadcast", family="shape", torch="x.expand(shape)")
class Broadcast(Operation):
    """`x` laid against the right end of a larger shape: new leading axes, and axes that are literally 1, stretch.

    `broadcast weight [B, S, D]` of a `[D]`. Costs nothing: it is a stride of 0.
    """

    shapes = "[...S] -> shape"
    example = "broadcast [1.0, 2.0] [2, 2]  // [[1.0, 2.0], [1.0, 2.0]]"

    shape: Shape = argument(Kind.SHAPE)
    linear = True
    moves = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        if x.rank > len(self.shape):
            rule.refuse(
                f"broadcast cannot remove axes: {shape_text(x.shape)} has more than {shape_text(self.shape)}",
                operand=0,
            )
        offset = len(self.shape) - x.rank
        for axis, size in enumerate(x.shape):
            if size is not _ONE:
                rule.require(
                    equal(size, self.shape[offset + axis]),
                    f"axis {axis} of the operand is not literally 1, so it cannot stretch",
                )
        return x.with_shape(self.shape)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        return np.broadcast_to(x, dtype.array_shape(_numbers(self.shape)))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        (x,) = operands
        tail = index[len(index) - x.rank :]
        return Element(0, tuple(constant(0) if size is _ONE else i for i, size in zip(tail, x.shape, strict=True)))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        x = operands[0]
        leading = len(self.shape) - x.type.rank
        stretched = [a for a, size in enumerate(x.shape) if size is _ONE and self.shape[leading + a] is not _ONE]
        return cotangent.sum(range(leading)).sum_keep(stretched)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        shape = (_A, _B, _C)
        return [
            Sample(cls(shape), (operand,))
            for operand in (
                _f32(),
                _f32(_C),
                _f32(_B, _ONE),
                _f32(_A, _ONE, _C),
                _f32(_A, _B, _C),
                _f32(_ONE, _ONE, _ONE),
            )
        ]


@operation("reshape", family="shape", torch="x.reshape(shape)")
class Reshape(Operation):
    """Merges neighbouring axes and splits an axis into neighbours; never mixes axes.

    `reshape x [B * H, S, D]` of a `[B, H, S, D]`. A shape of equal volume that would mix axes is an
    error: `transpose` first, or say `reinterpret` if the row-major order is meant.
    """

    shapes = "[...S] -> shape"
    example = "reshape [1, 2, 3, 4] [2, 2]  // [[1, 2], [3, 4]]"

    shape: Shape = argument(Kind.SHAPE)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.regroups(operands[0].shape, self.shape)
        return operands[0].with_shape(self.shape)

    def reference(self, *operands: Array) -> Array:
        return np.reshape(operands[0], _numbers(self.shape))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        source, target = operands[0].shape, self.shape
        left = _agreeing(source, target)
        right = _agreeing(source[left:][::-1], target[left:][::-1])
        end, target_end = len(source) - right, len(target) - right
        flat = row_major(index[left:target_end], target[left:target_end])
        return Element(0, (*index[:left], *unflatten_index(flat, source[left:end]), *index[target_end:]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return Reshape(operands[0].shape)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls((_A * _B, _C)), (_f32(_A, _B, _C),)),
            Sample(cls((_A, _B * _C)), (_f32(_A, _B, _C),)),
            Sample(cls((_A, _B, _C)), (_f32(_A, _B * _C),)),
            Sample(cls((_A, _ONE, _B)), (_f32(_A, _B),)),
            Sample(cls((_A, _B * _C, _D)), (_f32(_A * _B, _C, _D),)),
            Sample(cls((_A, _B)), (_f32(_A, _ONE, _B),)),
        ]


@operation("reinterpret", family="shape", torch="x.reshape(shape)")
class Reinterpret(Operation):
    """Any shape of equal volume, in row-major order, for whoever means it; see `reshape`."""

    shapes = "[...S] -> shape"
    example = "reinterpret [[1, 2, 3], [4, 5, 6]] [3, 2]  // [[1, 2], [3, 4], [5, 6]]"

    shape: Shape = argument(Kind.SHAPE)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        rule.require(equal(product(x.shape), product(self.shape)), "reinterpret keeps the number of elements")
        return x.with_shape(self.shape)

    def reference(self, *operands: Array) -> Array:
        return np.reshape(operands[0], _numbers(self.shape))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, unflatten_index(row_major(index, self.shape), operands[0].shape))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return Reinterpret(operands[0].shape)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls((_B, _A)), (_f32(_A, _B),)),
            Sample(cls((_C, _B, _A)), (_f32(_A, _B, _C),)),
        ]


@operation("transpose", family="shape", torch="x.permute(axes)")
class Transpose(Operation):
    """The axes in another order: axis `i` of the result is axis `order[i]` of `x`. Costs nothing by itself."""

    shapes = "[...S] -> S in the given order"
    example = "transpose [[1, 2, 3], [4, 5, 6]] [1, 0]  // [[1, 4], [2, 5], [3, 6]]"

    order: tuple[int, ...] = argument(Kind.PERMUTATION)
    linear = True
    moves = True
    reads_quantised = True

    def takes_apart(self, operand: Tensor) -> bool:
        return operand.rank > 0 and self.order[-1] != operand.rank - 1

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        if self.takes_apart(x):
            keep_rows_whole(rule, x, x.rank - 1, "transpose")
        return x.with_shape(tuple(x.shape[axis] for axis in self.order))

    def reference(self, *operands: Array) -> Array:
        return np.transpose(operands[0], self.order)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, tuple(index[self.order.index(axis)] for axis in range(len(index))))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.transpose([self.order.index(axis) for axis in range(len(self.order))])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls((1, 0)), (_f32(_A, _B),)),
            Sample(cls((0, 1, 3, 2)), (_f32(_A, _B, _C, _D),)),
            Sample(cls((2, 0, 1)), (_f32(_A, _B, _C),)),
        ]


@operation("expand_dims", family="shape", torch="x.unsqueeze(axis)")
class ExpandDims(Operation):
    """A new axis of size 1 at `axis` of the result."""

    shapes = "[..., ...] -> [..., 1, ...]"
    example = "expand_dims[axis=1] [1.0, 2.0]  // [[1.0], [2.0]]"

    axis: int = attribute(Kind.NEW_AXIS)
    linear = True
    moves = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        keep_rows_whole(rule, operands[0], self.axis - 1, "a new last axis")
        shape = operands[0].shape
        return operands[0].with_shape((*shape[: self.axis], _ONE, *shape[self.axis :]))

    def reference(self, *operands: Array) -> Array:
        return np.expand_dims(operands[0], self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, (*index[: self.axis], *index[self.axis + 1 :]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return Squeeze(self.axis)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(axis), (_f32(_A, _B),)) for axis in (0, 1, 2)]


@operation("squeeze", family="shape", torch="x.squeeze(axis)")
class Squeeze(Operation):
    """Drops an axis, which must be provably 1."""

    shapes = "[..., 1, ...] -> [..., ...]"
    example = "squeeze[axis=1] [[1.0], [2.0]]  // [1.0, 2.0]"

    axis: int = attribute(Kind.AXIS)
    linear = True
    moves = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        keep_rows_whole(rule, x, self.axis, "squeeze along it")
        rule.require(equal(x.shape[self.axis], _ONE), f"squeeze drops axis {self.axis}, so its size has to be 1")
        return x.with_shape((*x.shape[: self.axis], *x.shape[self.axis + 1 :]))

    def reference(self, *operands: Array) -> Array:
        return np.squeeze(operands[0], self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, (*index[: self.axis], constant(0), *index[self.axis :]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return ExpandDims(self.axis)(cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(0), (_f32(_ONE, _A),)), Sample(cls(1), (_f32(_A, _ONE, _B),))]


@operation("flatten_pair", family="shape", torch="x.flatten(axis, axis + 1)")
class FlattenPair(Operation):
    """Merges `axis` and the one after it: `[..., H, D, ...] -> [..., H * D, ...]`."""

    shapes = "[..., M, N, ...] -> [..., M * N, ...]"
    example = "flatten_pair[axis=0] [[1, 2], [3, 4]]  // [1, 2, 3, 4]"

    axis: int = attribute(Kind.AXIS)
    linear = True

    def _shape(self, shape: Shape) -> Shape:
        return (*shape[: self.axis], shape[self.axis] * shape[self.axis + 1], *shape[self.axis + 2 :])

    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        if self.axis + 1 >= x.rank:
            rule.refuse(
                f"flatten_pair merges axes {self.axis} and {self.axis + 1}, but axis {self.axis} is the last", operand=0
            )
        return x.with_shape(self._shape(x.shape))

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        return x.reshape(*x.shape[: self.axis], x.shape[self.axis] * x.shape[self.axis + 1], *x.shape[self.axis + 2 :])

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        inner = operands[0].shape[self.axis + 1]
        merged = index[self.axis]
        pair = (floor_div(merged, inner), modulo(merged, inner))
        return Element(0, (*index[: self.axis], *pair, *index[self.axis + 1 :]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.unflatten(self.axis, operands[0].shape[self.axis : self.axis + 2])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(axis), (_f32(_A, _B, _C),)) for axis in (0, 1)]


@operation("repeat_interleave", family="shape", torch="x.repeat_interleave(n, dim=axis)")
class RepeatInterleave(Operation):
    """Repeats each slice along `axis` `n` times in a row: `[a, b] -> [a, a, b, b]`.

    Used for grouped-query attention, where several query heads share a key/value head.
    """

    shapes = "[..., N, ...] -> [..., N * n, ...]"
    example = "repeat_interleave[axis=0] [1, 2] 3  // [1, 1, 1, 2, 2, 2]"

    axis: int = attribute(Kind.AXIS)
    n: Dim = argument(Kind.SIZE)
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        return x.with_axis(self.axis, x.shape[self.axis] * self.n)

    def reference(self, *operands: Array) -> Array:
        return np.repeat(operands[0], int(self.n), axis=self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        source = floor_div(index[self.axis], self.n)
        return Element(0, (*index[: self.axis], source, *index[self.axis + 1 :]))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.unflatten(self.axis, (operands[0].shape[self.axis], self.n)).sum([self.axis + 1])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0, _C), (_f32(_A, _B),)),
            Sample(cls(1, constant(2)), (_f32(_A, _B),)),
            Sample(cls(1, _D), (_f32(_A, _B, _C),)),
        ]


@operation("concat", family="shape", torch="torch.cat([a, b], dim=axis)")
class Concat(Operation):
    """The operands one after the other along `axis`; all other axes must agree: `concat[axis=2] cache new`."""

    shapes = "[..., M, ...], [..., N, ...] -> [..., M + N, ...]"
    example = "concat[axis=0] [1, 2] [3]  // [1, 2, 3]"

    axis: int = attribute(Kind.AXIS)
    operand_names = ("first", "rest")
    variadic = True
    linear = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        first = operands[0]
        total = first.shape[self.axis]
        for position in range(1, len(operands)):
            rule.same_dtype(0, position)
            rule.same_rank(0, position)
            for axis in range(first.rank):
                if axis != self.axis:
                    rule.same_size((0, axis), (position, axis), f"axis {axis}")
            total = total + operands[position].shape[self.axis]
        return first.with_axis(self.axis, total)

    def reference(self, *operands: Array) -> Array:
        return np.concatenate(operands, axis=self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        position = index[self.axis]
        start = constant(0)
        pieces: list[tuple[Dim, Scalar]] = []
        for number, x in enumerate(operands):
            inner = (*index[: self.axis], position - start, *index[self.axis + 1 :])
            start = start + x.shape[self.axis]
            pieces.append((start, Element(number, inner)))
        return pieces[0][1] if len(pieces) == 1 else Pieces(position, tuple(pieces))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        sizes = [x.shape[self.axis] for x in operands]
        start = sum(sizes[:number], constant(0))
        return cotangent.slice(self.axis, start, start + sizes[number])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [
            Sample(cls(0), (_f32(_A, _B), _f32(_C, _B))),
            Sample(cls(1), (_f32(_A, _B), _f32(_A, _ONE), _f32(_A, _C))),
            Sample(cls(2), (_f32(_A, _B, _C, _D), _f32(_A, _B, _ONE, _D))),
            Sample(cls(0), (_f32(_A),)),
        ]
