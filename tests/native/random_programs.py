"""Random well-typed programs, for native code to be compared with the reference.

Two kinds: `exact` programs compute with integers and Bools, where every difference is a fault; `float` programs use
only functions that are smooth and keep values small, so that a wrong element stands out from rounding.
Whoever draws gives `choose`, which picks one of several things: hypothesis, or a seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from kina.core.ir import Apply, Function, Parameter, Tree, Value
from kina.dims.dim import Dim, constant, product, variable
from kina.ops import Operation, contractions, creation, elementwise, lookup, normalising, reductions, shape
from kina.types import DType, Tensor, Tuple

T = TypeVar("T")
Choose = Callable[[Sequence[T]], T]

NAMES = ("A", "B", "C")
SIZES = (0, 1, 2, 3, 7, 17, 70)
MOST_ELEMENTS = 60_000
_ONE = constant(1)
_EXACT = (DType.I64, DType.I32, DType.I8, DType.U8)
_FLOATS = (DType.F32, DType.F32, DType.F32, DType.F64, DType.BF16)
_SMOOTH_UNARY = ("neg", "abs", "sin", "cos", "tanh", "erf", "sigmoid", "silu", "gelu", "softplus", "relu")
_SMOOTH_BINARY = ("add", "sub", "mul", "min", "max")
_EXACT_UNARY = ("neg", "abs", "sign", "relu")
_EXACT_BINARY = ("add", "sub", "mul", "min", "max")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


class _Anything:
    """A rule that accepts: the programs are well typed by construction."""

    def __getattr__(self, name: str) -> object:
        return lambda *args, **kwargs: None


@dataclass
class Builder:
    """A function under construction: what is drawn next depends on the values so far."""

    choose: Choose[Any]
    exact: bool
    statements: list[Apply] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def build(self, steps: int) -> Function:
        for _ in range(self.choose((1, 2, 3))):
            self.input()
        for _ in range(steps):
            self.choose(_STEPS)(self)
        tree = self._result()
        parameters = tuple(Parameter(v.name, v) for v in self.inputs)
        types = Tuple(tuple(v.type for v in tree)) if isinstance(tree, tuple) else tree.type
        return Function("f", NAMES, (), parameters, types, tuple(self.statements), tree)

    def _result(self) -> Tree:
        """The last value, or several: any of them, one twice, an input as it is."""
        count = self.choose((1, 1, 2, 3))
        if count == 1:
            return self.values[-1]
        return (self.values[-1], *(self.any() for _ in range(count - 1)))

    # ------------------------------------------------------------ drawing

    def dim(self) -> Dim:
        a, b, c = map(variable, NAMES)
        return self.choose((a, b, c, a, b, c, _ONE, constant(2), constant(3), a * 2, b + c))

    def dtype(self) -> DType:
        return self.choose(_EXACT if self.exact else _FLOATS)

    def input(self, dtype: DType | None = None, shape_: Sequence[Dim] | None = None) -> Value:
        if shape_ is None:
            shape_ = [self.dim() for _ in range(self.choose((0, 1, 2, 2, 3)))]
        value = Value(f"x{len(self.inputs)}", Tensor(dtype or self.dtype(), tuple(shape_)))
        self.inputs.append(value)
        self.values.append(value)
        return value

    def any(self) -> Value:
        """Some value: the latest ones more often."""
        return self.choose((*self.values, *self.values[-3:], self.values[-1]))

    def numeric(self) -> Value:
        """A value of this program's kind of numbers; small integers in float programs come from Bools."""
        value = self.any()
        return value if value.type.dtype in (_EXACT if self.exact else _FLOATS) else self.cast(value, self.dtype())

    def like(self, value: Value) -> Value:
        """A value of the same type: one that is there, else another value or an input stretched to it."""
        fitting = [v for v in self.values if v.type == value.type]
        way = self.choose(("same", "same", "broadcast", "input"))
        if way == "same" or value.type.rank == 0:
            return self.choose(fitting)
        dtype, shape_ = value.type.dtype, value.type.shape
        if way == "input":
            return self.input(dtype, shape_)
        tail = shape_[self.choose(range(len(shape_))) :]
        thin = tuple(self.choose((d, d, _ONE)) for d in tail)
        known = [v for v in self.values if v.type.dtype is dtype and v.type.shape == thin]
        source = self.choose(known) if known else self.input(dtype, thin)
        return self.apply(shape.Broadcast(shape_), source)

    def apply(self, operation: Operation, *operands: Value) -> Value:
        type_ = operation.type(_Anything(), *(o.type for o in operands))  # type: ignore[arg-type]
        result = Value(f"t{len(self.statements)}", type_)
        self.statements.append(Apply(result, operation, operands))
        self.values.append(result)
        return result

    def unary(self, name: str, value: Value) -> Value:
        return self.apply(lookup(name).build(), value)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        return self.apply(lookup(name).build(), x, y)

    def cast(self, value: Value, dtype: DType) -> Value:
        return self.apply(elementwise.Cast(dtype), value)

    def constant(self, value: Value, number: float) -> Value:
        """A literal, stretched to a value's shape."""
        dtype = value.type.dtype
        literal = self.apply(creation.Constant(dtype, (), (number,)))
        return self.apply(shape.Broadcast(value.type.shape), literal) if value.type.rank else literal


