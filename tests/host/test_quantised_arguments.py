"""Quantised weights at the host boundary: blocks out of a GGUF file, bytes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from gguf_samples import weights, write_gguf

import kina
from kina.host.gguf_file import open_gguf
from kina.types import DType
from quantised_arrays import QUANTISED, numbers_of, quantised

TEXT = """
let read [T : Weight, N, K] (w : T[N, K]) : F32[N, K] = cast[F32] w
let rows [V, D, B] requires (D mod 32 = 0) (t : Q8_0[V, D]) (ids : Idx[V][B]) : F32[B, D] = gather[axis=0] t ids
let plain [N, K] (w : F32[N, K]) : F32[N, K] = w + 1.0
let fixed [N] (w : Q4_1[N, 64]) : F32[N, 64] = cast[F32] w
let integer (n : I64) (w : Q8_0[3, 32]) : F32[3, 32] = cast[F32] w
"""


@pytest.fixture(scope="module")
def module():
    return kina.compile(TEXT)


@pytest.mark.parametrize("format_", [*map(str, QUANTISED), "F32", "F16", "BF16"])
def test_a_tensor_of_a_file_is_an_argument_as_it_is_stored(tmp_path, module, format_):
    values = weights(1, 5, 64)
    file = open_gguf(write_gguf(tmp_path / "w.gguf", {"w": (values, format_)}))
    stored = file.stored("w")
    assert DType.of_numpy(stored.dtype) is DType[format_]
    assert DType[format_].shape_of(stored) == (5, 64)
    assert np.shares_memory(stored, file.data)
    for _ in range(2):  # the general way, and the quick one
        np.testing.assert_array_equal(module.read(stored), file.dequantise("w"))
    np.testing.assert_array_equal(module.read.reference(stored), file.dequantise("w"))
    assert module.read.compilations == len(module.read._instances)


def test_a_format_without_a_dtype_is_dequantised_or_nothing(tmp_path):
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "k.gguf", "llama")
    writer.add_tensor("w", np.zeros((1, 210), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q6_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(kina.KinaError, match="stored as Q6_K, which is no dtype of Kina; `dequantise` gives it as F32"):
        open_gguf(tmp_path / "k.gguf").stored("w")
    assert open_gguf(tmp_path / "k.gguf").dequantise("w").shape == (1, 256)


def test_rows_of_bytes_are_rows_of_blocks(module):
    w = quantised(weights(2, 7, 96), DType.Q8_0)
    raw = w.view(np.uint8).reshape(7, -1)
    ids = np.array([6, 0, 6])
    want = numbers_of(w, DType.Q8_0)[ids]
    np.testing.assert_array_equal(module.rows(raw, ids), want)
    np.testing.assert_array_equal(module.rows(np.asfortranarray(raw), ids), want)


def test_what_is_no_array_of_the_right_blocks_is_refused(module):
    q4, q8 = (quantised(weights(3, 5, 64), d) for d in (DType.Q4_1, DType.Q8_0))
    cases = [
        (lambda: module.fixed(q8), ["argument w has the wrong dtype", "expected Q4_1", "got Q8_0", "stored(name)"]),
        (lambda: module.fixed(q4.astype(q4.dtype)[:, :1]), ["wrong shape in axis 1", "[5, 32]"]),
        (lambda: module.fixed(q4[0]), ["has 1 axis, not 2", "got      [64]"]),
        (lambda: module.fixed(weights(0, 5, 64)), ["got F32", "pass Q4_1 blocks"]),
        (lambda: module.fixed([[1.0] * 64]), ["made of numbers", "pass Q4_1 blocks"]),
        (lambda: module.fixed(1.0), ["made of numbers"]),
        (lambda: module.fixed(np.zeros((5, 39), np.uint8)), ["no whole number of Q4_1 blocks, of 20 bytes"]),
        (lambda: module.plain(q4), ["expected F32", "got Q4_1", "declare w as Q4_1[...]", "cast[F32]"]),
        (lambda: module.integer(q8, q8), ["argument n", "got Q8_0"]),
        (lambda: module.read(np.zeros((2, 32), np.int8)), ["T would be I8, and has to be Weight"]),
    ]
    for call, texts in cases:
        with pytest.raises(kina.KinaError) as error:
            call()
        for text in texts:
            assert text in str(error.value), (text, str(error.value))


def test_empty_tensors_have_shapes(module):
    assert module.read(np.zeros((0, 2), DType.Q4_0.numpy)).shape == (0, 64)
    assert module.read(np.zeros((3, 0), DType.Q4_0.numpy)).shape == (3, 0)
