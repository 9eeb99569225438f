"""The header of a GGUF file: metadata and the table of tensors, read without trust.

Every length that the file names is held against the bytes that are there before anything is read or
allocated, so a damaged or hostile file ends in a KinaError that says what is wrong and at which byte.
Layout: the GGUF specification, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import NoReturn

from kina.diagnostics import KinaError

Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...]

VERSIONS = (2, 3)
MOST_AXES = 4
MOST_ELEMENTS = 2**48
DEFAULT_ALIGNMENT = 32


class ValueType(IntEnum):
    """What a metadata value is, as numbered by the format."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_FORMATS: Mapping[ValueType, str] = {
    ValueType.UINT8: "B",
    ValueType.INT8: "b",
    ValueType.UINT16: "H",
    ValueType.INT16: "h",
    ValueType.UINT32: "I",
    ValueType.INT32: "i",
    ValueType.FLOAT32: "f",
    ValueType.BOOL: "?",
    ValueType.UINT64: "Q",
    ValueType.INT64: "q",
    ValueType.FLOAT64: "d",
}

# The fewest bytes that one entry can take: bounds a count before its entries are read.
_LEAST_METADATA = 8 + 4 + 1
_LEAST_TENSOR = 8 + 4 + 4 + 8
_LEAST_STRING = 8


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """How one numeric type lies in memory: `elements` values in `size` bytes."""

    name: str
    elements: int
    size: int


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file. `shape` has the outermost axis first, as NumPy and Kina write it (GGUF
    writes the innermost first); `offset` counts bytes from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    format: BlockFormat
    offset: int

    @property
    def quantisation(self) -> str:
        """The format's name in GGUF: `F32`, `Q8_0`, ..."""
        return self.format.name

    @property
    def nbytes(self) -> int:
        return prod(self.shape) // self.format.elements * self.format.size

    @property
    def row_bytes(self) -> int:
        """Bytes of one slice along the last axis."""
        return (self.shape[-1] if self.shape else 1) // self.format.elements * self.format.size


@dataclass(frozen=True, slots=True)
class Header:
    metadata: Mapping[str, Value]
    tensors: Mapping[str, TensorInfo]


@dataclass(slots=True)
class _Cursor:
    """A place in the file. What it reads is there, or it fails."""

    data: memoryview
    path: str
    offset: int = field(default=0)

    def fail(self, problem: str, offset: int | None = None) -> NoReturn:
        at = self.offset if offset is None else offset
        raise KinaError(f"{self.path}: damaged GGUF file: {problem} (at byte {at} of {len(self.data)})")

    def need(self, size: int, what: str) -> None:
        left = len(self.data) - self.offset
        if size > left:
            self.fail(f"{what} takes {size} bytes, {left} are left")

    def scalar(self, code: str, what: str) -> int | float | bool:
        return self.scalars(code, 1, what)[0]

    def scalars(self, code: str, count: int, what: str) -> tuple[int | float | bool, ...]:
        size = struct.calcsize(code) * count
        self.need(size, what)
        values = struct.unpack_from(f"<{count}{code}", self.data, self.offset)
        self.offset += size
        return values

    def u32(self, what: str) -> int:
        return int(self.scalar("I", what))

    def u64(self, what: str) -> int:
        return int(self.scalar("Q", what))

    def count(self, least: int, what: str) -> int:
        """A number of entries, each of which takes at least `least` bytes."""
        start = self.offset
        count = self.u64(what)
        left = len(self.data) - self.offset
        if count * least > left:
            self.fail(f"{what} is {count}, more than the {left} bytes that are left can hold", start)
        return count

    def string(self, what: str) -> str:
        size = self.u64(f"the length of {what}")
        self.need(size, what)
        start, self.offset = self.offset, self.offset + size
        try:
            return str(self.data[start : self.offset], "utf-8")
        except UnicodeDecodeError as error:
            self.fail(f"{what} is not UTF-8 text", start + error.start)

    def value_type(self, what: str) -> ValueType:
        start = self.offset
        number = self.u32(f"the type of {what}")
        try:
            return ValueType(number)
        except ValueError:
            self.fail(f"{what} has the unknown type {number}", start)

    def value(self, what: str) -> Value:
        kind = self.value_type(what)
        if kind is ValueType.STRING:
            return self.string(what)
        if kind is not ValueType.ARRAY:
            return self.scalar(_FORMATS[kind], what)
        return self.array(what)

    def array(self, what: str) -> tuple[Scalar, ...]:
        kind = self.value_type(f"the items of {what}")
        if kind is ValueType.ARRAY:
            self.fail(f"{what} is an array of arrays, which no known model uses")
        if kind is ValueType.STRING:
            count = self.count(_LEAST_STRING, f"the length of {what}")
            return tuple([self.string(what) for _ in range(count)])
        count = self.count(struct.calcsize(_FORMATS[kind]), f"the length of {what}")
        return self.scalars(_FORMATS[kind], count, what)


