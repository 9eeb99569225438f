"""Core prints as Kina that checks again under --strict to the same core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kina.core.ir import Apply
from kina.core.printer import print_program
from kina.core.verifier import InvalidCore, verify
from kina.passes.simplify import simplify
from kina.passes.specialise import specialise
from kina.pipeline import check as check_source
from kina.source import Source

FOLDER = Path(__file__).parents[2] / "examples" / "companion"

PROGRAMS = {
    "sugar": "let f [N, M] (x : F32[N, M]) (w : F32[M]) : F32[N, M] = (2.0 * x - w) / 0.5 |> max 1e-6",
    "literals": "let f [N] (x : I32[N, 3]) : I32[N, 3] = -x + [[1, 2, -3]]",
    "booleans": "let f [N] (x : F32[N]) : F32[N] = select (not (x > 0.0) && x != 1.0) x (exp x)",
    "attributes": "let f [A, B, C] (x : F32[A, B, C]) : F32[A] = reduce[var, axes=[-1, 1]] (gelu[tanh] x)",
    "casts": "let f [A, B] (x : F32[A, B]) : I64[B, A, 1] = expand_dims[axis=2] (transpose (cast[I64] x) [1, 0])",
    "tuples": "let f [N] (p : (F32[N], (F32, F32[N]))) : (F32[N], F32) = (p.0 + p.1.1, p.1.0)",
    "calls": """
let swap [N, M] (a : F32[N]) (b : F32[M]) : (F32[M], F32[N]) = (b, a)
let f [N] (x : F32[N]) : F32[2 * N] =
  let (u, v) = swap x (x + 1.0)
  concat[axis=0] u v
""",
    "requires": """
let split [N, H] requires (N mod H = 0) (x : F32[N]) : F32[H, N / H] = reshape x [H, N / H]
let f [K] requires (K > 0) (x : F32[K * 6]) : F32[3 * K, 2] =
  split[6 * K, 3 * K] x
""",
    "checks": "let f [N, M] (x : F32[N, M]) : F32[N, M] = let assert (N * N * N != 7 * M * M * M + 3) in x",
    "repeat": "let f [B, G] (x : F32[B]) : F32[B * (G + 1)] = repeat_interleave[axis=0] x (G + 1)",
    "names of operations": """
let broadcast [N] (x : F32[N]) : F32[N] = x * 2.0
let exp (x : (F32, F32)) : F32 = let (a, b) = x in log a + sqrt b
let f [N] (log : F32[N]) (sqrt : (F32[N], F32)) : F32[N] =
  let reduce = broadcast (log + 1.0) in
  let reduce' = relu sqrt.0 in
  reduce + reduce' + sqrt.1 * exp (sqrt.1, sqrt.1) + reduce_keep[sum, axis=0] reduce
""",
    "names of functions": """
let t1 (x : F32) : F32 = x
let f (t2 : F32) : F32 = t1 (relu (relu t2)) + t2
""",
    "constants": "let pi : F32 = 3.14159\nlet f [N] (x : F32[N]) : F32[N] = x * pi",
    "batches": "let f [B, M, K] (x : F32[B, M, K]) (w : F32[K, 4]) : F32[B, M, 4] = x @ w",
}


def programs():
    for path in sorted(FOLDER.glob("*.kina")):
        if path.stem != "expand_kv_for_gqa":
            yield pytest.param(path.read_text(), id=path.stem)
    for name, text in PROGRAMS.items():
        yield pytest.param(text, id=name)


@pytest.mark.parametrize("text", list(programs()))
def test_printed_core_checks_strictly_and_is_the_same_core(text):
    checked = check_source(Source("given.kina", text))
    assert checked.ok, [(d.message, d.span) for d in checked.diagnostics]
    for function in checked.elaboration.program.functions.values():
        verify(function)
        verify(specialise(function))
        verify(simplify(specialise(function)))
        printed = print_program(function)
        again = check_source(Source("printed.kina", printed), strict=True)
        assert again.ok, (printed, [(d.message, d.span.text) for d in again.diagnostics])
        (*_, printed_function) = again.elaboration.program.functions.values()
        assert print_program(printed_function) == printed


def test_the_verifier_refuses_a_wrong_type():
    checked = check_source(Source("t", "let f [N, M] (x : F32[N, M]) : F32[M, N] = transpose x [1, 0]"))
    function = checked.function("f")
    (statement,) = function.statements
    assert isinstance(statement, Apply)
    wrong = type(statement.result)(statement.result.name, statement.arguments[0].type)
    broken = replace(function, statements=(replace(statement, result=wrong),), result=wrong)
    with pytest.raises(InvalidCore):
        verify(broken)
