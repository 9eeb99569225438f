"""Loop nests -> machine code, through LLVM."""

from kina.kernels.ir import KernelProgram
from kina.native.executable import Executable
from kina.native.machine import Machine


def compile(program: KernelProgram, machine: Machine) -> Executable:
    """The program as machine code, from the disk cache if it is there."""
    return Executable(program, machine)


__all__ = ["Executable", "Machine", "compile"]