# ---------------------------------------------------------------- steps


def _elementwise(b: Builder) -> None:
    value = b.numeric()
    if b.choose((True, False)):
        names = _EXACT_UNARY if b.exact else _SMOOTH_UNARY
        b.unary(b.choose(names), value)
    else:
        b.binary(b.choose(_EXACT_BINARY if b.exact else _SMOOTH_BINARY), value, b.like(value))


def _bounded(b: Builder) -> None:
    """Functions that are safe only on a bounded or positive operand."""
    value = b.numeric()
    if b.exact:
        b.apply(lookup("clamp").build(), value, b.constant(value, 2), b.constant(value, 9))
        return
    square = b.binary("mul", value, value)
    positive = b.binary("add", square, b.constant(square, 1.0))
    way = b.choose(("log", "log1p", "sqrt", "rsqrt", "recip", "exp", "expm1", "div", "pow"))
    if way in ("exp", "expm1"):
        b.unary(way, b.unary("tanh", value))
    elif way == "div":
        b.binary("div", b.like(value), positive)
    elif way == "pow":
        b.binary("pow", positive, b.constant(value, 0.5))
    else:
        b.unary(way, positive)


def _compare(b: Builder) -> None:
    value = b.numeric()
    if not b.exact:
        value = b.input(b.dtype(), value.type.shape)  # exact in both: no rounding decides
        b.binary(b.choose(_COMPARISONS), value, b.input(value.type.dtype, value.type.shape))
        return
    b.binary(b.choose(_COMPARISONS), value, b.like(value))


def _select(b: Builder) -> None:
    value = b.any()
    condition = b.like(Value("condition", value.type.with_dtype(DType.BOOL))) if _has_bool(b, value) else None
    if condition is None:
        condition = b.input(DType.BOOL, value.type.shape)
    b.apply(lookup("select").build(), condition, value, b.like(value))


def _has_bool(b: Builder, value: Value) -> bool:
    return any(v.type == value.type.with_dtype(DType.BOOL) for v in b.values)


def _logic(b: Builder) -> None:
    booleans = [v for v in b.values if v.type.dtype is DType.BOOL]
    value = b.choose(booleans) if booleans else b.cast(b.numeric() if b.exact else b.input(b.dtype()), DType.BOOL)
    way = b.choose(("logical_and", "logical_or", "logical_not", "any", "all"))
    if way == "logical_not":
        b.unary(way, value)
    elif way in ("any", "all"):
        if value.type.rank:
            b.apply(reductions.ReduceKeep(way, (b.choose(range(value.type.rank)),)), value)
    else:
        b.binary(way, value, b.like(value))


def _cast(b: Builder) -> None:
    b.cast(b.numeric(), b.dtype())


def _broadcast(b: Builder) -> None:
    value = b.any()
    if value.type.rank < 4:
        shape_ = tuple(b.dim() if d is _ONE else d for d in value.type.shape)
        b.apply(shape.Broadcast((b.dim(), *shape_)), value)


