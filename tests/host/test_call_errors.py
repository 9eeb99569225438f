"""Calls from Python that do not fit: each has a message that says what was wanted, what came, and what to do."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kina
from kina import pipeline
from kina.core import ir
from kina.dims.dim import constant, modulo, variable
from kina.dims.proposition import equal
from kina.host.module import Function, Module
from kina.host.reference import Reference
from kina.source import Source

PROGRAM = """
let rmsnorm [B, S, D]
    (x : Tensor[F32, [B, S, D]]) (weight : Tensor[F32, [D]]) (eps : Tensor[F32, []])
    : Tensor[F32, [B, S, D]] =
  let mean_sq = reduce_keep[mean, axis=2] (x * x) in
  x * rsqrt (mean_sq + eps) * weight

let halves [n] (x : F32[2 * n]) : F32[2 * n] = x
let shorter [N, m] requires (m <= N) (x : F32[N]) (y : F32[N - m]) : F32[N] = x
let heads [H, D] (x : F32[H * D]) : F32[H, D] = reshape x [H, D]
let parts [A, B] requires (B > 0) (x : F32[A]) (y : F32[B]) (z : F32[A div B]) : F32[A] = x
let quotient [A, B] requires (B > 0) (x : F32[A]) (y : F32[B]) (z : F32[A mod B]) : F32[A] = x
let grouped [Q, K] requires (Q mod K = 0) (q : F32[Q]) (k : F32[K]) : F32[Q] = q
let triple [A] (x : F32[A, 3]) : F32[A, 3] = x
let pair [A, B] (both : (F32[A], F32[B])) : F32[A] = let (a, b) = both in a
let none : F32[] = 1.0
let whole (k : I64[]) : I64[] = k
let byte [n] (k : U8[n]) : U8[n] = k
let flag (k : Bool[]) : Bool[] = k
let half (k : F16[]) : F16[] = k
let brain [n] (k : BF16[n]) : BF16[n] = k
"""

X, W = np.ones((2, 3, 64), np.float32), np.ones(64, np.float32)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


@pytest.fixture(scope="module")
def m() -> Module:
    return kina.compile(PROGRAM, name="errors.kina", backend="reference")


def refuses(function: Any, expected: str, *args: Any, **named: Any) -> None:
    """The call fails with exactly this message, at the first call and after the quick way is there."""
    with pytest.raises(kina.KinaError) as error:
        function(*args, **named)
    assert str(error.value) == dedent(expected).strip()


def test_a_size_that_differs_shows_the_symbols_and_where_each_was_bound(m: Module) -> None:
    m.rmsnorm(X, W, 1.0)
    refuses(
        m.rmsnorm,
        """
        rmsnorm: argument weight has the wrong shape in axis 0
          expected  [D ]
          which is  [64]
          got       [32]
          D = 64, from axis 2 of x
        """,
        X, f32(32), 1e-6,
    )  # fmt: skip


def test_a_size_given_by_name_counts_as_bound(m: Module) -> None:
    refuses(
        m.rmsnorm,
        """
        rmsnorm: argument x has the wrong shape in axis 2
          expected  [B, S, D ]
          which is  [2, 3, 32]
          got       [2, 3, 64]
          D = 32, given by name
          B = 2, from axis 0 of x
          S = 3, from axis 1 of x
        """,
        X, W, 1e-6, D=32,
    )  # fmt: skip


def test_a_constant_axis_has_one_size(m: Module) -> None:
    refuses(
        m.triple,
        """
        triple: argument x has the wrong shape in axis 1
          expected  [A, 3]
          which is  [5, 3]
          got       [5, 4]
          A = 5, from axis 0 of x
        """,
        f32(5, 4),
    )


def test_a_size_that_no_unknown_reaches_is_refused(m: Module) -> None:
    refuses(
        m.halves,
        """
        halves: argument x has the wrong shape in axis 0
          expected  [2 * n]
          which is  [?    ]
          got       [7    ]
          no n makes 2 * n equal 7
        """,
        f32(7),
    )
    refuses(
        m.shorter,
        """
        shorter: argument y has the wrong shape in axis 0
          expected  [N - m]
          which is  [?    ]
          got       [4    ]
          no m makes N - m equal 4
          N = 3, from axis 0 of x
        """,
        f32(3), f32(4),
    )  # fmt: skip


def test_a_quotient_in_a_shape_is_compared(m: Module) -> None:
    refuses(
        m.parts,
        """
        parts: argument z has the wrong shape in axis 0
          expected  [A div B]
          which is  [3      ]
          got       [4      ]
          A = 7, from axis 0 of x
          B = 2, from axis 0 of y
        """,
        f32(7), f32(2), f32(4),
    )  # fmt: skip


def test_a_division_by_zero_in_a_shape_is_said(m: Module) -> None:
    refuses(
        m.quotient,
        """
        quotient: argument z has the wrong shape in axis 0
          expected  [A mod B]
          which is  [?      ]
          got       [1      ]
          7 divided by 0 is undefined
          A = 7, from axis 0 of x
          B = 0, from axis 0 of y
        """,
        f32(7), f32(0), f32(1),
    )  # fmt: skip


def test_an_open_size_is_asked_for_by_name(m: Module) -> None:
    refuses(
        m.heads,
        """
        heads: the arguments do not determine H, D
          give by name: heads(..., H=...)
        """,
        f32(6),
    )


def test_a_product_with_a_zero_factor_leaves_the_other_open(m: Module) -> None:
    refuses(
        m.heads,
        """
        heads: the arguments do not determine D
          give by name: heads(..., D=...)
        """,
        f32(0), H=0,
    )  # fmt: skip
    refuses(
        m.heads,
        """
        heads: argument x has the wrong shape in axis 0
          expected  [D * H]
          which is  [?    ]
          got       [6    ]
          no D makes D * H equal 6
          H = 0, given by name
        """,
        f32(6), H=0,
    )  # fmt: skip


def test_a_requires_that_fails_shows_its_numbers(m: Module) -> None:
    m.grouped(f32(6), f32(3))
    refuses(
        m.grouped,
        """
        grouped: requires Q mod K = 0, which does not hold for these arguments
          here it is 7 mod 3 = 0
          Q = 7, from axis 0 of q
          K = 3, from axis 0 of k
        """,
        f32(7), f32(3),
    )  # fmt: skip


def test_a_requires_brings_its_own_definedness(m: Module) -> None:
    refuses(
        m.grouped,
        """
        grouped: requires K > 0, which does not hold for these arguments
          here it is 0 > 0
          K = 0, from axis 0 of k
        """,
        f32(7), f32(0),
    )  # fmt: skip


def test_a_requires_that_is_undefined_fails() -> None:
    checked = pipeline.check(Source("t.kina", "let f [Q, K] (q : F32[Q]) (k : F32[K]) : F32[Q] = q"))
    claim = equal(modulo(variable("Q"), variable("K")), constant(0))
    f = Function(replace(checked.function("f"), requires=(claim,)), checked.elaboration.signatures["f"], Reference)
    refuses(
        f,
        """
        f: requires Q mod K = 0, which does not hold for these arguments
          here it is 7 mod 0 = 0, but 7 divided by 0 is undefined
          Q = 7, from axis 0 of q
          K = 0, from axis 0 of k
        """,
        f32(7), f32(0),
    )  # fmt: skip


def test_a_wrong_rank_is_named(m: Module) -> None:
    refuses(
        m.rmsnorm,
        """
        rmsnorm: argument x has 2 axes, not 3
          expected [B, S, D]
          got      [3, 64]
        """,
        X[0], W, 1e-6,
    )  # fmt: skip
    refuses(
        m.rmsnorm,
        """
        rmsnorm: argument eps has 1 axis, not 0
          expected []
          got      [1]
        """,
        X, W, f32(1),
    )  # fmt: skip


@pytest.mark.parametrize("scalar", [1.0, np.float32(1.0), np.array(1.0, np.float32)])
def test_a_scalar_is_not_stretched_to_a_tensor(m: Module, scalar: Any) -> None:
    shown = repr(scalar if isinstance(scalar, float) else scalar[()])
    refuses(
        m.rmsnorm,
        f"""
        rmsnorm: argument weight has to be a tensor, got the scalar {shown}
          expected Tensor[F32, [D]]
          a scalar is not stretched at a call: fill an array, for example with numpy.full
        """,
        X, scalar, 1e-6,
    )  # fmt: skip


# ---------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    ("array", "got", "advice"),
    [
        (W.astype(np.float64), "F64", "convert it: weight.astype(numpy.float32)"),
        (W.astype(ml_dtypes.bfloat16), "BF16", "convert it: weight.astype(numpy.float32)"),
        (W.astype(bool), "Bool", "convert it: weight.astype(numpy.float32)"),
        (W.astype(">f4"), "float32 in foreign byte order (>f4)", "convert it: weight.astype(numpy.float32)"),
        (W.astype(object), "an array of Python objects", "convert it: weight.astype(numpy.float32)"),
        (W.astype(np.complex64), "complex64, which Kina does not have", "convert it: weight.astype(numpy.float32)"),
        (W.astype(np.uint32), "uint32, which Kina does not have", "convert it: weight.astype(numpy.float32)"),
        (np.array(["a"]), "str32, which Kina does not have", "convert it: weight.astype(numpy.float32)"),
        (
            np.zeros(64, [("a", "f4"), ("b", "f4")]),
            "the structured dtype [('a', '<f4'), ('b', '<f4')]",
            "pass one field: weight['a']",
        ),
    ],
)  # fmt: skip
def test_an_array_is_never_converted(m: Module, array: Any, got: str, advice: str) -> None:
    refuses(
        m.rmsnorm,
        f"""
        rmsnorm: argument weight has the wrong dtype
          expected F32, in Tensor[F32, [D]]
          got {got}
          {advice}
        """,
        X, array, 1e-6,
    )  # fmt: skip


def test_advice_on_dtypes_speaks_the_language_of_the_library(m: Module) -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(kina.KinaError, match=r"weight\.astype\(jax\.numpy\.float32\)"):
        m.rmsnorm(X, jax.numpy.ones(64, jax.numpy.float16), 1e-6)
    with pytest.raises(kina.KinaError, match=r"k\.astype\(ml_dtypes\.bfloat16\)"):
        m.brain(W)


def test_numpy_scalars_have_a_dtype_too(m: Module) -> None:
    with pytest.raises(kina.KinaError, match="got F64"):
        m.rmsnorm(X, W, np.float64(1e-6))


@pytest.mark.parametrize(
    ("function", "value", "message"),
    [
        (
            "whole",
            1.5,
            "argument k: 1.5 is not an I64 value exactly\n  I64 holds the integers from -9223372036854775808",
        ),
        ("whole", 2**63, "argument k: 9223372036854775808 is outside the range of I64\n"),
        ("whole", float("nan"), "argument k: nan is not an I64 value exactly"),
        ("whole", float("inf"), "argument k: inf is not an I64 value exactly"),
        ("whole", True, "argument k: True is a bool, where I64 is expected"),
        ("flag", 1, "argument k: 1 is an int, where Bool is expected"),
        ("byte", [0, 256], "argument k: 256 is outside the range of U8\n  U8 holds the integers from 0 to 255"),
        ("byte", [-1], "argument k: -1 is outside the range of U8"),
        ("half", 1e6, "argument k: 1000000.0 is outside the range of F16"),
        ("half", 2049, "argument k: 2049 is not an F16 value exactly"),
        ("half", 10**400, "is outside the range of F16"),
        ("half", False, "argument k: False is a bool, where F16 is expected"),
    ],
)
def test_a_number_that_the_dtype_does_not_hold_is_refused(m: Module, function: str, value: Any, message: str) -> None:
    with pytest.raises(kina.KinaError) as error:
        getattr(m, function)(value)
    assert message in str(error.value)


# ---------------------------------------------------------------- what is no array


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "argument weight has the type NoneType, which is no array\n"),
        ("text", "argument weight has the type str, which"),
        (1j, "argument weight has the type complex, which"),
        ({"a": 1}, "argument weight has the type dict, which"),
        (object(), "argument weight has the type object, which is no array\n"),
        (len, "argument weight has the type builtin_function_or_method, which is no"),
        (np.ma.masked_array(W, W > 0), "argument weight is a masked array, whose mask Kina would lose\n"),
        ([1.0, None], "argument weight is a list with NoneType inside: None\n"),
        ([W, W], "argument weight is a list with ndarray inside"),
        ([[1.0], [1.0, 2.0]], "argument weight is a list whose rows differ in length\n"),
        ([[1.0], 2.0], "argument weight is a list whose rows differ in length\n"),
        ([1.0, [2.0]], "argument weight is a list whose rows differ in length\n"),
        ([[], [[]]], "argument weight is a list whose rows differ in length\n"),
        ([[1.0]], "argument weight has 2 axes, not 1\n"),
    ],
)
def test_what_is_no_array_is_refused(m: Module, value: Any, message: str) -> None:
    with pytest.raises(kina.KinaError) as error:
        m.rmsnorm(X, value, 1e-6)
    assert message in str(error.value)


def test_an_object_whose_export_fails_is_refused_with_its_own_words(m: Module) -> None:
    class Broken:
        def __dlpack__(self, **how: Any) -> Any:
            raise BufferError("the moon is in the way")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(kina.KinaError, match="has the type Broken, which could not be read") as error:
        m.rmsnorm(X, Broken(), 1e-6)
    assert "BufferError: the moon is in the way" in str(error.value)


def test_values_traced_by_jax_are_refused(m: Module) -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(kina.KinaError, match="is being traced by JAX"):
        jax.jit(lambda w: m.rmsnorm(X, w, 1e-6))(W)
    with pytest.raises(kina.KinaError, match="PRNGKeyArray, which could not be read as an array"):
        m.rmsnorm(X, jax.random.key(0), 1e-6)


def test_torch_tensors_that_cannot_be_read_are_refused(m: Module, torch: Any) -> None:
    for tensor, message in [
        (torch.ones(64, requires_grad=True), r"requires grad.*\n.*\n.*x\.detach\(\)"),
        (torch.ones(64, device="meta"), r"lies on meta.*\n.*\n.*x\.cpu\(\)"),
        (torch.ones(64).to_sparse(), r"is sparse.*\n.*\n.*x\.to_dense\(\)"),
        (torch.ones(64, dtype=torch.float64), r"got F64\n.*weight\.to\(torch\.float32\)"),
    ]:
        with pytest.raises(kina.KinaError, match=message):
            m.rmsnorm(X, tensor, 1e-6)


# ---------------------------------------------------------------- which arguments


def test_missing_arguments_are_listed_with_their_types(m: Module) -> None:
    refuses(
        m.rmsnorm,
        """
        rmsnorm: missing arguments x, eps
          x : Tensor[F32, [B, S, D]]
          eps : Tensor[F32, []]
          call it as rmsnorm(x, weight, eps)
        """,
        weight=W,
    )


def test_too_many_arguments_are_counted(m: Module) -> None:
    refuses(m.halves, "halves: takes 1 argument, got 2\n  call it as halves(x)", W, W)
    refuses(m.none, "none: takes 0 arguments, got 1\n  call it as none()", W)


def test_an_unknown_name_gets_the_nearest_one(m: Module) -> None:
    refuses(
        m.rmsnorm,
        """
        rmsnorm: has no parameter and no size called wieght
          did you mean weight?
          parameters: x, weight, eps
          sizes that may be given by name: B, S, D
        """,
        X, wieght=W, eps=1.0,
    )  # fmt: skip
    refuses(
        m.whole,
        """
        whole: has no parameter and no size called zzzz
          parameters: k
          sizes that may be given by name: none
        """,
        1, zzzz=2,
    )  # fmt: skip


def test_an_argument_given_twice_is_refused(m: Module) -> None:
    refuses(m.rmsnorm, "rmsnorm: argument x is given twice, by position and by name", X, W, 1.0, x=X)


@pytest.mark.parametrize("size", [-1, 1.5, True, "3", None, W])
def test_a_size_given_by_name_is_a_natural_number(m: Module, size: Any) -> None:
    refuses(m.heads, f"heads: the size H has to be an int >= 0, got {size!r}", f32(6), H=size)


def test_a_tuple_parameter_wants_a_tuple_of_its_length(m: Module) -> None:
    wanted = "(Tensor[F32, [A]], Tensor[F32, [B]])"
    message = f"pair: argument both has to be a tuple\n  expected {wanted}\n  got "
    refuses(m.pair, message + "ndarray", W)
    refuses(m.pair, message + "1 item", (W,))
    refuses(m.pair, message + "3 items", (W, W, W))
    with pytest.raises(kina.KinaError, match=r"argument both\.1 has the wrong dtype"):
        m.pair((W, W.astype(np.int8)))


def test_a_run_time_check_that_fails_is_an_error() -> None:
    checked = pipeline.check(Source("t.kina", "let f [A, B] (x : F32[A]) (y : F32[B]) : F32[A] = x"))
    core = checked.function("f")
    check = ir.Check(equal(variable("A") * 2, variable("B")))
    f = Function(replace(core, statements=(check,)), checked.elaboration.signatures["f"], Reference)
    assert f(f32(1), f32(2)).shape == (1,)
    with pytest.raises(kina.KinaError, match=r"2 \* A = B does not hold for A = 2, B = 5"):
        f(f32(2), f32(5))
