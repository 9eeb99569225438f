"""Elementary functions as LLVM IR: those of F32 mostly from `float_functions`, the others from the C library.

LLVM's intrinsics on vectors, and calls where it has none, run lane by lane.
"""

from __future__ import annotations

from kina.native.code import Code, Operand, register_type
from kina.native.float_functions import emit_float_function
from kina.types import DType

_LLVM = frozenset({"log", "sin", "cos", "tan", "tanh", "exp", "pow"})
_LIBRARY = ("log1p", "expm1", "erf", "sin", "cos")
DECLARED_LIBRARY = tuple(
    f"declare {t} @{name}{suffix}({t})" for name in _LIBRARY for t, suffix in (("double", ""), ("float", "f"))
)


def emit_math(code: Code, function: str, xs: list[Operand]) -> Operand:
    """An elementary function of F32 or F64 operands."""
    x = xs[-1]
    if x.dtype is DType.F32 and len(xs) == 1:
        found = emit_float_function(code, function, x)
        if found is not None:
            return found
    scalar = register_type(x.dtype)
    if function in _LLVM:
        kind = {"double": "f64", "float": "f32"}[scalar]
        name = kind if x.lanes == 1 else f"v{x.lanes}{kind}"
        arguments = ", ".join(map(str, xs))
        return Operand(code.let(f"call {x.type} @llvm.{function}.{name}({arguments})"), x.dtype, x.lanes)
    symbol = function + ("f" if x.dtype is DType.F32 else "")
    if x.lanes == 1:
        return Operand(code.let(f"call {scalar} @{symbol}({x})"), x.dtype)
    result = "poison"
    for lane in range(x.lanes):
        element = code.let(f"extractelement {x}, i64 {lane}")
        value = code.let(f"call {scalar} @{symbol}({scalar} {element})")
        result = code.let(f"insertelement {x.type} {result}, {scalar} {value}, i64 {lane}")
    return Operand(result, x.dtype, x.lanes)
