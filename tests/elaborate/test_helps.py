"""Programs with one mistake each, as people make them: one error, at the right place, whose help mends the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from kina.diagnostics import Diagnostic, Severity
from kina.diagnostics.trial import applied
from kina.pipeline import Checked
from kina.pipeline import check as check_source
from kina.source import Source

SCALE = "let scale [A] requires (A mod 2 = 0) (a : F32[A]) : F32[A] = a\n"
LINEAR = "let linear [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = x @ w + b\n"
LAYER = "type Layer [D, H] = { norm : F32[D], up : F32[D, H], down : F32[H, D] }\n"

MISTAKES = {
    "scores without a transpose": (
        "let f [B, H, S, D] (q : F32[B, H, S, D]) (k : F32[B, H, S, D]) : F32[B, H, S, S] = «q @ k»",
        "K0301", "(transpose k [0, 1, 3, 2])",
    ),
    "first operand transposed": (
        "let f [S, T, D] (q : F32[D, S]) (k : F32[D, T]) : F32[S, T] = «q @ k»",
        "K0301", "(transpose q [1, 0])",
    ),
    "a weight stored the way PyTorch stores it": (
        "let f [N, I, O] (x : F32[N, I]) (w : F32[O, I]) : F32[N, O] = «x @ w»",
        "K0301", "(transpose w [1, 0])",
    ),
    "operands of matmul in the wrong order": (
        "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) : F32[N, O] = «w @ x»",
        "K0301", "x",
    ),
    "attention over the wrong axis of v": (
        "let f [S, T, D] (p : F32[S, T]) (v : F32[D, T]) : F32[S, D] = «p @ v»",
        "K0301", "(transpose v [1, 0])",
    ),
    "a transpose that should not be there": (
        "let f [S, T, D] (p : F32[S, T]) (v : F32[T, D]) : F32[S, D] = «p @ transpose v [1, 0]»",
        "K0301", "v",
    ),
    "a vector where matmul wants a matrix": (
        "let f [M, K] (w : F32[M, K]) (x : F32[K]) : F32[M, 1] = w @ «x»",
        "K0304", "(expand_dims[axis=-1] x)",
    ),
    "a row vector where matmul wants a matrix": (
        "let f [M, K] (x : F32[M]) (w : F32[M, K]) : F32[1, K] = «x» @ w",
        "K0304", "(expand_dims[axis=0] x)",
    ),
    "a result that is the transpose of what is wanted": (
        "let f [N, M] (x : F32[N, M]) : F32[M, N] = «x»",
        "K0302", "(transpose x [1, 0])",
    ),
    "a division in a result type": (
        "let f [S, H, D] (x : F32[S, D]) : F32[S, H, «D / H»] = reshape x [S, H, D / H]",
        "K0305", " requires (D mod H = 0)",
    ),
    "a division in the body": (
        "let f [S, E, H] (x : F32[S, E]) = reshape x [S, H, «E / H»]",
        "K0305", " requires (E mod H = 0)",
    ),
    "a div that is not exact": (
        "let f [S, D] (x : F32[S, D]) : F32[S, D div 2, 2] = «reshape x [S, D div 2, 2]»",
        "K0308", " requires (D mod 2 = 0)",
    ),
    "a number of groups that need not divide": (
        "let f [Q, K, S] (x : F32[K, S]) : F32[Q, S] = repeat_interleave[axis=0] x («Q / K»)",
        "K0305", " requires (Q mod K = 0)",
    ),
    "a callee's requires": (SCALE + "let f [N] (x : F32[N]) : F32[N] = «scale x»", "K0305", " requires (N mod 2 = 0)"),
    "a callee's requires of a product": (
        SCALE + "let f [N] (x : F32[3 * N]) : F32[3 * N] = «scale x»",
        "K0305", " requires ((3 * N) mod 2 = 0)",
    ),
    "a callee's requires of what was computed": (
        SCALE + "let f [N, M] (x : F32[N]) (y : F32[M]) : F32[N + M] = «scale (concat[axis=0] x y)»",
        "K0305", " requires ((M + N) mod 2 = 0)",
    ),
    "a callee's requires that is false": (SCALE + "let f (x : F32[7]) : F32[7] = «scale x»", "K0305", None),
    "a size below zero": ("let f [N] (x : F32[N]) : F32[«N - 1»] = x[1:N]", "K0305", " requires (N - 1 >= 0)"),
    "a window longer than the sequence": (
        "let f [S, W] (x : F32[S]) : F32[W] = x[«S - W:S»]",
        "K0305", " requires (S >= W)",
    ),
    "a divisor that may be zero": (
        "let f [N, H] (x : F32[N div «H»]) : F32[N div H] = x",
        "K0305", " requires (H > 0)",
    ),
    "a width that heads make up": (
        "let f [S, D, H, K] (x : F32[S, D]) : F32[S, H, K] = «reshape x [S, H, K]»",
        "K0308", " requires (D = H * K)",
    ),
    "a residual between unlike widths": (
        "let f [S, D, E] (x : F32[S, D]) (y : F32[S, E]) : F32[S, D] = «x + y»",
        "K0301", None,
    ),
    "a slice one too long": ("let f [N] (x : F32[N]) : F32[N] = x[«0:N + 1»]", "K0305", None),
    "a slice one too short": ("let f [N] requires (N > 0) (x : F32[N]) : F32[N - 1] = x[«0:N - 2»]", "K0305", None),
    "an index one too far": ("let f [N, D] requires (N > 0) (x : F32[N, D]) : F32[D] = x[«N»]", "K0305", "-1"),
    "an index into what may be empty": (
        "let f [N, D] (x : F32[N, D]) : F32[D] = x[«0»]",
        "K0305", " requires (N >= 1)",
    ),
    "the last of what may be empty": ("let f [N, D] (x : F32[N, D]) : F32[D] = x[«-1»]", "K0305", " requires (N >= 1)"),
    "a slice whose ends are exchanged": (
        "let f [N] requires (N > 2) (x : F32[N]) : F32[N - 2] = x[«N:2»]",
        "K0305", None,
    ),
    "a slice of the wrong axis": (
        "let f [B, S] requires (S > 0) (x : F32[B, S]) : F32[B, S - 1] = x[«1:S»]",
        "K0305", None,
    ),
    "too many indices": ("let f [N, D] (x : F32[N, D]) : F32 = «x[0, 0, 0]»", "K0206", None),
    "halves that do not cover": (
        "let f [D] requires (D mod 2 = 0) (x : F32[D]) : F32[D] = concat[axis=0] (x[D / 2:D]) x[«0:D / 2 - 1»]",
        "K0305", None,
    ),
    "a column against a row": (
        "let f [N] (p : F32[N, 1]) (t : F32[N]) : F32[N] = «p - t»",
        "K0301", "(squeeze[axis=1] p)",
    ),
    "sums that were not kept": (
        "let f [N, D] (x : F32[N, D]) : F32[N, D] = «x / reduce[sum, axis=1] x»",
        "K0301", "reduce_keep",
    ),
    "a sum of its own name that was not kept": (
        "let f [N, D] (x : F32[N, D]) : F32[N, D] =\n  let s = reduce[sum, axis=1] x in\n  «x / s»",
        "K0301", "(expand_dims[axis=1] s)",
    ),
    "a bias of channels": (
        "let f [B, C, H, W] (x : F32[B, C, H, W]) (b : F32[C]) : F32[B, C, H, W] = «x + b»",
        "K0301", "(reshape b [C, 1, 1])",
    ),
    "a scale of rows": (
        "let f [N, D] (x : F32[N, D]) (s : F32[N]) : F32[N, D] = «x * s»",
        "K0301", "(expand_dims[axis=1] s)",
    ),
    "a mask of the batch": (
        "let f [B, S, T] (x : F32[B, S, T]) (m : Bool[B, T]) : F32[B, S, T] = «select m x 0.0»",
        "K0301", "(expand_dims[axis=1] m)",
    ),
    "an outer difference": (
        "let f [N, M] (x : F32[N]) (y : F32[M]) : F32[N, M] = «x - y»",
        "K0301", "(broadcast (expand_dims[axis=1] x) [N, M])",
    ),
    "an outer difference with one axis added": (
        "let f [N, M] (x : F32[N]) (y : F32[M]) : F32[N, M] = «expand_dims[axis=1] x - y»",
        "K0301", "(broadcast (expand_dims[axis=1] x) [N, M])",
    ),
    "a broadcast laid to the left": (
        "let f [N, D] (s : F32[N]) : F32[N, D] = «broadcast s [N, D]»",
        "K0305", " requires (N = D)",
    ),
    "a mean with the wrong axis kept": (
        "let f [N, D] (x : F32[N, D]) (w : F32[N]) : F32[N, D] = «reduce_keep[mean, axis=1] x * w»",
        "K0301", None,
    ),
    "an axis too far": ("let f [N, D] (x : F32[N, D]) : F32[N, D] = softmax[axis=«2»] x", "K0206", "1"),
    "an axis of a reduction too far": (
        "let f [B, S, D] (x : F32[B, S, D]) : F32[B, S] = reduce[sum, axis=«3»] x",
        "K0206", "2",
    ),
    "a reduction over the wrong axis": (
        "let f [N, D] (x : F32[N, D]) : F32[N] = «reduce[sum, axis=0] x»",
        "K0302", "1",
    ),
    "a kept reduction over the wrong axis": (
        "let f [N, D] (x : F32[N, D]) : F32[N, 1] = «reduce_keep[sum, axis=0] x»",
        "K0302", "1",
    ),
    "a kept axis that should go": (
        "let f [N, D] (x : F32[N, D]) : F32[N] = «reduce_keep[sum, axis=1] x»",
        "K0302", "reduce[",
    ),
    "an axis that should be kept": (
        "let f [N, D] (x : F32[N, D]) : F32[N, 1] = «reduce[sum, axis=1] x»",
        "K0302", "reduce_keep[",
    ),
    "a missing axis": ("let f [N, D] (x : F32[N, D]) : F32[N, D] = «softmax x»", "K0206", "[axis=-1]"),
    "a missing axis of a reduction": ("let f [N, D] (x : F32[N, D]) : F32[N] = «reduce[sum] x»", "K0206", ", axis=-1"),
    "an axis after the operand": ("let f [N, D] (x : F32[N, D]) : F32[N, D] = «softmax x 1»", "K0206", "[axis=1]"),
    "a named axis after the operand": (
        "let f [N, D] (x : F32[N, D]) : F32[N, D] = softmax x «[»axis=1]",
        "K0115", "[axis=1]",
    ),
    "dim for axis": ("let f [N, D] (x : F32[N, D]) : F32[N, D] = softmax[«dim=1»] x", "K0206", "axis"),
    "keepdim": (
        "let f [N, D] (x : F32[N, D]) : F32[N, D] = x / reduce[sum, axis=1, «keepdim=true»] x",
        "K0206", "reduce_keep",
    ),
    "a permutation of too few axes": (
        "let f [B, S, D] (x : F32[B, S, D]) : F32[B, D, S] = transpose x «[1, 2]»",
        "K0206", "[0, 2, 1]",
    ),
    "two axes for a transpose, as in PyTorch": (
        "let f [B, S, D] (x : F32[B, S, D]) : F32[B, D, S] = «transpose x 1 2»",
        "K0203", None,
    ),
    "a permutation of the wrong axes": (
        "let f [B, S, H, D] (x : F32[B, S, H, D]) : F32[B, H, S, D] = «transpose x [0, 1, 3, 2]»",
        "K0302", "[0, 2, 1, 3]",
    ),
    "a new axis in the wrong place": (
        "let f [B, S] (x : F32[B, S]) : F32[B, 1, S] = «expand_dims[axis=2] x»",
        "K0302", "1",
    ),
    "a squeeze of the wrong axis": (
        "let f [B, S] (x : F32[B, 1, S]) : F32[B, S] = «squeeze[axis=0] x»",
        "K0305", " requires (B = 1)",
    ),
    "a concat along the wrong axis": (
        "let f [B, H, S, D] (c : F32[B, H, S, D]) (n : F32[B, H, 1, D]) : F32[B, H, S + 1, D] = "
        "«concat[axis=1] c n»",
        "K0301", "concat[axis=2]",
    ),
    "a concat along the last axis": (
        "let f [B, S, D] (c : F32[B, S, D]) (n : F32[B, 1, D]) : F32[B, S + 1, D] = «concat[axis=-1] c n»",
        "K0301", "concat[axis=1]",
    ),
    "a concat of a cache and a step without its axis": (
        "let f [B, S, D] (c : F32[B, S, D]) (n : F32[B, D]) : F32[B, S + 1, D] = «concat[axis=1] c n»",
        "K0304", "(expand_dims[axis=1] n)",
    ),
    "a stack that should be a concat": (
        "let f [N, D] (a : F32[N, D]) (b : F32[N, D]) : F32[N + N, D] = «stack[axis=0] a b»",
        "K0302", None,
    ),
    "a typo in a name": ("let f [N] (hidden : F32[N]) : F32[N] = exp «hiden»", "K0201", "hidden"),
    "a typo in a local name": (
        "let f [N] (x : F32[N]) : F32[N] =\n  let scores = x * x in\n  exp «score»",
        "K0201", "scores",
    ),
    "a typo in a dimension": ("let f [Batch, Seq] (x : F32[Batch, Seq]) : F32[Batch, «Sec»] = x", "K0201", "Seq"),
    "an undeclared dimension": ("let f [N] (x : F32[N, «M»]) : F32[N, M] = x", "K0201", ", M"),
    "no dimension declared": ("let f (x : F32[«N»]) : F32[N] = x", "K0201", " [N]"),
    "a dimension in the wrong case": ("let f [N] (x : F32[N]) : F32[«n»] = x", "K0201", "N"),
    "a typo in an operation": ("let f [N] (x : F32[N]) : F32[N] = «rsqrtt» x", "K0201", "rsqrt"),
    "a typo in a bracketed operation": ("let f [N] (x : F32[N]) : F32[N] = «sofmax»[axis=0] x", "K0201", "softmax"),
    "a typo in a function": (
        "let normalise [N] (x : F32[N]) : F32[N] = x\nlet f [N] (x : F32[N]) : F32[N] = «normalize» x",
        "K0201", "normalise",
    ),
    "a typo in a reduction": ("let f [N] (x : F32[N]) : F32 = reduce[«summ», axis=0] x", "K0206", "sum"),
    "average for mean": ("let f [N] (x : F32[N]) : F32 = reduce[«avg», axis=0] x", "K0206", "mean"),
    "a typo in a type": ("let f [N] (x : «F23»[N]) : F32[N] = x", "K0201", "F32"),
    "a type of NumPy": ("let f [N] (x : «float32»[N]) : F32[N] = x", "K0201", "F32"),
    "a typo in a record type": (LAYER + "let f [D, H] (l : «Layr»[D, H]) : F32[D] = l.norm", "K0201", "Layer"),
    "a typo in an attribute": ("let f [N] (x : F32[N]) : F32 = reduce[sum, «axs=0»] x", "K0206", "axis"),
    "a typo in a field": (LAYER + "let f [D, H] (l : Layer[D, H]) : F32[D] = l.«nrom»", "K0201", "norm"),
    "a field of another record": (LAYER + "let f [D, H] (l : Layer[D, H]) : F32[D] = l.«gate»", "K0201", None),
    "PyTorch's sum": ("let f [N, D] (x : F32[N, D]) : F32[N] = «sum»[axis=1] x", "K0201", "reduce[sum, "),
    "PyTorch's permute": ("let f [N, D] (x : F32[N, D]) : F32[D, N] = «permute» x [1, 0]", "K0201", "transpose"),
    "PyTorch's view": ("let f [N, D] (x : F32[N, D]) : F32[N * D] = «view» x [N * D]", "K0201", "reshape"),
    "PyTorch's unsqueeze": ("let f [N] (x : F32[N]) : F32[N, 1] = «unsqueeze»[axis=1] x", "K0201", "expand_dims"),
    "PyTorch's cat": ("let f [N] (x : F32[N]) : F32[N + N] = «cat»[axis=0] x x", "K0201", "concat"),
    "a method": ("let f [N] (x : F32[N]) : F32[N] = x.«relu»", "K0201", "(relu x)"),
    "a called method": ("let f [N] (x : F32[N]) : F32[N] = x.«relu»()", "K0201", "(relu x)"),
    ".T": ("let f [N, M] (x : F32[N, M]) : F32[M, N] = x.«T»", "K0201", "(transpose x [1, 0])"),
    "a dimension as a value": ("let f [N] (x : F32[N]) : F32[N] = x / «N»", "K0201", "(cast[F32] (dim_value N))"),
    "a dimension as an integer value": ("let f [N] (x : I64[N]) : I64[N] = x + «N»", "K0201", "(dim_value N)"),
    "a keyword's cousin": ("let f [N] (x : F32[N]) : F32[N] = «where» (x > 0.0) x 0.0", "K0201", "select"),
    "a missing argument": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = «linear x w»",
        "K0203", None,
    ),
    "an argument too many": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = «linear x w b 1.0»",
        "K0203", "",
    ),
    "arguments as a tuple": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = «linear(x, w, b)»",
        "K0203", "linear x w b",
    ),
    "arguments in another order": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = linear w «x» b",
        "K0302", "w",
    ),
    "a weight to be transposed as an argument": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[O, I]) (b : F32[O]) : F32[N, O] = linear x «w» b",
        "K0302", "(transpose w [1, 0])",
    ),
    "a negative argument": (
        "let g [N] (x : F32[N]) (c : F32) : F32[N] = x * c\nlet f [N] (x : F32[N]) : F32[N] = «g x» -1.0",
        "K0203", "(-1.0)",
    ),
    "dimensions after a space": (
        LINEAR + "let f [N, I, O] (x : F32[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = «linear [N, I, O] "
        "x w b»",
        "K0203", "",
    ),
    "a shape before the operand": (
        "let f [N, M] (x : F32[N, M]) : F32[N * M] = reshape [N * M] x",
        "K0206", "([N * M])",
    ),
    "a shape that is not a list": (
        "let f [N, M] (x : F32[N, M]) : F32[N * M] = reshape x («N * M»)",
        "K0206", "[N * M]",
    ),
    "a dimension that nothing determines": (
        "let g [A, B] (a : F32[A * B]) : F32[A, B] = reshape a [A, B]\n"
        "let f [N, M] (x : F32[N * M]) : F32[N, M] = «g x»",
        "K0309", None,
    ),
    "an argument of the wrong rank": (
        LINEAR + "let f [I, O] (x : F32[I]) (w : F32[I, O]) (b : F32[O]) : F32[1, O] = linear «x» w b",
        "K0302", "(expand_dims[axis=0] x)",
    ),
    "an argument of another size": (
        LINEAR + "let f [N, I, O, P] (x : F32[N, I]) (w : F32[I, O]) (b : F32[P]) : F32[N, O] = linear x w «b»",
        "K0302", None,
    ),
    "a constant that is called": ("let c : F32 = 1.0\nlet f [N] (x : F32[N]) : F32[N] = «c x»", "K0203", None),
    "an integer against a float": ("let f [N] (x : F32[N]) (n : I64) : F32[N] = «x * n»", "K0303", "(cast[F32] n)"),
    "a float function of integers": ("let f [N] (x : I64[N]) : F32[N] = exp «x»", "K0303", "(cast[F32] x)"),
    "another float": ("let f [N] (x : F32[N]) (w : F16[N]) : F32[N] = «x * w»", "K0303", "(cast[F32] w)"),
    "a result of another dtype": ("let f [N] (x : F32[N]) : F16[N] = «x»", "K0302", "(cast[F16] x)"),
    "an argument of another dtype": (
        LINEAR + "let f [N, I, O] (x : F16[N, I]) (w : F32[I, O]) (b : F32[O]) : F32[N, O] = linear «x» w b",
        "K0302", "(cast[F32] x)",
    ),
    "a fraction for an integer": ("let f [N] (x : I64[N]) : I64[N] = x * «0.5»", "K0210", None),
    "a number for a condition": (
        "let f [N] (m : F32[N]) (x : F32[N]) : F32[N] = select «m» x 0.0",
        "K0303", "(m != 0.0)",
    ),
    "a boolean for a number": ("let f [N] (x : F32[N]) : F32[N] = x * «true»", "K0210", "1.0"),
    "a mask that multiplies": ("let f [N] (x : F32[N]) (m : Bool[N]) : F32[N] = «x * m»", "K0303", "(cast[F32] m)"),
    "and of numbers": ("let f [N] (x : F32[N]) : Bool[N] = «x» && x > 0.0", "K0303", "(x != 0.0)"),
    "a remainder of floats": ("let f [N] (x : F32[N]) : F32[N] = «x» mod 2.0", "K0303", None),
    "an integer mean": ("let f [N] (x : I64[N]) : F32 = reduce[mean, axis=0] «x»", "K0303", "(cast[F32] x)"),
    "a literal too large": ("let f [N] (x : F16[N]) (m : Bool[N]) : F16[N] = select m x («-1e9»)", "K0210", None),
    "merged heads without a transpose": (
        "let f [B, H, S, D] (v : F32[B, H, S, D]) : F32[B, S, H * D] = «reshape v [B, S, H * D]»",
        "K0307", "(transpose v [0, 2, 1, 3])",
    ),
    "split heads without a transpose": (
        "let f [B, S, H, K] (x : F32[B, S, H * K]) : F32[B, H, S, K] = «reshape x [B, H, S, K]»",
        "K0307", "(transpose (reshape x [B, S, H, K]) [0, 2, 1, 3])",
    ),
    "a transpose by reshape": (
        "let f [N, M] (x : F32[N, M]) : F32[M, N] = «reshape x [M, N]»",
        "K0307", "(transpose x [1, 0])",
    ),
    "patches without a transpose": (
        "let f [H, W, P, C] (x : F32[H * P, W * P, C]) : F32[H * W, P * P * C] = «reshape x [H * W, P * P * C]»",
        "K0307", None,
    ),
    "a reshape of another volume": ("let f [N, M] (x : F32[N, M]) : F32[N] = «reshape x [N]»", "K0308", None),
    "a forgotten axis": (
        "let f [B, S, H, K] (x : F32[B, S, H, K]) : F32[S, H * K] = «reshape x [S, H * K]»",
        "K0308", None,
    ),
    "minus one": ("let f [B, S, D] (x : F32[B, S, D]) : F32[B, S * D] = reshape x [B, «-1»]", "K0208", "D * S"),
    "a flatten of the wrong axes": (
        "let f [B, S, D] (x : F32[B, S, D]) : F32[B, S * D] = «flatten_pair[axis=0] x»",
        "K0302", "1",
    ),
    "a field that is missing": (
        LAYER + "let f [D, H] (n : F32[D]) (u : F32[D, H]) : Layer[D, H] = «{ norm = n, up = u }»",
        "K0211", None,
    ),
    "a field of the wrong shape": (
        LAYER + "let f [D, H] (n : F32[D]) (u : F32[D, H]) : Layer[D, H] = { norm = n, up = u, down = «u» }",
        "K0302", "(transpose u [1, 0])",
    ),
    "a typo in a field that is given": (
        LAYER + "let f [D, H] (n : F32[D]) (u : F32[D, H]) (d : F32[H, D]) : Layer[D, H] = { norm = n, «upp» = "
        "u, down = d }",
        "K0201", "up",
    ),
    "a typo in an update": (
        LAYER + "let f [D, H] (l : Layer[D, H]) : Layer[D, H] = { l with «nrm» = l.norm * 2.0 }",
        "K0201", "norm",
    ),
    "arguments of a record type in the wrong number": (
        LAYER + "let f [D, H] (l : «Layer[D]») : F32[D] = l.norm",
        "K0209", None,
    ),
    "arguments of a record type in the wrong order": (
        LAYER + "let f [D, H] (l : Layer[H, D]) : F32[D] = «l.norm»",
        "K0302", None,
    ),
    "a weight of the layer not transposed": (
        LAYER + "let f [S, D, H] (l : Layer[D, H]) (x : F32[S, D]) : F32[S, D] = «(x @ l.up) @ l.up»",
        "K0301", "(transpose (l.up) [1, 0])",
    ),
    "a state that does not grow": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, D]) : F32[S + N, D] =\n"
        "  for i < N with c : F32[S + i, D] = c0 do «c»",
        "K0302", None,
    ),
    "a state declared one too long": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =\n"
        "  for i < N with c : F32[S + i + 1, D] = «c0» do concat[axis=0] c new[i]",
        "K0302", None,
    ),
    "a loop of one step too few": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =\n"
        "  for i < S with c : F32[S + i, D] = c0 do concat[axis=0] c new[«i»]",
        "K0305", None,
    ),
    "a growing state without its type": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =\n"
        "  for i < N with c = c0 do «concat[axis=0] c new[i]»",
        "K0302", " : Tensor[F32, [S + i, D]]",
    ),
    "a state that grows along the wrong axis": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =\n"
        "  for i < N with c : F32[S + i, D] = c0 do «concat[axis=1] c new[i]»",
        "K0301", "concat[axis=0]",
    ),
    "a step that lost its axis": (
        "let f [S, N, D] (c0 : F32[S, D]) (new : F32[N, D]) : F32[S + N, D] =\n"
        "  for i < N with c : F32[S + i, D] = c0 do «concat[axis=0] c new[i]»",
        "K0304", "(expand_dims[axis=0] (new[i]))",
    ),
    "branches of unlike shapes": (
        "let f [N, M] (x : F32[N]) (y : F32[M]) (c : Bool) : F32[N] = if c then x else «y»",
        "K0302", None,
    ),
    "a condition of many": (
        "let f [N] (x : F32[N]) : F32[N] = if «x > 0.0» then x else -x", "K0302", "(select (x > 0.0) x (-x))",
    ),
    "if with a float": ("let f [N] (c : F32) (x : F32[N]) : F32[N] = if «c» then x else -x", "K0302", "(cast[Bool] c)"),
    "an existential not opened": (
        "let g (k : I64) : exists [n]. F32[n] = let [n] = to_dim k in zeros[F32] [n]\n"
        "let f (k : I64) : F32 = reduce[sum, axis=0] («g k»)",
        "K0213", "let [n] opened = g k in ",
    ),
    "an existential bound but not opened": (
        "let g (k : I64) : exists [n]. F32[n] = let [n] = to_dim k in zeros[F32] [n]\nlet f (k : I64) : F32 =\n"
        "  let y = g k in\n  reduce[sum, axis=0] «y»",
        "K0213", "[n] ",
    ),
    "a size that escapes": (
        "let g (k : I64) : exists [n]. F32[n] = let [n] = to_dim k in zeros[F32] [n]\n"
        "let f [N] (k : I64) (x : F32[N]) : F32[N] =\n  let [n] y = g k in\n  «y»",
        "K0302", None,
    ),
    "indices that are plain numbers": (
        "let g [V] (t : F32[V]) (i : Idx[V]) : F32 = 1.0\nlet f [V] (t : F32[V]) (i : I64) : F32 = g t «i»",
        "K0302", "Tensor[Idx[V], []]",
    ),
    "a module that is not there": (
        "«import std.nm (softplus)»\nlet f [N] (x : F32[N]) : F32[N] = softplus x",
        "K0214", None,
    ),
    "a name twice": ("let f [N] (x : F32[N]) : F32[N] = x\nlet «f» [N] (x : F32[N]) : F32[N] = x * x", "K0204", None),
    "a function that calls itself": ("let f [N] (x : F32[N]) : F32[N] = «f x»", "K0205", None),
    "a parameter without a type": ("let f [N] «(x)» : F32[N] = x", "K0209", None),
    "a false assertion": ("let f [N] (x : F32[N]) : F32[N] = let assert («N > 0») in x", "K0310", None),
    "a requires that is no proposition": ("let f [N] requires («N») (x : F32[N]) : F32[N] = x", "K0208", None),
    "a missing in on one line": ("let f [N] (x : F32[N]) : F32[N] = let y = x * x y«»", "K0112", None),
    "an equals in an expression": ("let f [N] (x : F32[N]) : Bool[N] = x «=» 1.0", "K0111", "=="),
    "Python's power": ("let f [N] (x : F32[N]) : F32[N] = x «**» 2.0", "K0101", "^"),
    "Python's def": ("«def» f(x) = x", "K0120", None),
    "a colon for an equals": ("let f [N] (x : F32[N]) : F32[N] : x", "K0106", None),
    "a missing parenthesis": ("let f [N] (x : F32[N]) : F32[N] = exp (x * x", "K0107", None),
    "a comment of Python": ("let f [N] (x : F32[N]) : F32[N] = x # same", "K0101", "//"),
    "then without if": ("let f [N] (x : F32[N]) : F32[N] = if N > 3 then x", "K0117", None),
    "a slip where a name is given that is used twice": (
        "let f [N] (x : F32[N]) : F32[N] =\n  let shfited = x - 1.0 in\n  «shifted» * shifted",
        "K0201", "shfited",
    ),
    "a dimension that has the name of an operation": (
        "let f [N, M] (x : F32[N, «reshape»]) : F32[N * M] = reshape x [N * M]", "K0201", None,
    ),
    "a slip in `let`": ("«lte» f [N] (x : F32[N]) : F32[N] = x", "K0113", "let"),
    "a slip in a `let` of a body": (
        "let f [N] (x : F32[N]) : F32[N] =\n  lte y «=» x * x in\n  y",
        "K0111", "let",
    ),
    "a name that begins with a digit": ("let f [N] (x : «3F2»[N]) : F32[N] = x", "K0104", None),
}  # fmt: skip
"""A program with the place that its error marks in guillemets, the error's code, and what the first help puts into the
text; None where a person could not know either what was meant."""

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("err_*.kina"))


def checked(text: str) -> Checked:
    return check_source(Source("mistake.kina", text))


def errors(text: str) -> list[Diagnostic]:
    return [d for d in checked(text).diagnostics if d.severity is Severity.ERROR]


@pytest.mark.parametrize("name", list(MISTAKES))
def test_one_mistake_gives_one_error_whose_help_mends_it(name):
    marked, code, put_in = MISTAKES[name]
    text = marked.replace("«", "").replace("»", "") + "\n"
    (error,) = errors(text)
    assert error.code == code
    if "«" in marked:
        assert (error.span.start, error.span.end) == (marked.index("«"), marked.index("»") - 1)
    mends = [help_ for help_ in error.help if help_.edits]
    if put_in is None:
        assert not mends
    else:
        assert put_in in [edit.text for edit in mends[0].edits]
    for help_ in mends:
        assert not errors(applied(text, help_.edits)), help_.message


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_help_that_the_golden_files_show_mends_the_error_that_it_is_for(path):
    text = path.read_text()
    before = errors(text)
    for error in before:
        for help_ in (h for h in error.help if h.edits):
            after = errors(applied(text, help_.edits))
            assert len(after) == len(before) - 1
            assert {d.message for d in after} == {d.message for d in before} - {error.message}


def test_a_help_that_only_moves_the_error_is_not_offered(check):
    text = "let f [N] (x : F32[N]) (n : I64) : F32[N] = x * n"
    error = check(text).rejects("K0303")
    assert [h.message for h in error.help] == ["convert n to F32"]


def test_help_that_does_not_mend_is_left_as_words_that_can_be_pasted(check):
    error = check("let f [N] requires (N > 0) (x : F32[N]) : F32[N - 1] = x[0:N - 2]").rejects("K0305")
    assert not any(h.edits for h in error.help)
    assert any(h.message.endswith("requires (N >= 2)") for h in error.help)


def test_each_of_two_mistakes_keeps_its_own_help(check):
    program = check("""
        let f [N, M] (x : F32[N, M]) : F32[N] = reduce[sum, axis=0] x
        let g [N] (x : F32[N]) : F32[N] = rsqrtt x
    """)
    assert [[h.edits[0].text for h in d.help] for d in program.errors] == [["1"], ["rsqrt"]]


def test_a_new_requires_may_ask_something_of_callers(check):
    program = check("""
        let f [N] (x : F32[N]) : F32[N / 2, 2] = reshape x [N / 2, 2]
        let g [N] (x : F32[N]) : F32[N / 2, 2] = f x
    """)
    assert all(" requires (N mod 2 = 0)" in d.help[0].edits[0].text for d in program.errors)


def test_where_no_name_is_close_nothing_is_suggested(check):
    assert not check("let f (x : F32) : F32 = x * quux").rejects("K0201").help
