"""Python numbers and nested lists of them as arrays of the dtype that a parameter wants.

A number has no dtype of its own, so it is converted, but never to another value: integers and `Bool`s have to be
exact, a float is rounded to the nearest one of a float dtype and must not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kina.host import errors
from kina.host.errors import Head
from kina.ops.base import Array
from kina.types import DType

Number = bool | int | float


def is_number(value: object) -> bool:
    """Whether this is a plain Python number. NumPy's scalars, some of which inherit from float, have a dtype."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def from_number(head: Head, number: int, value: Number) -> Array:
    """A rank-0 array. Raises KinaError where the dtype does not hold the value."""
    return np.array(_converted(head, number, value), head.inputs[number].dtype.numpy)


def from_list(head: Head, number: int, value: list[object] | tuple[object, ...]) -> Array:
    """An array of the list's shape. Raises KinaError for ragged lists, and for entries that are not numbers."""
    shape = _shape(value)
    flat = [_converted(head, number, entry) for entry in _entries(head, number, value, shape)]
    return np.array(flat, head.inputs[number].dtype.numpy).reshape(shape)


def _shape(value: object) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list | tuple):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _entries(head: Head, number: int, value: object, shape: tuple[int, ...]) -> Iterator[Number]:
    is_list = isinstance(value, list | tuple)
    if is_list != bool(shape) or (is_list and len(value) != shape[0]):  # type: ignore[arg-type]
        raise errors.ragged(head, number)
    if not is_list:
        if not is_number(value):
            raise errors.not_an_array(
                head, head.input_names[number], head.inputs[number],
                f"is a list with {type(value).__name__} inside: {value!r:.60}",
                "lists hold numbers; join arrays with numpy.stack or numpy.array",
            )  # fmt: skip
        yield value  # type: ignore[misc]
        return
    for entry in value:  # type: ignore[attr-defined]
        yield from _entries(head, number, entry, shape[1:])


def _converted(head: Head, number: int, value: Number) -> Number:
    """The value as NumPy stores it without change (floats: rounded once)."""
    dtype = head.inputs[number].dtype
    if isinstance(value, bool) != (dtype is DType.BOOL):
        raise errors.wrong_number_kind(head, number, value)
    if dtype is DType.BOOL:
        return value
    return _integer(head, number, value, dtype) if dtype.is_integer else _float(head, number, value, dtype)


def _integer(head: Head, number: int, value: Number, dtype: DType) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise errors.inexact(head, number, value)
    low, high = errors.integer_limits(dtype)
    if not low <= value <= high:
        raise errors.out_of_range(head, number, value)
    return int(value)


def _float(head: Head, number: int, value: Number, dtype: DType) -> Number:
    try:
        with np.errstate(over="ignore"):
            stored = float(np.array(value, np.float64).astype(dtype.numpy))
    except OverflowError:
        raise errors.out_of_range(head, number, value) from None
    if math.isinf(stored) and not (isinstance(value, float) and math.isinf(value)):
        raise errors.out_of_range(head, number, value)
    if isinstance(value, int) and stored != value:
        raise errors.inexact(head, number, value)
    return value
