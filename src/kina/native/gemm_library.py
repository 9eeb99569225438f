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
from kina.native.forms import Form, tile_name
from kina.native.machine import Machine

_SOURCES = (
    "blocks", "build", "gemm", "gemm_blocks", "gemm_finish", "gemm_pack", "gemm_tiles", "gemv", "gemv_blocks",
    "sources", "tiling", "../types/blocks",
)  # fmt: skip


def gemm_symbols(machine: Machine, forms: Iterable[Form]) -> Mapping[str, int]:
    """The addresses of the forms of gemm made for `machine`, for `load(..., symbols=...)`; valid for ever."""
    with process_lock:
        one = replace(machine, cores=1)
        return {form.name: _library(one, form).address(form.name) for form in forms}


def gemm_declaration(form: Form) -> str:
    """How a module in text form declares gemm. The arguments are those of `gemm.GEMM_ARGUMENTS`."""
    sizes, matrix, team = "i64, i64, i64", "ptr, i64, i64", "ptr, i64, i64, ptr, ptr"
    return f"declare void @{form.name}({sizes}, {matrix}, {matrix}, {matrix}, {team})"


@cache
def _library(machine: Machine, form: Form) -> Loaded:
    """Of the plain form also the tiles, which the others call."""
    tiles = tile_name(form.dtype)
    names = [form.name, tiles] if form.is_plain else [form.name]
    symbols = {} if form.is_plain else {tiles: _library(machine, Form.plain(form.dtype)).address(tiles)}
    key = f"gemm {form.name} {machine} {_source_hash()}"
    loaded = load(lambda: gemm_ir(machine, form), machine, names, key=key, symbols=symbols)
    # Threads may be inside while the interpreter takes itself down: never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    return loaded


def gemm_ir(machine: Machine, form: Form) -> str:
    """The IR of a module with nothing but gemm."""
    from llvmlite import ir

    from kina.native.gemm import emit_gemm, emit_mixed_gemm

    module = ir.Module("gemm")
    if form.is_plain:
        emit_gemm(module, machine, form.dtype)
    else:
        emit_mixed_gemm(module, machine, form)
    return str(module)


@cache
def _source_hash() -> str:
    """A hash of the code that emits gemm: the cached object is good as long as it is the same."""
    here = Path(__file__).parent
    return hashlib.sha256(b"\0".join((here / f"{name}.py").read_bytes() for name in _SOURCES)).hexdigest()
