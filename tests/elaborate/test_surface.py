"""Sugar whose value is known from NumPy, by the reference and natively."""

from __future__ import annotations

import numpy as np
import pytest

import kina
from kina.diagnostics.render import render

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
W = np.array([10, 20, 30], np.float32)

VALUES = {
    "the last two axes exchanged behind a segment": (
        "let f [...S, M, N] (x : F32[...S, M, N]) : F32[...S, N, M] = transpose x [..., -1, -2]",
        (X,), np.swapaxes(X, -1, -2),
    ),
    "an axis brought to the front": (
        "let f [A, B, C] (x : F32[A, B, C]) : F32[C, A, B] = transpose x [2, ...]", (X,), np.moveaxis(X, 2, 0),
    ),
    "an axis brought to the end": (
        "let f [A, B, C] (x : F32[A, B, C]) : F32[B, C, A] = transpose x [..., 0]", (X,), np.moveaxis(X, 0, -1),
    ),
    "dots for no axis": ("let f [A, B, C] (x : F32[A, B, C]) : F32[C, B, A] = transpose x [2, 1, ..., 0]", (X,), X.T),
    "channels scaled before axes of any number": (
        "let f [B, C, ...S] (x : F32[B, C, ...S]) (w : F32[C]) : F32[B, C, ...S] =\n"
        "  x * broadcast[axis=1] w [B, C, ...S]",
        (X, W), X * W[:, None],
    ),
    "a scalar laid from axis 0": (
        "let f [N] (s : F32) (x : F32[N]) : F32[N] = broadcast[axis=0] s [N] + x", (2.0, W), W + 2,
    ),
    "computed items in a list": (
        "let f (a : F32) (b : F32) : F32[3] = [a + b, 0.0 / 0.0, 2]", (np.float32(1), np.float32(2)),
        np.array([3, np.nan, 2], np.float32),
    ),
    "computed items in nested lists": (
        "let f (c : F32) (s : F32) : F32[2, 2] = [[c, -s], [s, c]]", (np.float32(1), np.float32(2)),
        np.array([[1, -2], [2, 1]], np.float32),
    ),
    "tensors in a list": (
        "let f [N] (a : F32[N]) : F32[3, N] = [a, a * 2.0, -a]", (W,), np.stack([W, W * 2, -W]),
    ),
    "integers beside a computed item": ("let f (n : I64) : I64[2] = [n + 1, 7]", (np.int64(4),), np.array([5, 7])),
    "infinities": (
        "let f [N] (x : F32[N]) : F32[N] = select (x > 15.0) inf (select (x < 15) (-inf) nan)",
        (W,), np.array([-np.inf, np.inf, np.inf], np.float32),
    ),
    "a maximum from below": (
        "let f [N] (x : F32[N]) : F32 = for i < N with best = -inf do max best x[i]", (W,), np.float32(30),
    ),
    "a name of its own called inf": ("let inf = 3.0\nlet f (x : F32) : F32 = x + inf", (np.float32(1),), np.float32(4)),
    "computed expressions as positions": (
        "let f [A, B, C] (x : F32[A, B, C]) (i : I64) : F32[A, C] = x[:, i + 1]", (X, np.int64(1)), X[:, 2],
    ),
    "a list of positions": ("let f [A, B, C] (x : F32[A, B, C]) : F32[A, 2, C] = x[:, [2, 0]]", (X,), X[:, [2, 0]]),
    "the greatest's slice": (
        "let f [A, B] requires (B > 0) (x : F32[A, B]) : F32[A] = x[:, reduce[argmax, axis=0] (reduce[sum, axis=0] x)]",
        (X[0],), X[0][:, 3],
    ),
    "a slice of known size from a computed place": (
        "let f [A, B, C] requires (C >= 2) (x : F32[A, B, C]) (i : I64) : F32[A, B, 2] = x[..., i : i + 2]",
        (X, np.int64(1)), X[..., 1:3],
    ),
    "a row of each expert": (
        "let f [A, B, C] (x : F32[A, B, C]) (i : I64) : F32[A, C] = for a < A yield x[a, i - 1]",
        (X, np.int64(2)), X[:, 1],
    ),
    "dimensions by name, the others inferred": (
        "let heads [H, N, D] (x : F32[N, H * D]) : F32[H, N, D] = transpose (unflatten[axis=1] x [H, D]) [1, 0, 2]\n"
        "let f [N, D] (x : F32[N, 2 * D]) : F32[2, N, D] = heads[H=2] x",
        (X[0],), X[0].reshape(3, 2, 2).transpose(1, 0, 2),
    ),
    "a branch beside a smaller operand": (
        "let f [N] (s : F32) (v : F32[N]) : F32[N] = s + (if s > 0.0 then v else v * 2.0)", (1.0, W), W + 1,
    ),
    "a branch that is reduced": (
        "let f [N, M] (s : F32) (x : F32[N, M]) : F32[N] = reduce[sum, axis=1] (if s > 0.0 then x else x * 2.0)",
        (1.0, X[0]), X[0].sum(1),
    ),
}


