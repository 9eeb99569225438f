"""`conv` and pooling against JAX, by the reference and natively, and what has to hold for a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kina.core.interpreter import run
from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.pipeline import compile_function
from kina.types import Tensor

rng = np.random.default_rng(7)
_NUMPY = {"F32": np.float32, "F64": np.float64, "F16": np.float16, "I32": np.int32}


def at(**sizes: int) -> dict[str, int]:
    return sizes


@dataclass(frozen=True)
class Conv:
    """A call, the shapes of its operands over dimensions, sizes to try, and JAX's parameters."""

    attributes: str
    x: str
    kernel: str
    requires: str
    sizes: Sequence[dict[str, int]]
    stride: tuple[int, ...]
    pad: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


CONVS = {
    "1-D": Conv("", "N, C, L", "O, C, K", "K >= 1 && L >= K",
                [at(N=2, C=3, L=9, O=4, K=3), at(N=1, C=1, L=1, O=1, K=1), at(N=0, C=2, L=5, O=3, K=5),
                 at(N=2, C=0, L=4, O=2, K=2), at(N=3, C=17, L=130, O=33, K=7)], (1,), (0,), (1,)),
    "1-D, all attributes": Conv("[stride=2, pad=3, dilation=2, groups=2]", "N, 2 * C, L", "2 * O, C, 3", "L >= 1",
                [at(N=2, C=3, L=9, O=4), at(N=1, C=1, L=1, O=1), at(N=2, C=2, L=64, O=0)], (2,), (3,), (2,), 2),
    "2-D": Conv("[pad=1]", "N, C, H, W", "O, C, 3, 3", "H >= 1 && W >= 1",
                [at(N=2, C=3, H=7, W=6, O=4), at(N=1, C=1, H=1, W=1, O=1), at(N=1, C=8, H=17, W=33, O=16)],
                (1, 1), (1, 1), (1, 1)),
    "2-D, each axis its own": Conv("[stride=[2, 1], pad=[0, 2], dilation=[1, 3]]", "N, C, H, W", "O, C, 2, 2",
                "H >= 2 && W >= 1", [at(N=2, C=3, H=7, W=6, O=4), at(N=1, C=1, H=2, W=1, O=1)],
                (2, 1), (0, 2), (1, 3)),
    "depthwise": Conv("[groups=C]", "N, C, H, W", "C, 1, 3, 2", "H >= 3 && W >= 2 && C >= 1",
                [at(N=2, C=3, H=7, W=6), at(N=1, C=1, H=3, W=2)], (1, 1), (0, 0), (1, 1), -1),
}  # fmt: skip


def draw(tensor: Tensor, sizes: dict[str, int], dtype: str) -> np.ndarray:
    """Small whole numbers: sums are exact in any order."""
    return rng.integers(-2, 3, [d.evaluate(sizes) for d in tensor.shape]).astype(_NUMPY[dtype])


def laid_out(x: np.ndarray) -> list[np.ndarray]:
    return [x, np.asfortranarray(x), np.ascontiguousarray(x[..., ::-1])[..., ::-1]]


def agree(program, sizes, inputs, want) -> None:
    function = program.checked.function("f")
    want = np.asarray(want).astype(inputs[0].dtype)
    (got,) = run(function, sizes, inputs)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    executable = compile_function(function)
    for arrays in zip(*map(laid_out, inputs), strict=True):
        np.testing.assert_allclose(executable.run(sizes, arrays)[0], want, rtol=1e-6)


def checks_again(check, program) -> None:
    function = program.checked.function("f")
    verify(function)
    printed = print_program(function)
    assert print_program(check(printed, strict=True).accepts().checked.function("f")) == printed


