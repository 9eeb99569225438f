"""Reductions: one or more axes combined into one value, dropped or kept with size 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kina.dims.dim import Dim, constant, product, variable
from kina.dims.proposition import Comparison
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Call, Cast, Element, Index, Literal, Reduce, Reduction, Scalar, SizeValue
from kina.ops.scans import product_before
from kina.ops.terms import Term
from kina.types import DType, Tensor

ARGUMENTS = ("argmax", "argmin")
"""The kinds that give a position along their axis."""
KINDS = ("sum", "mean", "max", "min", "prod", "any", "all", "logsumexp", "var", *ARGUMENTS)
_ACCEPTS: Mapping[str, DTypeClass] = {
    "sum": DTypeClass.NUM,
    "prod": DTypeClass.NUM,
    "max": DTypeClass.NUM,
    "min": DTypeClass.NUM,
    "mean": DTypeClass.FLOAT,
    "logsumexp": DTypeClass.FLOAT,
    "var": DTypeClass.FLOAT,
    "argmax": DTypeClass.NUM,
    "argmin": DTypeClass.NUM,
    "any": DTypeClass.BOOL,
    "all": DTypeClass.BOOL,
}


def loop_variable(axis: int) -> str:
    """The name of the loop over a reduced axis of the operand; the same axis always gets the same name."""
    return f"%r{axis}"


def combine(kind: Reduction, body: Scalar, axes: Sequence[int], sizes: Sequence[Dim]) -> Scalar:
    """`body` reduced over the loop variables of several axes, the last one innermost."""
    for axis in reversed(axes):
        body = Reduce(kind, loop_variable(axis), sizes[axis], body)
    return body


class _Reduction(Operation):
    """What `reduce` and `reduce_keep` share: all but the result's shape and index."""

    kind: str
    axes: tuple[int, ...]
    keep = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        rule.dtype(0, _ACCEPTS[self.kind])
        one = constant(1)
        if self.keep:
            result = x.with_shape(tuple(one if i in self.axes else d for i, d in enumerate(x.shape)))
        else:
            result = x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in self.axes))
        if self.kind not in ARGUMENTS:
            return result
        if len(self.axes) > 1:
            rule.refuse(f"{self.kind} gives a position along one axis; flatten the axes to one first", operand=0)
        size = x.shape[self.axes[0]]
        rule.require(Comparison(">=", size, one), f"{self.kind} of an empty axis is no position")
        return Tensor(DType.I64, result.shape, size)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        dtype = DType.of_numpy(x.dtype)
        assert dtype is not None
        wide = x.astype(dtype.accumulator.numpy)
        if self.kind in ARGUMENTS:
            (axis,) = self.axes
            find = np.argmax if self.kind == "argmax" else np.argmin
            return np.asarray(find(wide, axis=axis, keepdims=self.keep))
        with np.errstate(all="ignore"):
            found: Array = np.asarray(_REFERENCE[self.kind](wide, self.axes, self.keep)).astype(x.dtype)
        return found

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        (x,) = operands
        remaining = iter(index if not self.keep else [i for a, i in enumerate(index) if a not in self.axes])
        inner = tuple(variable(loop_variable(a)) if a in self.axes else next(remaining) for a in range(x.rank))
        element = widened(Element(0, inner), x.dtype)
        if self.kind in ARGUMENTS:
            return self._position(element, x)
        return narrowed(self._combined(element, x), x.dtype)

    def _position(self, element: Scalar, x: Tensor) -> Scalar:
        """The least position of what equals the extreme; where that is NaN, of a NaN."""
        (axis,) = self.axes
        extreme = combine("max" if self.kind == "argmax" else "min", element, self.axes, x.shape)
        found: Scalar = Call("eq", (element, extreme))
        if x.dtype.is_float:
            found = Call("or", (found, Call("is_nan", (element,))))
        place = Call("select", (found, SizeValue(variable(loop_variable(axis))), SizeValue(x.shape[axis])))
        return combine("min", place, self.axes, x.shape)

    def _combined(self, element: Scalar, x: Tensor) -> Scalar:
        dtype = x.dtype.accumulator

        def over(kind: Reduction, body: Scalar) -> Scalar:
            return combine(kind, body, self.axes, x.shape)

        count = Cast(SizeValue(product([x.shape[a] for a in self.axes])), dtype)
        match self.kind:
            case "mean":
                return Call("div", (over("sum", element), count))
            case "var":
                mean = Call("div", (over("sum", element), count))
                distance = Call("sub", (element, mean))
                return Call("div", (over("sum", Call("mul", (distance, distance))), count))
            case "logsumexp":
                shift = finite_shift(over("max", element), dtype)
                total = over("sum", Call("exp", (Call("sub", (element, shift)),)))
                return Call("add", (shift, Call("log", (total,))))
            case "sum" | "prod" | "max" | "min" | "any" | "all":
                return over(self.kind, element)
            case _:
                raise AssertionError(self.kind)

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.kind in ("sum", "mean")

    def decompose(self, *operands: Term) -> Term | None:
        (x,) = operands
        if self.kind not in _DECOMPOSED:
            return None
        found = _DECOMPOSED[self.kind](x.cast(x.type.dtype.accumulator), self.axes)
        for axis in () if self.keep else sorted(self.axes, reverse=True):
            found = found.squeeze(axis)
        return found.cast(x.type.dtype)

    def jvp(self, result: Term, operands: Sequence[Term], tangents: Sequence[Term | None]) -> Term | None:
        """The sum of the tangents, each times the derivative by its element."""
        if self.linear:
            return Operation.jvp(self, result, operands, tangents)
        (x,), (tangent,) = operands, tangents
        assert tangent is not None
        slope = _SLOPES[self.kind](x, self._spread(result, x), self.axes)
        scaled = tangent.zero_mul(slope)
        return scaled.sum_keep(self.axes) if self.keep else scaled.sum(self.axes)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        (x,) = operands
        if self.kind == "mean":
            cotangent = cotangent / cotangent.size(product([x.shape[a] for a in self.axes]))
        return self._spread(cotangent, x)

    def _spread(self, result: Term, x: Term) -> Term:
        """A result repeated along the axes that it was reduced over."""
        kept = result if self.keep else result.expand_dims(*sorted(self.axes))
        return kept.broadcast(x.shape)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        a, b, c = variable("A"), variable("B"), variable("C")
        found = []
        for kind in ARGUMENTS:
            for axis in (2, 0, 1):
                shape = tuple(d + 1 if i == axis else d for i, d in enumerate((a, b, c)))
                found.append(Sample(cls(kind, (axis,)), (Tensor(DType.F32, shape),)))  # type: ignore[call-arg]
            for dtype in (DType.F64, DType.BF16, DType.F16, DType.I32, DType.I64, DType.U8):
                found.append(Sample(cls(kind, (1,)), (Tensor(dtype, (a, b + 1)),)))  # type: ignore[call-arg]
            found.append(Sample(cls(kind, (0,)), (Tensor(DType.F32, (a + 1,)),)))  # type: ignore[call-arg]
        for kind in KINDS[: -len(ARGUMENTS)]:
            boolean = _ACCEPTS[kind] is DTypeClass.BOOL
            for axes in ((2,), (0,), (1,), (1, 2), (0, 2), (0, 1, 2)):
                found.append(Sample(cls(kind, axes), (Tensor(DType.BOOL if boolean else DType.F32, (a, b, c)),)))  # type: ignore[call-arg]
            others = [] if boolean else [DType.F64, DType.BF16, DType.F16]
            if _ACCEPTS[kind] is DTypeClass.NUM:
                others += [DType.I32, DType.I64]
            found += [Sample(cls(kind, (1,)), (Tensor(d, (a, b)),)) for d in others]  # type: ignore[call-arg]
        return found


