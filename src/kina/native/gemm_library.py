"""Gemm compiled once for all programs: loaded at first use, from the cache on disk where it can be.

A program declares `kina_gemm_f32`, and is linked with the address from here. Whatever is its own (a bias, an
activation) it gives as a `finish` function. So no program pays for compiling gemm.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from kina.native.engine import Loaded, load, process_lock
from kina.native.machine import Machine

_SOURCES = ("build", "gemm", "gemm_blocks", "gemm_finish", "gemm_pack", "gemm_tiles", "gemv", "tiling")


def gemm_symbols(machine: Machine, dtypes: Iterable[str]) -> Mapping[str, int]:
    """The addresses of `kina_gemm_<dtype>` made for `machine`, for `load(..., symbols=...)`; valid for ever."""
    with process_lock:
        libraries = {f"kina_gemm_{dtype}": _library(replace(machine, cores=1), dtype) for dtype in dtypes}
        return {name: library.address(name) for name, library in libraries.items()}


def gemm_declaration(dtype: str) -> str:
    """How a module in text form declares gemm. The arguments are those of `gemm.GEMM_ARGUMENTS`."""
    sizes, matrix, team = "i64, i64, i64", "ptr, i64, i64", "ptr, i64, i64, ptr, ptr"
    return f"declare void @kina_gemm_{dtype}({sizes}, {matrix}, {matrix}, {matrix}, {team})"


@cache
def _library(machine: Machine, dtype: str) -> Loaded:
    key = f"gemm {dtype} {machine} {_source_hash()}"
    loaded = load(lambda: gemm_ir(machine, dtype), machine, [f"kina_gemm_{dtype}"], key=key)
    # Threads may be inside while the interpreter takes itself down: never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    return loaded


def gemm_ir(machine: Machine, dtype: str) -> str:
    """The IR of a module with nothing but gemm."""
    from llvmlite import ir

    from kina.native.gemm import emit_gemm

    module = ir.Module("gemm")
    emit_gemm(module, machine, dtype)
    return str(module)


@cache
def _source_hash() -> str:
    """A hash of the code that emits gemm: the cached object is good as long as it is the same."""
    here = Path(__file__).parent
    return hashlib.sha256(b"\0".join((here / f"{name}.py").read_bytes() for name in _SOURCES)).hexdigest()
