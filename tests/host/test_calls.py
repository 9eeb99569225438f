"""Calls from Python that are right: how arguments, sizes and results go through."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kina
from kina.core import ir
from kina.host.module import Function, Module
from kina.host.reference import Reference

PROGRAM = """
/// Root-mean-square normalisation.
let rmsnorm [B, S, D]
    (x : Tensor[F32, [B, S, D]]) (weight : Tensor[F32, [D]]) (eps : Tensor[F32, []])
    : Tensor[F32, [B, S, D]] =
  let mean_sq = reduce_keep[mean, axis=2] (x * x) in
  x * rsqrt (mean_sq + eps) * weight

let halves [n] (x : F32[2 * n]) (y : F32[n]) : F32[n] = y

let grown [S, D] (cache : F32[S + 1, D]) : F32[S + 1, D] = cache

let heads [H, D] (x : F32[H * D]) : F32[H, D] = reshape x [H, D]

let grouped [Q, K] requires (Q mod K = 0) (q : F32[Q]) (k : F32[K]) : F32[Q] = q

let pair [A, B] (both : (F32[A], (F32[B], F32[A]))) (z : F32[B]) : (F32[B], (F32[A], F32[B])) =
  let (a, rest) = both in
  let (b, c) = rest in
  (b + z, (a + c, z))

