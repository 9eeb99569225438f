"""GGUF files: what is read is what the gguf package means, and what is damaged is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf_samples import FORMATS, quantised, small_model, weights, write_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kina.diagnostics import KinaError
from kina.host.gguf_file import open_gguf


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("gguf") / "small.gguf")


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(KinaError) as caught:
        open_gguf(path)
    return str(caught.value)


@pytest.mark.parametrize("format_", FORMATS)
def test_dequantised_values_are_those_of_the_gguf_package(model, format_):
    file = open_gguf(model)
    got = file.dequantise(f"w.{format_}")
    packed = quantised(weights(FORMATS.index(format_), 3, 64), format_)
    want = gguf.quants.dequantize(packed, gguf.GGMLQuantizationType[format_])
    assert got.dtype == np.float32
    assert got.shape == (3, 64)
    np.testing.assert_array_equal(got, want)
    assert file.tensors[f"w.{format_}"].quantisation == format_
    assert file.tensors[f"w.{format_}"].nbytes == packed.nbytes


def test_a_q4_1_block_decoded_by_hand(tmp_path):
    # One block: scale 0.5, minimum -1, then 16 bytes; the low halves are values 0..15, the high ones 16..31.
    block = struct.pack("<ee", 0.5, -1.0) + bytes(i | (15 - i) << 4 for i in range(16))
    path = write_gguf(tmp_path / "hand.gguf", {"w": (np.zeros((1, 32), np.float32), "Q4_1")})
    content = path.read_bytes()
    path.write_bytes(content[: open_gguf(path).tensors["w"].offset] + block)
    want = [-1 + 0.5 * i for i in range(16)] + [-1 + 0.5 * (15 - i) for i in range(16)]
    np.testing.assert_array_equal(open_gguf(path).dequantise("w"), [want])


def test_metadata_is_read_with_its_types(model):
    file = open_gguf(model)
    assert (file.architecture, file.block_count, file.embedding_length) == ("llama", 2, 64)
    assert file.rms_epsilon == pytest.approx(1e-5)
    assert file.chat_template == "{{ messages }}"
    assert file.strings("tokenizer.ggml.tokens") == ("a", "b", "ab")
    assert file.metadata["tokenizer.ggml.scores"] == (1, 2, 3)


def test_a_linear_weight_is_a_transposed_view_of_the_file(model):
    file = open_gguf(model)
    weight = file.linear("w.F32")
    assert weight.shape == (64, 3)
    assert weight.strides == (4, 256)
    assert np.shares_memory(weight, file.data)


@pytest.mark.parametrize("format_", FORMATS)
def test_rows_of_a_table_are_the_rows_of_the_whole(model, format_):
    file = open_gguf(model)
    whole = file.dequantise(f"w.{format_}")
    ids = np.array([[2, 0], [2, 2]])
    np.testing.assert_array_equal(file.rows(f"w.{format_}", ids), whole[ids])
    assert file.rows(f"w.{format_}", []).shape == (0, 64)


def test_tensors_of_every_rank_keep_their_shape(tmp_path):
    shapes = {"one": (5,), "three": (2, 3, 4), "four": (2, 1, 3, 4)}
    tensors = {name: (weights(1, *shape), "F32") for name, shape in shapes.items()}
    file = open_gguf(write_gguf(tmp_path / "ranks.gguf", tensors))
    for name, (values, _) in tensors.items():
        np.testing.assert_array_equal(file.dequantise(name), values)
    with pytest.raises(KinaError, match=r"three has the shape \[2, 3, 4\]; a linear weight has two axes"):
        file.linear("three")


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([0, 3], r"the id 3 at position \[1\] is outside \[0, 3\)"),
        ([[0], [-1]], r"the id -1 at position \[1, 0\]"),
        ([0.5], "chosen by integers, not by float64"),
    ],
)
def test_a_bad_row_is_named_with_its_position(model, ids, problem):
    with pytest.raises(KinaError, match=problem):
        open_gguf(model).rows("w.F32", ids)


def test_names_that_are_not_there_get_an_error_with_what_is_near(model):
    file = open_gguf(model)
    with pytest.raises(KinaError, match=r"no tensor w.Q8_1 .* did you mean w.Q8_0"):
        file.dequantise("w.Q8_1")
    with pytest.raises(KinaError, match=r"the metadata key tokenizer\.ggml\.merges is missing"):
        file.strings("tokenizer.ggml.merges")
    with pytest.raises(KinaError, match=r"tokenizer\.ggml\.scores is no array of strings"):
        file.strings("tokenizer.ggml.scores")


def test_a_format_without_f32_meaning_is_refused_by_name(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "int.gguf", "llama")
    writer.add_tensor("ids", np.arange(4, dtype=np.int32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(KinaError, match="ids is stored as I32, which cannot be read as F32"):
        open_gguf(tmp_path / "int.gguf").dequantise("ids")


def test_what_is_no_gguf_file_is_said_to_be_none(tmp_path):
    with pytest.raises(KinaError, match=r"missing\.gguf: cannot be read: No such file"):
        open_gguf(tmp_path / "missing.gguf")
    with pytest.raises(KinaError, match="a directory, not a GGUF file"):
        open_gguf(tmp_path)
    path = tmp_path / "other"
    assert "it is empty" in refused(path, b"")
    assert "does not begin with the letters GGUF" in refused(path, b"PK\x03\x04 and more")
    assert "version 1" in refused(path, b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    assert "big-endian" in refused(path, b"GGUF" + struct.pack(">IQQ", 3, 0, 0))


def header(*parts: bytes, tensors: int = 0, keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + b"".join(parts)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def tensor(name: bytes, dims: tuple[int, ...], type_: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, type_, offset)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (header(tensors=2**63), "the number of tensors is 9223372036854775808, more than the 8 bytes"),
        (header(keys=2**40), "the number of metadata entries is 1099511627776"),
        (header(struct.pack("<Q", 2**63), b"key....", keys=1), "a metadata key takes 9223372036854775808 bytes"),
        (header(text(b"\xff\xfe"), bytes(16), keys=1), "a metadata key is not UTF-8"),
        (header(text(b"k"), struct.pack("<I", 77), bytes(8), keys=1), "'k' has the unknown type 77"),
        (header(text(b"k"), struct.pack("<IIQ", 9, 4, 2**62), keys=1), "the length of the metadata value 'k'"),
        (header(text(b"k"), struct.pack("<IIQ", 9, 8, 2**62), keys=1), "the length of the metadata value 'k'"),
        (header(text(b"k"), struct.pack("<IIQ", 9, 9, 1), keys=1), "an array of arrays"),
        (header(*[text(b"k") + struct.pack("<II", 4, 1)] * 2, keys=2), "the metadata key 'k' occurs twice"),
        (header(text(b"general.alignment"), struct.pack("<II", 4, 3), keys=1), "general.alignment is 3"),
        (header(text(b"general.alignment"), struct.pack("<II", 4, 0), keys=1), "general.alignment is 0"),
        (header(tensor(b"w", (1,) * 5, 0, 0), tensors=1), "'w' has 5 axes"),
        (header(tensor(b"w", (4,), 999, 0), tensors=1), "'w' has the unknown type 999"),
        (header(tensor(b"w", (4,), 8, 0), tensors=1), "no whole number of Q8_0 blocks"),
        (header(tensor(b"w", (2**40, 2**40), 0, 0), tensors=1), "more than can be addressed"),
        (header(tensor(b"w", (0, 2**62), 0, 0), tensors=1), "more than can be addressed"),
        (header(tensor(b"w", (4,), 0, 7), tensors=1), "not aligned to 32 bytes"),
        (header(tensor(b"w", (4,), 0, 2**62), tensors=1), "is it cut off?"),
        (header(*[tensor(b"w", (1,), 0, 0)] * 2, bytes(64), tensors=2), "the tensor 'w' occurs twice"),
    ],
)
def test_a_header_that_lies_is_refused_with_the_place(tmp_path, content, problem):
    message = refused(tmp_path / "hostile.gguf", content)
    assert problem in message
    assert "(at byte " in message


def test_a_file_cut_off_anywhere_is_refused(tmp_path, model):
    content = model.read_bytes()
    path = tmp_path / "cut.gguf"
    last = open_gguf(model).tensors["w.Q4_1"]
    for size in range(1, last.offset, 3):
        assert "cut.gguf: " in refused(path, content[:size])
    assert "is it cut off?" in refused(path, content[: last.offset + last.nbytes - 1])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 700), value=st.integers(0, 255))
def test_a_changed_byte_in_the_header_never_does_worse_than_an_error(tmp_path, model, at, value):
    content = bytearray(model.read_bytes())
    content[at] = value
    path = tmp_path / "flipped.gguf"
    path.write_bytes(content)
    try:
        file = open_gguf(path)
        for name in file.tensors:
            file.dequantise(name)
    except KinaError as error:
        assert "flipped.gguf: " in str(error)


def test_files_of_one_byte_alignment_give_aligned_arrays(tmp_path):
    values = np.arange(4, dtype="<f4").tobytes()
    alignment = text(b"general.alignment") + struct.pack("<II", 4, 1)
    path = tmp_path / "bytes.gguf"
    path.write_bytes(header(alignment, tensor(b"odd", (4,), 0, 1), tensors=1, keys=1) + b"?" + values)
    got = open_gguf(path).dequantise("odd")
    assert got.flags.aligned
    np.testing.assert_array_equal(got, [0, 1, 2, 3])


def test_tensors_without_elements_are_empty_arrays(tmp_path):
    path = tmp_path / "empty.gguf"
    path.write_bytes(header(tensor(b"none", (0, 3), 0, 0), tensor(b"scalar", (), 0, 0), tensors=2) + bytes(64))
    file = open_gguf(path)
    assert file.dequantise("none").shape == (3, 0)
    assert file.dequantise("scalar").shape == ()