def finite_shift(maximum: Scalar, dtype: DType) -> Scalar:
    """The row's maximum, or 0 where it is infinite: so that a row of all -inf gives -inf, not NaN."""
    infinite = Call("eq", (Call("abs", (maximum,)), Literal(float("inf"), dtype)))
    return Call("select", (infinite, Literal(0.0, dtype), maximum))


def _np_logsumexp(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isinf(top), 0, top).astype(x.dtype)
    total = np.log(np.sum(np.exp(x - shift), axis=axis, keepdims=True)) + shift
    return np.asarray(total if keepdims else np.squeeze(total, axis=axis))


def _np_mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    count = np.prod([x.shape[a] for a in axis], dtype=x.dtype)
    return np.asarray(np.sum(x, axis=axis, keepdims=keepdims) / count)


def _np_var(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    distance = x - _np_mean(x, axis, True)
    return _np_mean(distance * distance, axis, keepdims)


def _least(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype[Any]) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


_REFERENCE: Mapping[str, Callable[[Array, tuple[int, ...], bool], Array]] = {
    "sum": lambda x, a, k: np.sum(x, axis=a, keepdims=k, dtype=x.dtype),
    "prod": lambda x, a, k: np.prod(x, axis=a, keepdims=k, dtype=x.dtype),
    "max": lambda x, a, k: np.max(x, axis=a, keepdims=k, initial=_least(x.dtype)),
    "min": lambda x, a, k: np.min(x, axis=a, keepdims=k, initial=_greatest(x.dtype)),
    "any": lambda x, a, k: np.any(x, axis=a, keepdims=k),
    "all": lambda x, a, k: np.all(x, axis=a, keepdims=k),
    "mean": _np_mean,
    "var": _np_var,
    "logsumexp": _np_logsumexp,
}


def _mean(x: Term, axes: Sequence[int]) -> Term:
    total = x.sum_keep(axes)
    return total / total.size(product([x.shape[axis] for axis in axes]))


def _logsumexp(x: Term, axes: Sequence[int]) -> Term:
    top = x.finite_top(axes)
    return top + (x - top.broadcast(x.shape)).exp().sum_keep(axes).log()


def _var(x: Term, axes: Sequence[int]) -> Term:
    off = x - _mean(x, axes).broadcast(x.shape)
    return _mean(off * off, axes)


_DECOMPOSED: Mapping[str, Callable[[Term, Sequence[int]], Term]] = {
    "mean": _mean,
    "logsumexp": _logsumexp,
    "var": _var,
}
"""The kinds that are made of others, their axes kept."""


def _extreme_slope(x: Term, y: Term, axes: Sequence[int]) -> Term:
    """1 for the extreme element; of several that are equal each has its share, as of PyTorch's `amax`."""
    equals = x.equals(y).cast(x.type.dtype)
    return equals / equals.sum_keep(axes).broadcast(x.shape)


def _var_slope(x: Term, y: Term, axes: Sequence[int]) -> Term:
    count = x.size(product([x.shape[a] for a in axes]))
    return (x - x.sum_keep(axes).broadcast(x.shape) / count) * 2 / count


def _prod_slope(x: Term, y: Term, axes: Sequence[int]) -> Term:
    """The product of all others: of those before times those after, so that zeros are no exception."""
    result: Term | None = None
    for axis in sorted(axes):
        others = product_before(x, axis) * product_before(x.flip(axis), axis).flip(axis)
        rest = tuple(a for a in axes if a > axis)
        result = others if result is None else result * others
        x = ReduceKeep("prod", (axis,))(x).broadcast(x.shape) if rest else x
    assert result is not None
    return result


_SLOPES: Mapping[str, Callable[[Term, Term, Sequence[int]], Term]] = {
    "max": _extreme_slope,
    "min": _extreme_slope,
    "prod": _prod_slope,
    "logsumexp": lambda x, y, axes: (x - y).exp(),
    "var": _var_slope,
}
"""Of each kind that is not linear the derivatives by the elements: from these, the result beside each, the axes."""


@operation("reduce", family="reduction", torch="x.sum(dim=axis)")
class ReduceDrop(_Reduction):
    """Combines one axis (`axis=1`) or several (`axes=[1, 2]`) and drops them: `reduce[sum, axis=1] x`.

    Kinds: `sum mean max min prod any all logsumexp var argmax argmin`. An empty axis gives the identity (`max` gives
    -inf), `mean` and `var` of nothing are NaN; `var` divides by the number of elements. `argmax` and `argmin` give
    positions (`Idx[N]`) along one axis of N, which may not be empty: the first of equals, and as `max` and `min` of
    numbers with a NaN among them are NaN, the first NaN.
    """

    shapes = "[..., N, ...] -> [..., ...]"
    example = "reduce[sum, axis=1] [[1.0, 2.0], [3.0, 4.0]]  // [3.0, 7.0]"

    kind: str = attribute(Kind.CHOICE, KINDS)
    axes: tuple[int, ...] = attribute(Kind.AXES)


@operation("reduce_keep", family="reduction", torch="x.sum(dim=axis, keepdim=True)")
class ReduceKeep(_Reduction):
    """As `reduce`, but the combined axes stay with size 1: `reduce_keep[mean, axis=2] x`."""

    shapes = "[..., N, ...] -> [..., 1, ...]"
    example = "reduce_keep[mean, axis=1] [[1.0, 2.0], [3.0, 4.0]]  // [[1.5], [3.5]]"

    kind: str = attribute(Kind.CHOICE, KINDS)
    axes: tuple[int, ...] = attribute(Kind.AXES)
    keep = True
