"""Core -> loop nests: fusion, schedules, and their description."""

from kina.kernels.fuse import fuse
from kina.kernels.ir import BandKernel, GemmKernel, Kernel, KernelProgram, Loop, LoopKernel, Operand

__all__ = ["BandKernel", "GemmKernel", "Kernel", "KernelProgram", "Loop", "LoopKernel", "Operand", "fuse"]
