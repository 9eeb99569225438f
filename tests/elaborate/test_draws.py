"""Draws: a seed gives the same numbers everywhere, other places give others, and they are distributed as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kina.host.errors import CallError
from kina.host.module import make_module
from kina.native.runtime import set_threads
from kina.ops.random import threefry
from kina.pipeline import check as check_source
from kina.pipeline import core_text
from kina.source import Source


def module_of(text: str):
    checked = check_source(Source("f.kina", text))
    assert checked.ok, [d.message for d in checked.diagnostics]
    return make_module(checked)


def core_of(text: str, name: str = "f") -> str:
    return core_text(check_source(Source("f.kina", text)).function(name))


@pytest.fixture(autouse=True)
def threads_as_before():
    yield
    set_threads(None)


# ---------------------------------------------------------------- the generator


@pytest.mark.parametrize(
    ("key", "counter", "wanted"),
    [
        (0x0000000000000000, 0x0000000000000000, 0x6B20015999BA4EFE),
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x1CB996FCBB002BE7),
        (0x13198A2E03707344, 0x243F6A8885A308D3, 0xC4923A9C483DF7A0),
    ],
)
def test_threefry_gives_the_known_answers_of_random123(key, counter, wanted):
    as_i64 = [np.uint64(x).astype(np.int64) for x in (key, counter)]
    assert int(threefry(*as_i64).astype(np.uint64)) == wanted


# ---------------------------------------------------------------- the same numbers everywhere

DRAWS = """
let uniforms [N, M] : F32[N, M] ! {rand} = uniform [N, M]
let doubles [N] : F64[N] ! {rand} = normal [N]
let normals [N, M] : F32[N, M] ! {rand} = transpose (normal [M, N]) [1, 0]
let bits [N] : Bool[N] ! {rand} = bernoulli 0.25 [N]
let ids [N, V] requires (V > 0) : Idx[V][N] ! {rand} = randint V [N]
let tokens [N, V] requires (V > 0) (logits : F32[N, V]) : Idx[V][N] ! {rand} = categorical logits
let order [N] : Idx[N][N] ! {rand} = permutation N
let steps [N, M] (x : F32[M]) : (F32[M], F32[N, M]) ! {rand} =
  for i < N with s : F32[M] = x do s + uniform [M] yield s * normal [M]
"""
CASES = {
    "uniforms": [{"N": 300, "M": 301}, {"N": 0, "M": 3}], "doubles": [{"N": 1}, {"N": 70_001}],
    "normals": [{"N": 5, "M": 7}, {"N": 513, "M": 128}], "bits": [{"N": 100_003}], "ids": [{"N": 1001, "V": 6}],
    "order": [{"N": 999}],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_native_code_draws_what_the_reference_draws_with_any_number_of_threads(name, threads):
    function = getattr(module_of(DRAWS), name)
    set_threads(threads)
    for sizes in CASES[name]:
        got, want = function(**sizes, seed=5), function.reference(**sizes, seed=5)
        assert got.dtype == want.dtype
        if name in ("doubles", "normals"):  # the logarithm and the cosine are rounded
            np.testing.assert_allclose(got, want, atol=2e-6)
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_loops_and_tokens_draw_the_same_with_any_number_of_threads(threads):
    module = module_of(DRAWS)
    set_threads(threads)
    x, logits = np.linspace(0, 1, 33, dtype=np.float32), np.sin(np.arange(4000, dtype=np.float32)).reshape(200, 20)
    for got, want in zip(module.steps(x, N=9, seed=2), module.steps.reference(x, N=9, seed=2), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-5)
    np.testing.assert_array_equal(module.tokens(logits, seed=3), module.tokens.reference(logits, seed=3))


# ---------------------------------------------------------------- other places, other numbers


def test_each_place_step_call_and_item_draws_other_numbers():
    module = module_of("""
let noise : F32[50] ! {rand} = uniform [50]
let twice : (F32[50], F32[50]) ! {rand} = (uniform [50], uniform [50])
let calls : (F32[50], F32[50]) ! {rand} = (noise, noise)
let loop : F32[4, 50] ! {rand} = for i < 4 yield uniform [50]
let nested : F32[3, 2, 50] ! {rand} = for i < 3 yield for j < 2 yield noise
let mapped [N] (x : F32[N]) : F32[N, 50] ! {rand} = map (fun v -> v + uniform [50]) x
let local (x : F32) : F32[2, 50] ! {rand} = let g (y : F32) = y + uniform [50] in stack[axis=0] (g x) (g x)
let branches (x : F32) : (F32[50], F32[50]) ! {rand} = (if x > 0.0 then uniform [50] else noise, uniform [50])
let whiles : F32[50] ! {rand, diverge} =
  let (n, x) = while n < 3.0 with (n : F32, x : F32[50]) = (0.0, zeros[F32] [50]) do (n + 1.0, x + uniform [50]) in x
