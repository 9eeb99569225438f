"""Arrays of other libraries as NumPy arrays and back, without a copy wherever the layout allows.

An array has a dtype, and it is never changed on the way: an F64 array for an F32 parameter is an error.
What libraries are there is read off the argument's type, so none is imported that the caller does not use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from typing import Any

import numpy as np

from kina.diagnostics import KinaError
from kina.host import errors
from kina.host.errors import Head
from kina.host.numbers import from_list, from_number, is_number
from kina.ops.base import Array
from kina.types import DType


class Kind(Enum):
    """Whose array something is. Results come back in the caller's kind."""

    NUMPY = "NumPy"
    TORCH = "PyTorch"
    JAX = "JAX"


class _Refused(Exception):
    """What is wrong with an argument, and what to do about it."""

    def __init__(self, what: str, advice: str) -> None:
        self.what, self.advice = what, advice


def kind_of(value: object) -> Kind | None:
    """The library an argument comes from; None for Python numbers and lists, which leave the choice to the others."""
    if is_number(value) or isinstance(value, list | tuple):
        return None
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "torch":
            return Kind.TORCH
        if library in ("jax", "jaxlib"):
            return Kind.JAX
    return Kind.NUMPY


def result_kind(values: Sequence[object]) -> Kind:
    """The kind of a call's results: that of its first array with axes, else of its first array, else NumPy."""
    kinds = [(kind, np.ndim(value)) for value in values if (kind := kind_of(value)) is not None]  # type: ignore[arg-type]
    with_axes = [kind for kind, rank in kinds if rank > 0]
    return next(iter([*with_axes, *(kind for kind, _ in kinds)]), Kind.NUMPY)


def to_numpy(head: Head, number: int, value: object) -> Array:
    """The argument as an array of the parameter's dtype and rank; executables take any strides, so no layout is copied.

    Raises KinaError, worded for the caller, for anything that is none.
    """
    wanted = head.inputs[number]
    if wanted.dtype.block is not None and (is_number(value) or isinstance(value, list | tuple)):
        what = "is made of numbers, and quantised tensors are made of blocks"
        raise errors.not_an_array(head, head.input_names[number], wanted, what, _blocks_advice(wanted.dtype))
    if is_number(value):
        if wanted.rank:
            raise errors.scalar_for_tensor(head, number, value)
        return from_number(head, number, value)  # type: ignore[arg-type]
    if isinstance(value, list | tuple):
        array = from_list(head, number, value)
    else:
        array = _checked_dtype(head, number, _from_library(head, number, value), kind_of(value))
    if array.ndim != wanted.rank:
        if array.ndim == 0:
            raise errors.scalar_for_tensor(head, number, array[()])
        raise errors.wrong_rank(head, number, wanted.dtype.shape_of(array))
    return array


def stacked(head: Head, path: str, items: Sequence[object]) -> Array:
    """The arrays of a list's items as one, with an axis in front: a copy."""
    try:
        return np.stack([_READERS[kind_of(item) or Kind.NUMPY](item) for item in items])
    except _Refused as refused:
        raise errors.cannot_stack(head, path, refused.what) from None
    except ValueError as fault:
        raise errors.cannot_stack(head, path, str(fault)) from None


def read(name: str, value: object) -> Array:
    """An array of any library, of any dtype. Raises KinaError, which says what to do, for what is none."""
    try:
        return _READERS[kind_of(value) or Kind.NUMPY](value)
    except _Refused as refused:
        raise KinaError(f"{name} {refused.what}: {refused.advice}") from None


def _from_library(head: Head, number: int, value: object) -> Array:
    read = _READERS[kind_of(value) or Kind.NUMPY]
    name, wanted = head.input_names[number], head.inputs[number]
    try:
        return read(value)
    except _Refused as refused:
        raise errors.not_an_array(head, name, wanted, refused.what, refused.advice) from None
    except Exception as fault:
        # Other libraries refuse in their own ways; the caller sees what they said.
        what = f"has the type {type(value).__name__}, which could not be read as an array"
        raise errors.not_an_array(head, name, wanted, what, f"{type(fault).__name__}: {fault}") from fault


def _checked_dtype(head: Head, number: int, array: Array, kind: Kind | None) -> Array:
    wanted = head.inputs[number].dtype
    if DType.of_numpy(array.dtype) is wanted:
        # Some NumPy types are equal and not the same (`longlong`); what follows sees only one.
        return array if array.dtype is wanted.numpy else array.view(wanted.numpy)
    if wanted.block is not None and array.dtype == np.uint8:
        return _as_blocks(head, number, array)
    got, name = array.dtype, head.input_names[number]
    raise errors.wrong_dtype(head, number, _dtype_text(got), _dtype_advice(got, wanted, name, kind))


