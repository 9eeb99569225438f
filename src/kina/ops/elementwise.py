"""Operations that act on each element alone.

All operands have one shape (the surface stretches the smaller one first) and one dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from kina.dims.dim import variable
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, attribute, operation
from kina.ops.lifting import ElementwiseFunction, Expand, declare_function
from kina.ops.quantised import WEIGHTS, as_numbers
from kina.ops.scalar import Call, Element, Function, Index, Scalar
from kina.ops.scalar import Cast as ScalarCast
from kina.ops.scalar import Literal as Number
from kina.ops.terms import Term
from kina.types import DType, Tensor

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


def _zero_mul(xs: tuple[Scalar, ...], dtype: DType, _variant: str) -> Scalar:
    zero = Number(0.0, dtype)
    vanishes = call("or", call("eq", xs[0], zero), call("eq", xs[1], zero))
    return call("select", vanishes, zero, call("mul", *xs))


# ---------------------------------------------------------------- derivatives that take more than a line


def _share(loses: Term, x: Term, y: Term) -> Term:
    """What of a tangent goes to the one that wins: of equals, half to each; of a NaN, all to each, as in PyTorch."""
    return loses.where(0, x.equals(y).where(0.5, 1, of=x), of=x)


def _gelu_slope(x: Term, variant: str) -> Term:
    if variant == "erf":
        return 0.5 * ((x * math.sqrt(0.5)).erf() + 1) + x * (-0.5 * x * x).exp() * math.sqrt(0.5 / math.pi)
    scale = math.sqrt(2 / math.pi)
    tanh = (scale * (x + 0.044715 * x * x * x)).tanh()
    return 0.5 * (tanh + 1) + 0.5 * scale * x * (1 - tanh * tanh) * (3 * 0.044715 * x * x + 1)


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
    meaning = _numpy(reference)
    declare_function(ElementwiseFunction(name, doc, torch, _XY, accepts, meaning, _primitive(primitive), **more))


def _unary(
    name: str, doc: str, torch: str, reference: str | Callable[..., Any], lower: Function | Expand,
    accepts: DTypeClass = _FLOAT, **more: Any,
) -> None:  # fmt: skip
    expand = _primitive(lower) if isinstance(lower, str) else lower
    meaning = _numpy(reference) if isinstance(reference, str) else reference
    declare_function(ElementwiseFunction(name, doc, torch, _X, accepts, meaning, expand, **more))


_binary("add", "`x + y`. Integers wrap.", "x + y", _NUM, "add", "add", d=lambda x, y, z: (1, 1), linear=True,
        example="[1.0, 2.0] + 0.5  // [1.5, 2.5]")  # fmt: skip
_binary("sub", "`x - y`. Integers wrap.", "x - y", _NUM, "subtract", "sub", d=lambda x, y, z: (1, -1), linear=True,
        example="[1.0, 2.0] - [0.5, 4.0]  // [0.5, -2.0]")  # fmt: skip
_binary("mul", "`x * y`. Integers wrap.", "x * y", _NUM, "multiply", "mul", d=lambda x, y, z: (y, x), linear=True,
        example="[1.0, 2.0] * [3.0, 4.0]  // [3.0, 8.0]")  # fmt: skip
declare_function(
    ElementwiseFunction(
        "zero_mul", "`x * y`, but 0 times anything, infinity and NaN included, is 0: what derivatives multiply by.",
        "torch.where((x == 0) | (y == 0), 0, x * y)", _XY, _FLOAT, lambda x, y: np.where((x == 0) | (y == 0), 0, x * y),
        _zero_mul, d=lambda x, y, z: (y, x), linear=True,
        example="zero_mul [0.0, 2.0] (1.0 / [0.0, 4.0])  // [0.0, 0.5]",
    )
)  # fmt: skip
_binary("div", "`x / y` of floats, as IEEE says.", "x / y", _FLOAT, "true_divide", "div",
        d=lambda x, y, z: (1 / y, -z / y),
        example="[1.0, -1.0] / [4.0, 0.0]  // [0.25, -inf]")  # fmt: skip
_binary("pow", "`x ^ y` of floats.", "x ** y", _FLOAT, "power", "pow", positive=True, d=lambda x, y, z: (
    y.equals(0).where(0, y * x ** (y - 1), of=x), x.equals(0).both(y >= 0).where(0, z * x.log(), of=x)
),
        example="[2.0, 9.0] ^ [10.0, 0.5]  // [1024.0, 3.0]")  # fmt: skip
_binary("min", "The smaller; NaN if either is NaN.", "torch.minimum(x, y)", _NUM, "minimum", "min",
        d=lambda x, y, z: (_share(x > y, x, y), _share(y > x, x, y)),
        example="min [1.0, 5.0] [3.0, 4.0]  // [1.0, 4.0]")  # fmt: skip
_binary("max", "The larger; NaN if either is NaN.", "torch.maximum(x, y)", _NUM, "maximum", "max",
        d=lambda x, y, z: (_share(x < y, x, y), _share(y < x, x, y)),
        example="max [1.0, 5.0] [3.0, 4.0]  // [3.0, 5.0]")  # fmt: skip
_binary("eq", "`x == y`.", "x == y", _ANY, "equal", "eq", gives_bool=True, example="[1, 2] == [1, 3]  // [true, false]")
_binary("ne", "`x != y`.", "x != y", _ANY, "not_equal", "ne", gives_bool=True,
        example="[1, 2] != [1, 3]  // [false, true]")  # fmt: skip
_binary("lt", "`x < y`.", "x < y", _NUM, "less", "lt", gives_bool=True, example="[1, 2] < 2  // [true, false]")
_binary("le", "`x <= y`.", "x <= y", _NUM, "less_equal", "le", gives_bool=True,
        example="[1, 2, 3] <= 2  // [true, true, false]")  # fmt: skip
_binary("gt", "`x > y`.", "x > y", _NUM, "greater", "gt", gives_bool=True,
        example="[1, 2, 3] > 2  // [false, false, true]")  # fmt: skip
_binary("ge", "`x >= y`.", "x >= y", _NUM, "greater_equal", "ge", gives_bool=True,
        example="[1, 2, 3] >= 2  // [false, true, true]")  # fmt: skip
_binary("logical_and", "`x && y` of each pair.", "x & y", _BOOL, "logical_and", "and",
        example="[true, true] && [true, false]  // [true, false]")  # fmt: skip
_binary("logical_or", "`x || y` of each pair.", "x | y", _BOOL, "logical_or", "or",
        example="[false, true] || [false, false]  // [false, true]")  # fmt: skip

_unary("logical_not", "`not x`.", "~x", "logical_not", "not", _BOOL, example="not [true, false]  // [false, true]")
_unary("neg", "`-x`. Integers wrap.", "-x", "negative", "neg", _NUM, d=lambda x, y: -1, linear=True,
       example="neg [1.0, -2.0]  // [-1.0, 2.0]")  # fmt: skip
_unary("abs", "The absolute value; the smallest integer stays itself.", "x.abs()", "abs", "abs", _NUM,
       d=lambda x, y: x.sign(),
       example="abs [-1.5, 2.0]  // [1.5, 2.0]")  # fmt: skip
_unary("sign", "-1, 0 or 1; NaN stays NaN.", "x.sign()", "sign", _sign, _NUM, d=lambda x, y: 0,
       example="sign [-1.5, 0.0, 2.0]  // [-1.0, 0.0, 1.0]")  # fmt: skip
_unary("exp", "e to the x.", "x.exp()", "exp", "exp", d=lambda x, y: y, example="exp [0.0, 1.0]  // [1.0, 2.71828]")
_unary("log", "The natural logarithm; -inf at 0, NaN below.", "x.log()", "log", "log", positive=True,
       d=lambda x, y: 1 / x,
       example="log [1.0, 0.0, -1.0]  // [0.0, -inf, nan]")  # fmt: skip
_unary("log1p", "`log (1 + x)`, exact near 0.", "x.log1p()", "log1p", "log1p", positive=True,
       d=lambda x, y: 1 / (x + 1),
       example="log1p [0.0, 1.0]  // [0.0, 0.693147]")  # fmt: skip
_unary("expm1", "`exp x - 1`, exact near 0.", "x.expm1()", "expm1", "expm1", d=lambda x, y: y + 1,
       example="expm1 [0.0, 1.0]  // [0.0, 1.71828]")  # fmt: skip
_unary("sqrt", "The square root; NaN below 0.", "x.sqrt()", "sqrt", "sqrt", positive=True, d=lambda x, y: 0.5 / y,
       example="sqrt [4.0, -1.0]  // [2.0, nan]")  # fmt: skip
_unary(
    "rsqrt", "`1 / sqrt x`; inf at 0.", "x.rsqrt()", lambda x: 1 / np.sqrt(x),
    lambda xs, d, _variant: _reciprocal(call("sqrt", xs[0]), d), positive=True,
    d=lambda x, y: -0.5 * y / x,
    example="rsqrt [4.0, 0.0]  // [0.5, inf]",
)  # fmt: skip
_unary("recip", "`1 / x`.", "x.reciprocal()", lambda x: 1 / x, lambda xs, d, _variant: _reciprocal(xs[0], d),
       d=lambda x, y: -y * y,
       example="recip [4.0, 0.0]  // [0.25, inf]")  # fmt: skip
_unary("sin", "The sine of radians.", "x.sin()", "sin", "sin", d=lambda x, y: x.cos(),
       example="sin [0.0, 1.570796]  // [0.0, 1.0]")  # fmt: skip
_unary("cos", "The cosine of radians.", "x.cos()", "cos", "cos", d=lambda x, y: -x.sin(),
       example="cos [0.0, 3.141593]  // [1.0, -1.0]")  # fmt: skip
_unary("tan", "The tangent of radians.", "x.tan()", "tan", "tan", d=lambda x, y: y * y + 1,
       example="tan [0.0, 0.785398]  // [0.0, 1.0]")  # fmt: skip
_unary("tanh", "The hyperbolic tangent.", "x.tanh()", "tanh", "tanh", d=lambda x, y: 1 - y * y,
       example="tanh [0.0, 1.0]  // [0.0, 0.761594]")  # fmt: skip
_unary("erf", "The error function.", "x.erf()", _erf, "erf", d=lambda x, y: 2 / math.sqrt(math.pi) * (-x * x).exp(),
       example="erf [0.0, 1.0]  // [0.0, 0.842701]")  # fmt: skip
_unary("sigmoid", "`1 / (1 + exp (-x))`.", "x.sigmoid()", _np_sigmoid, _sigmoid, d=lambda x, y: y * (1 - y),
       example="sigmoid [0.0, 1.0]  // [0.5, 0.731059]")  # fmt: skip
_unary(
    "relu", "`max x 0`; NaN stays NaN.", "F.relu(x)", lambda x: np.maximum(x, np.zeros((), x.dtype)),
    lambda xs, d, _variant: call("max", xs[0], Number(0, d)), _NUM,
    d=lambda x, y: (x <= 0).where(0, 1, of=x),
    example="relu [-1.5, 2.0]  // [0.0, 2.0]",
)  # fmt: skip
_unary("silu", "`x * sigmoid x`, also called swish.", "F.silu(x)", lambda x: x / (1 + np.exp(-x)), _silu,
       d=lambda x, y: x.sigmoid() * (x * (1 - x.sigmoid()) + 1),
       example="silu [0.0, 1.0]  // [0.0, 0.731059]")  # fmt: skip
_unary("gelu", "`x * Phi(x)`: `erf` is exact, `tanh` the usual approximation.", "F.gelu(x, approximate=...)",
       _np_gelu, _gelu, choices=("tanh", "erf"), d=lambda x, y, variant: _gelu_slope(x, variant),
       example="gelu[erf] [0.0, 1.0]  // [0.0, 0.841345]")  # fmt: skip
_unary(
    "softplus",
    "`log (1 + exp x)`, without overflow.",
    "F.softplus(x)",
    lambda x: np.logaddexp(x, np.zeros((), x.dtype)),
    _softplus,
    d=lambda x, y: x.sigmoid(),
    example="softplus [0.0, 100.0]  // [0.693147, 100.0]",
)
_unary("floor", "Rounded down.", "x.floor()", "floor", "floor", d=lambda x, y: 0,
       example="floor [1.5, -1.5]  // [1.0, -2.0]")  # fmt: skip
_unary("ceil", "Rounded up.", "x.ceil()", "ceil", "ceil", d=lambda x, y: 0, example="ceil [1.5, -1.5]  // [2.0, -1.0]")
_unary("round", "Rounded to the nearest, ties to even.", "x.round()", "round", "round", d=lambda x, y: 0,
       example="round [0.5, 1.5, 2.6]  // [0.0, 2.0, 3.0]")  # fmt: skip
_unary("is_nan", "Whether x is NaN.", "x.isnan()", "isnan", "is_nan", gives_bool=True,
       example="is_nan (sqrt [-1.0, 4.0])  // [true, false]")  # fmt: skip

declare_function(
    ElementwiseFunction(
        "select", "Where the condition holds `x`, else `y`.", "torch.where(c, x, y)", ("c", "x", "y"), _ANY,
        _numpy("where"),
        _primitive("select"), condition=True,
        example="select [true, false] [1.0, 2.0] 0.0  // [1.0, 0.0]",
    )
)  # fmt: skip
declare_function(
    ElementwiseFunction(
        "clamp", "`min (max x low) high`.", "x.clamp(low, high)", ("x", "low", "high"), _NUM,
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        lambda xs, _dtype, _variant: call("min", call("max", xs[0], xs[1]), xs[2]),
        d=lambda x, low, high, y: (
            (x >= low).both(x <= high).where(1, 0, of=x),
            (x < low).both(low < high).where(1, 0, of=x),
            (x > high).either(high < low).where(1, 0, of=x),
        ),
        example="clamp [-3.0, 0.5, 7.0] 0.0 1.0  // [0.0, 0.5, 1.0]",
    )
)  # fmt: skip


@operation("cast", family="elementwise", torch="x.to(dtype)")
class Cast(Operation):
    """Each element converted: `cast[F64] x`. Floats go to integers towards zero, to `Bool` as `!= 0`.

    A float outside the integer's range (or NaN) is saturated (NaN gives 0), so that the result is
    the same on every machine. Of a quantised tensor it reads the numbers: `cast[F32] w`.
    """

    shapes = "[...S] -> [...S]"
    example = "cast[I32] [2.9, -2.9, 1e30]  // [2, -2, 2147483647]"

    to: DType = attribute(Kind.DTYPE)
    keeps_dtype = False
    linear = True
    reads_quantised = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        (x,) = operands
        if x.dtype.block is not None and not self.to.is_float:
            help_ = f"say how they are rounded: cast[{self.to}] (round (cast[F32] ...))"
            rule.refuse(f"the numbers of {x.dtype} are floats", operand=0, help=help_)
        return x.with_dtype(self.to)

    def reference(self, *operands: Array) -> Array:
        x = as_numbers(operands[0])
        if self.to.is_integer and DType.of_numpy(x.dtype) in (DType.F64, DType.F32, DType.F16, DType.BF16):
            info = np.iinfo(self.to.numpy)  # type: ignore[type-var]
            wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
            above, below = wide >= float(info.max), wide <= float(info.min)
            inside = np.where(above | below, 0, wide).astype(self.to.numpy)
            return np.where(above, info.max, np.where(below, info.min, inside)).astype(self.to.numpy)
        return x.astype(self.to.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        x = operands[0].dtype
        if x is self.to:
            return Element(0, index)
        if x.block is not None and self.to is not DType.F32:
            return ScalarCast(ScalarCast(Element(0, index), DType.F32), self.to)
        return ScalarCast(Element(0, index), self.to)

    def transpose(self, cotangent: Term, operands: Sequence[Term], number: int) -> Term:
        return cotangent.cast(operands[0].type.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        shape = (variable("A"), variable("B"))
        pairs = [
            (DType.F32, DType.F64), (DType.F64, DType.F32), (DType.F32, DType.BF16), (DType.BF16, DType.F32),
            (DType.F32, DType.F16), (DType.F16, DType.F32), (DType.F32, DType.I32), (DType.I32, DType.F32),
            (DType.I64, DType.I8), (DType.U8, DType.I64), (DType.F32, DType.BOOL),
            (DType.BOOL, DType.F32), (DType.I64, DType.F64), (DType.F32, DType.F32),
        ]  # fmt: skip
        plain = [Sample(cls(to), (Tensor(source, shape),)) for source, to in pairs]
        rows = (variable("A"), 32 * variable("B"))
        blocks = [(source, DType.F32) for source in WEIGHTS] + [(DType.Q8_0, DType.F64), (DType.Q4_1, DType.BF16)]
        return [*plain, *(Sample(cls(to), (Tensor(source, rows),)) for source, to in blocks)]


@operation("stop_gradient", family="elementwise", torch="x.detach()")
class StopGradient(Operation):
    """`x` itself, which derivatives take for a constant."""

    shapes = "[...S] -> [...S]"
    example = "stop_gradient [1.0, 2.0]  // [1.0, 2.0]"

    flat = True
    moves = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        return operands[0]

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Element(0, index)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        shape = (variable("A"), variable("B"))
        return [Sample(cls(), (Tensor(dtype, shape),)) for dtype in (DType.F32, DType.BF16, DType.I64, DType.BOOL)]


OperatorName = Literal[
    "add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"
]
OPERATORS: Mapping[str, OperatorName] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "==": "eq", "=": "eq", "!=": "ne",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "&&": "logical_and", "||": "logical_or",
}  # fmt: skip
"""The operation that each binary operator of the surface stands for."""