let bounded : F32[3, 50] ! {rand} =
  let [n] (x, y) = while [i < 3] true with (x : F32[i, 50], y : F32) = (zeros[F32] [0, 50], 0.0) do
    (concat[axis=0] x (uniform [1, 50]), y) in
  concat[axis=0] x (zeros[F32] [3 - n, 50])
""")
    zeros = np.zeros(4, np.float32)
    found = [
        *module.twice.reference(seed=1), *module.calls.reference(seed=1), *module.loop.reference(seed=1),
        *module.nested.reference(seed=1).reshape(6, 50), *module.mapped.reference(zeros, seed=1),
        *module.local.reference(np.float32(0), seed=1), *module.branches.reference(1.0, seed=2),
        *module.bounded.reference(seed=3),
    ]  # fmt: skip
    for group in (found[:2], found[2:4], found[4:8], found[8:14], found[14:18], found[18:20], found[20:22], found[22:]):
        assert len({x.tobytes() for x in group}) == len(group)
        assert all(x.min() >= 0 and x.max() < 1 for x in group)
    summed = module.whiles.reference(seed=4)  # of three different numbers, no threefold of one
    assert 0.3 < summed.std() < 0.7
    np.testing.assert_array_equal(module.whiles(seed=4), summed)
    np.testing.assert_array_equal(module.bounded(seed=3), module.bounded.reference(seed=3))


def test_one_draw_does_not_depend_on_those_beside_it():
    first = module_of("let f (x : F32) : F32[9] ! {rand} = let a = uniform [9] in a")
    more = module_of("let f (x : F32) : F32[9] ! {rand} = let a = uniform [9] in let b = normal [7] in a")
    np.testing.assert_array_equal(first.f(1.0, seed=8), more.f(1.0, seed=8))


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    f = module_of("let f [N] : F32[N] ! {rand} = uniform [N]").f
    np.testing.assert_array_equal(f(N=100, seed=7), f(N=100, seed=7))
    assert not (f(N=100, seed=7) == f(N=100, seed=8)).any()
    assert not (f(N=100, seed=-1) == f(N=100, seed=2**62)).any()


# ---------------------------------------------------------------- with_seed and the host


def test_with_seed_makes_a_function_pure_and_says_all():
    module = module_of("""