@pytest.mark.parametrize("name", list(CONVS))
@pytest.mark.parametrize("dtype", ["F32", "F16", "I32"])
def test_conv_is_what_jax_computes(check, name, dtype):
    case = CONVS[name]
    binders = ", ".join(case.sizes[0])
    program = check(
        f"let f [{binders}] requires ({case.requires}) (x : {dtype}[{case.x}]) (w : {dtype}[{case.kernel}]) = "
        f"conv{case.attributes} x w"
    ).accepts()
    checks_again(check, program)
    spatial = "HW"[: len(case.stride)]
    layout = (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
    for sizes in case.sizes:
        x, w = (draw(v.type, sizes, dtype) for v in program.checked.function("f").inputs)
        want = jax.lax.conv_general_dilated(
            x.astype(np.float32), w.astype(np.float32), case.stride, [(p, p) for p in case.pad],
            rhs_dilation=case.dilation, dimension_numbers=layout,
            feature_group_count=sizes["C"] if case.groups < 0 else case.groups,
            precision=jax.lax.Precision.HIGHEST,
        ) if min(sizes.values()) else np.zeros(_shape(x, w, case), np.float32)  # fmt: skip
        agree(program, sizes, [x, w], want)


def _shape(x: np.ndarray, w: np.ndarray, case: Conv) -> tuple[int, ...]:
    """The shape of a convolution without images, channels or outputs, which JAX refuses: all its elements are 0."""
    each = zip(x.shape[2:], w.shape[2:], case.stride, case.pad, case.dilation, strict=True)
    return (x.shape[0], w.shape[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each))


POOLS = {
    "size=2": ("H >= 2 && W >= 2", (2, 2), (2, 2), (0, 0), (1, 1)),
    "size=3, stride=2, pad=1": ("H >= 1 && W >= 1", (3, 3), (2, 2), (1, 1), (1, 1)),
    "size=[1, 3], stride=[3, 1], pad=[0, 1]": ("H >= 1 && W >= 1", (1, 3), (3, 1), (0, 1), (1, 1)),
    "size=2, stride=1, dilation=2": ("H >= 3 && W >= 3", (2, 2), (1, 1), (0, 0), (2, 2)),
}


@pytest.mark.parametrize("attributes", list(POOLS))
@pytest.mark.parametrize("pool", ["max_pool", "avg_pool"])
@pytest.mark.parametrize("dtype", ["F32", "I32"])
def test_pooling_is_what_jax_computes(check, attributes, pool, dtype):
    requires, size, stride, pad, dilation = POOLS[attributes]
    if pool == "avg_pool" and (dtype == "I32" or "dilation" in attributes):
        pytest.skip("a mean is of floats, and its windows have no gaps")
    text = f"let f [N, C, H, W] requires ({requires}) (x : {dtype}[N, C, H, W]) = {pool}[{attributes}] x"
    program = check(text).accepts()
    checks_again(check, program)
    for n, c, h, w in ((2, 3, 7, 6), (1, 1, 3, 3), (0, 1, 4, 5), (1, 4, 33, 70)):
        sizes = at(N=n, C=c, H=h, W=w)
        (x,) = (draw(v.type, sizes, dtype) for v in program.checked.function("f").inputs)
        start, combine = (-jnp.inf, jax.lax.max) if pool == "max_pool" else (0.0, jax.lax.add)
        around = [(0, 0), (0, 0), *((p, p) for p in pad)]
        want = jax.lax.reduce_window(
            jnp.asarray(x, jnp.float32), start, combine, (1, 1, *size), (1, 1, *stride), around,
            window_dilation=(1, 1, *dilation),
        )  # fmt: skip
        agree(program, sizes, [x], want if pool == "max_pool" else want / (size[0] * size[1]))


def test_what_is_padded_never_is_the_greatest(check):
    program = check("""
        let f [L] requires (L >= 1) (x : F32[1, 1, L]) : F32[1, 1, L] = max_pool[size=3, stride=1, pad=1] x
    """)
    x = np.array([[[-5.0, -7.0, -6.0]]], np.float32)
    agree(program.accepts(), {"L": 3}, [x], np.array([[[-5.0, -5.0, -6.0]]]))


def test_sizes_of_results_are_types(check):
    check("""
        let same [N, C, O, H, W] requires (H >= 1 && W >= 1) (x : F32[N, C, H, W]) (w : F32[O, C, 3, 3])
            : F32[N, O, H, W] =
          conv[pad=1] x w
        let half [N, C, L] requires (L >= 2) (x : F32[N, C, L]) : F32[N, C, L div 2] = max_pool[size=2] x
        let strided [N, C, O, L] requires (L >= 1) (x : F32[N, C, L]) (w : F32[O, C, 3])
            : F32[N, O, (L - 1) div 2 + 1] =
          conv[stride=2, pad=1] x w
    """).accepts()


HEAD = (
    "let f [N, C, O, L] requires (L >= 3) (x : F32[N, C, L]) (w : F32[O, C, 3]) (d : F64[O, C, 3]) (m : F32[O, C]) ="
    "\n  "
)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("conv[dilation=2] x w", "K0305", "a window has to fit into axis 2 of size L"),
        ("conv[stride=0] x w", "K0305", "the step from window to window has to be positive"),
        ("conv[groups=2] x w", "K0305", "x has C channels, and the kernel C for each of 2 groups"),
        ("conv[strides=2] x w", "K0206", "takes stride, pad, dilation, groups by name"),
        ("conv[pad=1, pad=1] x w", "K0206", "is given this twice"),
        ("conv[pad=[1, 1]] x w", "K0206", "works along 1 axis, and 2 are given"),
        ("conv x d", "K0303", "F32 and F64 do not mix"),
        ("conv x m", "K0206", "x has 3 axes and the kernel 2"),
        ("conv m m", "K0206", "this has 2 axes"),
        ("conv x", "K0203", "takes 2 arguments"),
        ("max_pool x", "K0206", "needs `size`"),
        ("avg_pool[size=2, dilation=2] x", "K0206", "takes size, stride, pad by name"),
        ("max_pool[size=4] x", "K0305", "a window has to fit"),
    ],
)
def test_a_window_that_does_not_fit_is_an_error(check, text, code, said):
    check(HEAD + text).rejects(code, said)


@pytest.mark.parametrize("text", ["conv x w", "max_pool[size=2] x", "avg_pool[size=2] x"])
def test_strict_has_no_convolution(check, text):
    program = check(
        "let f [N, C, O, L] requires (L >= 3) (x : Tensor[F32, [N, C, L]]) (w : Tensor[F32, [O, C, 3]]) = " + text,
        strict=True,
    )
    program.rejects("K0212", "is sugar")
