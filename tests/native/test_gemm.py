"""Gemm against NumPy in double precision: all paths, strides, edges, threads; and nothing written elsewhere."""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kina.diagnostics import KinaError
from kina.native.build import at, int_, load_vector
from kina.native.engine import compile_object
from kina.native.forms import Form
from kina.native.gemm_driver import Gemm
from kina.native.gemm_finish import Store
from kina.native.gemm_library import gemm_declaration, gemm_ir, gemm_symbols
from kina.native.machine import Machine
from kina.native.tiling import Tiling, scratch_bytes

HOST = Machine.host()
DTYPES = {"f32": np.float32, "f64": np.float64}
GUARD = 7  # elements before, between and after what may be written

machines = {"host": HOST}
if HOST.has("avx2") and HOST.has("fma"):
    machines["avx2"] = Machine.avx2()
if HOST.architecture == "x86_64":
    machines["sse2"] = Machine.sse2()


@cache
def compiled(machine: str, dtype: str, threads: int = 1) -> Gemm:
    return Gemm(machines[machine], dtype, threads=threads)


def random(shape: tuple[int, int], dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


def assert_product(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Within the error bound of any order of summation: k * eps * |A| @ |B| (Higham, 2002, section 3.5)."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    bound = (a.shape[1] + 2) * np.finfo(result.dtype).eps * size
    wrong = ~(np.abs(result - exact) <= bound)
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} wrong, first at {np.argwhere(wrong)[0]}"


def guarded(shape: tuple[int, int], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A matrix in the middle of a larger one, all of it NaN."""
    rows, columns = shape
    whole = np.full((rows + 2 * GUARD, columns + 2 * GUARD), np.nan, DTYPES[dtype])
    return whole, whole[GUARD : GUARD + rows, GUARD : GUARD + columns]


def assert_untouched(whole: np.ndarray, shape: tuple[int, int]) -> None:
    rest = whole.copy()
    rest[GUARD : GUARD + shape[0], GUARD : GUARD + shape[1]] = np.nan
    assert np.isnan(rest).all()


def multiply_guarded(gemm: Gemm, a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    shape = a.shape[0], b.shape[1]
    whole, c = guarded(shape, dtype)
    gemm(a, b, c)
    assert_untouched(whole, shape)
    assert_product(c, a, b)
    return c


# Around every edge there is: tile heights 6 and 8, widths up to 64, blocks of 8 rows, 16 lanes, 512 steps.
EDGES = [
    *[(m, 65, 9) for m in range(1, 15)],
    *[(7, n, 17) for n in (1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 128, 131)],
    *[(5, 19, k) for k in (0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1031)],
    *[(13, 67, k) for k in (0, 1, 257, 513, 1031)],
    *[(1, n, k) for n in (1, 2, 16, 17, 97, 4099) for k in (0, 1, 7, 8, 9, 300)],
    *[(m, 1, k) for m in (2, 16, 17, 300) for k in (0, 1, 33, 600)],
    *[(m, n, 40) for m, n in ((61, 389), (128, 512), (193, 64), (6, 800), (12, 777))],
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("machine", machines)
def test_products_are_right_at_every_edge_and_nothing_else_is_written(machine: str, dtype: str) -> None:
    for m, n, k in EDGES:
        multiply_guarded(compiled(machine, dtype), random((m, k), dtype), random((k, n), dtype, 1), dtype)


@pytest.mark.parametrize("machine", machines)
def test_large_products_are_right(machine: str) -> None:
    for m, n, k in ((301, 1031, 1100), (5, 1500, 1400), (8, 1200, 1031), (2, 1501, 1001), (3, 2100, 1030)):
        multiply_guarded(compiled(machine, "f32"), random((m, k), "f32"), random((k, n), "f32", 1), "f32")


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (0, 0, 0), (0, 5, 0)])
def test_empty_results_write_nothing(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    multiply_guarded(compiled("host", "f32"), random((m, k), "f32"), random((k, n), "f32"), "f32")


def as_is(x: np.ndarray) -> np.ndarray:
    return x


def transposed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.T).T


def spread(x: np.ndarray) -> np.ndarray:
    wide = np.full((x.shape[0] * 2, x.shape[1] * 3), np.nan, x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


def backwards(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]


def rows_backwards(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x[::-1])[::-1]


def same_rows(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x[:1], x.shape)


def same_columns(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x[:, :1], x.shape)


def one_value(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x[0, 0], x.shape)


LAYOUTS: list[Callable[[np.ndarray], np.ndarray]] = [
    *(as_is, transposed, spread, backwards, rows_backwards, same_rows, same_columns, one_value)
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("machine", machines)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_may_have_any_strides(layout: Callable[[np.ndarray], np.ndarray], machine: str, dtype: str) -> None:
    for m, n, k in ((1, 83, 70), (3, 83, 70), (5, 150, 515), (8, 49, 33), (29, 131, 70), (14, 1, 50)):
        a, b = random((m, k), dtype), random((k, n), dtype, 1)
        gemm = compiled(machine, dtype)
        multiply_guarded(gemm, layout(a), b, dtype)
        multiply_guarded(gemm, a, layout(b), dtype)
        multiply_guarded(gemm, layout(a), layout(b), dtype)


@pytest.mark.parametrize("machine", machines)
@pytest.mark.parametrize("k", [0, 40, 1100])
@pytest.mark.parametrize("layout", [transposed, spread, backwards, rows_backwards])
def test_the_result_may_have_any_strides(layout: Callable[[np.ndarray], np.ndarray], machine: str, k: int) -> None:
    for m, n in ((1, 83), (83, 1), (3, 70), (29, 131)):
        a, b = random((m, k), "f32"), random((k, n), "f32", 1)
        c = layout(np.full((m, n), np.nan, np.float32))
        assert_product(compiled(machine, "f32")(a, b, c), a, b)
    if layout is spread:
        assert c.base is not None
        holes = np.ones(c.base.shape, bool)
        holes[::2, ::3] = False
        assert np.isnan(c.base[holes]).all()


def fenced(x: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy of `x`, laid out alike, that touches memory which must not be read: after its end, or before its start."""
    order = "F" if x.flags.f_contiguous and not x.flags.c_contiguous else "C"
    page = mmap.PAGESIZE
    inner = -(-max(x.nbytes, 1) // page) * page
    region = mmap.mmap(-1, inner + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(region))
    for fence in (start, start + page + inner):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) == 0
    offset = page + (inner - x.nbytes if at_end else 0)
    copy = np.frombuffer(region, x.dtype, x.size, offset).reshape(x.shape, order=order)
    copy[...] = x
    return copy


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("machine", machines)
def test_nothing_outside_the_operands_is_read(machine: str, at_end: bool) -> None:
    shapes = ((1, 37, 21), (3, 37, 21), (4, 16, 50), (5, 37, 21), (6, 64, 9), (8, 48, 30), (8, 50, 30), (20, 100, 33))
    far = ((3, 1001, 1031), (8, 1024, 1000))
    for m, n, k in (*shapes, *far):
        for a_layout in (as_is, transposed):
            for b_layout in (as_is, transposed):
                a, b = random((m, k), "f32"), random((k, n), "f32", 1)
                c = fenced(np.full((m, n), np.nan, np.float32), at_end)
                fenced_a, fenced_b = fenced(a_layout(a), at_end), fenced(b_layout(b), at_end)
                assert_product(compiled(machine, "f32")(fenced_a, fenced_b, c), a, b)


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_results_are_the_same_to_the_last_bit_for_every_number_of_threads(threads: int) -> None:
    for m, n, k in (
        (1, 999, 300),
        (4, 77, 64),
        (8, 1500, 1100),
        (300, 20, 600),
        (37, 700, 530),
        (2, 3, 4),
        (64, 64, 64),
    ):
        for layout in (as_is, transposed):
            a, b = random((m, k), "f32"), layout(random((k, n), "f32", 1))
            one = compiled("host", "f32")(a, b, np.full((m, n), np.nan, np.float32))
            many = multiply_guarded(compiled("host", "f32", threads), a, b, "f32")
            np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scratch_is_enough_and_its_size_does_not_depend_on_the_operands(dtype: str) -> None:
    gemm = Gemm(HOST, dtype, threads=2)
    size = scratch_bytes(HOST, dtype, 2)
    buffer = np.full(size + 64 + 4096, 0xA5, np.uint8)
    start = -buffer.ctypes.data % 64
    gemm.scratch = buffer[start:]
    for m, n, k in ((200, 1200, 1200), (5, 1500, 1500), (100, 100, 3000)):
        for layout in (as_is, transposed, spread):
            a, b = layout(random((m, k), dtype)), layout(random((k, n), dtype, 1))
            assert_product(gemm(a, b, np.empty((m, n), DTYPES[dtype])), a, b)
    assert (buffer[:start] == 0xA5).all()
    assert (buffer[start + size :] == 0xA5).all()
    assert (buffer[start : start + size] != 0xA5).any()


def test_not_a_number_and_infinity_go_where_they_must() -> None:
    a, b = np.ones((9, 70), np.float32), np.ones((70, 80), np.float32)
    a[3, 5], b[7, 11] = np.nan, np.inf
    c = compiled("host", "f32")(a, b, np.zeros((9, 80), np.float32))
    assert np.isnan(c[3]).all()
    assert np.isinf(np.delete(c[:, 11], 3)).all()
    assert (np.delete(np.delete(c, 3, 0), 11, 1) == 70).all()


def bias_and_relu(b: object, store: Store, value: object) -> object:
    """max(value + bias[column] + 1000 * row, 0): `context` is the bias."""
    element_bytes = 4
    bias = load_vector(b, at(b, store.context, b.mul(store.column, int_(element_bytes))), value.type, mask=store.mask)
    from kina.native.build import intrinsic, splat, type_suffix, zeros

    lanes = value.type.count
    row = splat(b, b.sitofp(b.mul(store.row, int_(1000)), value.type.element), lanes)
    total = b.fadd(b.fadd(value, bias), row)
    return intrinsic(b, "maxnum", value.type, [total, zeros(value.type)], [type_suffix(value.type)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("machine", machines)
def test_an_epilogue_is_applied_once_to_every_element(machine: str, threads: int) -> None:
    gemm = Gemm(machines[machine], "f32", threads=threads, epilogue=bias_and_relu)
    for m, n, k in (
        (1, 83, 40),
        (4, 97, 40),
        (29, 131, 1100),
        (5, 70, 0),
        (17, 1, 9),
        (8, 1200, 1031),
        (3, 1500, 1100),
    ):
        for b_layout in (as_is, transposed):
            for c_layout in (as_is, transposed, spread):
                a, b = random((m, k), "f32"), b_layout(random((k, n), "f32", 1))
                bias = random((1, n), "f32", 2)[0].copy()
                c = gemm(a, b, c_layout(np.full((m, n), np.nan, np.float32)), context=bias.ctypes.data)
                rows = 1000.0 * np.arange(m)[:, None]
                exact = np.maximum(a.astype(np.float64) @ b + bias + rows, 0)
                np.testing.assert_allclose(c, exact, rtol=1e-5, atol=2e-4)


def test_gemm_compiles_for_other_machines() -> None:
    for machine in (Machine.neon(), Machine.avx512(), Machine.sse2()):
        for dtype in DTYPES:
            assert compile_object(gemm_ir(machine, Form.plain(dtype)), machine)[:4] == b"\x7fELF"


@pytest.mark.parametrize("machine", [Machine.avx512(), Machine.avx2(), Machine.neon(), Machine.sse2()])
@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulators_fit_in_the_registers(machine: Machine, dtype: str) -> None:
    tiling = Tiling.of(machine, dtype)
    assert tiling.rows * tiling.vectors + tiling.vectors + 1 <= machine.vector_registers
    assert tiling.tall_rows * tiling.tall_vectors + tiling.tall_vectors + 1 <= machine.vector_registers
    assert tiling.packed_b_bytes <= machine.l2
    assert tiling.scratch_bytes % 64 == 0


def test_shapes_that_do_not_fit_are_refused_by_the_driver() -> None:
    with pytest.raises(KinaError, match="cannot multiply"):
        compiled("host", "f32")(np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones((2, 5), np.float32))


def test_programs_share_one_gemm_that_is_linked_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINA_CACHE_DIR", str(tmp_path))
    first = gemm_symbols(HOST, [Form.plain("f32"), Form.plain("f64")])
    assert gemm_symbols(HOST, [Form.plain("f32")])["kina_gemm_f32"] == first["kina_gemm_f32"]
    assert len(set(first.values())) == 2


def test_the_declaration_in_text_is_that_of_the_emitted_function() -> None:
    module = gemm_ir(HOST, Form.plain("f32"))
    (line,) = (line for line in module.splitlines() if line.startswith("define") and '@"kina_gemm_f32"' in line)
    types = re.findall(r"(ptr|i64) %", line)
    assert gemm_declaration(Form.plain("f32")) == f"declare void @kina_gemm_f32({', '.join(types)})"
