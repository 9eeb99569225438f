"""Operations that read at computed positions. A position is a number of `Idx[V]`; `to_idx` makes one of an integer."""

from __future__ import annotations

from collections.abc import Sequence

from kina.dims.dim import Dim, constant, product, variable
from kina.dims.proposition import at_most
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Fault, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.ops.creation import Iota
from kina.ops.quantised import WEIGHTS, as_numbers, keep_rows_whole
from kina.ops.scalar import Call, Cast, Element, Index, Lookup, Scalar, SizeValue
from kina.ops.terms import Term
from kina.types import DType, Tensor

_A, _B, _C, _D, _N = map(variable, "ABCDN")
_AT = "%at"
"""The variable that stands for a position which was looked up."""

CHECKED = ("to_idx", "gather", "take_along", "one_hot", "dynamic_slice", "update_slice", "scatter")
"""On whose behalf integers are checked to be positions."""


def _f32(*shape: Dim) -> Tensor:
    return Tensor(DType.F32, shape)


def positions(bound: Dim, *shape: Dim) -> Tensor:
    """A tensor of positions along an axis of size `bound`."""
    return Tensor(DType.I64, shape, bound)


def moved(index: Index, axis: int, *place: Dim) -> Index:
    """The index with other positions at one of its axes."""
    return (*index[:axis], *place, *index[axis + 1 :])


def out_of_range(what: str, value: int, place: Sequence[int], bound: int) -> str:
    """What is wrong with a number that is no position. `place` is where it stands among the numbers."""
    at = f" at {list(place)}" if place else ""
    allowed = f"it has to lie in [0, {bound})" if bound > 0 else "the axis is empty"
    return f"{what}: the index {value}{at} is out of range: {allowed}"


