"""A case for every error of the elaborator: its code, its words, and that its help mends it."""

from __future__ import annotations

import pytest

F = "let f [N, M] (x : F32[N, M]) (w : F32[M]) : F32[N, M] = "

CASES = {
    # names
    "an unknown name suggests a close one": (F + "x * ww", "K0201", "did you mean `w`?"),
    "an unknown function suggests an operation": (F + "epx x", "K0201", "did you mean `exp`?"),
    "an unknown dimension lists those in scope": ("let f [N] (x : F32[K]) : F32 = 1.0", "K0201", "in scope: N"),
    "a dimension without any in scope says where to declare it": (
        "let f (x : F32[K]) : F32 = 1.0", "K0201", "declare it",
    ),
    "an unknown type suggests a close one": ("let f (x : F23) : F32 = 1.0", "K0201", "`F32`"),
    "a dimension is not a value": (F + "x * N", "K0201", "is a dimension, not a value"),
    "a value is not a dimension": (F + "broadcast w [x, M]", "K0201", "is a value, not a dimension"),
    "PyTorch's name of an operation": (F + "permute x [1, 0]", "K0201", "is here transpose x [axes]"),
    "another of PyTorch's names": (F + "view x [N * M]", "K0201", "is here reshape x [sizes]"),
    "a reduction as a function": (F + "sum[axis=1] x", "K0201", "reduce[sum, axis=...] x"),
    "a method": (F + "x.relu()", "K0201", "write relu x"),
    "a field of a tensor": (F + "x.T", "K0201", "is here transpose x [axes]"),
    "NumPy's name of a dtype": ("let f [N] (x : float32[N]) : F32[N] = x", "K0201", "it is called `F32` here"),
    "a size as a number": (F + "x / sqrt M", "K0201", "as an F32"),
    "PyTorch's name of an axis": (F + "softmax[dim=1] x", "K0206", "did you mean `axis`?"),
    "PyTorch's way to keep an axis": (F + "reduce[sum, axis=1, keepdim=true] x", "K0206", "`reduce_keep` keeps"),
    "an attribute as an argument": (F + "softmax x 1", "K0206", "needs `axis` in its bracket"),
    # forms that are not supported yet
    "an index that may be outside": (F + "x[0, :]", "K0305", "has to end inside axis 0"),
    "an operation that is missing": (F + "hessian x w", "K0202", "the operation `hessian`"),
    "blocks that do not fit": ("let f [N] (x : Q8_0[N]) : F32 = 1.0", "K0305", "blocks of 32"),
    "references": (F + "!x", "K0232", "reads a ref"),
    "an effect that there is not": ("let f (x : F32) : F32 ! {random} = x", "K0230", "not an effect"),
    "a test that claims nothing": ('test "a" = 3', "K0302", "what a test claims"),
    "a reduction without axes": (F + "x * reduce[sum] x", "K0206", "axes=all"),
    "list items of two shapes": (F + "x * [w, 1.0]", "K0304", "the same number of axes"),
    # calls
    "an operation with too few arguments shows its usage": (F + "max x", "K0203", "usage: max x y"),
    "an operation with too many arguments": (F + "exp x w", "K0203", "takes 1 argument, and got 2"),
    "concat with none": (F + "concat[axis=0]", "K0203", "its arguments are missing"),
    "an operation as a value": (F + "let g = exp in x * g", "K0203", "its arguments are missing"),
    "a lambda as a value": (F + "x * (fun (y : F32) -> y)", "K0203", "a value is wanted here"),
    "a value as a function": (F + "map w x", "K0203", "a function is wanted here"),
    "too many arguments of a lambda": (F + "(fun (y : F32) -> y) 1.0 2.0", "K0203", "one argument too many"),
    "a map over a scalar": (F + "let y = map (fun z -> z) 1.0 in x", "K0203", "runs over a list or a leading axis"),
    "a check without a message": (F + "let _ = check true 1.0 in x", "K0203", "a message in double quotes"),
    "a function as a value": ("let g (x : F32) : F32 = x\n" + F + "x * g", "K0203", "usage: g x"),
    "a call of a value": (F + "x w", "K0203", "not a function"),
    "partial application": ("let g (x : F32) (y : F32) : F32 = x\n" + F + "g 1.0", "K0203", "also needs y"),
    "too many arguments of a function": ("let g (x : F32) : F32 = x\n" + F + "g 1.0 2.0", "K0203", "and got 2"),
    "too many dimension arguments": ("let g [A] (x : F32[A]) : F32[A] = x\n" + F + "g[N, M] w", "K0203", "takes [A]"),
    # declarations
    "a function defined twice": (F + "x\n" + F + "x", "K0204", "defined twice"),
    "a parameter defined twice": ("let f (x : F32) (x : F32) : F32 = x", "K0204", "`x`"),
    "a dimension defined twice": ("let f [N, N] (x : F32[N]) : F32[N] = x", "K0204", "`N`"),
    "recursion through another function": (
        "let f (x : F32) : F32 = g x\nlet g (x : F32) : F32 = f x", "K0205", "f -> g -> f",
    ),
    "a type that stands inside itself": ("type A = { a : B }\ntype B = (A, A)\n" + F + "x", "K0205", "inside itself"),
    # generic functions
    "an unknown segment": ("let f [...S] (x : F32[...T]) : F32 = 1.0", "K0201", "segments in scope: ...S"),
    "an unknown class": ("let f [T : Flaot] (x : T) : T = x", "K0201", "the classes are"),
    "a dtype outside the class": (
        "let g [T : Int, ...S] (x : Tensor[T, [...S]]) : Tensor[T, [...S]] = x\n" + F + "g x", "K0303", "has to be Int",
    ),
    "a generic body that is right for some ranks only": (
        "let g [...S] (x : F32[...S]) : F32[...S] = transpose x [1, 0]", "K0302", "",
    ),
    "a generic body that is right for some dtypes only": (
        "let g [T : Float, N] (x : T[N]) (y : F32[N]) : T[N] = x + y", "K0303", "this is so for T = F16",
    ),
    "a generic binder that no argument determines": (
        "let g [T : Float] (x : F32) : F32 = x\n" + F + "x * g 1.0", "K0309", "T",
    ),
    # records
    "an unknown field": ("type R = { a : F32, b : F32 }\nlet f (r : R) : F32 = r.c", "K0201", "its fields: a, b"),
    "a field of a tuple": ("let f (r : (F32, F32)) : F32 = r.a", "K0211", "no fields"),
    "a record without a field": (
        "type R = { a : F32, b : F32 }\nlet f (x : F32) : R = { a = x }",
        "K0211", "also has `b`",
    ),
    "a field twice": ("type R = { a : F32 }\nlet f (x : F32) : R = { a = x, a = x }", "K0204", "defined twice"),
    "a record of no type": (F + "let r = { z = x } in x", "K0211", "no record type in scope"),
    "a record of two types": (
        "type P = { a : F32 }\ntype Q = { a : F32 }\nlet f (x : F32) : F32 = let r = { a = x } in r.a",
        "K0211", "P and Q",
    ),
    "an update of a tensor": (F + "{ x with a = x }", "K0211", "only a record has fields to update"),
    "type arguments that do not fit": ("type R [N] = { a : F32[N] }\nlet f (r : R) : F32 = 1.0", "K0209", "R[N]"),
    # lists
    "a list indexed twice": ("let f [N] (l : List[N, (F32, F32)]) : F32 = l[0, 0].0", "K0206", "by one number"),
    "lists of other lengths": (
        "let g [N] (a : List[N, (F32, F32)]) (b : List[N, (F32, F32)]) : F32 = 1.0\n"
        "let f [N, M] (a : List[N, (F32, F32)]) (b : List[M, (F32, F32)]) : F32 = g a b", "K0302", "they differ for",
    ),
    # indices
    "plain numbers for indices": (
        "let g [V] (t : F32[V]) (i : Idx[V]) : F32 = 1.0\nlet f [V] (t : F32[V]) (i : I64) : F32 = g t i",
        "K0302", "known to lie in [0, V)",
    ),
    "indices of a longer axis": (
        "let g [V] (t : F32[V]) (i : Idx[V]) : F32 = 1.0\nlet f [V] (t : F32[V]) (i : Idx[V + 1]) : F32 = g t i",
        "K0302", "",
    ),
    "a literal beyond the axis": ("let f : Idx[3] = 3", "K0305", "it is an index into an axis of 3"),
    # existentials
    "a size that was not opened": (
        "let g (k : I64) : exists [n]. F32[n] = let [n] = to_dim k in zeros[F32] [n]\n"
        "let f (k : I64) : F32 = reduce[sum, axis=0] (g k)", "K0213", "let [n] y = ...",
    ),
    "nothing to open": (F + "let [n] y = x in x", "K0213", "no size to be named"),
    "more names than sizes": (F + "let [n, m] = to_dim 3 in x", "K0213", "names 2 sizes"),
    "a promise that is not kept": (
        "let f [N] (x : F32[N]) : exists [n] requires (n < N). F32[n] = x", "K0305", "promises n < N",
    ),
    "a hidden size that nothing says": (
        "let f [N] (x : F32[N]) : exists [n]. F32[2 * n] = concat[axis=0] x x", "K0213", "nothing says what n",
    ),
    "a size that leaves a branch": (
        "let f (c : Bool) (k : I64) = if c then let [n] = to_dim k in zeros[F32] [n] else zeros[F32] [3]",
        "K0213", "outside",
    ),
    # control
    "a condition that is no Bool": (F + "if w then x else x", "K0302", "the condition of `if`"),
    "branches of other types": (F + "let y = if 1.0 < 2.0 then x else w in x", "K0302", ""),
    "a state that starts otherwise": (
        "let f [S] (k : F32[S]) : F32[S] = for i < 3 with c : F32[S + i + 1] = k do concat[axis=0] c (ones[F32] [1])",
        "K0302",
        "at the start",
    ),
    "a state that does not grow": (
        "let f [S] (k : F32[S]) : F32[S + 3] = for i < 3 with c : F32[S + i] = k do c", "K0302", "the next state `c`",
    ),
    "a state that ends otherwise": (
        "let f [S] (k : F32[S]) : F32[S + 2] = for i < 3 with c : F32[S + i] = k do concat[axis=0] c (ones[F32] [1])",
        "K0302",
        "they always differ",
    ),
    "a state without a type that grows": (
        "let f [S] (k : F32[S]) : F32[S + 3] = for i < 3 with c = k do concat[axis=0] c (ones[F32] [1])", "K0302",
        "has no declared type",
    ),
    # static parameters
    "an axis that is missing": (F + "reduce_keep[mean] x", "K0206", "needs `axis`"),
    "a kind that is unknown": (F + "reduce_keep[avg, axis=1] x", "K0206", "does not know `avg`"),
    "a kind with a close name": (F + "reduce_keep[meen, axis=1] x", "K0206", "did you mean `mean`?"),
    "an attribute with a close name": (F + "reduce_keep[mean, axs=1] x", "K0206", "did you mean `axis`?"),
    "an attribute given twice": (F + "reduce_keep[mean, axis=1, axis=1] x", "K0206", "twice"),
    "too many items": (F + "softmax[1, 2] x", "K0206", "no more than 1"),
    "a bracket on an operation without any": (F + "exp[axis=1] x", "K0206", "takes nothing in a bracket"),
    "an axis out of range": (F + "softmax[axis=2] x", "K0206", "the axes 0 to 1"),
    "an axis of a scalar": ("let f (x : F32) : F32 = softmax[axis=0] x", "K0206", "a scalar has no axes"),
    "an axis that is not a number": (F + "softmax[axis=N] x", "K0206", "known when the program is written"),
    "an axis named twice": (F + "reduce_keep[sum, axes=[0, 0]] x", "K0206", "named twice"),
    "no axis at all": (F + "reduce_keep[sum, axes=[]] x", "K0206", "no axis"),
    "an order that is none": (F + "transpose x [0, 0]", "K0206", "is not an order of the 2 axes"),
    "an order that is no list": (F + "transpose x 0", "K0206", "an order of axes"),
    "a shape that is no list": (F + "reshape x N", "K0206", "wants a shape"),
    "the last axis has no neighbour": (
        "let f [N] (x : F32[N]) : F32[N] = flatten_pair[axis=0] x", "K0206", "is the last",
    ),
    "broadcast to fewer axes": (F + "broadcast x [M]", "K0206", "cannot remove axes"),
    # holes, dimensions, types
    "a named hole": (F + "x * ?scale", "K0207", "hole `?scale`"),
    "a dimension that is a fraction": ("let f [N] (x : F32[1.5]) : F32 = 1.0", "K0208", "whole number"),
    "a dimension that is a value": (F + "broadcast w [exp N, M]", "K0208", "dimensions are built from"),
    "a dimension that is a hole": (F + "broadcast w [..., M]", "K0208", "hole"),
    "a size that is a power": (
        F + "".join(f"let dim D{n} = {f'D{n - 1} * D{n - 1}' if n else '99 + N + M'} in " for n in range(9)) + "x",
        "K0208", "too large an expression",
    ),
    "a size of thousands of digits": (
        F + "".join(f"let dim D{n} = {f'D{n - 1} * D{n - 1}' if n else '99'} in " for n in range(15)) + "x",
        "K0208", "a thousand digits",
    ),
    "a negative size": (F + "reshape x [-1]", "K0208", "does not stand for what is left over"),
    "cdiv with one argument": ("let f [N] (x : F32[cdiv(N)]) : F32 = 1.0", "K0208", "cdiv(a, b)"),
    "a requires that is no proposition": ("let f [N] requires (N) (x : F32[N]) : F32[N] = x", "K0208", "comparison"),
    "a shape as a type": ("let f [N] (x : [N]) : F32 = 1.0", "K0209", "tensor"),
    "a malformed tensor type": ("let f [N] (x : Tensor[F32, N]) : F32 = 1.0", "K0209", "Tensor[F32, [B, S]]"),
    # literals, tuples
    "a fraction for an integer": ("let f [N] (x : I64[N]) : I64[N] = x + 0.5", "K0210", "0.5"),
    "an integer out of range": ("let f [N] (x : I8[N]) : I8[N] = x + 200", "K0210", "-128 to 127"),
    "a number too large": ("let f [N] (x : F16[N]) : F16[N] = x * 1e9", "K0210", "too large"),
    "a boolean for a number": (F + "x * true", "K0210", "a number is wanted"),
    "a ragged literal": (F + "x * [[1.0], [1.0, 2.0]]", "K0210", "equally long"),
    "a tuple as an operand": (F + "exp (x, w)", "K0211", "is not a tensor"),
    "a tensor taken apart": (F + "let (a, b) = x in x", "K0211", "taken apart"),
    "too many names for a tuple": (F + "let (a, b, c) = (x, w) in x", "K0211", "3 names for a tuple of 2"),
    "an item that is not there": (F + "(x, w).2", "K0211", "has 2 items"),
    "an item of a tensor": (F + "x.0", "K0211", "takes a tuple apart"),
    # shapes
    "a result of another rank": (F + "w", "K0302", "the result of f"),
    "a result of another dtype": (F + "cast[F64] x", "K0302", "Tensor[F64, [N, M]]"),
    "a result of another size": ("let f [N] (x : F32[N]) : F32[2 * N] = x", "K0302", "they differ for N = 1"),
    "a result that is always one too small": ("let f [N] (x : F32[N]) : F32[N + 1] = x", "K0302", "always differ"),
    "a tuple for a tensor": (F + "(x, x)", "K0302", "the result of f"),
    "an argument says where sizes came from": (
        "let g [A] (a : F32[A]) (b : F32[A]) : F32[A] = a\nlet f [N, M] (x : F32[N]) (y : F32[M]) : F32[N] = g x y",
        "K0302", "A of g is N here, as the argument `a` says",
    ),
    "an annotation": (F + "let y : F32[M, N] = x in x", "K0302", "`y`"),
    "dtypes that differ": ("let f [N] (x : F32[N]) (n : I64[N]) : F32[N] = x * n", "K0303", "F32 and I64 do not mix"),
    "a dtype that an operation does not take": (
        "let f [N] (n : I64[N]) : I64[N] = exp n", "K0303", "not defined for I64",
    ),
    "matmul of vectors": ("let f [N] (x : F32[N]) : F32[N] = matmul x x", "K0304", "at least 2 axes"),
    "concat of different ranks": (F + "concat[axis=0] x w", "K0304", "number of axes"),
    "arguments in the wrong order": (
        "let g [A, B] (a : F32[A, B]) (b : F32[B]) : F32[A, B] = a + b\n" + F + "g w x", "K0302", "argument `a` of g",
    ),
    # obligations
    "a division that is not exact": ("let f [N] (x : F32[N / 2]) : F32 = 1.0", "K0305", "`/` is exact"),
    "a divisor that may be zero": ("let f [N, H] (x : F32[N div H]) : F32 = 1.0", "K0305", "has to be positive"),
    "a size that may be negative": ("let f [N] (x : F32[N - 1]) : F32 = 1.0", "K0305", "cannot be negative"),
    "a requires of a callee": (
        "let g [A] requires (A mod 2 = 0) (a : F32[A]) : F32[A] = a\nlet f [N] (x : F32[N]) : F32[N] = g x",
        "K0305", "g requires A mod 2 = 0, and A is N here",
    ),
    "a requires of a callee that never holds": (
        "let g [A] requires (A mod 2 = 0) (a : F32[A]) : F32[A] = a\nlet f (x : F32[7]) : F32[7] = g x",
        "K0305", "g requires A mod 2 = 0, and A is 7 here",
    ),
    "squeeze of an axis that is not 1": (
        "let f [N, M] (x : F32[N, M]) : F32[M] = squeeze[axis=0] x", "K0305", "has to be 1",
    ),
    "reinterpret of another volume": (
        "let f [N, M] (x : F32[N, M]) : F32[N] = reinterpret x [N]", "K0305", "number of elements",
    ),
    "a reshape of another volume": (
        "let f [N, M] (x : F32[N, M]) : F32[N] = reshape x [N]", "K0308", "they differ for",
    ),
    "a dimension that nothing determines": (
        "let g [A, B] (a : F32[A * B]) : F32[A * B] = a\nlet f [N] (x : F32[N]) : F32[N] = g x", "K0309", "g[A, B]",
    ),
    "a false assertion": ("let f [N] (x : F32[N]) : F32[N] = let assert (N > 0) in x", "K0310", "N = 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CASES))
def test_an_error_has_its_code_and_says_what_is_wrong(check, name):
    text, code, said = CASES[name]
    error = check(text).rejects(code, said)
    assert error.span.text or error.message


@pytest.mark.parametrize(
    "text",
    [
        "let f [H, S, D] (q : F32[H, S, D]) (k : F32[H, S, D]) : F32[H, S, S] = matmul q k",
        "let f [S, T, D] (q : F32[D, S]) (k : F32[D, T]) : F32[S, T] = matmul q k",
        "let f [B, S, D] (c : F32[B, S, D]) (n : F32[B, 1, D]) : F32[B, S + 1, D] = concat[axis=2] c n",
        "let f [N, D] (x : F32[N, D]) : F32[N, D] = x / reduce[sum, axis=1] x",
        "let f [N] (p : F32[N, 1]) (t : F32[N]) : F32[N] = p - t",
        "let f [C, H, W] (x : F32[C, H, W]) (b : F32[C, W]) : F32[C, H, W] = x + b",
        "let f [B, H, S, D] (v : F32[B, H, S, D]) : F32[B, S, H * D] = reshape v [B, S, H * D]",
        "let f [D] (x : F32[D]) : F32[D div 2, 2] = reshape x [D div 2, 2]",
        "let f [N] (x : F32[N / 4]) : F32[N / 4] = x",
        "let f [A, B] (x : F32[A]) : F32[B, A / B] = reshape x [B, A / B]",
        "let f [N] (x : F32[N - 1]) : F32[N - 1] = x",
        "let f [N, H] (x : F32[N div H]) : F32[N div H] = x",
        "let f [N] (x : F32[N]) : F32[N] = exq x",
        "let f [N] (x : F32[N]) : F32[N] = max(x, -x)",
        "let f (x : F32[N]) : F32[N] = x",
        "let f [N] (x : F32[N, M]) : F32[N, M] = x",
        "let f [N] (x : F32[N]) (n : I64) : F32[N] = x * n",
        "let f [N] (x : I64[N]) : F32[N] = exp x",
        "let f [S, D, H, K] (x : F32[S, D]) : F32[S, H, K] = reshape x [S, H, K]",
        "let f [S, H, K] (x : F32[S, H * K]) : F32[H, S, K] = reshape x [H, S, K]",
        "let f [H, W] (x : F32[H, W]) = reshape x [H div 2, 2, W div 2, 2]",
        "let f [N] (x : F32[N]) (m : Bool[N]) : F32[N] = select m x -1e9",
        "let f [N] (x : float32[N]) : F32[N] = x",
        "let f [N] (x : F32[N]) : F32[N] = softmax[dim=0] x",
        "let g [N] (x : F32[N]) (y : F32[N]) = x + y\nlet f [N] (x : F32[N]) : F32[N] = g(x, x + x)",
        "let g [N] (x : F32[N]) (y : F32[N]) = x + y\nlet f [N] (x : F32[N]) : F32[N] = g [N] x x",
        "let g [N] (x : F32[N]) (y : F32) = x + y\nlet f [N] (x : F32[N]) : F32[N] = g x -1",
        "let f [N] (x : F32[N]) : F32 = reduce[summ, axis=0] x",
        "let g [A] requires (A mod 2 = 0) (a : F32[A]) : F32[A] = a\nlet f [N] (x : F32[N]) : F32[N] = g x",
    ],
)
def test_applying_the_help_of_an_error_mends_the_program(check, text):
    check(text).helped().accepts()


def test_one_mistake_gives_one_error(check):
    check("""
        let f [N, M] (x : F32[N, M]) (y : F32[M, N]) : F32[N, M] =
          let bad = x + y in
          let worse = exp bad in
          let (p, q) = (bad, worse) in
          worse * bad + p + q
    """).rejects("K0301", line=2)


def test_every_function_reports_its_own_errors(check):
    program = check("""
        let f [N] (x : F32[N]) : F32[N] = x + y
        let g [N] (x : F32[N]) : F32[N] = f x
        let h [N] (x : F32[N]) : F32 = f x
    """)
    assert [(d.code, d.span.line) for d in program.errors] == [("K0201", 1), ("K0302", 3)]
    assert set(program.checked.elaboration.program.functions) == set()


def test_two_mistakes_in_one_function_give_two_errors(check):
    program = check("""
        let f [N, M] (x : F32[N, M]) (y : F32[M, N]) : F32[N, M] =
          let a = x + y in
          let b = matmul x x in
          x
    """)
    assert [d.span.line for d in program.errors] == [2, 3]


def test_an_assertion_that_nothing_settles_becomes_a_run_time_check(check):
    program = check("""
        let f [N, M] (x : F32[N, M]) : F32[N, M] =
          let assert (N * N * N != 7 * M * M * M + 3) in
          x
    """).accepts()
    assert "runtime" in program.statuses
    assert [d.code for d in program.checked.diagnostics] == ["K0312"]


def test_a_missing_in_and_sugar_are_refused_only_under_strict(check):
    text = "let f [N] (x : Tensor[F32, [N]]) (c : Tensor[F32, []]) : Tensor[F32, [N]] = x * c"
    check(text).accepts()
    check(text, strict=True).rejects("K0212", "write broadcast c [N]")


@pytest.mark.parametrize(
    "text",
    [
        "let f [N] (c : Bool[N]) : F64[N] = select c 1 0",
        "let f [N] (c : Bool[N]) (x : F64[N]) : F64[N] = select c x (1 / 2)",
        "let f [N] (x : F64[N]) : F64[N] = x * (1 / sqrt 2)",
        "let f [N] (x : F16[N]) (y : F16[N]) : Bool[N] = lt 0.5 (x - y)",
        "let f [N] : F64[N] = full 0 [N]",
        "let f [N] (x : U8[N]) : U8[N + 2] = concat[axis=0] [1, 2] x",
    ],
)
def test_literals_take_the_dtype_of_what_they_meet(check, text):
    check(text).accepts()


@pytest.mark.parametrize(
    "shapes",
    [
        "(x : F32[B, H, M, K]) (y : F32[1, H, K, N])",
        "(x : F32[B, 1, M, K]) (y : F32[B, H, K, N])",
        "(x : F32[1, M, K]) (y : F32[B, H, K, N])",
        "(x : F32[B, H, M, K]) (y : F32[H, K, N])",
    ],
)
def test_one_operand_of_matmul_stretches_along_the_batch_axes(check, shapes):
    check(f"let f [B, H, M, K, N] {shapes} : F32[B, H, M, N] = x @ y").accepts()


def test_both_operands_of_matmul_never_stretch(check):
    text = "let f [B, H, M] (x : F32[B, 1, M, M]) (y : F32[1, H, M, M]) : F32[B, H, M, M] = x @ y"
    check(text).rejects("K0301", "batch axis")
