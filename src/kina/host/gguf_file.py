"""Weights from GGUF files, mapped into memory: only what is asked for is read and dequantised.

Orientation. `stored` and `dequantise` give a tensor as the file has it, outermost axis first; a linear layer's
weight there is `[out, in]`. Kina programs multiply from the left, `x @ w`, and want `[in, out]`:
`linear` gives that as a transposed view, so nothing is copied and native code sees the strides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kina.diagnostics import KinaError
from kina.host.gguf_header import BlockFormat, TensorInfo, Value, read_header
from kina.ops.base import Array
from kina.types import DType

F32Array = npt.NDArray[np.float32]
_Wanted = TypeVar("_Wanted", int, float, str)


@dataclass(frozen=True, eq=False)
class GGUFFile:
    """An open file. `metadata` holds every key with its value, arrays as tuples; `tensors` what it has by name."""

    path: str
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]
    data: npt.NDArray[np.uint8]

    @property
    def architecture(self) -> str:
        """The family of the model ("llama"); its other keys begin with it."""
        return self._metadata_value("general.architecture", str)

    @property
    def block_count(self) -> int:
        return self._metadata_value(f"{self.architecture}.block_count", int)

    @property
    def embedding_length(self) -> int:
        return self._metadata_value(f"{self.architecture}.embedding_length", int)

    @property
    def rms_epsilon(self) -> float:
        """What RMSNorm adds to the mean of squares."""
        return self._metadata_value(f"{self.architecture}.attention.layer_norm_rms_epsilon", float)

    @property
    def chat_template(self) -> str:
        """The Jinja template that turns messages into a prompt."""
        return self._metadata_value("tokenizer.chat_template", str)

    def number(self, key: str, default: int | None = None) -> int:
        """An integer under the architecture's name: `number("attention.head_count")`.

        Raises KinaError for another value, and where it is missing without a default.
        """
        return self._own(key, int, default)

    def real(self, key: str, default: float | None = None) -> float:
        """A float under the architecture's name."""
        return self._own(key, float, default)

    def _own(self, key: str, kind: type[_Wanted], default: _Wanted | None) -> _Wanted:
        full = f"{self.architecture}.{key}"
        return default if default is not None and full not in self.metadata else self._metadata_value(full, kind)

    def strings(self, key: str) -> tuple[str, ...]:
        """A metadata array of strings, such as `tokenizer.ggml.tokens`. Raises KinaError where it is none."""
        value = self._present(key)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            raise KinaError(f"{self.path}: the metadata key {key} is no array of strings")
        return tuple(map(str, value))

    def dequantise(self, name: str) -> F32Array:
        """A whole tensor as F32, in the file's shape; a view of the file where it holds F32 already.

        Raises KinaError for a name that is not there and for a format that cannot be dequantised.
        """
        info = self.info(name)
        rows = self._rows_of(info)
        return _dequantise(rows, info, self.path).reshape(info.shape)

    def stored(self, name: str) -> Array:
        """A tensor as the file has it, in the file's shape, not copied and not dequantised.

        Of a quantised one it is an array of blocks, as Kina's functions take it for a `Q4_1[N, K]`: its last axis has
        K / 32 of them. Raises KinaError for a format that Kina has no dtype for.
        """
        info = self.info(name)
        dtype = DType.__members__.get(info.quantisation)
        if dtype is None:
            reason = f"{name} is stored as {info.quantisation}, which is no dtype of Kina"
            raise KinaError(f"{self.path}: {reason}; `dequantise` gives it as F32")
        raw = self.data[info.offset : info.offset + info.nbytes]
        found: Array = raw.view(dtype.numpy).reshape(dtype.array_shape(info.shape))
        return found

    def linear(self, name: str) -> F32Array:
        """A linear layer's weight as a program multiplies with it: `[in, out]`, a transposed view."""
        self._matrix(name, "a linear weight")
        return self.dequantise(name).T

    def rows(self, name: str, ids: npt.ArrayLike) -> F32Array:
        """Some rows of a table `[V, D]`, as an embedding looks them up: ids `[...]` give `[..., D]`, F32.

        Only those rows are read. Raises KinaError for an id outside `[0, V)`, with its position.
        """
        info = self._matrix(name, "a table")
        wanted = _checked_ids(np.asarray(ids), info)
        rows = self._rows_of(info)[wanted.ravel()]
        return _dequantise(rows, info, self.path).reshape(*wanted.shape, info.shape[1])

    def info(self, name: str) -> TensorInfo:
        """Shape and format of a tensor. Raises KinaError, with names that are near, where there is none."""
        if name in self.tensors:
            return self.tensors[name]
        from difflib import get_close_matches

        near = get_close_matches(name, self.tensors, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise KinaError(f"{self.path}: there is no tensor {name} among the {len(self.tensors)}{hint}")

    def _matrix(self, name: str, what: str) -> TensorInfo:
        info = self.info(name)
        if len(info.shape) != 2:
            raise KinaError(f"{self.path}: {name} has the shape {list(info.shape)}; {what} has two axes")
        return info

    def _rows_of(self, info: TensorInfo) -> npt.NDArray[np.uint8]:
        """The bytes of a tensor, one row for each slice along its last axis."""
        raw = self.data[info.offset : info.offset + info.nbytes]
        return raw.reshape(-1, info.row_bytes) if info.nbytes else np.empty((0, info.row_bytes), np.uint8)

    def _present(self, key: str) -> Value:
        if key not in self.metadata:
            raise KinaError(f"{self.path}: the metadata key {key} is missing")
        return self.metadata[key]

    def _metadata_value(self, key: str, kind: type[_Wanted]) -> _Wanted:
        value = self._present(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise KinaError(f"{self.path}: the metadata key {key} is {value!r}, wanted: {kind.__name__}")
        return value


def open_gguf(path: str | os.PathLike[str]) -> GGUFFile:
    """Opens a GGUF file and reads its header; weights are read when they are asked for.

    Raises KinaError, with what is wrong and where, for a file that is missing, is not GGUF or is damaged.
    """
    shown = os.fspath(path)
    try:
        if os.path.isdir(path):
            raise KinaError(f"{shown}: a directory, not a GGUF file")
        if os.path.getsize(path) == 0:
            raise KinaError(f"{shown}: not a GGUF file: it is empty")
        data: npt.NDArray[np.uint8] = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise KinaError(f"{shown}: cannot be read: {error.strerror or error}") from None
    header = read_header(data.data, shown, _block_format)
    return GGUFFile(shown, header.metadata, header.tensors, data)


@cache
def _block_format(number: int) -> BlockFormat | None:
    """A numeric type by its number in the file, from the table of the gguf package."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        kind = GGMLQuantizationType(number)
        elements, size = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        return None
    return BlockFormat(kind.name, elements, size)


def _dequantise(rows: npt.NDArray[np.uint8], info: TensorInfo, path: str) -> F32Array:
    """Rows of bytes to rows of F32, by the gguf package's own meaning of the format."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    if rows.size == 0:
        return np.empty((*rows.shape[:-1], info.shape[-1] if info.shape else 1), np.float32)
    try:
        values = dequantize(rows, GGMLQuantizationType[info.quantisation])
    except NotImplementedError:
        raise KinaError(f"{path}: {info.name} is stored as {info.quantisation}, which cannot be read as F32") from None
    # A file may align its tensors to a single byte; native code must not meet such a view.
    return np.require(values, np.float32, "A")


def _checked_ids(ids: npt.NDArray[np.generic], info: TensorInfo) -> npt.NDArray[np.int64]:
    if not np.issubdtype(ids.dtype, np.integer) and ids.size:
        raise KinaError(f"rows of {info.name} are chosen by integers, not by {ids.dtype}")
    wanted = ids.astype(np.int64)
    wrong = np.argwhere((wanted < 0) | (wanted >= info.shape[0]))
    if len(wrong):
        position = tuple(map(int, wrong[0]))
        bad = f"the id {int(ids[position])} at position {list(position)}"
        raise KinaError(f"rows of {info.name}: {bad} is outside [0, {info.shape[0]})")
    return wanted
