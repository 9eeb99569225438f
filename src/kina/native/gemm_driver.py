"""Gemm by itself, called with NumPy arrays: for tests and benchmarks, and as an example of how to call it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from kina.diagnostics import KinaError
from kina.native.build import I64, PTR, at
from kina.native.engine import load
from kina.native.forms import Form
from kina.native.gemm import GEMM_ARGUMENTS, GEMM_TYPE
from kina.native.gemm_finish import Epilogue, emit_finish
from kina.native.gemm_library import gemm_symbols
from kina.native.machine import Machine
from kina.native.runtime import runtime_symbols
from kina.native.tiling import scratch_bytes
from kina.types import DType

_PER_RUN = tuple(name for name in GEMM_ARGUMENTS if name not in ("tid", "threads"))


def driver_module(machine: Machine, form: Form, epilogue: Epilogue | None = None) -> ir.Module:
    """A module with one entry, `gemm_run(arguments, threads)`: runs gemm on a team; `arguments` are i64 words."""
    module = ir.Module("gemm")
    gemm = ir.Function(module, GEMM_TYPE, form.name)
    body = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, I64, I64]), "body")
    body.linkage = "internal"
    b = ir.IRBuilder(body.append_basic_block("entry"))
    words, tid, threads = body.args
    values: dict[str, Any] = {"tid": tid, "threads": threads}
    for index, (name, type_) in enumerate(zip(GEMM_ARGUMENTS, GEMM_TYPE.args, strict=True)):
        if name in _PER_RUN:
            values[name] = b.load(at(b, words, 8 * index), typ=type_, align=8)
    if epilogue is not None:
        values["finish"] = emit_finish(module, machine, form.dtype, "finish", epilogue)
    b.call(gemm, [values[name] for name in GEMM_ARGUMENTS])
    b.ret_void()
    run = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, PTR, I64]), "kina_run")
    entry = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, I64]), "gemm_run")
    b = ir.IRBuilder(entry.append_basic_block("entry"))
    b.call(run, [b.bitcast(body, PTR), *entry.args])
    b.ret_void()
    return module


class Gemm:
    """Compiled gemm for one machine and dtype. `gemm(a, b, out)` computes `out[...] = a @ b` in place.

    `left` and `right` are what operands are stored as, where it is something else (see `Form`). Blocks
    lie along K: an `a` of them is [M, K / 32], a `b` [K / 32, N].
    """

    def __init__(
        self, machine: Machine, dtype: str, *, left: str | None = None, right: str | None = None, threads: int = 1,
        epilogue: Epilogue | None = None,
    ) -> None:  # fmt: skip
        form = Form(dtype, left or dtype, right or dtype)
        module = driver_module(machine, form, epilogue)
        symbols = {**runtime_symbols(), **gemm_symbols(machine, [form])}
        self._loaded = load(module, machine, ["gemm_run"], symbols=symbols)
        self._entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._loaded.address("gemm_run"))
        self._dtypes = tuple(DType.__members__[name.upper()] for name in (form.left, form.right, dtype))
        self.threads = threads
        self.scratch = np.zeros(scratch_bytes(machine, dtype, threads) + 64, np.uint8)

    def __call__(self, a: np.ndarray, b: np.ndarray, out: np.ndarray, context: int = 0) -> np.ndarray:
        """Raises `KinaError` if shapes or dtypes do not fit."""
        self._entry(self.arguments(a, b, out, context).ctypes.data, self.threads)
        return out

    def arguments(self, a: np.ndarray, b: np.ndarray, out: np.ndarray, context: int = 0) -> np.ndarray:
        """The words that `gemm_run` takes; valid while the arrays live."""
        (m, k), (k_, n) = a.shape, b.shape
        dtypes = tuple(DType.of_numpy(array.dtype) for array in (a, b, out))
        blocks = [dtype.block or 1 for dtype in self._dtypes]
        k *= blocks[0]
        if k != k_ * blocks[1] or out.shape != (m, n) or dtypes != self._dtypes:
            raise KinaError(
                f"gemm cannot multiply {a.dtype}{a.shape} by {b.dtype}{b.shape} into {out.dtype}{out.shape}"
            )
        words: list[int] = [m, n, k]
        for array in (a, b, out):
            words += [array.ctypes.data, *(stride // array.itemsize for stride in array.strides)]
        scratch = -(-self.scratch.ctypes.data // 64) * 64
        return np.array([*words, scratch, 0, 0, 0, context], np.int64)

    def bind(self, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Callable[[], None]:
        """The same call again and again, with next to nothing in front of it."""
        words = self.arguments(a, b, out)
        address, threads = ctypes.c_void_p(words.ctypes.data), ctypes.c_int64(self.threads)

        def run() -> None:
            self._entry(address, threads)
            _ = words, a, b, out  # kept alive by the closure

        return run
