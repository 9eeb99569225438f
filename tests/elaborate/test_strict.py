"""`--strict` takes core as it is printed, and refuses each sugar with what to write instead."""

from __future__ import annotations

import pytest

SUGAR = {
    "a smaller operand": ("x * w", "broadcast w [N, M]"),
    "a smaller batch": ("reduce[sum, axis=0] (matmul (broadcast x [3, N, M]) (zeros[F32] [M, M]))", "broadcast"),
    "a pipe": ("x |> relu", "f x"),
    "an operator for matmul": ("x @ zeros[F32] [M, M]", "matmul x y"),
    "a let without in": ("\n  let y = relu x\n  y", "`in` after it"),
    "a type without Tensor": ("let y : F32[N, M] = relu x in y", "Tensor[F32, [...]]"),
    "a scalar type without Tensor": ("let y : F32 = reduce[sum, axes=[0, 1]] x in x", "Tensor[F32, []]"),
    "an index type without Tensor": ("let y : Idx[N + 1] = position 0 (N + 1) in x", "Tensor[Idx[N + 1], []]"),
    "a literal of the type that its use needs": ("max x 0.0", "let t : Tensor[F32, []] = 0.0 in"),
    "a list of the type that its use needs": ("x * broadcast [[1.0]] [N, M]", "let t : Tensor[F32, [1, 1]]"),
    "a list of computed values": ("reduce[sum, axis=0] [x, x]", "stack[axis=0] x x"),
    "infinity of the type that its use needs": ("max x inf", "let t : Tensor[F32, []] = inf in"),
    "dimensions left out": ("double x", "double[N, M]"),
    "some dimensions left out": ("double[N] x", "double[N, M]"),
    "dimensions by name": ("double[N=N, M=M] x", "double[N, M]"),
    "partial application": ("let half = scaled 0.5 in half x", "fun x -> scaled ... x"),
    "an axis from the end": ("softmax[axis=-1] x", "1"),
    "all axes": ("x * reduce[sum, axes=all] x", "the axes as numbers"),
    "an order from the end": ("transpose (transpose x [1, 0]) [-1, 0]", "[1, 0]"),
    "an order with dots": ("transpose (transpose x [1, 0]) [..., 1, 0]", "[1, 0]"),
    "einsum": ("einsum[n m, m -> n m] x w", "transpose, matmul and reduce"),
    "rearrange": ("rearrange[n m -> n m] x", "unflatten, transpose and flatten_pair"),
    "an index": ("x[:, :]", "slice[axis=...] x start stop"),
    "an index of a list": ("layers[0].w", "slice[axis=...] x start stop"),
    "split": ("(split[axis=1] x [M, 0]).0", "slice[axis=...] x start stop"),
    "sort": ("sort[axis=1] x", "argsort, then take_along"),
    "top_k": ("(top_k[axis=1] x M).0", "arg_top_k, then take_along"),
    "broadcast from an axis": ("broadcast[axis=1] w [N, M]", "expand_dims for each axis"),
    "an integer as a position": ("gather[axis=0] x (reinterpret ids [N])", "to_idx"),
    "a loop's index as a value": ("for i < N yield broadcast (cast[F32] i) [M]", "position i N"),
}
HEAD = """
type Layer [N, M] = {{ w : Tensor[F32, [N, M]] }}

let double [N, M] (x : Tensor[F32, [N, M]]) : Tensor[F32, [N, M]] = x + x

let scaled [N, M] (by : Tensor[F32, []]) (x : Tensor[F32, [N, M]]) : Tensor[F32, [N, M]] = broadcast by [N, M] * x

let f [N, M] requires (N >= 1)
    (x : Tensor[F32, [N, M]]) (w : Tensor[F32, [M]]) (ids : Tensor[I64, [N, 1]]) (layers : List[2, Layer[N, M]])
    : Tensor[F32, [N, M]] = {}
"""


@pytest.mark.parametrize("name", list(SUGAR))
def test_each_sugar_is_refused_with_what_to_write(check, name):
    body, instead = SUGAR[name]
    text = HEAD.format(body)
    assert all(d.code != "K0201" for d in check(text).errors), "nothing else is wrong with it"
    error = check(text, strict=True).errors[0]
    assert error.code == "K0212"
    assert instead in error.help[0].message


@pytest.mark.parametrize("name", [n for n in SUGAR if n not in ("a smaller batch",)])
def test_each_sugar_is_accepted_without_strict(check, name):
    check(HEAD.format(SUGAR[name][0])).accepts()


def test_modules_that_a_strict_program_imports_need_not_be_strict(check):
    program = """
        import std.nn (split_heads)

        let f [B, S, H, D] (x : Tensor[F32, [B, S, H * D]]) : Tensor[F32, [B, H, S, D]] = split_heads[F32, B, S, H, D] x
    """
    check(program, strict=True).accepts()


def test_an_in_inside_a_comment_does_not_count(check):
    body = "\n  let y = relu x // written in short\n  y"
    check(HEAD.format(body), strict=True).rejects("K0212", "leaving out `in`")
