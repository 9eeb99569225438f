"""Weights bound to records by name, from mappings, safetensors and GGUF files; every fault is said at once."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from gguf_samples import weights, write_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kina
from kina import KinaError
from kina.host.weight_file import open_weights
from kina.types import DType

PROGRAM = """
type Layer [D, F] = { norm : F32[D], up : F32[F, D] }
type Model [V, D, F, N] = { table : F32[V, D], layers : List[N, Layer[D, F]], out : F32[D] }
type Heads [D, H, E] = { q : F32[H * E, D] }
type Half [D, T : Float] = { w : T[D], bias : F32[D] }

let total [V, D, F, N] (m : Model[V, D, F, N]) : F32 =
  reduce[sum, axes=all] m.table + reduce[sum, axes=all] m.out
  + reduce[sum, axes=all]
      (for i < N yield reduce[sum, axes=all] m.layers[i].up + reduce[sum, axes=all] m.layers[i].norm)
"""


@pytest.fixture(scope="module")
def module():
    return kina.compile(PROGRAM, name="model.kina", backend="reference")


def model(layers: int = 3, suffix: str = "") -> dict[str, np.ndarray]:
    """Tensors of a Model with V = 5, D = 4, F = 6, by the paths of its fields."""
    found = {"table": weights(1, 5, 4), "out": weights(2, 4)}
    for n in range(layers):
        found[f"layers.{n}.norm"] = weights(10 + n, 4)
        found[f"layers.{n}.up"] = weights(20 + n, 6, 4)
    return {name + suffix: array for name, array in found.items()}


def sum_of(tensors: dict[str, np.ndarray]) -> float:
    return float(sum(array.sum(dtype=np.float64) for array in tensors.values()))


def refusal(call) -> list[str]:
    with pytest.raises(KinaError) as caught:
        call()
    return str(caught.value).splitlines()


def safetensors(path: Path, tensors: dict[str, np.ndarray]) -> Path:
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file(tensors, path)
    return path


# ---------------------------------------------------------------- what fits


@pytest.mark.parametrize("suffix", ["", ".weight"])
def test_fields_are_bound_by_their_paths_and_lists_become_one_array(module, suffix):
    tensors = model(suffix=suffix)
    bound = module.Model.bind(tensors)
    assert bound["layers"]["up"].shape == (3, 6, 4)
    np.testing.assert_array_equal(bound["layers"]["up"][2], tensors["layers.2.up" + suffix])
    assert bound["table"] is tensors["table" + suffix]
    assert module.total(bound) == pytest.approx(sum_of(tensors), rel=1e-5)


def test_other_names_come_from_a_mapping_with_stars_or_from_a_function(module):
    ours = model()
    theirs = {name.replace("layers", "model.h").replace("norm", "ln.scale"): array for name, array in ours.items()}
    by_mapping = module.Model.bind(theirs, names={"layers": "model.h.x", "layers.*": "model.h.*",
                                                  "layers.*.norm": "model.h.*.ln.scale"})  # fmt: skip
    by_function = module.Model.bind(theirs, names=lambda p: p.replace("layers", "model.h").replace("norm", "ln.scale"))
    for bound in (by_mapping, by_function):
        assert module.total(bound) == pytest.approx(sum_of(ours), rel=1e-5)


def test_one_tensor_may_be_two_fields(module):
    text = "type Tied [V, D] = { embedding : F32[V, D], output : F32[V, D] }"
    tied = kina.compile(text).Tied.bind({"embedding": weights(0, 3, 2)}, names={"output": "embedding"})
    assert tied["embedding"] is tied["output"]


def test_a_list_of_no_items_is_empty_where_the_other_shapes_say_its_sizes(module):
    assert module.Model.bind(model(layers=0), F=7)["layers"]["up"].shape == (0, 7, 4)


def test_sizes_that_the_shapes_leave_open_are_given_by_name(module):
    tensors = {"q": weights(0, 6, 4)}
    assert refusal(lambda: module.Heads.bind(tensors)) == [
        "the shapes in the mapping do not say what H, E of Heads are",
        "  give by name: Heads.load(..., H=...)",
    ]
    assert module.Heads.bind(tensors, H=3)["q"] is tensors["q"]
    (_, line) = refusal(lambda: module.Heads.bind(tensors, H=4))
    assert line == "  wrong shape: q: wanted F32[E * H, D] = F32[?, 4], has [6, 4]"


def test_a_dtype_binder_takes_the_format_of_the_file_and_convert_changes_it(module):
    tensors = {"w": weights(0, 4).astype(np.float16), "bias": weights(1, 4).astype(np.float16)}
    assert refusal(lambda: module.Half.bind(tensors)) == [
        "the mapping does not fit Half[D, T : Float]",
        "  wrong format: bias: wanted F32[D] = F32[4], has F16",
        "  help: convert=True reads what is stored in another format as the record's float dtype (a copy)",
    ]
    bound = module.Half.bind(tensors, convert=True)
    assert (bound["w"].dtype, bound["bias"].dtype) == (np.float16, np.float32)
    assert module.Half.bind(tensors, convert=True, T="BF16")["w"].dtype == ml_dtypes.bfloat16


def test_what_is_not_wanted_is_ignored_by_pattern(module):
    tensors = model() | {"rope.inv_freq": weights(0, 2)}
    assert "layers" in module.Model.bind(tensors, ignore=["*.inv_freq"])


# ---------------------------------------------------------------- what does not


def test_every_fault_is_listed_with_both_shapes_and_the_nearest_name(module):
    tensors = model()
    tensors["layers.1.upp"] = tensors.pop("layers.1.up")
    tensors["layers.2.norm"] = weights(0, 5)
    tensors["out"] = tensors["out"].astype(np.int32)
    assert refusal(lambda: module.Model.bind(tensors)) == [
        "the mapping does not fit Model[V, D, F, N]",
        "  missing: layers.1.up: wanted F32[F, D] = F32[6, 4]; nearest name: layers.1.upp",
        "  wrong shape: layers.2.norm: wanted F32[D] = F32[4], has [5]",
        "  wrong format: out: wanted F32[D] = F32[4], has I32",
        "  help: convert=True reads what is stored in another format as the record's float dtype (a copy)",
        "  extra: layers.1.upp: has F32[6, 4]; nearest name: layers.1.up",
    ]


def test_integers_are_never_converted_to_floats(module):
    tensors = model() | {"out": np.zeros(4, np.int64)}
    lines = refusal(lambda: module.Model.bind(tensors, convert=True))
    assert lines[1] == "  wrong format: out: wanted F32[D] = F32[4], has I64"


def test_a_wrong_rank_is_a_wrong_shape(module):
    lines = refusal(lambda: module.Model.bind(model() | {"out": weights(0, 4, 1)}))
    assert lines[1:] == ["  wrong shape: out: wanted F32[D] = F32[4], has [4, 1]"]


def test_the_shape_that_most_tensors_have_is_the_right_one(module):
    lines = refusal(lambda: module.Model.bind(model() | {"table": weights(0, 5, 3)}))
    assert lines[1:] == ["  wrong shape: table: wanted F32[V, D] = F32[5, 4], has [5, 3]"]


def test_a_gap_in_a_list_is_said(module):
    tensors = {name: array for name, array in model().items() if not name.startswith("layers.1.")}
    lines = refusal(lambda: module.Model.bind(tensors))
    assert [line.split(":")[1] for line in lines[1:]] == [" layers.2.norm", " layers.2.up"]
    lines = refusal(lambda: module.Model.bind(tensors, N=3))
    assert [line.split(": wanted")[0] for line in lines[1:]] == ["  missing: layers.1.norm", "  missing: layers.1.up"]


def test_a_name_that_the_file_calls_otherwise_is_shown_with_both(module):
    lines = refusal(lambda: module.Model.bind(model(), names={"out": "lm_head"}))
    assert lines[1].startswith("  missing: out (in the file: lm_head): wanted F32[D] = F32[4]")


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"X": 1}, "Heads has no size X; it has: D, H, E"),
        ({"H": -1}, "the size H has to be an int >= 0, got -1"),
        ({"H": True}, "the size H has to be an int >= 0, got True"),
    ],
)
def test_sizes_that_are_none_are_refused(module, given_, problem):
    assert problem in refusal(lambda: module.Heads.bind({}, **given_))[0]


def test_a_dtype_that_is_none_is_refused(module):
    assert refusal(lambda: module.Half.bind({}, T="I64")) == ["Half: T is a dtype of the class Float, not 'I64'"]


def test_a_name_that_the_module_has_not_finds_the_near_type(module):
    with pytest.raises(AttributeError, match="did you mean Model"):
        module.Modle  # noqa: B018


# ---------------------------------------------------------------- files


def test_a_safetensors_file_is_bound_without_a_copy(module, tmp_path):
    tensors = model()
    path = safetensors(tmp_path / "m.safetensors", tensors)
    bound = module.Model.load(path)
    assert module.total(bound) == pytest.approx(sum_of(tensors), rel=1e-5)
    assert not bound["table"].flags.writeable
    assert not bound["table"].flags.owndata


def test_several_files_hold_a_model_together(module, tmp_path):
    tensors = model()
    first = {name: array for name, array in tensors.items() if name.startswith("layers")}
    rest = {name: array for name, array in tensors.items() if name not in first}
    paths = [safetensors(tmp_path / "1.safetensors", first), safetensors(tmp_path / "2.safetensors", rest)]
    assert module.total(module.Model.load(paths)) == pytest.approx(sum_of(tensors), rel=1e-5)
    again = safetensors(tmp_path / "3.safetensors", rest)
    assert "is in" in refusal(lambda: module.Model.load([*paths, again]))[0]


def test_half_precision_is_read_as_it_is(tmp_path):
    values = {"a": weights(0, 3).astype(ml_dtypes.bfloat16), "b": weights(1, 3).astype(np.float16)}
    header = {"a": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]},
              "b": {"dtype": "F16", "shape": [3], "data_offsets": [6, 12]}}  # fmt: skip
    path = tmp_path / "half.safetensors"
    path.write_bytes(packed(header, values["a"].tobytes() + values["b"].tobytes()))
    pytest.importorskip("safetensors")
    bound = kina.compile("type R [D] = { a : BF16[D], b : F16[D] }").R.load(path)
    for name, array in values.items():
        assert bound[name].dtype == array.dtype
        np.testing.assert_array_equal(bound[name], array)


def test_a_gguf_file_is_bound_and_layers_at_equal_steps_are_a_view(module, tmp_path):
    tensors = model(suffix=".weight")
    path = write_gguf(tmp_path / "m.gguf", {name: (array, "F32") for name, array in sorted(tensors.items())})
    bound = module.Model.load(path)
    assert module.total(bound) == pytest.approx(sum_of(tensors), rel=1e-5)
    assert not bound["layers"]["up"].flags.owndata
    np.testing.assert_array_equal(bound["layers"]["up"][1], tensors["layers.1.up.weight"])


def test_quantised_tensors_are_converted_where_that_is_asked_for(module, tmp_path):
    tensors = {"w": (weights(0, 3, 32), "Q8_0")}
    path = write_gguf(tmp_path / "q.gguf", tensors)
    one = kina.compile("type One [N, D] = { w : F32[N, D] }")
    assert "  wrong format: w: wanted F32[N, D] = F32[3, 32], has Q8_0" in refusal(lambda: one.One.load(path))
    np.testing.assert_allclose(one.One.load(path, convert=True)["w"], tensors["w"][0], atol=0.02)


def test_quantised_tensors_stay_so_where_the_type_lets_them_and_several_formats_become_f32(tmp_path):
    module = kina.compile("type Two [N, D, W : Weight] = { a : W[N, D], b : W[N, D] }")
    alike = write_gguf(tmp_path / "1.gguf", {name: (weights(n, 3, 32), "Q4_0") for n, name in enumerate("ab")})
    assert module.Two.load(alike)["a"].dtype == DType.Q4_0.numpy
    mixed = write_gguf(tmp_path / "2.gguf", {"a": (weights(0, 3, 32), "Q4_0"), "b": (weights(1, 3, 32), "Q8_0")})
    assert refusal(lambda: module.Two.load(mixed))[1] == "  wrong format: W : Weight would have to be Q4_0 and Q8_0"
    assert module.Two.load(mixed, convert=True)["b"].dtype == np.float32
    assert module.Two.load(alike, convert=True, W="F16")["b"].dtype == np.float16


# ---------------------------------------------------------------- damaged files


def packed(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


HOSTILE = {
    "empty": b"",
    "short": b"\x01\x02",
    "no header": struct.pack("<Q", 1 << 62),
    "header beyond the file": packed({}, length=1000),
    "no JSON": struct.pack("<Q", 4) + b"{{{{",
    "a list": packed([1, 2]),
    "a shape that is none": packed({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)),
    "data beyond the file": packed({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, bytes(8)),
    "sizes beyond all": packed({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 16]}}, bytes(16)),
    "overlapping": packed({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                           "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}}, bytes(12)),
    "a hole": packed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                      "b": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}, bytes(12)),
    "more data than tensors": packed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, bytes(64)),
    "the end before the start": packed({"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}, bytes(12)),
    "an unknown format": packed({"a": {"dtype": "F7", "shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_safetensors_file_that_lies_is_refused(tmp_path, what):
    pytest.importorskip("safetensors")
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(HOSTILE[what])
    assert "hostile.safetensors: " in refusal(lambda: open_weights(path))[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a good file of each kind, and a place for damaged ones."""
    folder = tmp_path_factory.mktemp("damaged")
    kinds = {"gguf": write_gguf(folder / "a.gguf", {name: (a, "F32") for name, a in model().items()}).read_bytes()}
    with contextlib.suppress(pytest.skip.Exception):
        kinds["safetensors"] = safetensors(folder / "a.safetensors", model()).read_bytes()
    return kinds, folder / "damaged"