def _as_blocks(head: Head, number: int, rows: Array) -> Array:
    """Rows of bytes, as GGUF readers give them, as rows of blocks: the same memory."""
    wanted, name = head.inputs[number], head.input_names[number]
    size = wanted.dtype.itemsize
    if rows.ndim == 0 or rows.shape[-1] % size:
        what = f"has rows of bytes that are no whole number of {wanted.dtype} blocks, of {size} bytes each"
        raise errors.not_an_array(head, name, wanted, what, _blocks_advice(wanted.dtype))
    if rows.shape[-1] > 1 and rows.strides[-1] != 1:
        rows = np.ascontiguousarray(rows)
    return rows.view(wanted.dtype.numpy)


def _blocks_advice(dtype: DType) -> str:
    return f"pass {dtype} blocks as a GGUF file stores them: kina.host.gguf_file.open_gguf(path).stored(name)"


def _dtype_text(got: np.dtype[Any]) -> str:
    known = DType.of_numpy(got)
    if known is not None:
        return str(known)
    if got.names is not None:
        return f"the structured dtype {got}"
    if got.hasobject:
        return "an array of Python objects"
    if not got.isnative:
        return f"{got.name} in foreign byte order ({got.str})"
    return f"{got.name}, which Kina does not have"


def _dtype_advice(got: np.dtype[Any], wanted: DType, name: str, kind: Kind | None) -> str:
    """How to convert, in the words of the argument's own library."""
    if wanted.block is not None:
        return _blocks_advice(wanted)
    known = DType.of_numpy(got)
    if known is not None and known.block is not None:
        return f"declare {name} as {known}[...], and read its numbers by cast[{wanted}]"
    if got.names is not None:
        return f"pass one field: {name}[{got.names[0]!r}]"
    target = wanted.numpy.name
    if kind is Kind.TORCH:
        return f"convert it: {name}.to(torch.{target})"
    home = "jax.numpy" if kind is Kind.JAX else "ml_dtypes" if wanted is DType.BF16 else "numpy"
    return f"convert it: {name}.astype({home}.{target})"


# ---------------------------------------------------------------- reading


def _read_numpy(value: Any) -> Array:
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):  # who has one has imported it
        raise _Refused("is a masked array, whose mask Kina would lose", "fill the gaps first: x.filled(0)")
    if isinstance(value, np.ndarray | np.generic):
        array: Array = np.asarray(value)
        return array
    if value is None or isinstance(value, str | complex | dict | set):
        raise _Refused(_no_array(value), "pass a NumPy, PyTorch or JAX array, a number or a list of numbers")
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if _has_buffer(value):
        return np.asarray(memoryview(value))
    raise _Refused(_no_array(value), "pass anything with DLPack or the buffer protocol, or numbers")


def _has_buffer(value: object) -> bool:
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _read_torch(value: Any) -> Array:
    torch = import_module("torch")
    if not isinstance(value, torch.Tensor):
        raise _Refused(_no_array(value), "pass a torch.Tensor")
    if value.requires_grad:
        raise _Refused("requires grad, and what Kina computes would not be recorded", "detach it first: x.detach()")
    if value.device.type != "cpu":
        raise _Refused(f"lies on {value.device}, and native code runs on the CPU", "bring it there: x.cpu()")
    if value.layout is not torch.strided:
        raise _Refused(f"is sparse ({value.layout})", "make it dense: x.to_dense()")
    if value.dtype is torch.bfloat16:
        bits: Array = value.view(torch.int16).numpy()
        return bits.view(DType.BF16.numpy)
    array: Array = value.numpy()
    return array


def _read_jax(value: Any) -> Array:
    import jax

    if isinstance(value, jax.core.Tracer):
        raise _Refused(
            "is being traced by JAX, and Kina needs its numbers", "call outside jax.jit, or through jax.pure_callback"
        )
    if not isinstance(value, jax.Array):
        raise _Refused(_no_array(value), "pass a jax.Array")
    if any(device.platform != "cpu" for device in value.devices()):
        places = ", ".join(sorted(map(str, value.devices())))
        raise _Refused(f"lies on {places}, and native code runs on the CPU", "bring it there: jax.device_get(x)")
    return np.asarray(value)


_READERS: dict[Kind, Callable[[Any], Array]] = {
    Kind.NUMPY: _read_numpy, Kind.TORCH: _read_torch, Kind.JAX: _read_jax
}  # fmt: skip


def _no_array(value: object) -> str:
    return f"has the type {type(value).__name__}, which is no array"


# ---------------------------------------------------------------- giving back


def give(array: Array, kind: Kind) -> Any:
    """The array as one of the caller's kind, sharing its memory where the library can."""
    match kind:
        case Kind.NUMPY:
            return array
        case Kind.TORCH:
            return _give_torch(array)
        case Kind.JAX:
            return _give_jax(array)


def _give_torch(array: Array) -> Any:
    torch = import_module("torch")
    if array.dtype == DType.BF16.numpy:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _give_jax(array: Array) -> Any:
    import jax

    if array.dtype == DType.BF16.numpy:  # NumPy does not export it through DLPack
        return jax.numpy.asarray(array)
    if array.itemsize < 8:
        return jax.dlpack.from_dlpack(array)
    # JAX without 64-bit types would cut the values down to 32 bits and say nothing.
    with jax.enable_x64(True):
        return jax.dlpack.from_dlpack(array)