let whole (k : I64[]) (on : Bool[]) : (I64[], Bool[]) = (k, on)
let bytes [n] (x : U8[n]) : U8[n] = x
let half_up [n] (x : BF16[n]) (s : BF16[]) : BF16[n] = x
let wide [n] (x : F64[n]) : F64[n] = x
let longs [n] (x : I64[n]) : I64[n] = x
"""


@pytest.fixture(scope="module", params=["reference", "native"])
def m(request: pytest.FixtureRequest) -> Module:
    return kina.compile(PROGRAM, name="calls.kina", backend=request.param)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_positional_and_named_arguments_give_the_same(m: Module) -> None:
    x, w = f32(2, 3, 4), f32(4)
    expected = x / np.sqrt((x * x).mean(2, keepdims=True) + np.float32(0.5)) * w
    for result in (
        m.rmsnorm(x, w, 0.5),
        m.rmsnorm(x, eps=0.5, weight=w),
        m.rmsnorm(eps=np.float32(0.5), weight=w, x=x),
        m.rmsnorm(x, w, np.array(0.5, np.float32)),
    ):
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_the_quick_way_and_the_general_way_give_the_same(m: Module) -> None:
    x, w = f32(1, 2, 4), f32(4)
    first, second, third = (m.rmsnorm(x, w, 1e-3) for _ in range(3))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_sizes_of_zero_are_sizes(m: Module) -> None:
    assert m.rmsnorm(f32(0, 3, 4), f32(4), 1.0).shape == (0, 3, 4)
    assert m.halves(f32(0), f32(0)).shape == (0,)


def test_a_size_inside_a_product_is_solved(m: Module) -> None:
    assert m.halves(f32(6), f32(3)).shape == (3,)


def test_a_size_that_shapes_leave_open_is_given_by_name(m: Module) -> None:
    for _ in range(2):
        assert m.heads(f32(12), H=3).shape == (3, 4)
        assert m.heads(f32(12), D=np.int64(3)).shape == (4, 3)
        assert m.heads(H=6, x=f32(12)).shape == (6, 2)


def test_a_size_given_by_name_may_be_one_that_shapes_determine_too(m: Module) -> None:
    for _ in range(2):
        assert m.rmsnorm(f32(1, 2, 4), f32(4), 1.0, D=4).shape == (1, 2, 4)


def test_tuples_go_in_as_tuples_or_lists_and_come_out_as_tuples(m: Module) -> None:
    a, b, c, z = f32(2), f32(3), f32(2) + 1, f32(3) + 2
    for both in ((a, (b, c)), [a, [b, c]], (a, [b, c]), (a, (b, c))):
        first, (second, third) = m.pair(both, z)
        np.testing.assert_array_equal(first, b + z)
        np.testing.assert_array_equal(second, a + c)
        np.testing.assert_array_equal(third, z)


def test_python_numbers_take_the_dtype_of_their_parameter(m: Module) -> None:
    k, on = m.whole(7, True)
    assert (k.dtype, on.dtype, int(k), bool(on)) == (np.int64, np.bool_, 7, True)
    assert int(m.whole(-(2**63), False)[0]) == -(2**63)
    assert int(m.whole(3.0, False)[0]) == 3


def test_nested_lists_are_arrays(m: Module) -> None:
    result = m.rmsnorm([[[1, 2], [3, 4.5]]], [1.0, 1], 0)
    assert result.shape == (1, 2, 2)
    assert m.bytes([0, 255]).tolist() == [0, 255]
    assert m.bytes([]).shape == (0,)
    assert m.grown([[], []]).shape == (2, 0)


def test_infinities_and_nan_pass_as_numbers(m: Module) -> None:
    assert np.isnan(m.rmsnorm([[[1.0]]], [1.0], float("nan"))).all()
    assert m.rmsnorm([[[1.0]]], [1.0], float("inf")).tolist() == [[[0.0]]]


def test_layouts_that_are_not_row_major_give_right_results(m: Module) -> None:
    base = f32(4, 3, 2)
    for x in (base.transpose(2, 1, 0), base[::-1, :, ::-1].T, np.asfortranarray(base.T)):
        for _ in range(2):
            np.testing.assert_array_equal(m.rmsnorm(x, f32(4), 1.0), m.rmsnorm(np.ascontiguousarray(x), f32(4), 1.0))


def test_unaligned_arrays_give_right_results(m: Module) -> None:
    raw = np.zeros(4 * 6 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = range(6)
    assert not x.flags.aligned
    for _ in range(2):
        assert m.halves(x, f32(3)).tolist() == [0, 1, 2]
        assert m.wide(np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float64)).tolist() == [0, 0]


def test_read_only_arrays_are_fine_and_are_not_changed(m: Module) -> None:
    x = f32(2, 3)
    x.flags.writeable = False
    result = m.grown(x)
    assert result.flags.writeable
    result[:] = -1
    assert x[0, 1] == 1


def test_bfloat16_is_a_dtype(m: Module) -> None:
    x = np.array([1.0, 2.5], ml_dtypes.bfloat16)
    for scale in (1.5, np.array(1.5, ml_dtypes.bfloat16)):
        result = m.half_up(x, scale)
        assert result.dtype == ml_dtypes.bfloat16
        assert result.tolist() == [1.0, 2.5]


def test_buffers_and_objects_with_dlpack_are_arrays(m: Module) -> None:
    from array import array

    class Exported:
        def __init__(self, values: np.ndarray[Any, Any]) -> None:
            self.values = values

        def __dlpack__(self, **how: Any) -> Any:
            return self.values.__dlpack__(**how)

        def __dlpack_device__(self) -> Any:
            return self.values.__dlpack_device__()

    assert m.wide(array("d", [1.0, 2.0])).tolist() == [1.0, 2.0]
    assert m.bytes(b"ab").tolist() == [97, 98]
    assert m.bytes(memoryview(bytearray(b"ab"))).tolist() == [97, 98]
    assert m.wide(Exported(np.array([3.0]))).tolist() == [3.0]


def test_equal_numpy_types_are_one_dtype(m: Module) -> None:
    assert m.longs(np.array([1, 2], np.longlong)).tolist() == [1, 2]


def test_matrices_and_memory_maps_are_arrays(m: Module, tmp_path: Any) -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1, 2]], np.float32)
    assert type(m.grown(matrix)) is np.ndarray
    np.save(tmp_path / "x.npy", f32(2, 3))
    np.testing.assert_array_equal(m.grown(np.load(tmp_path / "x.npy", mmap_mode="r")), f32(2, 3))


def test_a_function_that_returns_its_argument_returns_a_copy(m: Module) -> None:
    x = f32(1, 1)
    assert not np.shares_memory(m.grown(x), x)


# ---------------------------------------------------------------- kinds


def test_jax_arrays_give_jax_arrays(m: Module) -> None:
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.ones((1, 2, 4), "float32"), jax.numpy.arange(4, dtype="float32")
    result = m.rmsnorm(x, w, 1e-6)
    assert isinstance(result, jax.Array)
    np.testing.assert_allclose(np.asarray(result), np.asarray(m.rmsnorm(np.asarray(x), np.asarray(w), 1e-6)))
    half = jax.numpy.ones(3, jax.numpy.bfloat16)
    assert m.half_up(half, 1.0).dtype == jax.numpy.bfloat16


def test_64_bit_results_stay_64_bit_in_jax(m: Module) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        x = jax.numpy.array([2**40])
    result = m.longs(x)
    assert (result.dtype, int(np.asarray(result)[0])) == (np.int64, 2**40)


def test_results_have_the_kind_of_the_first_array_with_axes(m: Module) -> None:
    jax = pytest.importorskip("jax")
    x, w = f32(1, 1, 4), f32(4)
    assert isinstance(m.rmsnorm(x, jax.numpy.asarray(w), 1.0), np.ndarray)
    assert isinstance(m.rmsnorm(jax.numpy.asarray(x), w, np.float32(1)), jax.Array)
    assert isinstance(m.rmsnorm([[[1.0]]], jax.numpy.ones(1, "float32"), np.float32(1)), jax.Array)
    assert isinstance(m.rmsnorm([[[1.0]]], [1.0], 1.0), np.ndarray)


def test_torch_tensors_give_torch_tensors(m: Module, torch: Any) -> None:
    x, w = torch.ones(1, 2, 4), torch.arange(4.0)
    result = m.rmsnorm(x, w, 1e-6)
    assert isinstance(result, torch.Tensor)
    assert torch.allclose(result, torch.from_numpy(m.rmsnorm(x.numpy(), w.numpy(), 1e-6)))
    assert m.rmsnorm(x.transpose(1, 2), torch.ones(2), 1.0).shape == (1, 4, 2)
    half = m.half_up(torch.tensor([1.0, 2.5], dtype=torch.bfloat16), 1.0)
    assert half.dtype is torch.bfloat16
    assert half.tolist() == [1.0, 2.5]


def test_results_given_to_another_library_keep_their_memory(m: Module) -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((64, 1024), jax.numpy.float32)
    kept = m.grown(x)
    for _ in range(4):
        m.grown(x + 1)
    assert (np.asarray(kept) == 1).all()


# ---------------------------------------------------------------- functions and modules as objects


def test_a_function_is_compiled_once_at_the_first_call_for_all_sizes(m: Module) -> None:
    fresh = kina.compile(PROGRAM, backend="reference").rmsnorm
    assert fresh.compilations == 0
    for size in (1, 2, 5):
        fresh(f32(1, size, size), f32(size), 1.0)
    assert fresh.compilations == 1


def test_many_threads_compile_a_function_once() -> None:
    core, signature = _core("let f [n] (x : F32[n]) : F32[n] = x + x")
    compiled: list[ir.Function] = []
    start = threading.Barrier(8)

    def slow(function: ir.Function) -> Reference:
        compiled.append(function)
        return Reference(function)

    f = Function(core, signature, slow)
    results: list[Any] = []

    def call(size: int) -> None:
        start.wait()
        results.append((size, f(f32(size))))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == f.compilations == 1
    assert all((result == 2 * f32(size)).all() for size, result in results)
    assert len(results) == 8


def test_calls_from_many_threads_do_not_disturb_each_other(m: Module) -> None:
    def call(value: int) -> bool:
        x = np.full((50, 200, 8), value, np.float32)
        w = np.full(8, value, np.float32)
        return all(np.allclose(m.rmsnorm(x, w, 0.0), value) for _ in range(5))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(1, 9)))


def test_reference_goes_through_the_same_boundary(m: Module) -> None:
    assert m.heads.reference([1, 2, 3, 4], H=2).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(kina.KinaError, match="do not determine H, D"):
        m.heads.reference([1, 2, 3, 4])


def test_functions_tell_what_they_are(m: Module) -> None:
    f = m.rmsnorm
    assert f.__name__ == "rmsnorm"
    assert f.__doc__ == "Root-mean-square normalisation."
    assert str(inspect.signature(f)) == "(x, weight, eps, *, B=None, S=None, D=None)"
    assert f.signature in repr(f)
    assert f.signature.startswith("rmsnorm[B, S, D]")
    assert "let rmsnorm" in f.explain("core")
    with pytest.raises(ValueError, match="not 'cores'"):
        f.explain("cores")  # type: ignore[arg-type]


def test_modules_tell_what_they_hold(m: Module) -> None:
    assert "rmsnorm" in dir(m)
    assert "calls.kina" in repr(m)
    with pytest.raises(AttributeError, match=r"calls\.kina has no function rmsnrom; did you mean rmsnorm\?"):
        m.rmsnrom  # noqa: B018
    assert copy.copy(m).rmsnorm is m.rmsnorm


def test_names_with_a_prime_are_reached_by_getattr() -> None:
    module = kina.compile("let f' [n'] (x' : F32[2 * n']) : F32[2 * n'] = x'", backend="reference")
    function = getattr(module, "f'")
    assert function(f32(2)).shape == (2,)
    assert function(**{"x'": f32(2), "n'": 1}).shape == (2,)
    assert "x_prime" in str(inspect.signature(function))


def test_a_name_that_is_a_parameter_and_a_size_means_the_parameter() -> None:
    f = kina.compile("let f [n] (n : F32[n]) : F32[n] = n", backend="reference").f
    assert f(n=f32(3)).shape == (3,)


# ---------------------------------------------------------------- the two ways agree


SHAPES = [
    ("[A, B]", ["[A, B]", "[B]", "[A]"]),
    ("[A, B]", ["[A * B]", "[B]"]),
    ("[A, B]", ["[2 * A + 1, B]", "[A + B]"]),
    ("[A, B]", ["[A + 2 * B]", "[B]", "[A div 2]"]),
    ("[A, B]", ["[A]", "[B]", "[min(A, B)]", "[max(A, B), cdiv(A, 2)]"]),
    ("[A, B] requires (A mod B = 0 || A < B)", ["[A]", "[B, 3]"]),
    ("[A, B] requires (B > 0) requires (A div B <= 2)", ["[A]", "[B]"]),
    ("[A, B] requires (B <= A)", ["[A]", "[B]", "[A - B]"]),
]


class _Echo:
    """An executable that answers with the sizes it was given."""

    def run(self, sizes: Mapping[str, int], inputs: Sequence[Any]) -> tuple[Any, ...]:
        return (dict(sizes),)


def _core(text: str) -> tuple[ir.Function, Any]:
    from kina import pipeline
    from kina.source import Source

    checked = pipeline.check(Source("t.kina", text))
    assert checked.ok, checked.diagnostics
    return checked.function("f"), checked.elaboration.signatures["f"]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except kina.KinaError as error:
        return str(error)


@pytest.mark.parametrize(("head", "shapes"), SHAPES)
def test_the_quick_way_takes_what_the_general_way_takes(head: str, shapes: list[str]) -> None:
    parameters = " ".join(f"(x{k} : F32{shape})" for k, shape in enumerate(shapes))
    core, signature = _core(f"let f {head} {parameters} : F32{shapes[0]} = x0")
    f = Function(core, signature, lambda _: _Echo())  # type: ignore[arg-type,return-value]
    general = Function(core, signature, lambda _: _Echo())  # type: ignore[arg-type,return-value]
    general._boundary._learn = lambda args, named: None  # type: ignore[method-assign]

    size = st.integers(0, 7)

    @settings(derandomize=True)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        sizes = {"A": data.draw(size), "B": data.draw(size)}
        arrays = []
        for value in core.inputs:
            try:
                shape = [max(d.evaluate(sizes), 0) for d in value.type.shape]
            except ArithmeticError:
                shape = [0] * value.type.rank
            if data.draw(st.integers(0, 9)) == 0 and shape:
                shape[0] += 1
            arrays.append(np.zeros(shape, np.float32))
        expected = _outcome(lambda: general(*arrays))
        for _ in range(2):
            assert _outcome(lambda: f(*arrays)) == expected

    agree()
    assert f._boundary._layouts
