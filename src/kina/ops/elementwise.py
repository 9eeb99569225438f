"""Operations that act on each element alone.

All operands have one shape (the surface stretches the smaller one first) and one dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kina.dims.dim import Dim, variable
from kina.lazy import np
from kina.ops.base import (
    Array,
    DTypeClass,
    Entry,
    Kind,
    Operation,
    Parameter,
    Rule,
    Sample,
    attribute,
    declare,
    operation,
)
from kina.ops.precision import narrowed, widened
from kina.ops.scalar import Call, Element, Function, Index, Scalar
from kina.ops.scalar import Cast as ScalarCast
from kina.ops.scalar import Literal as Number
from kina.types import DType, Tensor

Expand = Callable[[tuple[Scalar, ...], DType, str], Scalar]
"""From operands, their dtype and the variant to the scalar expression."""


@dataclass(frozen=True, eq=False)
class ElementwiseFunction:
    """A function of scalars, lifted to tensors of one shape."""

    name: str
    documentation: str
    torch: str
    operands: tuple[str, ...]
    accepts: DTypeClass
    reference: Callable[..., Any]
    lower: Expand
    gives_bool: bool = False
    choices: tuple[str, ...] = ()
    positive: bool = False
    """Whether samples should be positive (the function is undefined or NaN below zero)."""
    condition: bool = False
    """Whether the first operand is a Bool beside the others (`select`)."""


@dataclass(frozen=True, slots=True)
class Elementwise(Operation):
    """An elementwise function applied to operands of one shape."""

    function: ElementwiseFunction
    variant: str = ""

    family = "elementwise"

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.function.name

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        return ()

    def arguments(self) -> Mapping[str, Any]:
        return {"variant": self.variant} if self.variant else {}

    def substitute(self, replacement: Mapping[str, Dim]) -> Operation:
        return self

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        f = self.function
        for position in range(1, len(operands)):
            rule.same_rank(0, position)
            for axis in range(operands[0].rank):
                rule.same_size((0, axis), (position, axis), "the size")
        if f.condition:
            rule.dtype(0, DTypeClass.BOOL)
        first = 1 if f.condition else 0
        rule.dtype(first, f.accepts)
        for position in range(first + 1, len(operands)):
            rule.same_dtype(first, position)
        return operands[first].with_dtype(DType.BOOL) if f.gives_bool else operands[first]

    def reference(self, *operands: Array) -> Array:
        f = self.function
        given = operands[-1].dtype
        wide = [_widen(x) for x in operands]
        with np.errstate(all="ignore"):
            result = np.asarray(f.reference(*wide, self.variant) if f.choices else f.reference(*wide))
        return result.astype(np.bool_ if f.gives_bool else given)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        dtype = operands[-1].dtype
        elements = tuple(widened(Element(i, index), x.dtype) for i, x in enumerate(operands))
        result = self.function.lower(elements, dtype.accumulator, self.variant)
        return result if self.function.gives_bool else narrowed(result, dtype)


def _widen(x: Array) -> Array:
    """Half-precision operands are computed in F32 and rounded once at the end."""
    return x.astype(np.float32) if DType.of_numpy(x.dtype) in (DType.F16, DType.BF16) else x


def _samples(f: ElementwiseFunction) -> Sequence[Sample]:
    shape = (variable("A"), variable("B"))
    dtypes = {
        DTypeClass.FLOAT: (DType.F32, DType.F64, DType.F16, DType.BF16),
        DTypeClass.NUM: (DType.F32, DType.F64, DType.BF16, DType.I32, DType.I64, DType.U8),
        DTypeClass.INT: (DType.I32, DType.I64),
        DTypeClass.BOOL: (DType.BOOL,),
        DTypeClass.ANY: (DType.F32, DType.I8, DType.BOOL),
    }[f.accepts]
    found = []
    for dtype in dtypes:
        for variant in f.choices or ("",):
            operands = [Tensor(dtype, shape) for _ in f.operands]
            if f.condition:
                operands[0] = Tensor(DType.BOOL, shape)
            found.append(Sample(Elementwise(f, variant), tuple(operands), f.positive))
    return found


def _declare(f: ElementwiseFunction) -> ElementwiseFunction:
    parameters = (Parameter("variant", Kind.CHOICE, True, f.choices),) if f.choices else ()

    def build(variant: str = "") -> Operation:
        return Elementwise(f, variant)

    declare(
        Entry(
            f.name, "elementwise", f.torch, f.documentation, f.operands, False, parameters, build, lambda: _samples(f),
            keeps_dtype=not f.gives_bool, condition=f.condition,
        )
    )  # fmt: skip
    return f


# ---------------------------------------------------------------- lowering in terms of primitives


def call(function: Function, *arguments: Scalar) -> Scalar:
    return Call(function, arguments)


def _primitive(function: Function) -> Expand:
    return lambda xs, _dtype, _variant: Call(function, xs)


def _reciprocal(x: Scalar, dtype: DType) -> Scalar:
    return call("div", Number(1.0, dtype), x)


def _sigmoid(xs: tuple[Scalar, ...], dtype: DType, _variant: str) -> Scalar:
    return _reciprocal(call("add", Number(1.0, dtype), call("exp", call("neg", xs[0]))), dtype)


def _silu(xs: tuple[Scalar, ...], dtype: DType, _variant: str) -> Scalar:
    return call("div", xs[0], call("add", Number(1.0, dtype), call("exp", call("neg", xs[0]))))


def _sign(xs: tuple[Scalar, ...], dtype: DType, _variant: str) -> Scalar:
    """-1, 0 or 1; NaN stays NaN and zero keeps its sign, as `x` itself is given back there."""
    zero, one = Number(0, dtype), Number(1, dtype)
    negative = xs[0] if dtype is DType.U8 else call("select", call("lt", xs[0], zero), Number(-1, dtype), xs[0])
    return call("select", call("gt", xs[0], zero), one, negative)


def _softplus(xs: tuple[Scalar, ...], dtype: DType, _variant: str) -> Scalar:
    """`max(x, 0) + log1p(exp(-|x|))`, which neither overflows nor loses small values."""
    tail = call("log1p", call("exp", call("neg", call("abs", xs[0]))))
    return call("add", call("max", xs[0], Number(0.0, dtype)), tail)


def _gelu_erf(x: Scalar, dtype: DType) -> Scalar:
    inner = call("add", Number(1.0, dtype), call("erf", call("mul", x, Number(math.sqrt(0.5), dtype))))
    return call("mul", call("mul", Number(0.5, dtype), x), inner)


def _gelu_tanh(x: Scalar, dtype: DType) -> Scalar:
    cube = call("mul", call("mul", x, x), x)
    inner = call("add", x, call("mul", Number(0.044715, dtype), cube))
    tanh = call("tanh", call("mul", Number(math.sqrt(2 / math.pi), dtype), inner))
    return call("mul", call("mul", Number(0.5, dtype), x), call("add", Number(1.0, dtype), tanh))


def _gelu(xs: tuple[Scalar, ...], dtype: DType, variant: str) -> Scalar:
    return (_gelu_erf if variant == "erf" else _gelu_tanh)(xs[0], dtype)


# ---------------------------------------------------------------- meanings that NumPy lacks


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)).astype(x.dtype)


def _np_sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _np_gelu(x: Array, variant: str) -> Array:
    if variant == "erf":
        return np.asarray(0.5 * x * (1 + _erf(x * math.sqrt(0.5))))
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))))


# ---------------------------------------------------------------- the declarations

_X, _XY = ("x",), ("x", "y")
_FLOAT, _NUM, _ANY, _BOOL = DTypeClass.FLOAT, DTypeClass.NUM, DTypeClass.ANY, DTypeClass.BOOL


def _numpy(name: str) -> Callable[..., Any]:
    """NumPy's function of that name, looked up when it is called."""
    return lambda *operands: getattr(np, name)(*operands)