def _transpose(b: Builder) -> None:
    value = b.any()
    order = list(range(value.type.rank))
    for place in range(len(order) - 1):
        other = b.choose(range(place, len(order)))
        order[place], order[other] = order[other], order[place]
    b.apply(shape.Transpose(tuple(order)), value)


def _merge(b: Builder) -> None:
    value = b.any()
    if value.type.rank >= 2:
        axis = b.choose(range(value.type.rank - 1))
        if b.choose((True, False)):
            b.apply(shape.FlattenPair(axis), value)
        else:
            sizes = value.type.shape
            b.apply(shape.Reshape((*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :])), value)


def _split(b: Builder) -> None:
    """Splits an axis that is a product, or merges two and splits them the other way round."""
    value = b.any()
    for axis, size in enumerate(value.type.shape):
        if len(size.terms) == 1 and len(size.terms[0][0]) == 2:
            first, second = (variable(a.name) for a in size.terms[0][0])  # type: ignore[union-attr]
            pair = b.choose(((first, second), (second, first)))
            pair = (pair[0] * size.terms[0][1], pair[1])
            if value.type.rank < 4:
                b.apply(shape.Reshape((*value.type.shape[:axis], *pair, *value.type.shape[axis + 1 :])), value)
            return
    if value.type.rank == 2:
        b.apply(shape.Reinterpret(value.type.shape[::-1]), value)
    elif value.type.rank:
        b.apply(shape.Reinterpret((product(value.type.shape),)), value)


def _ones(b: Builder) -> None:
    value = b.any()
    ones = [axis for axis, d in enumerate(value.type.shape) if d is _ONE]
    if ones and b.choose((True, False)):
        b.apply(shape.Squeeze(b.choose(ones)), value)
    elif value.type.rank < 4:
        b.apply(shape.ExpandDims(b.choose(range(value.type.rank + 1))), value)


def _repeat(b: Builder) -> None:
    value = b.any()
    if value.type.rank:
        b.apply(shape.RepeatInterleave(b.choose(range(value.type.rank)), b.choose((constant(2), variable("A")))), value)


def _concat(b: Builder) -> None:
    value = b.any()
    if value.type.rank:
        axis = b.choose(range(value.type.rank))
        others = [b.like(value)]
        if b.choose((True, False)):
            thin = (*value.type.shape[:axis], b.dim(), *value.type.shape[axis + 1 :])
            others.append(b.input(value.type.dtype, thin))
        b.apply(shape.Concat(axis), value, *others)


def _reduce(b: Builder) -> None:
    value = b.numeric()
    if value.type.rank:
        count = b.choose(range(1, value.type.rank + 1)) if b.choose((True, False)) else 1
        first = b.choose(range(value.type.rank - count + 1))
        kinds = ("sum", "max", "min", "prod") if b.exact else ("mean", "max", "min", "var", "logsumexp", "sum")
        form = b.choose((reductions.ReduceDrop, reductions.ReduceKeep))
        reduced = b.apply(form(b.choose(kinds), tuple(range(first, first + count))), value)
        if form is reductions.ReduceKeep and b.choose((True, False)):
            stretched = b.apply(shape.Broadcast(value.type.shape), reduced)
            b.binary(b.choose(("sub", "mul", "max")), value, stretched)


def _normalise(b: Builder) -> None:
    value = b.numeric()
    if value.type.rank == 0 or b.exact:
        return
    axis = b.choose(range(value.type.rank))
    if b.choose((True, False)):
        b.apply(b.choose((normalising.Softmax, normalising.LogSoftmax))(axis), value)
        return
    centred = b.binary("sub", value, b.apply(shape.Broadcast(value.type.shape), _kept(b, "mean", axis, value)))
    squares = _kept(b, "mean", axis, b.binary("mul", centred, centred))
    scale = b.unary("rsqrt", b.binary("add", squares, b.constant(squares, 0.5)))
    b.binary("mul", centred, b.apply(shape.Broadcast(value.type.shape), scale))


def _kept(b: Builder, kind: str, axis: int, value: Value) -> Value:
    return b.apply(reductions.ReduceKeep(kind, (axis,)), value)


