"""Weights from safetensors files, mapped into memory: nothing is read but what is asked for.

The `safetensors` library reads the header and refuses what is damaged: tensors that overlap, leave holes, or
end outside the file. It promises that the tensors lie one behind the other, in the order of `offset_keys`, from the
end of the header to the end of the file; from this follows where each lies, and a view of the map needs no copy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from kina.diagnostics import KinaError
from kina.host.weight_file import F32Array, Stored, misplaced
from kina.ops.base import Array
from kina.types import DType

_BYTES = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1,
    "U64": 8, "U32": 4, "U16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "C64": 8,
}  # fmt: skip
_HEADER_LENGTH = 8


@dataclass(frozen=True, eq=False)
class SafetensorsFile:
    """An open file: what it has by name, and where."""

    path: str
    tensors: Mapping[str, Stored]
    offsets: Mapping[str, int]
    data: npt.NDArray[np.uint8]

    def stored(self, name: str) -> Array:
        """A tensor as the file has it: a view. Raises KinaError for a format that Kina has no dtype for."""
        entry = self.tensors[name]
        if entry.dtype is None:
            raise KinaError(f"{self.path}: {name} is stored as {entry.format}, which is no dtype of Kina")
        start = self.offsets[name]
        raw = self.data[start : start + prod(entry.shape) * entry.dtype.itemsize]
        # Native code must not meet numbers that lie across their own size.
        found: Array = np.require(raw.view(entry.dtype.numpy).reshape(entry.shape), requirements="A")
        return found

    def numbers(self, name: str) -> F32Array:
        """The same as F32."""
        return self.stored(name).astype(np.float32, copy=False)


def open_safetensors(path: str | os.PathLike[str]) -> SafetensorsFile:
    """Opens a file. Raises KinaError, with what is wrong, where it is missing, damaged or no safetensors file."""
    shown = os.fspath(path)
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise KinaError("safetensors is not installed; it comes with: pip install 'kina-lang[models]'") from None
    try:
        with safe_open(shown, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            described = [(name, tuple(s.get_shape()), str(s.get_dtype())) for name, s in slices.items()]
        data: npt.NDArray[np.uint8] = np.asarray(np.memmap(shown, dtype=np.uint8, mode="r"))
    except SafetensorError as damage:
        raise KinaError(f"{shown}: damaged safetensors file, or none: {damage}") from None
    except (OSError, ValueError) as fault:
        raise KinaError(f"{shown}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    return _placed(shown, described, data)


def _placed(
    path: str, described: list[tuple[str, tuple[int, ...], str]], data: npt.NDArray[np.uint8]
) -> SafetensorsFile:
    """Where each tensor lies, added up, and held against the size of the file."""
    at = _HEADER_LENGTH + int.from_bytes(data[:_HEADER_LENGTH].tobytes(), "little")
    tensors: dict[str, Stored] = {}
    offsets: dict[str, int] = {}
    for name, shape, format_ in described:
        known = DType.__members__.get(format_)
        if format_ not in _BYTES:
            raise KinaError(f"{path}: {name} is stored as {format_}, whose size is not known")
        tensors[name], offsets[name] = Stored(shape, format_, known), at
        at += prod(shape) * _BYTES[format_]
    if at != len(data):
        raise misplaced(path, at, len(data))
    return SafetensorsFile(path, tensors, offsets, data)