def _binary(
    name: str, doc: str, torch: str, accepts: DTypeClass, reference: str, primitive: Function, **more: Any
) -> None:
    _declare(ElementwiseFunction(name, doc, torch, _XY, accepts, _numpy(reference), _primitive(primitive), **more))


def _unary(
    name: str, doc: str, torch: str, reference: str | Callable[..., Any], lower: Function | Expand,
    accepts: DTypeClass = _FLOAT, **more: Any,
) -> None:  # fmt: skip
    expand = _primitive(lower) if isinstance(lower, str) else lower
    meaning = _numpy(reference) if isinstance(reference, str) else reference
    _declare(ElementwiseFunction(name, doc, torch, _X, accepts, meaning, expand, **more))


_binary("add", "`x + y`. Integers wrap.", "x + y", _NUM, "add", "add")
_binary("sub", "`x - y`. Integers wrap.", "x - y", _NUM, "subtract", "sub")
_binary("mul", "`x * y`. Integers wrap.", "x * y", _NUM, "multiply", "mul")
_binary("div", "`x / y` of floats, as IEEE says.", "x / y", _FLOAT, "true_divide", "div")
_binary("pow", "`x ^ y` of floats.", "x ** y", _FLOAT, "power", "pow", positive=True)
_binary("min", "The smaller; NaN if either is NaN.", "torch.minimum(x, y)", _NUM, "minimum", "min")
_binary("max", "The larger; NaN if either is NaN.", "torch.maximum(x, y)", _NUM, "maximum", "max")
_binary("eq", "`x == y`.", "x == y", _ANY, "equal", "eq", gives_bool=True)
_binary("ne", "`x != y`.", "x != y", _ANY, "not_equal", "ne", gives_bool=True)
_binary("lt", "`x < y`.", "x < y", _NUM, "less", "lt", gives_bool=True)
_binary("le", "`x <= y`.", "x <= y", _NUM, "less_equal", "le", gives_bool=True)
_binary("gt", "`x > y`.", "x > y", _NUM, "greater", "gt", gives_bool=True)
_binary("ge", "`x >= y`.", "x >= y", _NUM, "greater_equal", "ge", gives_bool=True)
_binary("logical_and", "`x && y` of each pair.", "x & y", _BOOL, "logical_and", "and")
_binary("logical_or", "`x || y` of each pair.", "x | y", _BOOL, "logical_or", "or")

