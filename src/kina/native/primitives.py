"""The primitives of scalar expressions as LLVM IR, on scalars and vectors alike.

A vector's lanes and the scalars of a loop's remainder go through the same instructions, so that an
element's value never depends on where in the loop it falls.
"""

from __future__ import annotations

from kina.native.code import Code, Operand, literal, register_type
from kina.native.mathematics import emit_math
from kina.native.threefry import emit_threefry
from kina.types import DType

_COMPARE_FLOAT = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_COMPARE_SIGNED = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_COMPARE_UNSIGNED = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}
_ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul"}
_INTRINSIC = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "roundeven", "abs": "fabs"}


def widen(code: Code, x: Operand, lanes: int) -> Operand:
    """A scalar in every lane; a vector as it is."""
    if x.lanes == lanes:
        return x
    one = code.let(f"insertelement {register_type(x.dtype, lanes)} poison, {x}, i64 0")
    mask = f"<{lanes} x i32> zeroinitializer"
    vector = register_type(x.dtype, lanes)
    return Operand(code.let(f"shufflevector {vector} {one}, {vector} poison, {mask}"), x.dtype, lanes)


def level(code: Code, operands: list[Operand]) -> list[Operand]:
    """Operands with one number of lanes."""
    lanes = max(x.lanes for x in operands)
    return [widen(code, x, lanes) for x in operands]


def suffix(x: Operand) -> str:
    """The name that LLVM's intrinsics give to a type: `v16f32`."""
    scalar = {"double": "f64", "float": "f32", "half": "f16"}.get(register_type(x.dtype), register_type(x.dtype))
    return scalar if x.lanes == 1 else f"v{x.lanes}{scalar}"


def emit_call(code: Code, function: str, operands: list[Operand]) -> Operand:
    """A primitive on operands of one dtype (`select` has a Bool first)."""
    xs = level(code, operands)
    x = xs[-1]

    def give(instruction: str, dtype: DType | None = None) -> Operand:
        return Operand(code.let(instruction), dtype or x.dtype, x.lanes)

    if function in _COMPARE_FLOAT:
        return give(_comparison(function, xs), DType.BOOL)
    if function in ("and", "or"):
        return give(f"{function} {xs[0]}, {x.text}")
    if function == "not":
        return give(f"xor {x}, {widen(code, literal(True, DType.BOOL), x.lanes).text}")
    if function == "select":
        return give(f"select {xs[0]}, {xs[1]}, {xs[2]}")
    if function == "is_nan":
        return give(f"fcmp uno {x}, {x.text}", DType.BOOL)
    return _float(code, function, xs) if x.dtype.is_float else _integer(code, function, xs)


def _comparison(function: str, xs: list[Operand]) -> str:
    dtype = xs[0].dtype
    if dtype.is_float:
        return f"fcmp {_COMPARE_FLOAT[function]} {xs[0]}, {xs[1].text}"
    table = _COMPARE_UNSIGNED if dtype in (DType.U8, DType.BOOL) else _COMPARE_SIGNED
    return f"icmp {table[function]} {xs[0]}, {xs[1].text}"


def _float(code: Code, function: str, xs: list[Operand]) -> Operand:
    x = xs[-1]

    def give(instruction: str) -> Operand:
        return Operand(code.let(instruction), x.dtype, x.lanes)

    match function:
        case "add" | "sub" | "mul" | "div":
            return give(f"f{function} contract {xs[0]}, {x.text}")
        case "neg":
            return give(f"fneg {x}")
        case "min" | "max":
            # Which zero is given of two does not matter: telling them apart takes twice as long.
            return give(f"call nsz {x.type} @llvm.{function}imum.{suffix(x)}({xs[0]}, {xs[1]})")
    if function in _INTRINSIC:
        return give(f"call {x.type} @llvm.{_INTRINSIC[function]}.{suffix(x)}({x})")
    return emit_math(code, function, xs)


def _integer(code: Code, function: str, xs: list[Operand]) -> Operand:
    x = xs[-1]

    def give(instruction: str) -> Operand:
        return Operand(code.let(instruction), x.dtype, x.lanes)

    sign = "u" if x.dtype is DType.U8 else "s"
    match function:
        case "add" | "sub" | "mul":
            return give(f"{_ARITHMETIC[function]} {xs[0]}, {x.text}")
        case "neg":
            return give(f"sub {x.type} {widen(code, literal(0, x.dtype), x.lanes).text}, {x.text}")
        case "min" | "max":
            return give(f"call {x.type} @llvm.{sign}{function}.{suffix(x)}({xs[0]}, {xs[1]})")
        case "abs":
            return x if sign == "u" else give(f"call {x.type} @llvm.abs.{suffix(x)}({x}, i1 false)")
        case "shift_right":
            return give(f"lshr {xs[0]}, {x.text}")
        case "threefry":
            return emit_threefry(code, xs[0], x)
        case "floor_div" | "remainder":
            return _divided(code, function, xs[0], x)
    raise AssertionError(f"{function} of {x.dtype}")


