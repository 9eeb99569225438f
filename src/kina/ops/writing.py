"""Operations that write at computed positions. The operand stays as it is: the result is another tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kina.dims.dim import Dim, constant, product, variable
from kina.dims.proposition import at_most, equal
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.creation import Iota
from kina.ops.indexing import moved, positions
from kina.ops.scalar import Element, Index, Lookup, Pieces, Scalar
from kina.ops.terms import Term
from kina.types import DType, Shape, Tensor, shape_text

_A, _B, _C, _D, _N = map(variable, "ABCDN")
_AT = "%at"


def _f32(*shape: Dim) -> Tensor:
    return Tensor(DType.F32, shape)


@operation("update_slice", family="indexing", torch="x.slice_scatter(part, axis, start, start + n)")
class UpdateSlice(Operation):
    """`x` with `part` written over its slices along `axis` from a computed place on.

    `update_slice[axis=2] cache new at : [B, H, S, D], [B, H, n, D], [] -> [B, H, S, D]`. `at` is a scalar in
    `[0, S - n]`, of type `Idx[S - n + 1]` or checked when the program runs; it is never moved to fit.
    """

    shapes = "[..., N, ...], [..., n, ...], [] -> [..., N, ...]"
    example = "update_slice[axis=0] [0, 0, 0, 0] [7, 8] 1  // [0, 7, 8, 0]"

    axis: int = attribute(Kind.AXIS)
    operand_names = ("x", "part", "at")
    linear = True
    positions = 2
    reads_bounds = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        x, part, start = operands
        rule.same_dtype(0, 1)
        rule.same_rank(0, 1)
        for axis in range(x.rank):
            if axis != self.axis:
                rule.same_size((0, axis), (1, axis), f"axis {axis}")
        if start.rank != 0:
            rule.refuse("update_slice writes at one place, a scalar; `scatter` writes at many", operand=2)
        size, n = x.shape[self.axis], part.shape[self.axis]
        rule.require(at_most(n, size), f"the part has to fit into axis {self.axis}")
        rule.index(2, size - n + 1)
        return x.with_bound(x.bound if x.bound is part.bound else None)

    def reference(self, *operands: Array) -> Array:
        x, part, start = operands
        result = np.array(x)
        inside = slice(int(start), int(start) + part.shape[self.axis])
        result[(*[slice(None)] * self.axis, inside)] = part
        return result

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        x, part, _ = operands
        here, at = index[self.axis], variable(_AT)
        size, n = x.shape[self.axis], part.shape[self.axis]
        outside = Element(0, index)
        inside = Element(1, moved(index, self.axis, here - at))
        body = Pieces(here, ((at, outside), (at + n, inside), (size, outside)))
        return Lookup(_AT, size - n + 1, Element(2, ()), body)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        _, part, at = operands
        if number == 1:
            return cotangent.dynamic_slice(self.axis, at, part.shape[self.axis])
        return self(cotangent, cotangent.full(0, part.shape), at)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        start = positions(_C + 1)
        found = [
            Sample(cls(0), (_f32(_N + _C, _A), _f32(_N, _A), start)),
            Sample(cls(1), (_f32(_A, _N + _C), _f32(_A, _N), start)),
            Sample(cls(1), (_f32(_A, _C + 1, _B), _f32(_A, constant(1), _B), start)),
        ]
        dtypes = (DType.BF16, DType.I64, DType.BOOL)
        return [*found, *(Sample(cls(0), (Tensor(d, (_N + _C,)), Tensor(d, (_N,)), start)) for d in dtypes)]


KINDS = ("add", "set", "max", "min")


@operation("scatter", family="indexing", torch="x.index_add(axis, ids, updates)")
class Scatter(Operation):
    """`x` with updates written, or combined with what is there, at the positions along `axis` that `ids` name.

    `scatter[add, axis=0] x ids updates : [V, D], [B, S], [B, S, D] -> [V, D]`, the dual of `gather`. Kinds: `add set
    max min`. Positions may repeat: updates are taken one after the other in the row-major order of `ids`, whatever
    the number of threads, so of several that are `set` the last one stays. Positions are checked as by `gather`.
    """

    shapes = "[..., V, ...], [...I], [..., ...I, ...] -> [..., V, ...]"
    example = "scatter[add, axis=0] [0.0, 0.0, 0.0] [2, 0, 2] [1.0, 5.0, 2.0]  // [5.0, 0.0, 3.0]"

    kind: str = attribute(Kind.CHOICE, KINDS)
    axis: int = attribute(Kind.AXIS)
    operand_names = ("x", "ids", "updates")
    positions = 1
    reads_bounds = True
    fusible = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        x, ids, updates = operands
        rule.same_dtype(0, 2)
        if self.kind != "set":
            rule.dtype(0, DTypeClass.NUM)
        wanted = moved(x.shape, self.axis, *ids.shape)
        if updates.rank != len(wanted):
            rule.refuse(f"the updates have to be {shape_text(wanted)}, and are {shape_text(updates.shape)}", operand=2)
        for axis, size in enumerate(wanted):
            rule.require(equal(updates.shape[axis], size), f"axis {axis} of the updates has to be {size}")
        rule.index(1, x.shape[self.axis])
        kept = self.kind != "add" and x.bound is updates.bound
        return x.with_bound(x.bound if kept else None)

    def reference(self, *operands: Array) -> Array:
        x, ids, updates = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        wide = dtype.accumulator.numpy
        result = np.array(x, wide)
        rows = np.moveaxis(result, self.axis, 0)
        flat = updates.reshape(*x.shape[: self.axis], ids.size, *x.shape[self.axis + 1 :]).astype(wide)
        combine = _COMBINE[self.kind]
        with np.errstate(all="ignore"):
            for position, update in zip(ids.reshape(-1), np.moveaxis(flat, self.axis, 0), strict=True):
                rows[position] = combine(rows[position], update)
        return result.astype(x.dtype)

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.kind in ("add", "set")

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term | None:
        """Of the greatest and the least, what equals the result shares, as PyTorch's `scatter_reduce` does."""
        if self.linear:
            return Operation.jvp(self, result, operands, tangents)
        x, ids, updates = operands
        stays = x.equals(result).cast(x.type.dtype)
        comes = updates.equals(result.gather(self.axis, ids)).cast(x.type.dtype)
        count = stays.scatter("add", self.axis, ids, comes)
        parts = stays / count, comes / count.gather(self.axis, ids)
        of_x, of_updates = (t.zero_mul(p) if t else p.zeros() for t, p in zip(tangents[::2], parts, strict=True))
        return of_x.scatter("add", self.axis, ids, of_updates)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        _, ids, updates = operands
        if number == 2:
            read = cotangent.gather(self.axis, ids)
            return read if self.kind == "add" else self._last(ids, cotangent.shape).where(read, 0, of=read)
        return cotangent if self.kind == "add" else self(cotangent, ids, cotangent.full(0, updates.shape))

    def _last(self, ids: Term, shape: Shape) -> Term:
        """Of each update, whether it is the one that stays: the last at its position."""
        order = ids.create(Iota(DType.I64, product(list(ids.shape)))).reinterpret(ids.shape)
        written = order.full(0, (shape[self.axis],)).scatter("set", 0, ids, order).gather(0, ids)
        after = (constant(1),) * (len(shape) - self.axis - 1)
        stays = written.equals(order).reinterpret((*ids.shape, *after))
        return stays.broadcast(moved(shape, self.axis, *ids.shape))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        v = _D + 1
        found = []
        for kind in KINDS:
            found += [
                Sample(cls(kind, 0), (_f32(v, _A), positions(v, _B, _C), _f32(_B, _C, _A))),
                Sample(cls(kind, 0), (_f32(v), positions(v, _B), _f32(_B))),
                Sample(cls(kind, 0), (_f32(v, _A), positions(v), _f32(_A))),
                Sample(cls(kind, 1), (_f32(_A, v), positions(v, _B), _f32(_A, _B))),
                Sample(cls(kind, 1), (_f32(_A, v, _B), positions(v, _C), _f32(_A, _C, _B))),
            ]
            for d in (DType.F64, DType.F16, DType.BF16, DType.I32, DType.U8):
                found.append(Sample(cls(kind, 0), (Tensor(d, (v, _A)), positions(v, _B), Tensor(d, (_B, _A)))))
        flags = (Tensor(DType.BOOL, (v, _A)), positions(v, _B), Tensor(DType.BOOL, (_B, _A)))
        return [*found, Sample(cls("set", 0), flags)]


_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": lambda old, new: np.add(old, new),
    "set": lambda old, new: new,
    "max": lambda old, new: np.maximum(old, new),
    "min": lambda old, new: np.minimum(old, new),
}