_unary("logical_not", "`not x`.", "~x", "logical_not", "not", _BOOL)
_unary("neg", "`-x`. Integers wrap.", "-x", "negative", "neg", _NUM)
_unary("abs", "The absolute value; the smallest integer stays itself.", "x.abs()", "abs", "abs", _NUM)
_unary("sign", "-1, 0 or 1; NaN stays NaN.", "x.sign()", "sign", _sign, _NUM)
_unary("exp", "e to the x.", "x.exp()", "exp", "exp")
_unary("log", "The natural logarithm; -inf at 0, NaN below.", "x.log()", "log", "log", positive=True)
_unary("log1p", "`log (1 + x)`, exact near 0.", "x.log1p()", "log1p", "log1p", positive=True)
_unary("expm1", "`exp x - 1`, exact near 0.", "x.expm1()", "expm1", "expm1")
_unary("sqrt", "The square root; NaN below 0.", "x.sqrt()", "sqrt", "sqrt", positive=True)
_unary(
    "rsqrt", "`1 / sqrt x`; inf at 0.", "x.rsqrt()", lambda x: 1 / np.sqrt(x),
    lambda xs, d, _variant: _reciprocal(call("sqrt", xs[0]), d), positive=True,
)  # fmt: skip
_unary("recip", "`1 / x`.", "x.reciprocal()", lambda x: 1 / x, lambda xs, d, _variant: _reciprocal(xs[0], d))
_unary("sin", "The sine of radians.", "x.sin()", "sin", "sin")
_unary("cos", "The cosine of radians.", "x.cos()", "cos", "cos")
_unary("tan", "The tangent of radians.", "x.tan()", "tan", "tan")
_unary("tanh", "The hyperbolic tangent.", "x.tanh()", "tanh", "tanh")
_unary("erf", "The error function.", "x.erf()", _erf, "erf")
_unary("sigmoid", "`1 / (1 + exp (-x))`.", "x.sigmoid()", _np_sigmoid, _sigmoid)
_unary(
    "relu", "`max x 0`; NaN stays NaN.", "F.relu(x)", lambda x: np.maximum(x, np.zeros((), x.dtype)),
    lambda xs, d, _variant: call("max", xs[0], Number(0, d)), _NUM,
)  # fmt: skip
_unary("silu", "`x * sigmoid x`, also called swish.", "F.silu(x)", lambda x: x / (1 + np.exp(-x)), _silu)
_unary("gelu", "`x * Phi(x)`: `erf` is exact, `tanh` the usual approximation.", "F.gelu(x, approximate=...)",
       _np_gelu, _gelu, choices=("tanh", "erf"))  # fmt: skip
