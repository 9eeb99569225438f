"""A compiled function: called with NumPy arrays of any sizes and strides, compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from kina.diagnostics import KinaError
from kina.dims.proposition import holds
from kina.kernels.ir import KernelProgram
from kina.native.calling import Array, Run, compile_run
from kina.native.engine import load
from kina.native.entry import ENTRY, gemm_forms, module_of, program_key, thread_scratch
from kina.native.gemm_library import gemm_symbols
from kina.native.machine import Machine
from kina.native.pool import POOL, Pool
from kina.native.runtime import runtime_symbols

_WORTH_A_THREAD = 65536
"""Elements of work below which waking a second thread costs more than it saves."""


class Executable:
    """Machine code for one function on one machine.

    `run(sizes, inputs)` gives the outputs for inputs of the right dtypes and shapes. It raises KinaError if a
    check of the program fails, or the sizes are beyond any memory.
    """

    run: Run

    def __init__(
        self, program: KernelProgram, machine: Machine, *, pool: Pool = POOL, worth_a_thread: int = _WORTH_A_THREAD
    ) -> None:
        self.program = program
        self.machine = machine
        symbols = {**runtime_symbols(), **gemm_symbols(machine, gemm_forms(program))}
        key = program_key(program, machine)
        self._code = load(lambda: self.llvm_ir, machine, [ENTRY], level=1, key=key, symbols=symbols)
        scratch = thread_scratch(program, machine)
        run = compile_run(program, self._code, pool, scratch, worth_a_thread)
        self.run = _checking(program, run) if program.checks else run

    @cached_property
    def llvm_ir(self) -> str:
        """The module as text."""
        return module_of(self.program, self.machine)

    @property
    def from_cache(self) -> bool:
        """Whether the machine code came from the disk cache."""
        return self._code.from_cache


def _checking(program: KernelProgram, run: Run) -> Run:
    """`run`, preceded by the checks that could not be proved."""

    def checked(sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
        for check in program.checks:
            if not holds(check.proposition, sizes):
                at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                where = f"{check.span}: " if check.span else ""
                raise KinaError(f"{where}the assertion {check.proposition} does not hold for {at}")
        return run(sizes, inputs)

    return checked
