"""Values of `kina run`: read from the command line and from .npy files, shown, written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kina.cli.common import Misuse
from kina.ops.base import Array
from kina.types import DType


def pairs(texts: Sequence[str], usage: str) -> Mapping[str, str]:
    """`NAME=TEXT` in two, each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Misuse(f"{text!r} does not have the form {usage}")
        if name in found:
            raise Misuse(f"{name} is given twice")
        found[name] = value
    return found


def read_value(name: str, text: str, dtype: DType) -> Any:
    """A .npy file, a number, a bool or a list of those. `dtype` is what the input wants; it converts nothing."""
    if text.endswith(".npy"):
        return _load(text, dtype)
    try:
        value = json.loads(text.strip())
    except (ValueError, RecursionError):
        value = _float(text)
    if isinstance(value, bool | int | float | list):
        return value
    raise Misuse(f"{name}={text}: neither a .npy file nor a number nor a list of numbers")


def _float(text: str) -> float | None:
    """What JSON does not read: `.5`, `1e-6` in other spellings, `inf`, `nan`."""
    try:
        return float(text)
    except ValueError:
        return None


def _load(path: str, dtype: DType) -> Array:
    try:
        array: Array = np.load(path, allow_pickle=False)
    except OSError as fault:
        raise Misuse(f"cannot read {path}: {fault.strerror or fault}") from None
    except Exception as fault:
        # A damaged header can fail anywhere in NumPy's parser.
        raise Misuse(f"cannot read {path}: not a .npy file that NumPy can read ({fault})") from None
    if not isinstance(array, np.ndarray):
        raise Misuse(f"cannot read {path}: it is an archive of several arrays; give one .npy file")
    # NumPy's format has no name for bfloat16 and writes it as two raw bytes.
    is_raw_bfloat16 = dtype is DType.BF16 and array.dtype == np.dtype("V2")
    return array.view(dtype.numpy) if is_raw_bfloat16 else array


def read_size(name: str, text: str) -> int:
    if not text.isdecimal():
        raise Misuse(f"--size {name}={text}: a size is a whole number, 0 or more")
    return int(text)


def random_array(name: str, text: str, dtype: DType, seed: tuple[int, int]) -> Array:
    """Floats from a standard normal, integers from 0 to 9, fair bools. An empty shape is a scalar."""
    sizes = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() for part in sizes):
        raise Misuse(f"--random {name}={text}: a shape is numbers with commas between, as in 2,3")
    shape = tuple(map(int, sizes))
    generator = np.random.default_rng(seed)
    try:
        if dtype.is_float:
            return np.asarray(generator.standard_normal(shape)).astype(dtype.numpy)
        high = 2 if dtype is DType.BOOL else 10
        return np.asarray(generator.integers(0, high, shape)).astype(dtype.numpy)
    except (MemoryError, ValueError, OverflowError):
        raise Misuse(f"--random {name}={text}: too large for this machine") from None


# ---------------------------------------------------------------- results


def flatten(result: Any) -> list[Array]:
    """The arrays of a result, left to right."""
    return [a for item in result for a in flatten(item)] if isinstance(result, tuple) else [result]


def summaries(outputs: Sequence[Array]) -> Iterator[str]:
    """Dtype, shape and the outermost values of each array, numbered if there are several."""
    for number, array in enumerate(outputs):
        label = f"{number}: " if len(outputs) > 1 else ""
        shown = array.astype(np.float32) if DType.of_numpy(array.dtype) is DType.BF16 else array
        yield f"{label}{DType.of_numpy(array.dtype)}{list(array.shape)}"
        yield np.array2string(shown, threshold=32, edgeitems=2, precision=6)


def check_output(path: str) -> None:
    if Path(path).suffix not in (".npy", ".npz"):
        raise Misuse(f"cannot write {path}: the name has to end in .npy or .npz")


def write(path: str, outputs: Sequence[Array]) -> list[str]:
    """Writes the arrays; the names of the files: `out.npy`, `out.0.npy out.1.npy`, or `out.npz` (keys 0, 1)."""
    target = Path(path)
    try:
        if target.suffix == ".npz":
            np.savez(target, **{str(k): array for k, array in enumerate(outputs)})  # type: ignore[arg-type]
            return [path]
        paths = [target] if len(outputs) == 1 else [target.with_suffix(f".{k}.npy") for k in range(len(outputs))]
        for file, array in zip(paths, outputs, strict=True):
            np.save(file, array, allow_pickle=False)
    except OSError as fault:
        raise Misuse(f"cannot write {path}: {fault.strerror or fault}") from None
    return [str(file) for file in paths]