_unary(
    "softplus",
    "`log (1 + exp x)`, without overflow.",
    "F.softplus(x)",
    lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    _softplus,
)
_unary("floor", "Rounded down.", "x.floor()", "floor", "floor")
_unary("ceil", "Rounded up.", "x.ceil()", "ceil", "ceil")
_unary("round", "Rounded to the nearest, ties to even.", "x.round()", "round", "round")
_unary("is_nan", "Whether x is NaN.", "x.isnan()", "isnan", "is_nan", gives_bool=True)

_declare(
    ElementwiseFunction(
        "select", "Where the condition holds `x`, else `y`.", "torch.where(c, x, y)", ("c", "x", "y"), _ANY,
        _numpy("where"),
        _primitive("select"), condition=True,
    )
)  # fmt: skip
_declare(
    ElementwiseFunction(
        "clamp", "`min (max x low) high`.", "x.clamp(low, high)", ("x", "low", "high"), _NUM,
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        lambda xs, _dtype, _variant: call("min", call("max", xs[0], xs[1]), xs[2]),
    )
)  # fmt: skip


@operation("cast", family="elementwise", torch="x.to(dtype)")
class Cast(Operation):
    """Each element converted: `cast[F64] x`. Floats go to integers towards zero, to `Bool` as `!= 0`.

    A float outside the integer's range (or NaN) is saturated (NaN gives 0), so that the result is
    the same on every machine.
    """

    shapes = "[...S] -> [...S]"
    example = "cast[I32] [2.9, -2.9, 1e30]  // [2, -2, 2147483647]"

    to: DType = attribute(Kind.DTYPE)
    keeps_dtype = False

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return operands[0].with_dtype(self.to)

    def reference(self, *operands: Array) -> Array:
        (x,) = operands
        if self.to.is_integer and DType.of_numpy(x.dtype) in (DType.F64, DType.F32, DType.F16, DType.BF16):
            info = np.iinfo(self.to.numpy)  # type: ignore[type-var]
            wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
            above, below = wide >= float(info.max), wide <= float(info.min)
            inside = np.where(above | below, 0, wide).astype(self.to.numpy)
            return np.where(above, info.max, np.where(below, info.min, inside)).astype(self.to.numpy)
        return x.astype(self.to.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return ScalarCast(Element(0, index), self.to)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        shape = (variable("A"), variable("B"))
        pairs = [
            (DType.F32, DType.F64), (DType.F64, DType.F32), (DType.F32, DType.BF16), (DType.BF16, DType.F32),
            (DType.F32, DType.F16), (DType.F16, DType.F32), (DType.F32, DType.I32), (DType.I32, DType.F32),
            (DType.I64, DType.I8), (DType.U8, DType.I64), (DType.F32, DType.BOOL),
            (DType.BOOL, DType.F32), (DType.I64, DType.F64),
        ]  # fmt: skip
        return [Sample(cls(to), (Tensor(source, shape),)) for source, to in pairs]


OperatorName = Literal[
    "add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"
]
OPERATORS: Mapping[str, OperatorName] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "==": "eq", "=": "eq", "!=": "ne",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "&&": "logical_and", "||": "logical_or",
}  # fmt: skip
"""The operation that each binary operator of the surface stands for."""
