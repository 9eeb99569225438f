"""What fusion makes of programs: how many kernels, what is stored between them, how views are read."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

from kina.core.ir import Value
from kina.kernels import GemmKernel, KernelProgram, LoopKernel
from kina.kernels.expressions import walk
from kina.kernels.fuse import Fusion
from kina.kernels.memory import plan_memory
from kina.ops.scalar import Element, Pieces
from kina.pipeline import check, lower
from kina.source import Source


def kernels_of(text: str) -> KernelProgram:
    module = check(Source("fusion.kina", dedent(text)))
    assert module.ok, module.diagnostics
    return lower(module.function("f"))


ONE_KERNEL = {
    "rmsnorm": """let f [B, S, D] (x : F32[B, S, D]) (w : F32[D]) : F32[B, S, D] =
        x * rsqrt (reduce_keep[mean, axis=2] (x * x) + 1e-6) * w""",
    "layernorm": """let f [B, D] (x : F32[B, D]) : F32[B, D] =
        let m = reduce_keep[mean, axis=1] x in
        (x - m) * rsqrt (reduce_keep[var, axis=1] x + 1e-5)""",
    "softmax": "let f [B, S] (x : F32[B, S]) : F32[B, S] = softmax[axis=1] x",
    "softmax of its parts": """let f [B, S] (x : F32[B, S]) : F32[B, S] =
        let e = exp (x - reduce_keep[max, axis=1] x) in
        e / reduce_keep[sum, axis=1] e""",
    "cross entropy of rows": "let f [B, V] (x : F32[B, V]) : F32[B] = reduce[logsumexp, axis=1] x",
    "activations": "let f [A] (x : F32[A]) (y : F32[A]) : F32[A] = silu x * gelu[tanh] y + 1.0",
    "views": "let f [A, B] (x : F32[A, B]) : F32[B * A] = reshape (transpose (x + x) [1, 0]) [B * A]",
}


@pytest.mark.parametrize("text", ONE_KERNEL.values(), ids=ONE_KERNEL.keys())
def test_one_loop_nest_is_enough_for(text):
    program = kernels_of(text)
    assert len(program.kernels) == 1
    assert not program.temporaries


def test_a_reduction_across_rows_is_stored_before_it_is_used_along_them():
    program = kernels_of("let f [A, B] (x : F32[A, B]) : F32[A, B] = x / reduce_keep[sum, axis=0] x")
    assert len(program.kernels) == 2
    assert [why for _, why in program.reasons] == ["its reduction does not run along the user's loops"]


def test_heads_are_split_and_transposed_without_copies():
    program = kernels_of("""
        let f [B, S, H, D] (q : F32[B, S, H * D]) (k : F32[B, S, H * D]) : F32[B, H, S, S] =
          let qh = transpose (reshape q [B, S, H, D]) [0, 2, 1, 3] in
          let kh = transpose (reshape k [B, S, H, D]) [0, 2, 3, 1] in
          qh @ kh
    """)
    (gemm,) = program.kernels
    assert isinstance(gemm, GemmKernel)
    assert [str(i) for i in gemm.left.index] == ["%i0", "%m", "%i1 * D + %k"]
    assert [str(i) for i in gemm.right.index] == ["%i0", "%n", "%i1 * D + %k"]


def test_what_comes_between_two_products_is_done_by_the_later_of_those_before():
    program = kernels_of("""
        let f [S, D, H] (x : F32[S, D]) (g : F32[D, H]) (u : F32[D, H]) (w : F32[H, D]) : F32[S, D] =
          (silu (x @ g) * (x @ u)) @ w
    """)
    gate, up, down = program.kernels
    assert isinstance(up, GemmKernel)
    assert up.finish is not None
    assert up.finish.inputs == (gate.output,)
    assert down.inputs[0] is up.output


def test_indices_of_merged_and_split_axes_have_no_divisions():
    program = kernels_of("""
        let f [A, B, C] (x : F32[A, B, C]) : F32[A, B, C] = exp (reshape (reshape x [A * B, C]) [A, B, C])
    """)
    (kernel,) = program.kernels
    (load,) = (e for e in walk(kernel.body) if isinstance(e, Element))
    assert load.index == kernel.index


def test_a_concatenation_is_written_piece_by_piece_without_a_test():
    program = kernels_of("""
        let f [A, B, D] (x : F32[A, D]) (y : F32[B, D]) : F32[A + B, D] = concat[axis=0] x y * 2.0
    """)
    assert len(program.kernels) == 2
    assert not any(isinstance(e, Pieces) for k in program.kernels for e in walk(k.body))
    assert len({k.output for k in program.kernels}) == 1


def test_equal_reductions_are_computed_once():
    program = kernels_of("""
        let f [A, B] (x : F32[A, B]) : F32[A, B] =
          (x - reduce_keep[max, axis=1] x) * exp (reduce_keep[max, axis=1] x)
    """)
    assert str(program).count("max over") == 1


def test_a_reduction_to_one_element_is_cut_into_parts():
    program = kernels_of("let f [A, B] (x : F32[A, B]) : F32[] = reduce[sum, axes=[0, 1]] x")
    parts, whole = program.kernels
    assert len(parts.rows) == 2
    assert whole.inputs == (parts.output,)
    assert [why for _, why in program.reasons] == ["a reduction to one element, shared by threads"]


def test_fusion_asks_no_solver():
    program = """
let f [B, H, S, D] (q : F32[B, H, S, D]) (k : F32[B, H, S, D]) : F32[B * H, S, S] =
  reshape q [B * H, S, D] @ reshape (transpose k [0, 1, 3, 2]) [B * H, D, S]
"""
    code = (
        "import sys; from kina.pipeline import check, lower; from kina.source import Source\n"
        f"lower(check(Source('f.kina', {program!r})).function('f')); assert 'z3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def network(layers: int) -> str:
    """Layers that are each added to what they work on, as in every transformer."""
    lines = ["let f [S, D] (x0 : F32[S, D]) (u : F32[D, D]) (w : F32[D, D]) : F32[S, D] ="]
    for n in range(layers):
        lines.append(f"  let n{n} = x{n} * rsqrt (reduce_keep[mean, axis=1] (x{n} * x{n}) + 1e-6) in")
        lines.append(f"  let x{n + 1} = x{n} + silu (n{n} @ u) @ w in")
    return "\n".join([*lines, f"  x{layers}"])


def test_a_deep_network_reads_and_holds_no_more_than_a_shallow_one():
    programs = [kernels_of(network(layers)) for layers in (5, 40)]
    shallow, deep = (max(len(kernel.inputs) for kernel in program.kernels) for program in programs)
    assert deep <= shallow <= 5
    assert len({len(plan_memory(program).places) for program in programs}) == 1


def test_a_kernel_is_made_again_only_where_something_it_had_inlined_is_stored(monkeypatch):
    calls: list[Value] = []
    make = Fusion._kernels_of
    monkeypatch.setattr(Fusion, "_kernels_of", lambda self, value: calls.append(value) or make(self, value))
    program = kernels_of(network(40))
    assert len(calls) < 3 * len(program.kernels)


def test_a_result_that_stands_twice_is_copied_not_computed_again():
    program = kernels_of("let f [A] (x : F32[A, A]) : (F32[A, A], F32[A, A]) = let y = x @ x in (y, y)")
    gemm, copy = program.kernels
    assert isinstance(gemm, GemmKernel)
    assert isinstance(copy, LoopKernel)
    assert isinstance(copy.body, Element)
    assert copy.inputs == (gemm.output,)
