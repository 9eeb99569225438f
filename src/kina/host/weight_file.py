"""What weights are bound from: a file or mapping that has tensors by name, each with a shape and a format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kina.diagnostics import KinaError
from kina.host.gguf_file import GGUFFile, open_gguf
from kina.ops.base import Array
from kina.types import DType

F32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file: its shape, outermost axis first; its format as the file calls it, and Kina's dtype for it."""

    shape: tuple[int, ...]
    format: str
    dtype: DType | None


class WeightFile(Protocol):
    """Tensors by name."""

    @property
    def path(self) -> str:
        """What messages call it."""

    @property
    def tensors(self) -> Mapping[str, Stored]:
        """What it has."""

    def stored(self, name: str) -> Array:
        """A tensor in its own format, not copied."""

    def numbers(self, name: str) -> F32Array:
        """A tensor as F32."""


@dataclass(frozen=True, eq=False)
class _Several:
    """Files that together hold a model."""

    files: Sequence[WeightFile]

    @property
    def path(self) -> str:
        return ", ".join(file.path for file in self.files)

    @cached_property
    def tensors(self) -> Mapping[str, Stored]:
        return {name: entry for file in self.files for name, entry in file.tensors.items()}

    def stored(self, name: str) -> Array:
        return self._home(name).stored(name)

    def numbers(self, name: str) -> F32Array:
        return self._home(name).numbers(name)

    def _home(self, name: str) -> WeightFile:
        return next(file for file in self.files if name in file.tensors)


@dataclass(frozen=True, eq=False)
class Arrays:
    """A mapping of arrays, such as a PyTorch `state_dict`."""

    arrays: Mapping[str, Array]
    path: str = "the mapping"

    @staticmethod
    def of(given: Mapping[str, Any]) -> Arrays:
        from kina.host.arrays import read

        return Arrays({str(name): read(str(name), value) for name, value in given.items()})

    @cached_property
    def tensors(self) -> Mapping[str, Stored]:
        return {name: _described(array) for name, array in self.arrays.items()}

    def stored(self, name: str) -> Array:
        return self.arrays[name]

    def numbers(self, name: str) -> F32Array:
        return self.arrays[name].astype(np.float32, copy=False)


def _described(array: Array) -> Stored:
    dtype = DType.of_numpy(array.dtype)
    return Stored(array.shape, str(dtype or array.dtype), dtype)


@dataclass(frozen=True, eq=False)
class GGUFWeights:
    """A GGUF file as one of weights."""

    file: GGUFFile

    @property
    def path(self) -> str:
        return self.file.path

    @cached_property
    def tensors(self) -> Mapping[str, Stored]:
        return {
            name: Stored(info.shape, info.quantisation, DType.__members__.get(info.quantisation))
            for name, info in self.file.tensors.items()
        }

    def stored(self, name: str) -> Array:
        return self.file.stored(name)

    def numbers(self, name: str) -> F32Array:
        return self.file.dequantise(name)


Path = str | os.PathLike[str]


def open_weights(paths: Path | Sequence[Path]) -> WeightFile:
    """Opens a safetensors or GGUF file, told by how it begins, or several that hold a model together.

    Raises KinaError where one cannot be read, or two have a tensor of the same name.
    """
    if isinstance(paths, str | os.PathLike):
        return _open(paths)
    files = [_open(path) for path in paths]
    if not files:
        raise KinaError("no weight files are given")
    homes: dict[str, str] = {}
    for file in files:
        for name in file.tensors:
            if name in homes:
                raise KinaError(f"the tensor {name} is in {homes[name]} and in {file.path}")
            homes[name] = file.path
    return _Several(files) if len(files) > 1 else files[0]


def _open(path: Path) -> WeightFile:
    from kina.host.safetensors_file import open_safetensors

    try:
        with open(path, "rb") as file:
            start = file.read(4)
    except (OSError, ValueError) as fault:
        shown = getattr(fault, "strerror", None) or fault
        raise KinaError(f"{os.fspath(path)}: cannot be read: {shown}") from None
    return GGUFWeights(open_gguf(path)) if start == b"GGUF" else open_safetensors(path)


def misplaced(path: str, end: int, size: int) -> KinaError:
    return KinaError(f"{path}: its tensors end at byte {end}, the file at byte {size}; is it cut off?")
