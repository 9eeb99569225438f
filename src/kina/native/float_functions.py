"""Elementary functions of F32 as polynomials, on scalars and vectors alike: no lane waits for another.

Each is within 2 ulp, with IEEE's special values. Arguments are reduced as Cody and Waite (1980) do: by parts of
a constant so short that their products are exact. The coefficients are minimax fits of what stands beside them
(weighted for relative error, by Lawson's iteration); their errors are below a tenth of an ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kina.native.code import Code, Operand, literal, register_type
from kina.types import DType

_SHIFT = 1.5 * 2**23
"""Added to an F32, it leaves the nearest integer in the lowest bits."""
_SHIFT_BITS = 0x4B400000
_LN2_HIGH = 0.693359375
_LN2_LOW = math.log(2.0) - _LN2_HIGH
_SQRT_HALF_BITS = 0x3F3504F3
_SMALLEST_NORMAL = 2.0**-126

_EXP = (0.500000009631, 0.166665176612, 0.0416662022061, 0.00836903075679, 0.00139507307911)
"""(e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, in r."""
_EXPM1 = (0.500000004721, 0.166666668074, 0.0416663515645, 0.00833327524805, 0.00139412506799, 0.000199129907837)
"""The same, with the error relative to e^r - 1."""
_LOG = (
    0.333333126012, -0.25000009609, 0.200021188268, -0.166679954317, 0.142195490422, -0.124055945492, 0.118881903521,
    -0.116756281856, 0.067465516523,
)  # fmt: skip
"""(log (1 + f) - f + f^2 / 2) / f^3 for sqrt 1/2 <= 1 + f <= sqrt 2, in f."""
_TANH = (-0.333333309066, 0.1333320976, -0.0539472038553, 0.02170296507, -0.00818266925774, 0.00214753296174)
"""(tanh x - x) / x^3 for x <= 0.625, in x^2."""
_ERF = (
    0.128379166802, -0.376126353103, 0.112837197225, -0.0268607527818, 0.00520443595534, -0.000818192650645,
    8.53883595219e-05,
)  # fmt: skip
"""erf x / x - 1 for x <= 0.9, in x^2."""
_ERFC = (
    0.000139816504758, 1.1279095762, 0.63678318396, 0.104286121486, -0.02239978387, 0.0030870502409, -0.000200450685856,
)  # fmt: skip
"""-log (1 - erf x) for 0.88 <= x <= 4, in x."""
_SIN = (-0.16666654873, 0.00833217352096, -0.000195166533894)
"""(sin r - r) / r^3 for |r| <= pi / 4, in r^2."""
_COS = (0.0416666467468, -0.00138873614076, 2.44377258239e-05)
"""(cos r - 1 + r^2 / 2) / r^4 for |r| <= pi / 4, in r^2."""
_HALF_PI = (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12)
"""pi / 2 in parts: the first three have at most 11 bits."""
_HALF_PI_FUSED = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""pi / 2 in parts of 24 bits, for machines whose multiply-add rounds once."""
_FAR, _FAR_FUSED = 8192.0, 32768.0
"""Beyond this, multiples of the parts of pi / 2 are not exact: sine and cosine go to the C library."""


def emit_float_function(code: Code, function: str, x: Operand) -> Operand | None:
    """The function of an F32, or None where there is no polynomial for it."""
    emit = _FUNCTIONS.get(function)
    return None if emit is None else Operand(emit(_Floats(code, x.lanes), x.text), DType.F32, x.lanes)


class _Floats:
    """Arithmetic on F32 registers of some number of lanes; registers are named by their text."""

    def __init__(self, code: Code, lanes: int) -> None:
        self.code = code
        self.lanes = lanes
        self.type = register_type(DType.F32, lanes)
        self.integers = register_type(DType.I32, lanes)
        self.flags = register_type(DType.BOOL, lanes)
        self.suffix = "f32" if lanes == 1 else f"v{lanes}f32"

    def number(self, value: float) -> str:
        return self._splat(literal(value, DType.F32))

    def integer(self, value: int) -> str:
        return self._splat(literal(value, DType.I32))

    def _splat(self, x: Operand) -> str:
        return x.text if self.lanes == 1 else f"splat ({x})"

    def op(self, name: str, a: str, b: str) -> str:
        """`fadd`, `fsub`, `fmul` or `fdiv`."""
        return self.code.let(f"{name} {self.type} {a}, {b}")

    def integer_op(self, name: str, a: str, b: str) -> str:
        return self.code.let(f"{name} {self.integers} {a}, {b}")

    def call(self, intrinsic: str, *arguments: str) -> str:
        given = ", ".join(f"{self.type} {a}" for a in arguments)
        return self.code.let(f"call nsz {self.type} @llvm.{intrinsic}.{self.suffix}({given})")

    def multiply_add(self, a: str, b: str, c: str) -> str:
        return self.code.let(
            f"call {self.type} @llvm.fmuladd.{self.suffix}({self.type} {a}, {self.type} {b}, {self.type} {c})"
        )

    def magnitude(self, x: str) -> str:
        return self.code.let(f"call {self.type} @llvm.fabs.{self.suffix}({self.type} {x})")

    def with_sign(self, x: str, sign: str) -> str:
        return self.code.let(f"call {self.type} @llvm.copysign.{self.suffix}({self.type} {x}, {self.type} {sign})")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.code.let(f"fcmp {how} {self.type} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.code.let(f"select {self.flags} {condition}, {self.type} {a}, {self.type} {b}")

    def bits(self, x: str) -> str:
        return self.code.let(f"bitcast {self.type} {x} to {self.integers}")

    def from_bits(self, x: str) -> str:
        return self.code.let(f"bitcast {self.integers} {x} to {self.type}")

    def to_float(self, x: str) -> str:
        return self.code.let(f"sitofp {self.integers} {x} to {self.type}")

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """By Horner's rule, the constant coefficient first in the sequence."""
        *others, result = map(self.number, coefficients)
        for coefficient in reversed(others):
            result = self.multiply_add(result, x, coefficient)
        return result


# ---------------------------------------------------------------- exponentials


def _reduced(f: _Floats, x: str, low: float, high: float) -> tuple[str, str, str]:
    """`n`, `n + _SHIFT` and `r` of `x = n ln 2 + r`, for x brought into [low, high]; a NaN stays in `r`."""
    bounded = f.call("minimum", f.call("maximum", x, f.number(low)), f.number(high))
    shifted = f.multiply_add(bounded, f.number(1 / math.log(2.0)), f.number(_SHIFT))
    n = f.op("fsub", shifted, f.number(_SHIFT))
    r = f.multiply_add(n, f.number(-_LN2_HIGH), bounded)
    return n, shifted, f.multiply_add(n, f.number(-_LN2_LOW), r)


def _exp(f: _Floats, x: str) -> str:
    """0 below -104, infinite above 88.8."""
    n, shifted, r = _reduced(f, x, -105.0, 89.0)
    return _scaled(f, f.polynomial((1.0, 1.0, *_EXP), r), n, shifted)


def _scaled(f: _Floats, value: str, n: str, shifted: str) -> str:
    """`value * 2^n`, rounded once: in one instruction, or two exact steps, as 2^n may be beyond the range."""
    if f.lanes == 16 and f.code.avx512:
        arguments = f"{f.type} {value}, {f.type} {n}, {f.type} poison, i16 -1, i32 4"
        return f.code.let(f"call {f.type} @llvm.x86.avx512.mask.scalef.ps.512({arguments})")
    whole = f.integer_op("sub", f.bits(shifted), f.integer(_SHIFT_BITS))
    first = f.integer_op("ashr", whole, f.integer(1))
    for part in (first, f.integer_op("sub", whole, first)):
        value = f.op("fmul", value, _power_of_two(f, part))
    return value


def _power_of_two(f: _Floats, n: str) -> str:
    """`2^n` for an integer n of a normal number's exponent."""
    return f.from_bits(f.integer_op("shl", f.integer_op("add", n, f.integer(127)), f.integer(23)))


def _expm1(f: _Floats, x: str) -> str:
    """`2^n (e^r - 1) + (2^n - 1)`; the largest n is doubled at the end, as 2^128 is no number."""
    n, _, r = _reduced(f, x, -20.0, 89.0)
    part = f.multiply_add(f.op("fmul", r, r), f.polynomial(_EXPM1, r), r)
    largest = f.compare("ogt", n, f.number(127.0))
    fitting = f.call("minimum", n, f.number(127.0))
    shifted = f.op("fadd", fitting, f.number(_SHIFT))
    power = _power_of_two(f, f.integer_op("sub", f.bits(shifted), f.integer(_SHIFT_BITS)))
    result = f.multiply_add(part, power, f.op("fsub", power, f.number(1.0)))
    return f.with_sign(f.select(largest, f.op("fadd", result, result), result), x)


def _tanh(f: _Floats, x: str) -> str:
    """A polynomial near 0, else `1 - 2 / (e^2|x| + 1)`."""
    size = f.magnitude(x)
    square = f.op("fmul", size, size)
    near = f.multiply_add(f.op("fmul", square, f.polynomial(_TANH, square)), size, size)
    below = f.op("fadd", _exp(f, f.op("fadd", size, size)), f.number(1.0))
    far = f.op("fsub", f.number(1.0), f.op("fdiv", f.number(2.0), below))
    return f.with_sign(f.select(f.compare("olt", size, f.number(0.625)), near, far), x)


def _erf(f: _Floats, x: str) -> str:
    """A polynomial near 0, else `1 - e^-g` with a polynomial g."""
    size = f.magnitude(x)
    square = f.op("fmul", size, size)
    near = f.multiply_add(f.polynomial(_ERF, square), size, size)
    bounded = f.call("minimum", size, f.number(4.0))
    exponent = f.code.let(f"fneg {f.type} {f.polynomial(_ERFC, bounded)}")
    far = f.op("fsub", f.number(1.0), _exp(f, exponent))
    return f.with_sign(f.select(f.compare("olt", size, f.number(0.9)), near, far), x)


# ---------------------------------------------------------------- logarithms


def _log_near_one(f: _Floats, fraction: str, n: str) -> str:
    """`log (1 + fraction) + n ln 2`, the small parts added first."""
    square = f.op("fmul", fraction, fraction)
    cube = f.op("fmul", square, fraction)
    rest = f.multiply_add(n, f.number(_LN2_LOW), f.op("fmul", cube, f.polynomial(_LOG, fraction)))
    rest = f.multiply_add(square, f.number(-0.5), rest)
    return f.multiply_add(n, f.number(_LN2_HIGH), f.op("fadd", fraction, rest))


def _split(f: _Floats, x: str) -> str:
    """The bits of `2^n`, shifted as in a number, for which `x / 2^n` lies from sqrt 1/2 to sqrt 2."""
    above = f.integer_op("sub", f.bits(x), f.integer(_SQRT_HALF_BITS))
    return f.integer_op("and", above, f.integer(-(1 << 23)))


def _log(f: _Floats, x: str) -> str:
    tiny = f.compare("olt", x, f.number(_SMALLEST_NORMAL))
    normal = f.select(tiny, f.op("fmul", x, f.number(2.0**23)), x)
    exponent = _split(f, normal)
    mantissa = f.from_bits(f.integer_op("sub", f.bits(normal), exponent))
    n = f.to_float(f.integer_op("ashr", exponent, f.integer(23)))
    n = f.select(tiny, f.op("fsub", n, f.number(23.0)), n)
    result = _log_near_one(f, f.op("fsub", mantissa, f.number(1.0)), n)
    return _log_specials(f, result, x, x)


def _log1p(f: _Floats, x: str) -> str:
    """As `log`, with the fraction `2^-n (1 + x) - 1` rounded once from x itself."""
    total = f.op("fadd", x, f.number(1.0))
    exponent = _split(f, total)
    scaled = f.from_bits(f.integer_op("sub", f.bits(x), exponent))
    # 2^(2 - n), as 2^-128 is denormal.
    scale = f.from_bits(f.integer_op("sub", f.integer(129 << 23), exponent))
    fraction = f.op("fadd", scaled, f.multiply_add(scale, f.number(0.25), f.number(-1.0)))
    n = f.to_float(f.integer_op("ashr", exponent, f.integer(23)))
    result = f.select(f.compare("oeq", total, f.number(1.0)), x, _log_near_one(f, fraction, n))
    return _log_specials(f, result, total, x)


def _log_specials(f: _Floats, result: str, argument: str, x: str) -> str:
    """-inf for 0, NaN below, infinity and NaN as they are."""
    infinity = f.number(math.inf)
    result = f.select(f.compare("olt", argument, infinity), result, x)
    result = f.select(f.compare("oeq", argument, f.number(0.0)), f.number(-math.inf), result)
    return f.select(f.compare("olt", argument, f.number(0.0)), f.number(math.nan), result)


# ---------------------------------------------------------------- sine and cosine


def _sin(f: _Floats, x: str) -> str:
    """With the sign of a zero kept."""
    return f.select(f.compare("oeq", x, f.number(0.0)), x, _circular(f, x, 0, "sinf"))


def _circular(f: _Floats, x: str, turned: int, library: str) -> str:
    """Sine, or cosine a quarter turn ahead: by the quarter in which x lies, a polynomial of sine or of cosine."""
    shifted = f.multiply_add(x, f.number(2 / math.pi), f.number(_SHIFT))
    n = f.op("fsub", shifted, f.number(_SHIFT))
    r = x
    for part in _HALF_PI_FUSED if f.code.fused else _HALF_PI:
        r = f.multiply_add(n, f.number(-part), r)
    square = f.op("fmul", r, r)
    sine = f.multiply_add(f.op("fmul", square, f.polynomial(_SIN, square)), r, r)
    fourth = f.op("fmul", square, square)
    cosine = f.multiply_add(square, f.number(-0.5), f.number(1.0))
    cosine = f.multiply_add(fourth, f.polynomial(_COS, square), cosine)
    quarter = f.integer_op("add", f.bits(shifted), f.integer(turned))
    odd = f.code.let(f"trunc {f.integers} {quarter} to {f.flags}")
    sign = f.integer_op("shl", f.integer_op("and", quarter, f.integer(2)), f.integer(30))
    chosen = f.bits(f.select(odd, cosine, sine))
    return _far_from_library(f, library, x, f.from_bits(f.integer_op("xor", chosen, sign)))


def _far_from_library(f: _Floats, library: str, x: str, result: str) -> str:
    """The result, with the lanes of large arguments computed by the C library. There seldom are any."""
    code = f.code
    limit = _FAR_FUSED if code.fused else _FAR
    far = f.compare("ogt", f.magnitude(x), f.number(limit))
    some = far if f.lanes == 1 else code.let(f"call i1 @llvm.vector.reduce.or.v{f.lanes}i1({f.flags} {far})")
    given, slot = (code.at_entry(f"alloca {f.type}", "slot") for _ in range(2))
    code.do(f"store {f.type} {result}, ptr {slot}")
    look, done = code.fresh_label("far"), code.fresh_label("near")
    code.do(f"br i1 {some}, label %{look}, label %{done}")
    code.label(look)
    code.do(f"store {f.type} {x}, ptr {given}")
    with code.loop("0", str(f.lanes)) as lane:
        argument, target = (code.let(f"getelementptr float, ptr {p}, i64 {lane}") for p in (given, slot))
        one = code.let(f"load float, ptr {argument}")
        size = code.let(f"call float @llvm.fabs.f32(float {one})")
        large = code.let(f"fcmp ogt float {size}, {literal(limit, DType.F32).text}")
        compute, skip = code.fresh_label("compute"), code.fresh_label("skip")
        code.do(f"br i1 {large}, label %{compute}, label %{skip}")
        code.label(compute)
        code.do(f"store float {code.let(f'call float @{library}(float {one})')}, ptr {target}")
        code.do(f"br label %{skip}")
        code.label(skip)
    code.do(f"br label %{done}")
    code.label(done)
    return code.let(f"load {f.type}, ptr {slot}")


_FUNCTIONS: dict[str, Callable[[_Floats, str], str]] = {
    "exp": _exp,
    "expm1": _expm1,
    "tanh": _tanh,
    "erf": _erf,
    "log": _log,
    "log1p": _log1p,
    "sin": _sin,
    "cos": lambda f, x: _circular(f, x, 1, "cosf"),
}
