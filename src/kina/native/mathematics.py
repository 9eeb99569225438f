"""Elementary functions as LLVM IR, on scalars and vectors alike.

F32 `exp` is a polynomial of our own: `x = n ln 2 + r` with `|r| <= ln 2 / 2` (Cody and Waite 1980, two-part
ln 2), then the series of `e^r` to the seventh power, whose remainder is below 6e-9, then a scale by
`2^n` in two exact steps, so that results down to the denormals are right. The others go to LLVM's intrinsics
or, where there is none, lane by lane to the C library.
"""

from __future__ import annotations

import math

from kina.native.code import Code, Operand, literal, register_type
from kina.types import DType

_LLVM = frozenset({"log", "sin", "cos", "tan", "tanh", "exp", "pow"})
_LIBRARY = {"log1p": "log1p", "expm1": "expm1", "erf": "erf"}
DECLARED_LIBRARY = tuple(
    f"declare {t} @{name}{suffix}({t})" for name in _LIBRARY.values() for t, suffix in (("double", ""), ("float", "f"))
)

_SHIFT = 1.5 * 2**23
"""Added to an F32, it leaves the nearest integer in the lowest bits."""
_SHIFT_BITS = 0x4B400000
_LN2_HIGH = 0.693359375
_LN2_LOW = math.log(2.0) - _LN2_HIGH


def emit_exp(code: Code, x: Operand) -> Operand:
    """e^x in F32, within 1.5 ulp; 0 below -104, infinite above 88.8; NaN stays NaN."""
    vector = x.type
    suffix = "f32" if x.lanes == 1 else f"v{x.lanes}f32"

    def number(value: float) -> str:
        return _splat(code, literal(value, DType.F32), x.lanes)

    def fma(a: str, b: str, c: str) -> str:
        return code.let(f"call {vector} @llvm.fmuladd.{suffix}({vector} {a}, {vector} {b}, {vector} {c})")

    low = code.let(f"call {vector} @llvm.maximum.{suffix}({x}, {vector} {number(-105.0)})")
    bounded = code.let(f"call {vector} @llvm.minimum.{suffix}({vector} {low}, {vector} {number(89.0)})")
    shifted = fma(bounded, number(1 / math.log(2.0)), number(_SHIFT))
    n = code.let(f"fsub {vector} {shifted}, {number(_SHIFT)}")
    r = fma(n, number(-_LN2_HIGH), bounded)
    r = fma(n, number(-_LN2_LOW), r)
    series = number(1 / 5040)
    for k in (720, 120, 24, 6, 2, 1, 1):
        series = fma(series, r, number(1 / k))
    return Operand(_scaled(code, series, n, shifted, x.lanes), DType.F32, x.lanes)


def _scaled(code: Code, value: str, n: str, shifted: str, lanes: int) -> str:
    """`value * 2^n`, rounded once. `shifted` is `n + _SHIFT`, whose low bits are the integer n."""
    vector, integers = register_type(DType.F32, lanes), register_type(DType.I32, lanes)
    if lanes == 16:  # AVX-512
        unused = f"{vector} poison, i16 -1, i32 4"
        return code.let(f"call {vector} @llvm.x86.avx512.mask.scalef.ps.512({vector} {value}, {vector} {n}, {unused})")

    def integer(number: int) -> str:
        return _splat(code, literal(number, DType.I32), lanes)

    bits = code.let(f"bitcast {vector} {shifted} to {integers}")
    whole = code.let(f"sub {integers} {bits}, {integer(_SHIFT_BITS)}")
    first = code.let(f"ashr {integers} {whole}, {integer(1)}")
    second = code.let(f"sub {integers} {whole}, {first}")
    for part in (first, second):
        biased = code.let(f"add {integers} {part}, {integer(127)}")
        exponent = code.let(f"shl {integers} {biased}, {integer(23)}")
        power = code.let(f"bitcast {integers} {exponent} to {vector}")
        value = code.let(f"fmul {vector} {value}, {power}")
    return value


def emit_math(code: Code, function: str, xs: list[Operand]) -> Operand:
    """The functions without a polynomial of our own."""
    x = xs[-1]
    scalar = register_type(x.dtype)
    if function in _LLVM:
        kind = {"double": "f64", "float": "f32"}[scalar]
        name = kind if x.lanes == 1 else f"v{x.lanes}{kind}"
        arguments = ", ".join(map(str, xs))
        return Operand(code.let(f"call {x.type} @llvm.{function}.{name}({arguments})"), x.dtype, x.lanes)
    symbol = _LIBRARY[function] + ("f" if x.dtype is DType.F32 else "")
    if x.lanes == 1:
        return Operand(code.let(f"call {scalar} @{symbol}({x})"), x.dtype)
    result = "poison"
    for lane in range(x.lanes):
        element = code.let(f"extractelement {x}, i64 {lane}")
        value = code.let(f"call {scalar} @{symbol}({scalar} {element})")
        result = code.let(f"insertelement {x.type} {result}, {scalar} {value}, i64 {lane}")
    return Operand(result, x.dtype, x.lanes)


def _splat(code: Code, x: Operand, lanes: int) -> str:
    if lanes == 1:
        return x.text
    return f"splat ({x})"
