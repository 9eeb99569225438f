"""A compiled function: called with NumPy arrays of any sizes and strides, compiled once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kina.diagnostics import KinaError
from kina.dims.atoms import CeilDiv, FloorDiv, Maximum, Minimum, Modulo, Variable, parts
from kina.dims.dim import Dim
from kina.dims.proposition import holds
from kina.kernels.ir import KernelProgram
from kina.native.engine import load
from kina.native.entry import (
    ALIGNMENT,
    ENTRY,
    gemm_dtypes,
    layout_of,
    module_of,
    temporary_bytes,
    thread_scratch,
    work_of,
)
from kina.native.gemm_library import gemm_symbols
from kina.native.machine import Machine
from kina.native.pool import POOL, result_array
from kina.native.runtime import runtime_symbols, threads

Array = np.ndarray[Any, np.dtype[Any]]

_WORTH_A_THREAD = 65536
"""Elements of work below which waking a second thread costs more than it saves."""


class Executable:
    """Machine code for one function on one machine."""

    def __init__(self, program: KernelProgram, machine: Machine) -> None:
        self.program = program
        self.machine = machine
        self._layout = layout_of(program)
        symbols = {**runtime_symbols(), **gemm_symbols(machine, gemm_dtypes(program))}
        self._code = load(self.llvm_ir, machine, [ENTRY], level=1, symbols=symbols)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address(ENTRY))
        self._plan = _plan(program)
        self._dimensions = program.function.dimensions
        self._gap = [0] * (len(self._layout.temporaries) + 1)
        self._scratch = thread_scratch(program, machine)
        self._outputs = [v.type.dtype for v in program.outputs]

    @cached_property
    def llvm_ir(self) -> str:
        """The module as text."""
        return module_of(self.program, self.machine)

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the disk cache."""
        return self._code.from_cache

    def run(self, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs for these inputs, which are of the right dtypes and shapes. Raises KinaError if a check fails."""
        for check in self.program.checks:
            if not holds(check.proposition, sizes):
                at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                where = f"{check.span}: " if check.span else ""
                raise KinaError(f"{where}the assertion {check.proposition} does not hold for {at}")
        ordered = [sizes[name] for name in self._dimensions]
        shapes, arena_bytes, work = self._plan(*ordered)
        words = ordered
        kept = []
        for x in inputs:
            x = _aligned(x)
            kept.append(x)
            itemsize = x.itemsize
            words.append(x.__array_interface__["data"][0])
            words.extend([s // itemsize for s in x.strides])
        results = tuple(result_array(shape, dtype) for shape, dtype in zip(shapes, self._outputs, strict=True))
        words.extend([y.__array_interface__["data"][0] for y in results])
        words.extend(self._gap)
        team = threads() if work >= _WORTH_A_THREAD else 1
        arena_bytes += self._scratch * team
        arena = POOL.take(arena_bytes) if arena_bytes else None
        words.append(arena.ctypes.data if arena is not None else 0)
        words.append(team)
        if len(words) != self._layout.words:
            raise AssertionError("internal fault in Kina: the inputs are not of the program's ranks")
        block = (ctypes.c_int64 * len(words))(*words)
        self._call(ctypes.addressof(block))
        if arena is not None:
            POOL.give(arena)
        return results


def _aligned(x: Array) -> Array:
    """The array, or a copy where its elements do not lie at whole steps of their size."""
    itemsize = x.itemsize
    if any(s % itemsize for s in x.strides) or x.__array_interface__["data"][0] % itemsize:
        return x.copy(order="C")
    return x


# ---------------------------------------------------------------- sizes, computed in Python once a call


Plan = Callable[..., tuple[tuple[tuple[int, ...], ...], int, int]]


def _plan(program: KernelProgram) -> Plan:
    """From the sizes, in order: the outputs' shapes, the arena's bytes, and an estimate of the work.

    Generated as Python source, as it runs at every call.
    """
    names = {name: f"n{i}" for i, name in enumerate(program.function.dimensions)}
    shapes = ", ".join("(" + "".join(f"{_python(d, names)}, " for d in v.type.shape) + ")" for v in program.outputs)
    padded = [f"(({_python(temporary_bytes(v), names)}) + {ALIGNMENT - 1} & -{ALIGNMENT})" for v in program.temporaries]
    work = [_python(work_of(kernel), names) for kernel in program.kernels]
    source = (
        f"def plan({', '.join(names.values())}):\n"
        f"    return ({shapes}{',' if shapes else ''}), {' + '.join(padded) or '0'}, {' + '.join(work) or '0'}\n"
    )
    scope: dict[str, Any] = {}
    exec(compile(source, "<plan>", "exec"), scope)
    plan: Plan = scope["plan"]
    return plan


def _python(d: Dim, names: Mapping[str, str]) -> str:
    """A dimension as a Python expression."""

    def atom_text(atom: object) -> str:
        match atom:
            case Variable(name):
                return names[name]
            case FloorDiv() | Modulo() | CeilDiv() | Minimum() | Maximum():
                a, b = (_python(part, names) for part in parts(atom))
                form = {
                    FloorDiv: "(({a}) // ({b}))", Modulo: "(({a}) % ({b}))", CeilDiv: "(-(-({a}) // ({b})))",
                    Minimum: "min({a}, {b})", Maximum: "max({a}, {b})",
                }[type(atom)]  # fmt: skip
                return form.format(a=a, b=b)
        raise AssertionError(atom)

    terms = ["*".join([str(c), *map(atom_text, monomial)]) for monomial, c in d.terms]
    return " + ".join(terms) or "0"
