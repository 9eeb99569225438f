"""Gemm of operands that are stored as halves or in quantised blocks, against NumPy: all paths, strides, threads."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from kina.native.engine import assembly, compile_object
from kina.native.forms import Form
from kina.native.gemm_driver import Gemm
from kina.native.gemm_library import gemm_ir
from kina.native.machine import Machine
from kina.types import DType
from quantised_arrays import QUANTISED, extreme_blocks, numbers_of, quantised

HOST = Machine.host()
MACHINES = {"host": HOST}
if HOST.has("avx2") and HOST.has("fma"):
    MACHINES["avx2"] = Machine.avx2()
if HOST.architecture == "x86_64":
    MACHINES["sse2"] = Machine.sse2()

HALVES = (DType.BF16, DType.F16)
PAIRS = [(DType.F32, half) for half in HALVES] + [(half, DType.F32) for half in HALVES] + [(h, h) for h in HALVES]
rng = np.random.default_rng(5)


@cache
def compiled(machine: str, left: DType, right: DType, threads: int = 2) -> Gemm:
    return Gemm(MACHINES[machine], "f32", left=str(left).lower(), right=str(right).lower(), threads=threads)


def assert_product(result: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Within the error bound of any order of summation: k * eps * |A| @ |B|."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert (np.abs(result - exact) <= (a.shape[1] + 4) * np.finfo(np.float32).eps * size).all()


def product(gemm: Gemm, a: np.ndarray, b: np.ndarray, m: int, n: int) -> np.ndarray:
    """The product, in the middle of an array of which nothing else may change."""
    whole = np.full((m + 4, n + 6), np.nan, np.float32)
    gemm(a, b, whole[2 : m + 2, 3 : n + 3])
    found = whole[2 : m + 2, 3 : n + 3].copy()
    whole[2 : m + 2, 3 : n + 3] = np.nan
    assert np.isnan(whole).all()
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", QUANTISED, ids=str)
def test_a_matrix_in_blocks_is_multiplied_by_its_numbers(machine, dtype):
    gemm = compiled(machine, DType.F32, dtype)
    for m in (0, 1, 2, 3, 4, 5, 17, 70):
        for n in (0, 1, 3, 17, 64, 65, 131):
            for k in (0, 32, 96, 1056):
                x = rng.standard_normal((m, k)).astype(np.float32)
                w = quantised(rng.standard_normal((n, k)), dtype)
                assert_product(product(gemm, x, w.T, m, n), x, numbers_of(w, dtype).T)


@pytest.mark.parametrize("dtype", QUANTISED, ids=str)
def test_every_code_of_a_format_is_read(dtype):
    gemm = compiled("host", DType.F32, dtype)
    w = extreme_blocks(dtype, 40 * 6, 3).reshape(40, 6)
    for m in (1, 9):
        x = rng.standard_normal((m, 192)).astype(np.float32)
        assert_product(product(gemm, x, w.T, m, 40), x, numbers_of(w, dtype).T)


@pytest.mark.parametrize("dtype", [DType.Q8_0, DType.Q4_1], ids=str)
def test_a_matrix_in_blocks_may_stand_on_the_left(dtype):
    gemm = compiled("host", dtype, DType.F32)
    for m, k, n in ((0, 32, 3), (1, 32, 1), (65, 64, 1), (33, 96, 2), (20, 544, 40)):
        w = quantised(rng.standard_normal((m, k)), dtype)
        x = rng.standard_normal((k, n)).astype(np.float32)
        assert_product(product(gemm, w, x, m, n), numbers_of(w, dtype), x)


@pytest.mark.parametrize("m", [1, 3, 20])
def test_blocks_may_lie_apart_backwards_and_at_odd_addresses(m):
    dtype = DType.Q4_1
    gemm = compiled("host", DType.F32, dtype)
    w = quantised(rng.standard_normal((24, 160)), dtype)
    wide = np.zeros((48, 11), dtype.numpy)
    wide[::2, 1::2] = w
    odd = np.zeros(w.nbytes + 1, np.uint8)
    odd[1:] = w.view(np.uint8).ravel()
    x = rng.standard_normal((m, 160)).astype(np.float32)
    want = gemm(x, w.T, np.empty((m, 24), np.float32))
    for laid_out in (wide[::2, 1::2], w[::-1].copy()[::-1], odd[1:].view(dtype.numpy).reshape(24, 5), w.copy("F")):
        np.testing.assert_array_equal(gemm(x, laid_out.T, np.empty((m, 24), np.float32)), want)
    for strided in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[:, ::-1].copy()[:, ::-1]):
        found = gemm(strided, w.T, np.empty((m, 24), np.float32))
        assert_product(found, x, numbers_of(w, dtype).T)
    turned = np.empty((24, m), np.float32).T
    assert_product(gemm(x, w.T, turned), x, numbers_of(w, dtype).T)


@pytest.mark.parametrize("dtype", [DType.Q8_0, DType.Q4_0, DType.Q5_1, DType.BF16], ids=str)
@pytest.mark.parametrize("m", [1, 2, 30])
def test_the_result_is_the_same_for_every_number_of_threads(dtype, m):
    x = rng.standard_normal((m, 320)).astype(np.float32)
    values = rng.standard_normal((203, 320))
    w = quantised(values, dtype) if dtype.block else values.astype(dtype.numpy)
    found = [compiled("host", DType.F32, dtype, n)(x, w.T, np.empty((m, 203), np.float32)) for n in (1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("left", "right"), PAIRS, ids=str)
def test_halves_are_multiplied_as_what_they_are_in_f32(machine, left, right):
    gemm = compiled(machine, left, right)
    for m in (0, 1, 2, 5, 40):
        for n in (0, 1, 3, 65):
            for k in (0, 1, 33, 530):
                a, b = rng.standard_normal((m, k)).astype(left.numpy), rng.standard_normal((k, n)).astype(right.numpy)
                for x in (a, np.asfortranarray(a)):
                    for y in (b, np.asfortranarray(b), np.repeat(b, 2, axis=1)[:, ::2]):
                        found = product(gemm, x, y, m, n)
                        assert_product(found, a.astype(np.float32), b.astype(np.float32))


@pytest.mark.parametrize("machine", MACHINES)
def test_every_f16_is_widened_exactly(machine):
    bits = np.arange(65536, dtype=np.uint16)
    x = bits[(bits & 0x7C00) != 0x7C00].view(np.float16)  # infinity and NaN times 0 are not what is asked here
    one = np.ones((1, 1), np.float32)
    for row in (True, False):  # the row goes through vectors, the column through single elements
        shape = (1, x.size) if row else (x.size, 1)
        a, b = (one, x.reshape(shape)) if row else (x.reshape(shape), one)
        gemm = compiled(machine, *(DType.of_numpy(v.dtype) for v in (a, b)))
        found = gemm(a, b, np.empty(shape, np.float32))
        np.testing.assert_array_equal(found.ravel(), x.astype(np.float32))


def test_mixed_gemm_compiles_for_every_machine():
    for machine in (Machine.avx512(), Machine.avx2(), Machine.sse2(), Machine.neon()):
        for right in ("q8_0", "q4_1", "q5_0", "f16"):
            assert compile_object(gemm_ir(machine, Form("f32", "f32", right)), machine)[:4] == b"\x7fELF"


def test_four_bit_codes_are_looked_up_in_a_register():
    """One row times blocks: no conversion of integers, two look-ups a block, and a fused addition each."""
    text = assembly(gemm_ir(Machine.avx512(), Form("f32", "f32", "q4_1")), Machine.avx512())
    dot = text[text.index('"kina.dot":') if '"kina.dot":' in text else text.index("kina.dot:") :]
    dot = dot[: dot.index(".Lfunc_end")]
    assert dot.count("vpermps") + dot.count("vpermd") >= 10
    assert "vcvtdq2ps" not in dot
    assert dot.count("vfmadd") >= 10