def read_header(data: memoryview, path: str, formats: Callable[[int], BlockFormat | None]) -> Header:
    """Reads the header from the bytes of a whole file.

    `formats` tells a numeric type by its number in the file. After: every tensor lies within the file,
    and its last axis is a whole number of blocks. Raises KinaError otherwise.
    """
    cursor = _Cursor(data, path)
    _read_magic(cursor)
    tensor_count = cursor.count(_LEAST_TENSOR, "the number of tensors")
    metadata_count = cursor.count(_LEAST_METADATA, "the number of metadata entries")
    metadata: dict[str, Value] = {}
    for _ in range(metadata_count):
        start = cursor.offset
        key = cursor.string("a metadata key")
        if key in metadata:
            cursor.fail(f"the metadata key {key!r} occurs twice", start)
        metadata[key] = cursor.value(f"the metadata value {key!r}")
    entries = [_read_tensor(cursor, formats) for _ in range(tensor_count)]
    alignment = _alignment(cursor, metadata)
    data_start = -(-cursor.offset // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for start, entry in entries:
        if entry.name in tensors:
            cursor.fail(f"the tensor {entry.name!r} occurs twice", start)
        tensors[entry.name] = _place(cursor, start, entry, data_start, alignment)
    return Header(metadata, tensors)


def _read_magic(cursor: _Cursor) -> None:
    if bytes(cursor.data[:4]) != b"GGUF":
        raise KinaError(f"{cursor.path}: not a GGUF file: it does not begin with the letters GGUF")
    cursor.offset = 4
    version = cursor.u32("the version")
    if version & 0xFFFF == 0:
        raise KinaError(f"{cursor.path}: a big-endian GGUF file; only little-endian ones can be read")
    if version not in VERSIONS:
        supported = " and ".join(map(str, VERSIONS))
        raise KinaError(f"{cursor.path}: a GGUF file of version {version}; only versions {supported} can be read")


def _read_tensor(cursor: _Cursor, formats: Callable[[int], BlockFormat | None]) -> tuple[int, TensorInfo]:
    """One row of the table, with its place in the file; its offset still counts from the start of the data."""
    start = cursor.offset
    name = cursor.string("a tensor's name")
    what = f"the tensor {name!r}"
    rank = cursor.u32(f"the rank of {what}")
    if rank > MOST_AXES:
        cursor.fail(f"{what} has {rank} axes, more than {MOST_AXES}", start)
    dims = [int(d) for d in cursor.scalars("Q", rank, f"the shape of {what}")]
    if prod(d for d in dims if d) > MOST_ELEMENTS:
        cursor.fail(f"{what} has the shape {dims}, more than can be addressed", start)
    number = cursor.u32(f"the type of {what}")
    block = formats(number)
    if block is None:
        cursor.fail(f"{what} has the unknown type {number}", start)
    if (dims[0] if dims else 1) % block.elements:
        cursor.fail(f"{what} has rows that are no whole number of {block.name} blocks of {block.elements}", start)
    return start, TensorInfo(name, tuple(reversed(dims)), block, cursor.u64(f"the offset of {what}"))


def _place(cursor: _Cursor, start: int, entry: TensorInfo, data_start: int, alignment: int) -> TensorInfo:
    if entry.offset % alignment:
        cursor.fail(f"the tensor {entry.name!r} is not aligned to {alignment} bytes", start)
    placed = TensorInfo(entry.name, entry.shape, entry.format, data_start + entry.offset)
    end, size = placed.offset + placed.nbytes, len(cursor.data)
    if end > size:
        cursor.fail(f"the tensor {entry.name!r} ends at byte {end}, the file at byte {size}; is it cut off?", start)
    return placed


def _alignment(cursor: _Cursor, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if isinstance(alignment, bool) or not isinstance(alignment, int) or alignment.bit_count() != 1 or alignment < 1:
        cursor.fail(f"general.alignment is {alignment!r}, not a power of two")
    return alignment