let noise [N] (x : F32[N]) : F32[N] ! {rand} = x + uniform [N]
let f [N] (k : I64) (x : F32[N]) : F32[N] = with_seed k (noise x)
let both [N] (x : F32[N]) : (F32[N], F32[N]) = (with_seed 1 (noise x), with_seed 1 (noise x))
let outer [N] (x : F32[N]) : (F32[N], F32[N]) ! {rand} = (noise x, with_seed 1 (noise x))
""")
    x = np.zeros(20, np.float32)
    np.testing.assert_array_equal(module.f(1, x), module.both(x)[0])
    np.testing.assert_array_equal(*module.both(x))
    np.testing.assert_array_equal(module.outer(x, seed=5)[1], module.f(1, x))
    assert not (module.f(2, x) == module.f(1, x)).any()


def test_a_call_without_a_seed_says_how_to_give_one():
    module = module_of(
        "let f [N] (x : F32[N]) : F32[N] ! {rand} = x + uniform [N]\n"
        "let g [T : Float, ...S] (x : T[...S]) : T[...S] ! {rand} = x + uniform[T] [...S]"
    )
    x = np.zeros(3, np.float32)
    with pytest.raises(CallError, match=r"(?s)needs a seed.*call it as f\(x, seed=0\)"):
        module.f(x)
    with pytest.raises(CallError, match="seed"):
        module.f(x, seed=0.5)
    with pytest.raises(CallError, match="needs a seed"):
        module.g(x)
    np.testing.assert_array_equal(module.g(x, seed=3), module.f(x, seed=3))
    assert "seed" in str(module.f.__signature__) and "! {rand}" in module.f.signature


def test_a_function_that_draws_has_no_parameter_called_seed(check):
    check("let f (seed : I64) : F32 ! {rand} = uniform []").rejects("K0230", "no parameter `seed`")
    check("let f (seed : I64) : F32 = with_seed seed (uniform [])").accepts()


def test_a_draw_without_the_effect_is_an_error_that_says_so(check):
    program = check("let f [N] (x : F32[N]) : F32[N] = x + uniform [N]")
    error = program.rejects("K0230", "`uniform` draws random numbers")
    assert error.help[0].edits[0].text == " ! {rand}"
    check('test "t" = uniform [] < 1.0').rejects("K0230", "from which seed")
    check('test "t" = with_seed 0 (uniform []) < 1.0').accepts()
    check("let f (x : F32) : F32 = with_seed 1 (fun y -> y + uniform []) x").rejects("K0203")
    check("let f [N] : F32[N] ! {rand} = uniform[I64] [N]").rejects("K0206", "draws floats")
    check("let f [N] : F32[N] ! {rand} = uniform N").rejects("K0206", "shape")
    check("let f [N, V] : Idx[V][N] ! {rand} = randint V [N]").rejects("K0305")
    check("let f (x : F32) : Idx[1] ! {rand} = categorical x").rejects("K0206", "axis")


def test_core_has_the_key_as_a_parameter_and_checks_again():
    head = "let f [N, V] requires (V > 0) (x : F32[N, V]) : (Idx[V][N], F32[N]) ! {rand}"
    printed = core_of(f"{DRAWS}{head} = (tokens x, uniform [N])")
    again = check_source(Source("core.kina", printed), strict=True)
    assert again.ok, [d.message for d in again.diagnostics]
    assert core_text(again.function("f")) == printed
    assert "(seed : Tensor[I64, []])" in printed and "rand}" not in printed


# ---------------------------------------------------------------- quality

N = 200_000


def drawn(text: str, **sizes: int) -> np.ndarray:
    return np.asarray(module_of(f"let f [N] : {text}").f(N=N, seed=11, **sizes)).astype(np.float64)


@pytest.mark.parametrize("dtype", ["F32", "F64", "F16", "BF16"])
def test_uniform_numbers_are_uniform_by_moments_and_chi_square(dtype):
    x = drawn(f"{dtype}[N] ! {{rand}} = uniform [N]")
    step = 2.0 ** -{"F64": 53, "F32": 24, "F16": 11, "BF16": 8}[dtype]
    assert x.min() >= 0 and x.max() <= 1 - step
    assert (x / step % 1 == 0).all()
    deviation = 1 / math.sqrt(12 * N)
    assert abs(x.mean() + step / 2 - 0.5) < 4 * deviation
    assert abs(x.var() - 1 / 12) < 4 * math.sqrt(1 / 180 / N) + step
    cells = np.bincount((x * 128).astype(int), minlength=128)
    assert chi_square(cells, np.full(128, N / 128)) < 127 + 4 * math.sqrt(2 * 127)
    pairs = np.bincount((x[0::2] * 16).astype(int) * 16 + (x[1::2] * 16).astype(int), minlength=256)
    assert chi_square(pairs, np.full(256, N / 512)) < 255 + 4 * math.sqrt(2 * 255)


def chi_square(found: np.ndarray, expected: np.ndarray) -> float:
    return float(((found - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("dtype", ["F32", "F64", "F16", "BF16"])
def test_normal_numbers_have_the_moments_and_the_distribution(dtype):
    x = drawn(f"{dtype}[N] ! {{rand}} = normal [N]")
    for power, wanted, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - wanted) < 4 * math.sqrt(variance / N) + {"BF16": 0.02}.get(dtype, 1e-3)
    if dtype in ("F32", "F64"):
        edges = np.linspace(-3, 3, 25)
        below = np.array([0.5 * (1 + math.erf(e / math.sqrt(2))) for e in edges])
        expected = np.diff([0, *below, 1]) * N
        assert chi_square(np.bincount(np.searchsorted(edges, x), minlength=26), expected) < 25 + 4 * math.sqrt(50)
    assert 4 < np.abs(x).max() < 7


def test_bernoulli_categorical_randint_and_permutation_are_distributed_as_they_say():
    hits = drawn("Bool[N] ! {rand} = bernoulli 0.3 [N]")
    assert abs(hits.mean() - 0.3) < 4 * math.sqrt(0.21 / N)
    p = np.array([0.5, 0.25, 0.15, 0.1, 0.0])
    with np.errstate(divide="ignore"):
        logits = np.log(p).astype(np.float32)
    head = "let f [V, N] requires (V > 0) (x : F32[V]) : Idx[V][N] ! {rand}"
    tokens = module_of(f"{head} = categorical (broadcast x [N, V])").f
    counts = np.bincount(tokens(logits, N=N, seed=1), minlength=5)
    assert counts[4] == 0
    assert chi_square(counts[:4], p[:4] * N) < 3 + 4 * math.sqrt(6)
    dice = np.bincount(drawn("Idx[6][N] ! {rand} = randint 6 [N]").astype(int), minlength=6)
    assert chi_square(dice, np.full(6, N / 6)) < 5 + 4 * math.sqrt(10)
    g = module_of("let f [N] : Idx[3][N, 3] ! {rand} = for i < N yield permutation 3").f
    rows = g(N=6000, seed=2)
    assert (np.sort(rows, axis=1) == [0, 1, 2]).all()
    orders = np.unique(rows @ [9, 3, 1], return_counts=True)[1]
    assert len(orders) == 6 and chi_square(orders, np.full(6, 1000)) < 5 + 4 * math.sqrt(10)


def test_a_draw_is_part_of_what_uses_it():
    module = module_of("let f [N] (x : F32[N]) : F32[N] ! {rand} = select (bernoulli 0.5 [N]) (x / 0.5) 0.0")
    assert "f: 1 kernel\n" in module.f.explain("kernels")