QUIET = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def try_damaged(module, path: Path, content: bytes) -> None:
    """A damaged file gives an error or arrays that lie within it; anything else fails the test."""
    path.write_bytes(content)
    try:
        bound = module.Model.load(path)
    except KinaError:
        return
    assert np.isfinite(np.nan_to_num(bound["table"]).sum(dtype=np.float64)) or bound["table"].size


@settings(QUIET, max_examples=150)
@given(data=st.data())
def test_bytes_changed_anywhere_never_do_worse_than_an_error(module, whole, data):
    kinds, path = whole
    content = bytearray(kinds[data.draw(st.sampled_from(sorted(kinds)))])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try_damaged(module, path, bytes(content))


@settings(QUIET, max_examples=60)
@given(data=st.data())
def test_a_file_cut_off_anywhere_is_an_error(module, whole, data):
    kinds, path = whole
    content = kinds[data.draw(st.sampled_from(sorted(kinds)))]
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(KinaError):
        module.Model.load(path)


def test_a_file_that_is_not_there_is_said_to_be_none(module, tmp_path):
    assert "cannot be read" in refusal(lambda: module.Model.load(tmp_path / "none.gguf"))[0]
    assert refusal(lambda: module.Model.load([])) == ["no weight files are given"]


def test_without_the_library_the_error_says_how_to_get_it(module, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "safetensors", None)
    (tmp_path / "a.safetensors").write_bytes(bytes(16))
    assert "pip install 'kina-lang[models]'" in refusal(lambda: module.Model.load(tmp_path / "a.safetensors"))[0]
