"""A kernel program as one LLVM module with one entry point.

The entry takes a block of 64-bit words, laid out by `Layout`: sizes, then for each input its address and
strides in elements, then the outputs' addresses, the arena's, and the number of threads. It places the
temporaries in the arena and runs the body on the threads: each kernel's tasks in equal parts, a barrier
between kernels that depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from llvmlite import ir

from kina.core.ir import Value
from kina.dims.dim import Dim, product
from kina.kernels.expressions import walk
from kina.kernels.ir import GemmKernel, Kernel, KernelProgram, LoopKernel
from kina.native.code import Code
from kina.native.contraction import ContractionEmitter, gemm_dtype
from kina.native.gemm import emit_gemm, scratch_bytes
from kina.native.loops import Buffer, LoopEmitter, stretches_of
from kina.native.machine import Machine
from kina.native.mathematics import DECLARED_LIBRARY
from kina.ops.scalar import Reduce

ENTRY = "kina_entry"
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each thing stands in the argument block, in words."""

    sizes: Mapping[str, int]
    inputs: Mapping[Value, int]
    outputs: Mapping[Value, int]
    temporaries: Mapping[Value, int]
    scratch: int
    arena: int
    threads: int

    @property
    def words(self) -> int:
        return self.threads + 1


def layout_of(program: KernelProgram) -> Layout:
    """The argument block of a program: its order is that of the parameters."""
    sizes = {name: n for n, name in enumerate(program.function.dimensions)}
    at = len(sizes)
    inputs = {}
    for value in program.inputs:
        inputs[value] = at
        at += 1 + value.type.rank
    outputs = {value: at + n for n, value in enumerate(program.outputs)}
    at += len(outputs)
    temporaries = {value: at + n for n, value in enumerate(program.temporaries)}
    at += len(temporaries)
    return Layout(sizes, inputs, outputs, temporaries, at, at + 1, at + 2)


def thread_scratch(program: KernelProgram, machine: Machine) -> int:
    """Bytes that each thread needs beside the temporaries."""
    dtypes = {gemm_dtype(k.output.type.dtype) for k in program.kernels if isinstance(k, GemmKernel)}
    return max((scratch_bytes(machine, dtype, 1) for dtype in dtypes), default=0)


def temporary_bytes(value: Value) -> Dim:
    """The place of a temporary in the arena, before rounding up to the alignment."""
    return product(list(value.type.shape)) * value.type.dtype.itemsize


def module_of(program: KernelProgram, machine: Machine) -> str:
    """The LLVM module, as text."""
    layout = layout_of(program)
    functions = [_kernel(program, layout, n, kernel, machine) for n, kernel in enumerate(program.kernels)]
    functions.append(_body(program, layout))
    functions.append(_entry(program, layout))
    declarations = [*DECLARED_LIBRARY, "declare void @kina_run(ptr, ptr, i64)", "declare void @kina_barrier(i64)"]
    return "\n\n".join(["\n".join(declarations), *functions, *_gemms(program, machine)]) + "\n"


def _gemms(program: KernelProgram, machine: Machine) -> list[str]:
    """The gemm of each dtype that the program multiplies."""
    dtypes = {gemm_dtype(k.output.type.dtype) for k in program.kernels if isinstance(k, GemmKernel)}
    texts = []
    for dtype in sorted(dtypes):
        texts.append(gemm_text(machine, dtype))
    return texts


@cache
def gemm_text(machine: Machine, dtype: str) -> str:
    """The gemm of one dtype and all that it calls, as IR to stand beside other functions."""
    module = ir.Module()
    emit_gemm(module, machine, dtype).linkage = "internal"
    lines = str(module).split("\n")
    return "\n".join(line for line in lines if not line.startswith((";", "target ")))


# ---------------------------------------------------------------- kernels


def _kernel(program: KernelProgram, layout: Layout, number: int, kernel: Kernel, machine: Machine) -> str:
    code = Code(_sizes(layout))
    prologue = _load_sizes(program, layout)
    buffers = {v: _buffer(code, layout, v) for v in {*kernel.inputs, kernel.output}}
    if isinstance(kernel, GemmKernel):
        scratch = _word(code, layout.scratch, "ptr", "scratch")
        ContractionEmitter(code, kernel, machine, buffers, scratch).emit()
        return code.function(f"internal void @kernel{number}(ptr %args, i64 %tid, i64 %n)", prologue)
    LoopEmitter(code, kernel, machine, buffers).emit("%begin", "%end")
    signature = f"internal void @kernel{number}(ptr %args, i64 %begin, i64 %end)"
    return code.function(signature, prologue)


def _sizes(layout: Layout) -> dict[str, str]:
    return {name: f"%size.{number}" for name, number in layout.sizes.items()}


