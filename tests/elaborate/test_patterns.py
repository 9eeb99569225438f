"""`einsum` and `rearrange`: what is accepted means what NumPy means by it, and what is not is said at the letter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kina.core.interpreter import run
from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.pipeline import Checked, compile_function
from kina.pipeline import check as check_source
from kina.source import Source

LETTERS = "abcdef"
ALL_SIZES = (2, 3, 4, 1, 5, 2), (1, 1, 1, 1, 1, 1), (3, 0, 2, 2, 0, 1)
SIZES = [dict(zip(LETTERS, sizes, strict=True)) for sizes in ALL_SIZES]
DTYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32}


def program(pattern: str, dtype: str) -> Checked:
    """The pattern on arguments whose axes have the sizes of its letters, each a dimension: `a` is A."""
    inputs, output = pattern.split("->")
    shapes = [[letter.upper() for letter in axes.split()] for axes in inputs.split(",")]
    parameters = " ".join(f"(x{n} : {dtype}[{', '.join(s)}])" for n, s in enumerate(shapes))
    result = f"{dtype}[{', '.join(letter.upper() for letter in output.split())}]"
    names = " ".join(f"x{n}" for n in range(len(shapes)))
    binders = f"[{', '.join(LETTERS.upper())}]"
    return check_source(Source("t.kina", f"let f {binders} {parameters} : {result} = einsum[{pattern}] {names}\n"))


def draw(pattern: str, dtype: str, sizes: dict[str, int]) -> list[np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(1)
    inputs = pattern.split("->")[0].split(",")
    return [rng.integers(-2, 3, [sizes[n] for n in axes.split()]).astype(DTYPES[dtype]) for axes in inputs]


def numpy_einsum(pattern: str, arrays: list[np.ndarray]) -> np.ndarray:
    wide = [x.astype(np.float64) for x in arrays]
    return np.einsum(pattern.replace(" ", ""), *wide).astype(arrays[0].dtype)


def upper(sizes: dict[str, int]) -> dict[str, int]:
    return {name.upper(): size for name, size in sizes.items()}


@st.composite
def patterns(draw: st.DrawFn) -> str:
    inputs = draw(st.lists(st.lists(st.sampled_from(LETTERS[:5]), max_size=4), min_size=1, max_size=3))
    letters = sorted({letter for axes in inputs for letter in axes})
    output = draw(st.permutations(letters))[: draw(st.integers(0, len(letters)))]
    return f"{', '.join(' '.join(axes) for axes in inputs)} -> {' '.join(output)}"


@settings(max_examples=120, deadline=None, derandomize=True)
@given(patterns(), st.sampled_from(sorted(DTYPES)))
def test_every_einsum_is_numpy_einsum_and_its_core_checks_again(pattern, dtype):
    checked = program(pattern, dtype)
    assert checked.ok, (pattern, [d.message for d in checked.diagnostics])
    function = checked.function("f")
    verify(function)
    printed = print_program(function)
    again = check_source(Source("core.kina", printed), strict=True)
    assert again.ok, (printed, [d.message for d in again.diagnostics])
    assert print_program(again.function("f")) == printed
    for sizes in SIZES:
        arrays = draw(pattern, dtype, sizes)
        (got,) = run(function, upper(sizes), arrays)
        want = numpy_einsum(pattern, arrays)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got, want)


NATIVE = [
    "a b, b c -> a c", "a b, b c -> c a", "a b c d, a b e d -> a b c e", "a b c, c d e -> a d b e", "a b, b -> a",
    "a, a b -> b", "a, a ->", "a b, a b -> a", "a, b -> b a", "a b -> b", "a a -> a", "a a b, b c -> c a",
    "a b c, d b c -> a d", "a b, b c, c d -> d a", "a b c d, c d e -> a e b", "-> ", ", a -> a", "a b c -> c a b",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["F32", "F16", "I32"])
@pytest.mark.parametrize("pattern", NATIVE)
def test_einsum_runs_natively_at_all_sizes(pattern, dtype):
    executable = compile_function(program(pattern, dtype).function("f"))
    larger = dict(zip(LETTERS, (17, 9, 33, 20, 6, 1), strict=True))
    for sizes in [*SIZES, larger]:
        arrays = draw(pattern, dtype, sizes)
        strided = [np.asfortranarray(x) if x.ndim else x for x in arrays]
        for given_ in (arrays, strided):
            (got,) = executable.run(upper(sizes), given_)
            np.testing.assert_array_equal(got, numpy_einsum(pattern, arrays))


def test_a_contraction_is_one_matrix_product(check):
    program = check("""
        let f [B, H, S, T, D] (q : F32[B, H, S, D]) (k : F32[B, H, T, D]) : F32[B, H, S, T] =
          einsum[b h s d, b h t d -> b h s t] q k
    """).accepts()
    assert "matmul q t1" in print_program(program.checked.function("f"))


def test_dots_stand_for_axes_that_stretch(check):
    program = check("""
        let f [A, B, M, K, N] (x : F32[A, B, M, K]) (y : F32[A, 1, K, N]) (z : F32[N]) : F32[A, B, N, M] =
          einsum[... m k, ... k n, n ... -> ... n m] x y z
    """).accepts()
    rng = np.random.default_rng(2)
    x, y, z = (rng.integers(-2, 3, s).astype(np.float32) for s in ((2, 3, 4, 5), (2, 1, 5, 6), (6,)))
    (got,) = run(program.checked.function("f"), dict(zip("ABMKN", (2, 3, 4, 5, 6), strict=True)), [x, y, z])
    np.testing.assert_array_equal(got, np.einsum("...mk,...kn,n...->...nm", x, y, z))


REARRANGED = {
    "b s (h d) -> b h s d, h=H": (lambda x, h: x.reshape(*x.shape[:2], h, -1).swapaxes(1, 2), "B, S, H * D"),
    "b s (h d) -> (b h) d s, d=D": (
        lambda x, h: x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 3, 1).reshape(-1, x.shape[2] // h, x.shape[1]),
        "B, S, H * D",
    ),
    "b ... -> ... b": (lambda x, h: np.moveaxis(x, 0, -1), "B, S, D"),
    "b ... -> b (...)": (lambda x, h: x.reshape(x.shape[0], -1), "B, S, D"),
    "b 1 s -> s () b 1": (lambda x, h: x.transpose(2, 1, 0)[..., None], "B, 1, S"),
    "(b s) (h d) -> s h (b d), b=B, h=H": (
        lambda x, h: x.reshape(2, -1, h, x.shape[1] // h).transpose(1, 2, 0, 3).reshape(-1, h, 2 * (x.shape[1] // h)),
        "B * S, H * D",
    ),
    "b s d -> b s d": (lambda x, h: x, "B, S, D"),
    "b s d -> (d s b)": (lambda x, h: x.T.reshape(-1), "B, S, D"),
}


@pytest.mark.parametrize("pattern", list(REARRANGED))
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (2, 1, 1, 1), (2, 3, 1, 7)])
def test_rearrange_is_reshape_transpose_reshape(check, pattern, sizes):
    meaning, shape = REARRANGED[pattern]
    named = dict(zip("BSHD", sizes, strict=True))
    for head in ("", "requires (H > 0 && B > 0)"):
        checked = check(f"let f [B, S, H, D] {head} (x : F32[{shape}]) = rearrange[{pattern}] x").accepts().checked
    function = checked.function("f")
    verify(function)
    printed = print_program(function)
    assert print_program(check(printed, strict=True).accepts().checked.function("f")) == printed
    x = np.random.default_rng(3).standard_normal(eval(f"({shape},)", {}, named)).astype(np.float32)
    want = meaning(x, named["H"])
    (got,) = run(function, named, [x])
    np.testing.assert_array_equal(got, want)
    executable = compile_function(function)
    for laid_out in (x, np.asfortranarray(x)):
        np.testing.assert_array_equal(executable.run(named, [laid_out])[0], want)


def test_a_group_needs_a_size_that_divides_it(check):
    program = check("let f [S, H, E] (x : F32[S, E]) = rearrange[s (h d) -> h s d, h=H] x")
    program.rejects("K0305", "E mod H = 0", "(h d) has the size E, which has to be a multiple of H")
    program.helped().accepts()
    check("let f [S, H, E] requires (E mod H = 0) (x : F32[S, E]) : F32[H, S, E / H] = "
          "rearrange[s (h d) -> h s d, h=H] x").accepts()  # fmt: skip


def test_a_pattern_is_a_function(check):
    program = check("let f [N, A, B] (xs : F32[N, A, B]) : F32[N, B, A] = map rearrange[a b -> b a] xs").accepts()
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    (got,) = run(program.checked.function("f"), {"N": 1, "A": 2, "B": 3}, [x])
    np.testing.assert_array_equal(got, x.swapaxes(1, 2))
    check("let f [A, B] (x : F32[A, B]) : F32[B * A] = x |> rearrange[a b -> (b a)]").accepts()


HEAD = "let f [B, S, H, D] (x : F32[B, S, D]) (y : F32[D, H]) = "


@pytest.mark.parametrize(
    ("text", "said", "at"),
    [
        ("rearrange[b s d -> b s] x", "`d` is not in the result", "d"),
        ("rearrange[b s d -> b s d e] x", "`e` is in the result alone", "e"),
        ("rearrange[b s dd -> b s d] x", "did you mean `dd`?", "d"),
        ("rearrange[b s s -> b s] x", "`s` stands twice before the arrow", "s"),
        ("rearrange[b (s d s) d -> b s d] x", "`s` stands twice before the arrow", "s"),
        ("rearrange[b s d -> b s d b] x", "`b` stands twice after the arrow", "b"),
        ("rearrange[b s -> s b] x", "the pattern names 2 axes, and `x` has 3", "b s"),
        ("rearrange[b s d e ... -> b s d e ...] x", "names at least 4 axes, and `x` has 3", "b s d e ..."),
        ("rearrange[b s (h d) -> b s h d] x", "does not say the sizes of `h` and `d`", "(h d)"),
        ("rearrange[b s (h ...) -> b s h ...] x", "`...` cannot be split off", "..."),
        ("rearrange[b s 2 -> b s] x", "2 cannot stand in the pattern", "2"),
        ("rearrange[b s d -> b s d, k=2] x", "the pattern has no axis `k`", "k"),
        ("rearrange[b s (h d) -> b s h d, h=2, h=2] x", "the size of `h` is given twice", "h=2"),
        ("rearrange[b s d -> b s d, 2] x", "after the pattern come sizes", "2"),
        ("rearrange[b s d, d h -> b s h] x", "describes 2 tensors, and 1 is given", "b s d, d h -> b s h"),
        ("rearrange x", "a pattern of axes is wanted in a bracket", "rearrange x"),
        ("einsum[b s d, s h -> b h] x y", "`s` has two sizes, S and D", "s"),
        ("einsum[b s d, d h -> b s k] x y", "`k` is in the result alone", "k"),
        ("einsum[b s d, d h -> b s b] x y", "`b` stands twice in the result", "b"),
        ("einsum[b s d, h -> b s h] x y", "the pattern names 1 axis, and `y` has 2", "h"),
        ("einsum[b (s d), d h -> b h] x y", "groups of axes belong to `rearrange`", "(s d)"),
        ("einsum[b s d, 1 h -> b h] x y", "1 cannot stand in the pattern", "1"),
        ("einsum[... d, d h -> h] x y", "axes that are not named cannot be summed", "..."),
        ("einsum[... d, ... h -> ... d h] x y", "axes that are not named have two sizes, S and D", "..."),
        ("einsum[b s d -> b s d, h=2] x", "it takes a pattern and no more", "h=2"),
    ],
)
def test_what_is_wrong_is_said_at_its_letter(check, text, said, at):
    error = check(HEAD + text).rejects("K0220", said)
    assert error.span.text == at


def test_one_letter_with_two_sizes_shows_both_places(check):
    error = check(HEAD + "einsum[b s d, s h -> b h] x y").rejects("K0220", "S: axis 1 of x", "D: axis 0 of y")
    assert [label.span.text for label in error.labels] == ["s"]
    assert error.counterexample is not None


def test_dtypes_do_not_mix(check):
    check("let f [A] (x : F32[A]) (y : F64[A]) = einsum[a, a ->] x y").rejects("K0303", "F32 and F64")
    check("let f [A] (x : Bool[A]) = einsum[a ->] x").rejects("K0303")
    check("let f [A] (x : F64[A]) : F64[A] = einsum[a, -> a] x 2").accepts()


@pytest.mark.parametrize("text", ["einsum[a b -> b a] x", "rearrange[a b -> b a] x"])
def test_strict_has_no_patterns(check, text):
    program = check(f"let f [A, B] (x : Tensor[F32, [A, B]]) : Tensor[F32, [B, A]] = {text}", strict=True)
    program.rejects("K0212", "is sugar")


def test_all_orders_of_a_product_of_three_agree():
    rng = np.random.default_rng(4)
    shapes = {"a b": (2, 3), "b c": (3, 4), "a c": (2, 4)}
    arrays = {axes: rng.integers(-2, 3, shape) for axes, shape in shapes.items()}
    for order in itertools.permutations(arrays):
        pattern = f"{', '.join(order)} -> c"
        got = run(program(pattern, "F64").function("f"), upper(SIZES[0]), [arrays[n].astype("f8") for n in order])[0]
        np.testing.assert_array_equal(got, np.einsum(pattern.replace(" ", ""), *(arrays[n] for n in order)))