def _divided(code: Code, function: str, x: Operand, y: Operand) -> Operand:
    """The quotient rounded down, or what is left. By -1 it is a negation, which wraps: a division would trap."""

    def let(text: str) -> str:
        return code.let(text)

    if x.dtype is DType.U8:
        return Operand(let(f"{'udiv' if function == 'floor_div' else 'urem'} {x}, {y.text}"), x.dtype, x.lanes)
    zero, one, minus_one = (widen(code, literal(n, x.dtype), x.lanes).text for n in (0, 1, -1))
    bits = f"<{x.lanes} x i1>" if x.lanes > 1 else "i1"
    negation = let(f"icmp eq {y}, {minus_one}")
    divisor = let(f"select {bits} {negation}, {x.type} {one}, {y}")
    rest = let(f"srem {x}, {divisor}")
    signs = let(f"xor {x.type} {rest}, {divisor}")
    some, other = let(f"icmp ne {x.type} {rest}, {zero}"), let(f"icmp slt {x.type} {signs}, {zero}")
    below = let(f"and {bits} {some}, {other}")
    if function == "remainder":
        moved = let(f"add {x.type} {rest}, {divisor}")
        return Operand(let(f"select {bits} {below}, {x.type} {moved}, {x.type} {rest}"), x.dtype, x.lanes)
    quotient = let(f"sdiv {x}, {divisor}")
    less = let(f"add {x.type} {quotient}, {minus_one}")
    down = let(f"select {bits} {below}, {x.type} {less}, {x.type} {quotient}")
    negated = let(f"sub {x.type} {zero}, {x.text}")
    return Operand(let(f"select {bits} {negation}, {x.type} {negated}, {x.type} {down}"), x.dtype, x.lanes)


# ---------------------------------------------------------------- conversions


def emit_cast(code: Code, x: Operand, to: DType) -> Operand:
    """As `ops.elementwise.Cast` says: towards zero and saturated to integers, `!= 0` to Bool."""
    if x.dtype is to:
        return x
    if x.dtype is DType.BF16:
        return emit_cast(code, _from_bf16(code, x), to)
    target = register_type(to, x.lanes)

    def give(instruction: str) -> Operand:
        return Operand(code.let(instruction), to, x.lanes)

    if to is DType.BF16:
        return _to_bf16(code, emit_cast(code, x, DType.F32))
    if to is DType.BOOL:
        zero = widen(code, literal(0, x.dtype), x.lanes)
        return give(f"{'fcmp une' if x.dtype.is_float else 'icmp ne'} {x}, {zero.text}")
    if x.dtype is DType.BOOL:
        return give(f"{'uitofp' if to.is_float else 'zext'} {x} to {target}")
    if x.dtype.is_float:
        return _from_float(code, x, to, give)
    unsigned = x.dtype is DType.U8
    if to.is_float:
        return give(f"{'uitofp' if unsigned else 'sitofp'} {x} to {target}")
    if register_type(to) == register_type(x.dtype):
        return Operand(x.text, to, x.lanes)
    if to.itemsize < x.dtype.itemsize:
        return give(f"trunc {x} to {target}")
    return give(f"{'zext' if unsigned else 'sext'} {x} to {target}")


def _from_float(code: Code, x: Operand, to: DType, give) -> Operand:  # type: ignore[no-untyped-def]
    target = register_type(to, x.lanes)
    if to.is_float:
        wider = to.itemsize > x.dtype.itemsize
        return give(f"{'fpext' if wider else 'fptrunc'} {x} to {target}")  # type: ignore[no-any-return]
    sign = "u" if to is DType.U8 else "s"
    integer = Operand("", to, x.lanes)
    name = f"@llvm.fpto{sign}i.sat.{suffix(integer)}.{suffix(x)}"
    return give(f"call {target} {name}({x})")  # type: ignore[no-any-return]


def _from_bf16(code: Code, x: Operand) -> Operand:
    """BF16 is the upper half of an F32."""
    wide = register_type(DType.I32, x.lanes)
    bits = code.let(f"zext {x} to {wide}")
    by = widen(code, literal(16, DType.I32), x.lanes).text
    high = code.let(f"shl {wide} {bits}, {by}")
    return Operand(code.let(f"bitcast {wide} {high} to {register_type(DType.F32, x.lanes)}"), DType.F32, x.lanes)


def _to_bf16(code: Code, x: Operand) -> Operand:
    """Rounded to nearest even on the bits; NaN stays a (quiet) NaN, which rounding could turn into infinity."""
    wide = register_type(DType.I32, x.lanes)

    def number(value: int) -> str:
        return widen(code, literal(value, DType.I32), x.lanes).text

    bits = code.let(f"bitcast {x} to {wide}")
    half = code.let(f"lshr {wide} {bits}, {number(16)}")
    odd = code.let(f"and {wide} {half}, {number(1)}")
    bias = code.let(f"add {wide} {odd}, {number(0x7FFF)}")
    rounded = code.let(f"add {wide} {bits}, {bias}")
    high = code.let(f"lshr {wide} {rounded}, {number(16)}")
    quiet = code.let(f"or {wide} {half}, {number(0x40)}")
    is_nan = code.let(f"fcmp uno {x}, {x.text}")
    chosen = code.let(f"select {register_type(DType.BOOL, x.lanes)} {is_nan}, {wide} {quiet}, {wide} {high}")
    return Operand(code.let(f"trunc {wide} {chosen} to {register_type(DType.BF16, x.lanes)}"), DType.BF16, x.lanes)