def _load_sizes(program: KernelProgram, layout: Layout) -> list[str]:
    lines = []
    for number in layout.sizes.values():
        lines.append(f"  %at.{number} = getelementptr inbounds i64, ptr %args, i64 {number}")
        lines.append(f"  %size.{number} = load i64, ptr %at.{number}")
    return lines


def _buffer(code: Code, layout: Layout, value: Value) -> Buffer:
    """A tensor's address and strides, read in the entry block. What we allocate is row-major."""
    if value in layout.inputs:
        at = layout.inputs[value]
        strides = tuple(_word(code, at + 1 + axis, "i64", "stride") for axis in range(value.type.rank))
        return Buffer(_word(code, at, "ptr", "data"), value.type.dtype, strides)
    at = layout.outputs[value] if value in layout.outputs else layout.temporaries[value]
    shape = value.type.shape
    strides = tuple(code.dim(product(list(shape[axis + 1 :]))) for axis in range(len(shape)))
    return Buffer(_word(code, at, "ptr", "data"), value.type.dtype, strides)


def _word(code: Code, number: int, type_: str, stem: str) -> str:
    place = code.at_entry(f"getelementptr inbounds i64, ptr %args, i64 {number}", "at")
    return code.at_entry(f"load {type_}, ptr {place}", stem)


# ---------------------------------------------------------------- the body and the entry


def _body(program: KernelProgram, layout: Layout) -> str:
    """All kernels, one after the other, each thread with its part of the tasks."""
    code = Code(_sizes(layout))
    pending: set[Value] = set()
    for number, kernel in enumerate(program.kernels):
        if pending & {*kernel.inputs}:
            code.do("call void @kina_barrier(i64 %n)")
            pending = set()
        pending.add(kernel.output)
        if isinstance(kernel, GemmKernel):
            code.do(f"call void @kernel{number}(ptr %args, i64 %tid, i64 %n)")
            continue
        tasks = code.dim(tasks_of(kernel))
        begin, end = (_part(code, tasks, which) for which in ("%tid", code.let("add i64 %tid, 1")))
        code.do(f"call void @kernel{number}(ptr %args, i64 {begin}, i64 {end})")
    code.do("ret void")
    return code.function("internal void @body(ptr %args, i64 %tid, i64 %n)", _load_sizes(program, layout))


def _part(code: Code, tasks: str, which: str) -> str:
    """Where the part of a thread begins: `tasks * which / n`, without overflow for any number of tasks."""
    quotient = code.let(f"udiv i64 {tasks}, %n")
    rest = code.let(f"urem i64 {tasks}, %n")
    whole = code.let(f"mul i64 {quotient}, {which}")
    extra = code.let(f"mul i64 {rest}, {which}")
    share = code.let(f"udiv i64 {extra}, %n")
    return code.let(f"add i64 {whole}, {share}")


def tasks_of(kernel: LoopKernel) -> Dim:
    """How many tasks a kernel has."""
    return product([loop.extent for loop in kernel.rows]) * stretches_of(kernel)


def work_of(kernel: Kernel) -> Dim:
    """Roughly how many elements a kernel computes or combines."""
    if isinstance(kernel, GemmKernel):
        return product([loop.extent for loop in kernel.batch]) * kernel.m * kernel.n * kernel.k
    extents = [loop.extent for loop in kernel.loops]
    reduced = max((e.extent for e in walk(kernel.body) if isinstance(e, Reduce)), key=str, default=None)
    inside = reduced is not None and kernel.inner is None
    return product([*extents, reduced]) if inside and reduced is not None else product(extents)


def _entry(program: KernelProgram, layout: Layout) -> str:
    code = Code(_sizes(layout))
    arena = _word(code, layout.arena, "ptr", "arena")
    threads = _word(code, layout.threads, "i64", "threads")
    here = "0"
    for value, at in layout.temporaries.items():
        pointer = code.let(f"getelementptr inbounds i8, ptr {arena}, i64 {here}")
        place = code.let(f"getelementptr inbounds i64, ptr %args, i64 {at}")
        code.do(f"store ptr {pointer}, ptr {place}")
        size = code.dim(temporary_bytes(value))
        padded = code.let(f"add i64 {size}, {ALIGNMENT - 1}")
        rounded = code.let(f"and i64 {padded}, {-ALIGNMENT}")
        here = code.let(f"add i64 {here}, {rounded}")
    scratch = code.let(f"getelementptr inbounds i8, ptr {arena}, i64 {here}")
    place = code.let(f"getelementptr inbounds i64, ptr %args, i64 {layout.scratch}")
    code.do(f"store ptr {scratch}, ptr {place}")
    code.do(f"call void @kina_run(ptr @body, ptr %args, i64 {threads})")
    code.do("ret void")
    return code.function(f"void @{ENTRY}(ptr %args)", _load_sizes(program, layout))
