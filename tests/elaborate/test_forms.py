"""Every form of the language by what it means: programs with the values that NumPy gives for them.

Each one is also printed as core, which has to check again under `--strict` to the same core, and verified.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.host.module import make_module
from kina.host.reference import Reference
from kina.passes.simplify import simplify
from kina.passes.specialise import specialise
from kina.pipeline import check
from kina.source import Source

rng = np.random.default_rng(3)


def f32(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def before(xs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a running sum that starts at y is before each item."""
    return y + np.concatenate([np.zeros_like(xs[:1]), xs.cumsum(0)[:-1]])[: len(xs)]


@dataclass(frozen=True)
class Case:
    """A program, the function of it that is called, calls of that, and what they give."""

    text: str
    function: str
    calls: list[tuple[Any, ...]]
    meaning: Callable[..., Any]


LAYER = "type Layer [D, H] = { norm : F32[D], up : F32[D, H] }\n"


def layer(d: int, h: int) -> dict[str, np.ndarray]:
    return {"norm": f32(d), "up": f32(d, h)}


CASES = {
    # ---------------------------------------------------------------- generic functions
    "a segment and a dtype": Case(
        "let f [T : Float, ...S] (x : Tensor[T, [...S]]) (y : T[...S]) : Tensor[T, [...S]] = x * 2.0 + y", "f",
        [(f32(3, 2), f32(3, 2)), (f32(), f32()), (f32(2).astype("f8"), f32(2).astype("f8")), (f32(1, 0), f32(1, 0))],
        lambda x, y: x * 2 + y,
    ),
    "a segment before and after axes": Case(
        "let f [...B, M, K, N] (x : F32[...B, M, K]) (w : F32[K, N]) : F32[...B, M, N] = x @ w", "f",
        [(f32(3, 2), f32(2, 5)), (f32(4, 3, 2), f32(2, 1)), (f32(2, 1, 3, 2), f32(2, 2))],
        lambda x, w: x @ w,
    ),
    "two segments": Case(
        "let f [...A, ...B] (x : F32[...A]) (y : F32[...B]) : (F32[...A], F32[...B]) = (x + 1.0, y * 2.0)", "f",
        [(f32(3, 2), f32(2)), (f32(), f32(2, 3, 4))],
        lambda x, y: (x + 1, y * 2),
    ),
    "a generic function that calls another": Case(
        """
        let norm [T : Float, ...S, D] (x : T[...S, D]) : T[...S, D] =
          x / reduce_keep[sum, axis=-1] x
        let f [B, S, D] (x : F32[B, S, D]) : F32[B, S, D] = norm x
        """, "f", [(f32(2, 3, 4),), (f32(0, 3, 1),)], lambda x: x / x.sum(-1, keepdims=True),
    ),
    "binders given in order": Case(
        "let g [T : Num, ...S, N] (x : T[...S, N]) : T[N] = zeros[T] [N]\n"
        "let f [A, N] (x : F32[A, N]) : F32[N] = g[F32, [A], N] x", "f", [(f32(2, 3),)], lambda x: np.zeros(3, "f"),
    ),
    "an integer class": Case(
        "let f [T : Int, N] (x : T[N]) : T[N] = x * 2 + 1", "f", [(np.arange(3),), (np.arange(3, dtype=np.uint8),)],
        lambda x: x * x.dtype.type(2) + x.dtype.type(1),
    ),
    "a segment in a shape": Case(
        "let f [...S, H, D] (x : F32[...S, H * D]) (h : F32[H]) : F32[...S, H, D] = reshape x [...S, H, D]", "f",
        [(f32(2, 6), f32(3)), (f32(6), f32(2)), (f32(2, 2, 4), f32(4))],
        lambda x, h: x.reshape(*x.shape[:-1], len(h), -1),
    ),
    # ---------------------------------------------------------------- records, lists, aliases
    "a record's fields": Case(
        LAYER + "let f [B, D, H] (l : Layer[D, H]) (x : F32[B, D]) : F32[B, H] = (x * l.norm) @ l.up", "f",
        [(layer(3, 2), f32(4, 3)), (layer(1, 1), f32(0, 1))],
        lambda r, x: (x * r["norm"]) @ r["up"],
    ),
    "a record made, updated, nested": Case(
        LAYER + """
        type Two [D] = { first : Layer[D, 2 * D], second : Layer[2 * D, D] }
        let f [D] (t : Two[D]) (n : F32[D]) : (F32[D], Two[D]) =
          let l : Layer[D, 2 * D] = { up = t.first.up, norm = n } in
          let u = { t with first = { l with norm = l.norm + 1.0 } } in
          (l.norm, u)
        """, "f", [({"first": layer(2, 4), "second": layer(4, 2)}, f32(2))],
        lambda t, n: (n, {"first": {"norm": n + 1, "up": t["first"]["up"]}, "second": t["second"]}),
    ),
    "a record whose type is found": Case(
        LAYER + "let f [D] (a : F32[D]) (b : F32[D, D + 1]) : Layer[D, D + 1] = let r = { up = b, norm = a } in r", "f",
        [(f32(2), f32(2, 3))], lambda a, b: {"norm": a, "up": b},
    ),
    "a generic record": Case(
        """
        type Affine [T : Float, ...S] = { scale : T[...S], shift : T[...S] }
        let f [T : Float, ...S] (a : Affine[T, [...S]]) (x : T[...S]) : T[...S] = x * a.scale + a.shift
        """, "f", [({"scale": f32(2, 3), "shift": f32(2, 3)}, f32(2, 3)), ({"scale": f32(), "shift": f32()}, f32())],
        lambda a, x: x * a["scale"] + a["shift"],
    ),
    "an alias": Case(
        "type Image [B, H] = F32[B, 3, H, H]\ntype Pair [N] = (F32[N], F32[N])\n"
        "let f [B, H] (x : Image[B, H]) (p : Pair[3]) : F32[B, H, H] = x[:, 0] + reduce[sum, axis=0] p.1", "f",
        [(f32(2, 3, 4, 4), (f32(3), f32(3)))], lambda x, p: x[:, 0] + p[1].sum(),
    ),
    "a loop over a list of records": Case(
        LAYER + """
        let f [N, B, D] (ls : List[N, Layer[D, D]]) (x : F32[B, D]) : F32[B, D] =
          for i < N with h : F32[B, D] = x do
            let l = ls[i] in
            (h * l.norm) @ l.up
        """, "f", [([layer(2, 2) for _ in range(3)], f32(4, 2)), ([layer(1, 1)], f32(2, 1))],
        lambda ls, x: functools.reduce(lambda h, r: (h * r["norm"]) @ r["up"], ls, x),
    ),
    "a field of a list": Case(
        LAYER + "let f [N, D] (ls : List[N, Layer[D, D]]) : F32[N, D] = ls.norm * 2.0", "f",
        [([layer(2, 2), layer(2, 2)],)], lambda ls: np.stack([r["norm"] for r in ls]) * 2,
    ),
    # ---------------------------------------------------------------- functions as values
    "a function that takes one": Case(
        """
        let twice [N] (g : F32[N] -> F32[N]) (x : F32[N]) : F32[N] = g (g x)
        let f [M] (x : F32[M]) (y : F32[M]) : F32[M] = twice (fun z -> z * y + 1.0) x
        """, "f", [(f32(3), f32(3))], lambda x, y: (x * y + 1) * y + 1,
    ),
    "named functions and operations as values": Case(
        """
        let twice [...S] (g : F32[...S] -> F32[...S]) (x : F32[...S]) : F32[...S] = g (g x)
        let half [N] (x : F32[N]) : F32[N] = x * 0.5
        let f [M] (x : F32[M]) : (F32[M], F32[M]) = (twice half x, twice tanh x)
        """, "f", [(f32(3),)], lambda x: (x * np.float32(0.25), np.tanh(np.tanh(x))),
    ),
    "a size that a function says": Case(
        """
        let each [N, D, E] (g : F32[D] -> F32[E]) (xs : F32[N, D]) : F32[N, E] = map g xs
        let f [N, D] (xs : F32[N, D]) : F32[N, 2 * D] = each (fun x -> concat[axis=0] x x) xs
        """, "f", [(f32(2, 3),), (f32(0, 1),)], lambda xs: np.concatenate([xs, xs], 1),
    ),
    "a function that gives one": Case(
        """
        let adder (y : F32) : F32 -> F32 = fun x -> x + y
        let compose [N] (g : F32[N] -> F32[N]) (h : F32[N] -> F32[N]) : F32[N] -> F32[N] = fun x -> g (h x)
        let f [N] (x : F32[N]) (y : F32) : (F32[N], F32) = (compose exp (fun z -> z * 2.0) x, adder y 1.0)
        """, "f", [(f32(3), f32())], lambda x, y: (np.exp(x * 2), y + 1),
    ),
    "leaving arguments out": Case(
        """
        let affine [N] (a : F32) (b : F32[N]) (x : F32[N]) : F32[N] = a * x + b
        let f [K, N] (xs : F32[K, N]) (b : F32[N]) : F32[K, N] =
          let g = affine 2.0 b in
          map g xs
        """, "f", [(f32(2, 3), f32(3))], lambda xs, b: 2 * xs + b,
    ),
    "a local function": Case(
        """
        let f [N, M] (x : F32[N]) (y : F32[M]) : (F32[N], F32[M]) =
          let scale [K] (v : F32[K]) : F32[K] = v * reduce[sum, axis=0] x in
          (scale x, scale y)
        """, "f", [(f32(3), f32(2))], lambda x, y: (x * x.sum(), y * x.sum()),
    ),
    "a generic local function": Case(
        """
        let f [N] (x : F32[N]) (y : F64) : (F32[N], F64) =
          let double [T : Float, ...S] (v : T[...S]) : T[...S] = v * 2.0 in
          (double x, double y)
        """, "f", [(f32(3), np.float64(2))], lambda x, y: (x * 2, y * 2),
    ),
    "a pipe into a lambda": Case(
        "let f [N] (x : F32[N]) : F32[N] = x |> fun y -> y * y |> exp", "f", [(f32(3),)], lambda x: np.exp(x * x),
    ),
    # ---------------------------------------------------------------- branches
    "if on a size": Case(
        "let f [N] (x : F32[N]) : F32[N] = if N mod 2 = 0 then reshape (reshape x [N div 2, 2] * 2.0) [N] else x", "f",
        [(f32(4),), (f32(3),), (f32(0),)], lambda x: x * 2 if len(x) % 2 == 0 else x,
    ),
    "if on sizes that differ": Case(
        "let f [N, M] (x : F32[N]) (y : F32[M]) : F32[max(N, M)] = if N >= M then x else y", "f",
        [(f32(4), f32(2)), (f32(1), f32(2))], lambda x, y: x if len(x) >= len(y) else y,
    ),
    "if on a value": Case(
        "let f [N] (x : F32[N]) (c : Bool) : (F32[N], F32) = if c then (x, 1.0) else (x * x, 2.0)", "f",
        [(f32(4), True), (f32(2), False)], lambda x, c: (x, np.float32(1)) if c else (x * x, np.float32(2)),
    ),
    "nested branches": Case(
        """
        let f [N] (x : F32[N]) : F32 =
          let s = reduce[sum, axis=0] x in
          if N = 0 then 0.0 else if s > 0.0 && s < 1.0 then s else if not (s > 0.0) then -s else 1.0
        """, "f", [(f32(0),), (np.float32([0.5]),), (np.float32([-2]),), (np.float32([3]),)],
        lambda x: np.float32(0 if not len(x) else x[0] if 0 < x[0] < 1 else -x[0] if x[0] <= 0 else 1),
    ),
    # ---------------------------------------------------------------- loops
    "a state that grows": Case(
        """
        let f [S, D, N] (k : F32[S, D]) (new : F32[N, 1, D]) : F32[S + N, D] =
          for i < N with c : F32[S + i, D] = k do concat[axis=0] c new[i]
        """, "f", [(f32(2, 3), f32(4, 1, 3)), (f32(0, 1), f32(2, 1, 1)), (f32(2, 2), f32(0, 1, 2))],
        lambda k, new: np.concatenate([k, new[:, 0]]),
    ),
    "a state that shrinks": Case(
        "let f [N] (x : F32[N]) : F32[0] = for i < N with c : F32[N - i] = x do c[1:]", "f", [(f32(3),), (f32(0),)],
        lambda x: np.zeros(0, "f"),
    ),
    "several states": Case(
        """
        let f [N] (x : F32[N]) : (F32, F32) =
          for i < N with (a : F32, b : F32) = (0.0, 1.0) do (b, a + b * x[i])
        """, "f", [(f32(4),), (f32(0),)],
        lambda x: functools.reduce(lambda s, v: (s[1], s[0] + s[1] * v), x, (np.float32(0), np.float32(1))),
    ),
    "a state and outputs": Case(
        "let f [N] (x : F32[N]) : (F32, F32[N]) = for i < N with s = 0.0 do s + x[i] yield s * 2.0", "f",
        [(f32(4),), (f32(0),)],
        lambda x: (x.sum(dtype="f"), before(x, np.float32(0)) * 2),
    ),
    "a comprehension": Case(
        "let f [N, M] (x : F32[N]) (y : F32[M]) : F32[N, M] = for i < N yield for j < M yield x[i] - y[j]", "f",
        [(f32(2), f32(3)), (f32(0), f32(3)), (f32(2), f32(0))], lambda x, y: x[:, None] - y,
    ),
    "an index as a value": Case(
        "let f [N] : I64[N] = for i < N yield i * i + dim_value N", "f", [({"N": 4},)], lambda n: np.arange(4) ** 2 + 4,
    ),
    "a comprehension of records": Case(
        LAYER + """
        let f [N, D] (w : F32[N, D, D]) : List[N, Layer[D, D]] = for i < N yield 
          { norm = reduce[sum, axis=0] w[i], up = w[i] }
        """, "f", [(f32(2, 3, 3),)],
        lambda w: {"norm": w.sum(1), "up": w},
    ),
    "map, fold, scan": Case(
        """
        let f [N, D] (xs : F32[N, D]) (y : F32[D]) : (F32[N, D], F32[D], (F32[D], F32[N])) =
          ( map (fun x -> x * y) xs
          , fold (fun a x -> a + x) y xs
          , scan (fun a x -> (a + x, reduce[sum, axis=0] a)) y xs )
        """, "f", [(f32(2, 3), f32(3)), (f32(0, 2), f32(2))],
        lambda xs, y: (xs * y, y + xs.sum(0), (y + xs.sum(0), before(xs, y).sum(1))),
    ),
    "a map over two": Case(
        "let f [N, D] (a : F32[N, D]) (b : F32[N, D]) : F32[N] =\n  "
        "vmap (fun x y -> reduce[sum, axis=0] (x * y)) a b", "f",
        [(f32(2, 3), f32(2, 3))], lambda a, b: (a * b).sum(1),
    ),
    "a map over records": Case(
        LAYER + "let f [N, D] (ls : List[N, Layer[D, D]]) : F32[N, D] =\n  "
        "map (fun l -> l.up @ expand_dims[axis=1] l.norm |> squeeze[axis=1]) ls", "f", [([layer(2, 2), layer(2, 2)],)],
        lambda ls: np.stack([r["up"] @ r["norm"] for r in ls]),
    ),
    "a bounded while": Case(
        """
        let f [N] (x : F32[N]) : F32 =
          let [n] y = while [i < N] reduce[sum, axis=0] c < 2.0 with c : F32[i] = zeros[F32] [0] do
            concat[axis=0] c (ones[F32] [1]) in
          reduce[sum, axis=0] y + cast[F32] (dim_value n) * 10.0
        """, "f", [(f32(5),), (f32(1),), (f32(0),)], lambda x: np.float32(11 * min(2, len(x))),
    ),
    "an unbounded while": Case(
        "let f (x : F32) : F32 ! {diverge} = while s > 1.0 with s : F32 = x do s / 2.0", "f",
        [(np.float32(40),), (np.float32(0.5),)],
        lambda x: np.float32(x / 64) if x > 1 else x,
    ),
    # ---------------------------------------------------------------- sizes at run time
    "a size from a value": Case(
        """
        let upto (k : I64) : exists [n]. I64[n] = let [n] = to_dim k in iota[I64] n
        let f (k : I64) : I64 =
          let [m] y = upto k in
          let [l] z = upto (k + 1) in
          reduce[sum, axis=0] y + reduce[sum, axis=0] z + dim_value m
        """, "f", [(np.int64(4),), (np.int64(0),)], lambda k: np.int64(k * (k - 1) // 2 + k * (k + 1) // 2 + k),
    ),
    "a promise about a size": Case(
        """
        let first [N] (x : F32[N]) (k : I64) : exists [n] requires (n <= N). F32[n] =
          let [n] = to_dim k in
          let assert (n <= N) in
          x[0:n]
        let f [N] (x : F32[N]) (k : I64) : F32[N] =
          let [n] y = first x k in
          concat[axis=0] y (zeros[F32] [N - n])
        """, "f", [(f32(4), np.int64(2)), (f32(4), np.int64(4)), (f32(0), np.int64(0))],
        lambda x, k: np.where(np.arange(len(x)) < k, x, np.float32(0)),
    ),
    "a size that leaves the program": Case(
        "let f (k : I64) : exists [n]. F32[n] = let [n] = to_dim k in ones[F32] [n]", "f",
        [(np.int64(3),), (np.int64(0),)],
        lambda k: np.ones(k, "f"),
    ),
    "indices": Case(
        """
        let g [V] (x : F32[V]) (i : Idx[V]) : I64 = i + 1
        let f [V] (x : F32[V]) (i : Idx[V]) (js : Idx[V][3]) : (I64, I64[6]) = (g x i, concat[axis=0] js js)
        """, "f", [(f32(4), np.int64(3), np.int64([0, 3, 1]))],
        lambda x, i, js: (np.int64(i + 1), np.concatenate([js, js])),
    ),
}  # fmt: skip


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert isinstance(got, tuple)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for name in want:
            same(got[name], want[name])
    else:
        want = np.asarray(want)
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def text_of(case: Case) -> str:
    lines = case.text.split("\n")
    return "\n".join(line.removeprefix("        ") for line in lines) + "\n"


@pytest.mark.parametrize("name", list(CASES))
def test_a_program_means_what_numpy_computes(name):
    case = CASES[name]
    checked = check(Source("test.kina", text_of(case)))
    assert checked.ok, [(d.span, d.message) for d in checked.diagnostics]
    function = getattr(make_module(checked, Reference), case.function)
    for call in case.calls:
        named = call[-1] if call and isinstance(call[-1], dict) and "N" in call[-1] else None
        got = function(**named) if named else function(*call)
        same(got, case.meaning(*call))


def print_again(printed: str, name: str) -> str:
    again = check(Source("core.kina", printed), strict=True)
    assert again.ok, (printed, [(d.span, d.message) for d in again.diagnostics])
    return print_program(again.function(name))


@pytest.mark.parametrize("name", list(CASES))
def test_its_core_verifies_and_checks_again_to_the_same_core(name):
    case = CASES[name]
    checked = check(Source("test.kina", text_of(case)))
    module = make_module(checked, Reference)
    functions = [checked.elaboration.program.functions.get(case.function)]
    if functions == [None]:
        chosen = getattr(module, case.function)
        functions = [chosen.instance(*call)._core for call in case.calls]
    for function in functions:
        verify(function)
        flat = simplify(specialise(function))
        verify(flat)
        printed = print_program(function)
        assert print_again(printed, function.name) == printed
        # What was shared or dropped leaves gaps in the numbers of names, which the first reading closes.
        closed = print_again(print_program(flat), flat.name)
        assert print_again(closed, flat.name) == closed