def _matmul(b: Builder) -> None:
    value = b.numeric()
    if value.type.rank < 2:
        return
    *batch, _, k = value.type.shape
    if b.choose((True, False)):
        other = b.input(value.type.dtype, (*batch, k, b.dim()))
    else:
        turned = (*range(len(batch)), len(batch) + 1, len(batch))
        other = b.apply(shape.Transpose(turned), b.like(value))
    made = b.apply(contractions.Matmul(), value, other)
    if not b.exact:
        b.unary("tanh", made)


def _attention(b: Builder) -> None:
    """Queries, keys and values of heads, with something between the products."""
    if b.exact:
        return
    value = b.numeric()
    if value.type.rank < 3:
        value = b.input(value.type.dtype, [b.dim() for _ in range(3)])
    *batch, _, k = value.type.shape
    keys = b.input(value.type.dtype, (*batch, b.dim(), k))
    values = b.input(value.type.dtype, (*batch, keys.type.shape[-2], b.dim()))
    turned = (*range(len(batch)), len(batch) + 1, len(batch))
    scores = b.apply(contractions.Matmul(), b.unary("tanh", value), b.apply(shape.Transpose(turned), keys))
    if b.choose((True, False)):
        scores = b.binary("add", scores, b.like(scores))
    b.apply(contractions.Matmul(), b.apply(normalising.Softmax(len(batch) + 1), scores), values)


_STEPS = (
    _elementwise, _elementwise, _elementwise, _bounded, _compare, _select, _logic, _cast, _broadcast, _transpose,
    _merge, _split, _ones, _repeat, _concat, _concat, _reduce, _reduce, _normalise, _matmul, _attention,
)  # fmt: skip


# ---------------------------------------------------------------- arrays


def volume(function: Function, sizes: Mapping[str, int]) -> int:
    """Elements of the largest value."""
    values = (*function.inputs, *(s.result for s in function.statements if isinstance(s, Apply)))
    return max(product(v.type.shape).evaluate(sizes) for v in values)


def draw_sizes(choose: Choose[Any], function: Function) -> dict[str, int]:
    """Sizes at which nothing grows too large for a test."""
    sizes = {name: choose(SIZES) for name in NAMES}
    while volume(function, sizes) > MOST_ELEMENTS:
        largest = max(sizes, key=lambda n: sizes[n])
        sizes[largest] = 2 if sizes[largest] <= 3 else sizes[largest] // 3
        if max(sizes.values()) <= 2:
            break
    return sizes


def draw_array(tensor: Tensor, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    shape_ = tuple(d.evaluate(sizes) for d in tensor.shape)
    if tensor.dtype is DType.BOOL:
        return np.asarray(rng.random(shape_) < 0.5)
    if tensor.dtype.is_integer:
        return np.asarray(rng.integers(0 if tensor.dtype is DType.U8 else -9, 10, shape_)).astype(tensor.dtype.numpy)
    return np.asarray(rng.uniform(-2, 2, shape_)).astype(tensor.dtype.numpy)


def lay_out(x: np.ndarray, way: str, empty: Callable[[tuple[int, ...], Any], np.ndarray] = np.empty) -> np.ndarray:
    """An array in a layout: `plain`, `turned` in memory, `every second` element, `backwards`, or the first slice
    `repeated` with a stride of 0. `empty` gives the memory."""
    if way == "repeated" and x.ndim and x.shape[0]:
        return np.broadcast_to(_copied(x[:1], empty), x.shape)
    if way == "turned":
        return _copied(x.T, empty).T
    if way == "every second" and x.ndim and x.shape[-1]:
        wide = _copied(np.repeat(x, 2, axis=-1)[..., :-1], empty)
        return wide[..., ::2]
    if way == "backwards" and x.ndim:
        return _copied(x[..., ::-1], empty)[..., ::-1]
    return _copied(x, empty)


LAYOUTS = ("plain", "plain", "turned", "every second", "backwards", "repeated")


def _copied(x: np.ndarray, empty: Callable[[tuple[int, ...], Any], np.ndarray]) -> np.ndarray:
    target = empty(x.shape, x.dtype)
    target[...] = x
    return target
