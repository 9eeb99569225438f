"""Quantised tensors in programs: what takes them, what reads them, what they are refused by."""

from __future__ import annotations

import pytest

from kina.pipeline import check as check_source
from kina.pipeline import core_text
from kina.source import Source

LINEAR = """
    let linear [T : Weight, M, N, K] (x : F32[M, K]) (w : T[N, K]) : F32[M, N] =
      x @ transpose (cast[F32] w) [1, 0]
"""


def test_a_product_reads_its_quantised_operand(check):
    program = check("let f [M, N] (x : F32[M, 64]) (w : Q4_1[N, 64]) : F32[M, N] = x @ transpose w [1, 0]").accepts()
    core = core_text(program.checked.function("f"))
    assert "cast[F32] w" in core
    again = check_source(Source("core", core), strict=True)
    assert again.ok
    assert core_text(again.function("f")) == core


def test_a_product_reads_blocks_along_its_columns_too(check):
    check("let f [M, N] (x : F32[M, N]) (w : Q8_0[N, 64]) : F32[M, 64] = x @ w").accepts()


def test_strict_programs_say_where_they_read(check):
    text = "let f (x : Tensor[F32, [2, 64]]) (w : Tensor[Q4_1, [3, 64]]) : Tensor[F32, [2, 3]] ="
    found = check_source(Source("strict", f"{text} matmul x (transpose w [1, 0])"), strict=True)
    assert [d.code for d in found.diagnostics] == ["K0212"]
    assert "write cast[F32] w" in found.diagnostics[0].help[0].message


def test_gather_gives_rows_as_numbers(check):
    check("let f [V, B] (t : Q8_0[V, 32]) (ids : Idx[V][B]) : F32[B, 32] = gather[axis=0] t ids").accepts()
    check("let f [V, B] (t : Q8_0[V, 32]) (ids : Idx[V][B]) : F32[B, 32] = t[ids]").accepts()


@pytest.mark.parametrize(
    ("result", "body"),
    [
        ("Q4_0[N, 64]", "w[i]"),
        ("Q4_0[N, 64]", "w[2]"),
        ("Q4_0[2, N, 64]", "w[1:3]"),
        ("Q4_0[N, 3, 64]", "transpose w [1, 0, 2]"),
        ("Q4_0[1, 3, N, 64]", "expand_dims[axis=0] w"),
        ("Q4_0[5, 3, N, 64]", "broadcast w [5, 3, N, 64]"),
    ],
)
def test_what_moves_whole_rows_keeps_the_dtype(check, result, body):
    check(f"let f [N] (w : Q4_0[3, N, 64]) (i : I64) : {result} = {body}").accepts()


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ("w * 2.0", ["mul takes numbers", "cast[F32]"]),
        ("w[:, 0:32]", ["would cut the blocks of Q4_0", "cast[F32]"]),
        ("reshape w [N * 2, 32]", ["reshape takes numbers"]),
        ("concat[axis=0] w w", ["concat takes numbers"]),
        ("cast[I32] w", ["the numbers of Q4_0 are floats"]),
        ("cast[Q8_0] (cast[F32] w)", ["cast makes numbers", "Q8_0 is only read"]),
        ("zeros[Q4_0] [N, 64]", ["zeros makes numbers"]),
        ("expand_dims[axis=2] w", ["would cut the blocks"]),
    ],
)
def test_other_operations_are_refused_with_what_to_do(check, body, texts):
    check(f"let f [N] (w : Q4_0[N, 64]) = {body}").rejects("K0206", *texts)


def test_a_quantised_tensor_is_no_f32_one(check):
    error = check("let f [N] (w : Q4_0[N, 64]) : F32[N, 64] = w").rejects("K0302")
    assert "convert it to F32" in error.help[0].message


def test_halves_and_quantised_numbers_do_not_mix(check):
    check("let f (x : F16[2, 64]) (w : Q4_0[3, 64]) : F32[2, 3] = x @ transpose w [1, 0]").rejects("K0303")


def test_one_program_serves_weights_of_every_dtype(check):
    check(
        LINEAR
        + """
    let all [M, N] (x : F32[M, 64]) (a : F32[N, 64]) (b : BF16[N, 64]) (c : Q4_1[N, 64]) (d : Q8_0[N, 64]) : F32[M, N] =
      linear x a + linear x b + linear x c + linear x d
    """
    ).accepts()


def test_only_quantised_weights_require_whole_blocks(check):
    check(LINEAR + "let f [M, N] (x : F32[M, 48]) (w : F16[N, 48]) : F32[M, N] = linear x w").accepts()
    check(LINEAR + "let f [M, N, K] (x : F32[M, K]) (w : Q8_0[N, K]) : F32[M, N] = linear x w").rejects(
        "K0305", "blocks of 32"
    )
    program = check(LINEAR + "let f [M, N] (x : F32[M, 64]) (w : Q8_0[N, 64]) : F32[M, N] = linear x w").accepts()
    assert "requires (K mod 32 = 0)" in core_text(program.checked.function("f"))


def test_records_of_weights_have_a_dtype_too(check):
    check(
        LINEAR
        + """
    type Layer [T : Weight, D, F] = { up : T[F, D], down : T[D, F], norm : F32[D] }
    let mlp [T : Weight, B, D, F] (l : Layer[T, D, F]) (x : F32[B, D]) : F32[B, D] =
      linear (silu (linear (x * l.norm) l.up)) l.down
    let stack_of [T : Weight, N, B, D, F] (layers : List[N, Layer[T, D, F]]) (x : F32[B, D]) : F32[B, D] =
      for i < N with h : F32[B, D] = x do h + mlp layers[i] h
    """
    ).accepts()


def test_weights_are_floats_or_blocks(check):
    check(LINEAR + "let f (x : F32[2, 32]) (w : I8[3, 32]) : F32[2, 3] = linear x w").rejects("K0303", "Weight")
    check("let f [T : Any, N] (w : T[N, 32]) : T[N, 32] = w").accepts()
    text = "let f [T : Any, N] (w : T[N, 32]) : T[N, 32] = w\n    let g (w : Q4_0[1, 32]) : Q4_0[1, 32] = f w"
    assert check(text).errors