@pytest.mark.parametrize("name", list(VALUES))
def test_it_means_what_numpy_says(name):
    text, arguments, want = VALUES[name]
    f = kina.compile(text + "\n").f
    np.testing.assert_array_equal(f.reference(*arguments), want)
    np.testing.assert_array_equal(f(*arguments), want)


REFUSED = {
    "two dots in an order": (
        "let f [A, B] (x : F32[A, B]) = transpose x [..., 0, ...]", "K0206", "an axis is a number",
    ),
    "an axis twice beside dots": (
        "let f [A, B] (x : F32[A, B]) = transpose x [..., 0, 0]", "K0206", "has to stand in it once",
    ),
    "too many axes from there on": (
        "let f [A, B] (x : F32[A, B]) = broadcast[axis=2] x [3, A, B]", "K0206", "do not stand in [3, A, B]",
    ),
    "a list of two dtypes": ("let f (a : F32) (b : I64) = [a, b]", "K0303", "needs operands of one dtype"),
    "a list of two shapes": ("let f (a : F32) (b : F32) = [[a, b], [a]]", "K0301", "shapes do not match"),
    "infinity as an integer": ("let f : I64 = inf", "K0210", "is not an I64"),
    "a float for an integer": ("let f (n : I64) = n + 2e3", "K0210", "as a whole number it is 2000"),
    "a new axis": ("let f [N] (x : F32[N]) = x[:, None]", "K0206", "expand_dims"),
    "a slice of unknown size": ("let f [N] (x : F32[N]) (i : I64) = x[:i]", "K0206", "start : start + n"),
    "a dimension of another name": (
        "let g [A] (x : F32[A]) = x\nlet f [N] (x : F32[N]) = g[B=N] x", "K0208", "g has A",
    ),
    "a dimension twice": (
        "let g [A, B] (x : F32[A, B]) = x\nlet f [N] (x : F32[N, N]) = g[A=N, A=N] x", "K0208", "takes no second A",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_it_is_refused_with_the_reason(check, name):
    text, code, said = REFUSED[name]
    check(text).rejects(code, said)


HELPED = {
    "what the library declares": (
        "let f [B, H, S, D] (x : F32[B, H, S, D]) : F32[B, S, H * D] = merge_heads x",
        "import std.nn (merge_heads)\nlet f",
    ),
    "an arrow for a colon": ("let f [N] (x : F32[N]) -> F32[N] = x", ") : F32[N] = x"),
    "a depthwise kernel without groups": (
        "let f [N, C, L] requires (L >= 3 && C >= 1)\n"
        "    (x : F32[N, C, L]) (w : F32[C, 1, 3]) : F32[N, C, L - 2] = conv x w",
        "conv[groups=C] x w",
    ),
    "a state that starts as a scalar": (
        "let f [N, D] (x : F32[N, D]) : F32[D] =\n  for i < N with s = 0.0 do\n    s + x[i]",
        "s = (broadcast (0.0) [D])",
    ),
    "a weight that is tied": (
        "let f [B, S, V, D] (h : F32[B, S, D]) (w : F32[V, D]) : F32[B, S, V] = h @ w", "h @ (transpose w [1, 0])",
    ),
    "one element of each row": (
        "let f [B, K] (x : F32[B, K]) (t : Idx[K][B]) : F32[B] = gather[axis=1] x t",
        "take_along[axis=1] x (expand_dims",
    ),
    "a name without its let": (
        "let f [N] (x : F32[N]) : F32[N] =\n  let z = relu x\n  y = z + 1.0\n  y", "\n  let y = z + 1.0",
    ),
    "a Bool in arithmetic": ("let f [S] (keep : Bool[S]) : F32[S] = 1.0 - keep", "1.0 - (cast[F32] keep)"),
}


@pytest.mark.parametrize("name", list(HELPED))
def test_the_help_mends_it(check, name):
    text, written = HELPED[name]
    mended = check(text).helped().accepts()
    assert written in mended.checked.source.text


def test_nothing_is_required_that_holds_for_size_0_only(check):
    error = check(
        "let f [B, H] (z : F32[B, 4 * H]) : (F32[B, H], F32[B, H], F32[B, H]) = split[axis=1] z [H, H, H]"
    ).rejects("K0305", "3 * H = 4 * H")
    assert error.help == ()


def test_a_line_that_help_puts_in_is_shown_as_a_line(check):
    program = check("let f [B, H, S, D] (x : F32[B, H, S, D]) : F32[B, S, H * D] = merge_heads x")
    assert "1│ import std.nn (merge_heads)\n 2│ let f" in render(program.checked.diagnostics)