@operation("to_idx", family="indexing", torch="x")
class ToIdx(Operation):
    """Integers as positions along an axis of `bound`, of type `Idx[bound]`: each is checked when the program runs.

    `to_idx ids V`. A number outside `[0, bound)` ends the program with an error that names its place; a negative one
    does not count from the end. Operations that take positions check plain integers in this way themselves.
    """

    shapes = "[...S] -> Idx[bound][...S]"
    example = "gather[axis=0] [1.5, 2.5, 3.5] (to_idx [2, 0] 3)  // [3.5, 1.5]"

    bound: Dim = argument(Kind.SIZE)
    what: str = attribute(Kind.CHOICE, CHECKED, default="to_idx")
    positions = 0
    keeps_dtype = False
    may_end = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.dtype(0, DTypeClass.INT)
        return Tensor(DType.I64, operands[0].shape, self.bound)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        bound = int(self.bound)
        wrong = (x < 0) | (x >= bound)
        if wrong.any():
            place = tuple(int(n) for n in np.argwhere(wrong)[0])
            raise Fault(out_of_range(self.what, int(x[place]), place, bound))
        return x.astype(np.int64)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, index) if operands[0].dtype is DType.I64 else Cast(Element(0, index), DType.I64)

    def demands(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        x = self.lower(operands, index)
        return Call("and", (Call("ge", (x, SizeValue(constant(0)))), Call("lt", (x, SizeValue(self.bound)))))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        dtypes = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
        found = [Sample(cls(_A + 1), (Tensor(dtype, (_A, _B)),), below=_A + 1) for dtype in dtypes]
        return [*found, Sample(cls(_A + 1, "gather"), (Tensor(DType.I64, ()),), below=_A + 1)]


@operation("gather", family="indexing", torch="torch.index_select(table, axis, ids)")
class Gather(Operation):
    """The slices of `table` along `axis` that `ids`, of any shape, name: `[V, D], [B, S] -> [B, S, D]`.

    `gather[axis=0] table ids` is an embedding; the axes of `ids` stand in the place of `axis`. Positions of type
    `Idx[V]` cost no check; other integers are checked when the program runs. Of a quantised table only those rows are
    read, as F32; at a single position, a scalar, its slice is picked as it is.
    """

    shapes = "[..., V, ...], [...I] -> [..., ...I, ...]"
    example = "gather[axis=0] [1.5, 2.5, 3.5] [2, 0]  // [3.5, 1.5]"

    axis: int = attribute(Kind.AXIS)
    operand_names = ("table", "ids")
    linear = True
    positions = 1
    reads_bounds = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        table, ids = operands
        rule.index(1, table.shape[self.axis])
        found = table.with_shape(moved(table.shape, self.axis, *ids.shape))
        return found.with_dtype(DType.F32) if self._reads(table, ids) else found

    def _reads(self, table: Tensor, ids: Tensor) -> bool:
        """Whether numbers of a quantised table are read: not where one slice, of whole rows, is picked."""
        return table.dtype.block is not None and (ids.rank > 0 or self.axis == table.rank - 1)

    def reference(self, *operands: Array) -> Array:
        table, ids = operands
        if self.axis == table.ndim - 1:
            return np.take(as_numbers(table), ids, axis=self.axis)
        found = np.take(table, ids, axis=self.axis)
        return as_numbers(found) if ids.ndim else found

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        table, ids = operands
        end = self.axis + ids.rank
        place = (*index[: self.axis], variable(_AT), *index[end:])
        element = Element(0, place)
        read = Cast(element, DType.F32) if self._reads(table, ids) else element
        return Lookup(_AT, table.shape[self.axis], Element(1, index[self.axis : end]), read)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return operands[0].zeros().scatter("add", self.axis, operands[1], cotangent)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        v = _D + 1
        found = [
            Sample(cls(0), (_f32(v, _A), positions(v, _B, _C))),
            Sample(cls(0), (_f32(v), positions(v, _A))),
            Sample(cls(0), (_f32(v, _A), positions(v))),
            Sample(cls(1), (_f32(_A, v), positions(v, _B))),
            Sample(cls(1), (_f32(_A, v, _B), positions(v, _C))),
            Sample(cls(1), (_f32(_A, v, _B), positions(v))),
            Sample(cls(0), (positions(_B, v, _A), positions(v, _B))),
        ]
        dtypes = (DType.F64, DType.F16, DType.BF16, DType.I32, DType.U8, DType.BOOL)
        found += [Sample(cls(0), (Tensor(dtype, (v, _A)), positions(v, _B))) for dtype in dtypes]
        found += [Sample(cls(0), (Tensor(dtype, (v, 32 * _A)), positions(v, _B))) for dtype in WEIGHTS]
        return [*found, Sample(cls(1), (Tensor(DType.Q4_1, (_A, 32 * v)), positions(32 * v, _B)))]


@operation("take_along", family="indexing", torch="x.gather(axis, ids)")
class TakeAlong(Operation):
    """Of each row of `x` along `axis` the elements that the row of `ids` in its place names.

    `take_along[axis=1] log_probs targets : [B, V], [B, K] -> [B, K]`; all other axes agree. It undoes `argsort` and
    `top_k`. Positions are checked as `gather` checks them.
    """

    shapes = "[..., N, ...], [..., K, ...] -> [..., K, ...]"
    example = "take_along[axis=1] [[1.5, 2.5], [3.5, 4.5]] [[1], [0]]  // [[2.5], [3.5]]"

    axis: int = attribute(Kind.AXIS)
    operand_names = ("x", "ids")
    linear = True
    positions = 1
    reads_bounds = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        x, ids = operands
        rule.same_rank(0, 1)
        for axis in range(x.rank):
            if axis != self.axis:
                rule.same_size((0, axis), (1, axis), f"axis {axis}")
        rule.index(1, x.shape[self.axis])
        return x.with_axis(self.axis, ids.shape[self.axis])

    def reference(self, *operands: Array) -> Array:
        x, ids = operands
        return np.take_along_axis(x, ids, self.axis)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        place = moved(index, self.axis, variable(_AT))
        return Lookup(_AT, operands[0].shape[self.axis], Element(1, index), Element(0, place))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        """Of one position a row, compared with every place; of several, added up by their places in the flat `x`."""
        x, ids = operands
        if ids.shape[self.axis] is constant(1):
            places = x.create(Iota(DType.I64, x.shape[self.axis])).along(self.axis, x.shape)
            here = places.equals(ids.broadcast(x.shape))
            return here.where(cotangent.broadcast(x.shape), 0, of=cotangent.broadcast(x.shape))
        return _put_along(x, ids, cotangent, self.axis)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        v, one = _D + 1, constant(1)
        found = [
            Sample(cls(1), (_f32(_A, v), positions(v, _A, _B))),
            Sample(cls(1), (_f32(_A, v), positions(v, _A, one))),
            Sample(cls(0), (_f32(v, _A), positions(v, _B, _A))),
            Sample(cls(0), (_f32(v), positions(v, _B))),
            Sample(cls(1), (_f32(_A, v, _B), positions(v, _A, _C, _B))),
        ]
        dtypes = (DType.F64, DType.BF16, DType.I64, DType.BOOL)
        return [*found, *(Sample(cls(1), (Tensor(dtype, (_A, v)), positions(v, _A, _B))) for dtype in dtypes)]


def _put_along(x: Term, ids: Term, updates: Term, axis: int) -> Term:
    """Zeros of the type of `x`, to whose rows along the axis updates are added where `ids` say."""
    to_last = [a for a in range(x.type.rank) if a != axis] + [axis]
    size, rows = x.shape[axis], product([x.shape[a] for a in to_last[:-1]])
    ids, updates = ids.transpose(to_last), updates.transpose(to_last)
    starts = x.create(Iota(DType.I64, rows))
    starts = (starts * starts.size(size)).reinterpret((*ids.shape[:-1], constant(1))).broadcast(ids.shape)
    flat = ToIdx(rows * size, "take_along")((starts + ids).reinterpret((product(list(ids.shape)),)))
    zeros = x.full(0, (rows * size,))
    put = zeros.scatter("add", 0, flat, updates.reinterpret(flat.shape))
    back = [to_last.index(a) for a in range(len(to_last))]
    return put.reinterpret(tuple(x.shape[a] for a in to_last)).transpose(back)


@operation("one_hot", family="indexing", torch="F.one_hot(ids, n)")
class OneHot(Operation):
    """For each position a row of `n` that is 1 (`true` for Bool) there and 0 elsewhere: `one_hot[F32] ids n`."""

    shapes = "[...I] -> [...I, n]"
    example = "one_hot[F32] [1, 0] 3  // [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]"

    dtype: DType = attribute(Kind.DTYPE)
    n: Dim = argument(Kind.SIZE)
    operand_names = ("ids",)
    positions = 0
    keeps_dtype = False
    reads_bounds = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (ids,) = operands
        if self.dtype.block is not None:
            rule.refuse(f"one_hot makes numbers or Bool, not {self.dtype}")
        rule.index(0, self.n)
        return Tensor(self.dtype, (*ids.shape, self.n))

    def reference(self, *operands: Array) -> Array:
        (ids,) = operands
        here: Array = np.expand_dims(ids, -1) == np.arange(int(self.n))
        return here.astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        here = Call("eq", (Element(0, index[:-1]), SizeValue(index[-1])))
        return here if self.dtype is DType.BOOL else Cast(here, self.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        dtypes = (DType.F32, DType.BF16, DType.I64, DType.U8, DType.BOOL)
        found = [Sample(cls(dtype, _A + 1), (positions(_A + 1, _B),)) for dtype in dtypes]
        return [*found, Sample(cls(DType.F32, _A + 1), (positions(_A + 1),))]


@operation("dynamic_slice", family="indexing", torch="x.narrow(axis, start, n)")
class DynamicSlice(Operation):
    """The `n` slices along `axis` from a computed place on: `dynamic_slice[axis=1] x start n`.

    `start` is a scalar in `[0, size - n]`, of type `Idx[size - n + 1]` or checked when the program runs; it is never
    moved to fit. A start that is a dimension needs no check: `x[:, i:i + n]`.
    """

    shapes = "[..., N, ...], [] -> [..., n, ...]"
    example = "dynamic_slice[axis=0] [1, 2, 3, 4] 1 2  // [2, 3]"

    axis: int = attribute(Kind.AXIS)
    n: Dim = argument(Kind.SIZE)
    operand_names = ("x", "start")
    linear = True
    positions = 1
    reads_bounds = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        x, start = operands
        keep_rows_whole(rule, x, self.axis, "a slice along it")
        if start.rank != 0:
            rule.refuse("dynamic_slice starts at one place, a scalar; `gather` takes many", operand=1)
        rule.require(at_most(self.n, x.shape[self.axis]), f"the slice has to fit into axis {self.axis}")
        rule.index(1, x.shape[self.axis] - self.n + 1)
        return x.with_axis(self.axis, self.n)

    def reference(self, *operands: Array) -> Array:
        x, start = operands
        inside = slice(int(start), int(start) + int(self.n))
        found: Array = x[(*[slice(None)] * self.axis, inside)]
        return found

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        place = moved(index, self.axis, index[self.axis] + variable(_AT))
        extent = operands[0].shape[self.axis] - self.n + 1
        return Lookup(_AT, extent, Element(1, ()), Element(0, place))

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return operands[0].zeros().update_slice(self.axis, cotangent, operands[1])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        start = positions(_C + 1)
        return [
            Sample(cls(0, _N), (_f32(_N + _C, _A), start)),
            Sample(cls(1, _N), (_f32(_A, _N + _C), start)),
            Sample(cls(1, constant(1)), (_f32(_A, _C + 1, _B), start)),
            Sample(cls(0, _N), (Tensor(DType.BOOL, (_N + _C,)), start)),
        ]
