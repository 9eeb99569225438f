"""A kernel program as one LLVM module with one entry point.

The entry takes sizes and NumPy's array objects, and makes of them a block of 64-bit words, laid out by `Layout`:
sizes, then for each input its address and strides in elements, then the outputs' addresses and those of the
temporaries in the arena. It runs the body on the threads: each kernel's tasks in equal parts, a barrier between
kernels that depend on each other.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from kina.dims.dim import Dim, constant, maximum, product
from kina.kernels.expressions import children, most_steps
from kina.kernels.ir import (
    BandKernel,
    GemmKernel,
    Kernel,
    KernelProgram,
    OrderKernel,
    PlacesKernel,
    ScatterKernel,
)
from kina.kernels.memory import MemoryPlan, plan_memory
from kina.native.bands import band_bytes
from kina.native.code import Code
from kina.native.contraction import form_of
from kina.native.forms import Form
from kina.native.functions import Functions
from kina.native.gemm_library import gemm_declaration
from kina.native.layout import Layout, Report, layout_of, load_sizes, report_of, sizes_of
from kina.native.machine import Machine
from kina.native.mathematics import DECLARED_LIBRARY
from kina.native.picking import COUNT_BYTES
from kina.native.regions import Regions
from kina.native.schedule import has_row_reductions
from kina.native.tiling import scratch_bytes
from kina.ops.scalar import Reduce, Scalar

ENTRY = "kina_entry"
ALIGNMENT = 64
_COMPARED = 16
"""What putting a number in order costs, in elements."""
FITS, MISPLACED, DOES_NOT_FIT = 0, 1, 2
"""What the entry returns: done; an array's elements do not lie at whole steps of their size; wrong shapes."""

_HEADER = object.__basicsize__
_DATA, _RANK, _SHAPE, _STRIDES = 0, 8, 16, 24
"""Where NumPy keeps what an array is, in bytes after the header that all Python objects have."""


def thread_scratch(program: KernelProgram, machine: Machine) -> int:
    """Bytes that each thread needs beside the temporaries."""
    counts = COUNT_BYTES if any(isinstance(k, PlacesKernel) for k in program.kernels) else 0
    most = max((scratch_bytes(machine, form.dtype, 1) for form in gemm_forms(program)), default=counts)
    return -(-most // ALIGNMENT) * ALIGNMENT


def thread_bands(program: KernelProgram) -> Dim:
    """Bytes that each thread needs, after all threads' scratch, for the bands of attention."""
    most = constant(0)
    for kernel in program.kernels:
        if isinstance(kernel, BandKernel):
            needed = program.most(band_bytes(kernel))
            most = needed if most.value == 0 or most is needed else maximum(most, needed)
    return most


def program_key(program: KernelProgram, machine: Machine) -> str:
    """A text that differs for programs with different machine code, shorter to make than their IR.

    Names of values are unique in a program, so the kernels' own form says all.
    """
    what = (program.function.dimensions, program.inputs, program.outputs, program.steps, plan_memory(program))
    return f"{_emitters()} {_HEADER} {replace(machine, cores=1)} {what!r}"


@cache
def _emitters() -> str:
    """A hash of the code that makes machine code of kernels: a cached object is good as long as it is the same."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *(here.parent / "kernels").glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def module_of(program: KernelProgram, machine: Machine) -> str:
    """The LLVM module, as text."""
    layout = layout_of(program)
    scratch = thread_scratch(program, machine)
    functions = Functions(program, layout, machine, scratch)
    plan = plan_memory(program)
    regions = Regions(program, layout, plan, functions, scratch, thread_bands(program))
    first = regions.steps(program.steps)
    body = _body(program, layout, report_of(program, plan), first)
    texts = [*functions.texts, *regions.texts, body, _entry(program, layout, plan)]
    declarations = [*DECLARED_LIBRARY, "declare void @kina_run(ptr, ptr, i64)", "declare void @kina_barrier(i64)"]
    declarations += ["declare void @kina_reserve(ptr, i64)"]
    declarations += [gemm_declaration(form) for form in gemm_forms(program)]
    texts += readers(program, machine)
    return "\n\n".join(["\n".join(declarations), *texts]) + "\n\n!0 = !{i32 1}\n"


def gemm_forms(program: KernelProgram) -> list[Form]:
    """The forms of gemm that the program calls."""
    products = [k for k in program.kernels if isinstance(k, GemmKernel)]
    products += [stage for k in program.kernels if isinstance(k, BandKernel) for stage in (k.first, k.last)]
    return sorted({form_of(kernel) for kernel in products}, key=str)


def readers(program: KernelProgram, machine: Machine) -> list[str]:
    """The functions that read quantised numbers, a vector or one."""
    dtypes = {v.type.dtype for kernel in program.kernels for v in kernel.inputs}
    quantised = sorted((d for d in dtypes if d.block is not None), key=str)
    if not quantised:
        return []
    from kina.native.blocks import readers_text

    return readers_text(machine, quantised)


# ---------------------------------------------------------------- the body and the entry


def _body(program: KernelProgram, layout: Layout, report: Report, first: str) -> str:
    """What each thread does. Where there are loops each has a block of its own, and the first one tells how it went."""
    code = Code({})
    if program.straight:
        code.do(f"call i64 @{first}(ptr %args, i64 %tid, i64 %n)")
        code.do("ret void")
        return code.function("internal void @body(ptr %args, i64 %tid, i64 %n)")
    block = code.at_entry(f"alloca [{layout.words} x i64], align {ALIGNMENT}", "block")
    code.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {block}, ptr %args, i64 {8 * layout.words}, i1 false)")
    code.do("call void @kina_barrier(i64 %n)")  # the first thread writes into the shared block, after all have read it
    status = code.let(f"call i64 @{first}(ptr {block}, i64 %tid, i64 %n)")
    tell, done = code.fresh_label("tell"), code.fresh_label("done")
    code.do(f"br i1 {code.let('icmp eq i64 %tid, 0')}, label %{tell}, label %{done}")
    code.label(tell)
    told = code.let(f"load ptr, ptr {_place(code, block, layout.report)}")
    code.do(f"store i64 {status}, ptr {_place(code, told, report.outcome)}")
    for name, at in report.made.items():
        found = code.let(f"load i64, ptr {_place(code, block, layout.made[name])}")
        code.do(f"store i64 {found}, ptr {_place(code, told, at)}")
    code.do(f"br label %{done}")
    code.label(done)
    code.do("ret void")
    return code.function("internal void @body(ptr %args, i64 %tid, i64 %n)")


def work_of(kernel: Kernel) -> Dim:
    """Roughly how many elements a kernel computes or combines."""
    if isinstance(kernel, BandKernel):
        return work_of(kernel.first) + work_of(kernel.middle) + work_of(kernel.last)
    if isinstance(kernel, GemmKernel):
        return product([loop.extent for loop in kernel.batch]) * kernel.m * kernel.n * kernel.k
    if isinstance(kernel, PlacesKernel):
        return product([loop.extent for loop in kernel.loops]) * 2
    if isinstance(kernel, ScatterKernel):
        return product(list(kernel.output.type.shape)) + product(list(kernel.updates.value.type.shape))
    rows = product([loop.extent for loop in kernel.rows])
    if isinstance(kernel, OrderKernel):
        return rows * kernel.size * _COMPARED
    if kernel.scan:
        return rows * kernel.scan.loop.extent * (_steps(kernel.body) + 1)
    if kernel.inner is None:
        return rows * (_steps(kernel.body) + 1)
    once_a_row = has_row_reductions(kernel)
    return rows * kernel.inner.extent * (1 if once_a_row else _steps(kernel.body) + 1)


def _steps(e: Scalar) -> Dim:
    """How many elements the reductions of an expression combine."""
    inside = constant(0)
    for child in children(e):
        inside = inside + _steps(child)
    return most_steps(e) * (inside + 1) if isinstance(e, Reduce) else inside


def _entry(program: KernelProgram, layout: Layout, plan: MemoryPlan) -> str:
    """Reads the array objects into a block of `Layout`, and runs the body on the threads.

    Its block has the sizes, then the addresses of the array objects: inputs, outputs (those whose sizes are bounded
    when it starts), the arena, and where there are loops, branches or checks the report; then the threads.
    """
    code = Code(sizes_of(layout))
    block = code.at_entry(f"alloca [{layout.words} x i64], align {ALIGNMENT}", "args")
    for number in layout.sizes.values():
        code.do(f"store i64 %size.{number}, ptr {_place(code, block, number)}")
    outputs = [at for value, at in layout.outputs.items() if program.known_with(value) is None]
    extra = 1 if program.straight else 2
    objects = [_object(code, len(layout.sizes) + n) for n in range(len(layout.inputs) + len(outputs) + extra)]
    *given, arena = objects if program.straight else objects[:-1]
    _read_inputs(code, layout, given[: len(layout.inputs)], block)
    for at, object_ in zip(outputs, given[len(layout.inputs) :], strict=True):
        code.do(f"store i64 {_field(code, object_, _DATA)}, ptr {_place(code, block, at)}")
    here = _field(code, arena, _DATA)
    for place in plan.early:
        for value in place.values:
            code.do(f"store i64 {here}, ptr {_place(code, block, layout.temporaries[value])}")
        padded = code.let(f"add i64 {code.dim(place.size)}, {ALIGNMENT - 1}")
        rounded = code.let(f"and i64 {padded}, {-ALIGNMENT}")
        here = code.let(f"add i64 {here}, {rounded}")
    code.do(f"store i64 {here}, ptr {_place(code, block, layout.scratch)}")
    if not program.straight:
        code.do(f"store i64 {_field(code, objects[-1], _DATA)}, ptr {_place(code, block, layout.report)}")
    threads = code.let(f"load i64, ptr {_place(code, '%args', len(layout.sizes) + len(objects))}")
    code.do(f"call void @kina_run(ptr @body, ptr {block}, i64 {threads})")
    code.do(f"ret i64 {FITS}")
    return code.function(f"i64 @{ENTRY}(ptr %args)", load_sizes(layout, given=True))


def _read_inputs(code: Code, layout: Layout, objects: list[str], block: str) -> None:
    """Addresses, and strides in elements. Returns from the entry if an array does not fit, or is misplaced."""
    wrong = "0"
    for value, object_ in zip(layout.inputs, objects, strict=True):
        rank = code.let(f"and i64 {_field(code, object_, _RANK)}, {2**32 - 1}")
        wrong = _differs(code, wrong, rank, str(value.type.rank))
    _return_if(code, wrong, DOES_NOT_FIT)
    misplaced = "0"
    for (value, at), object_ in zip(layout.inputs.items(), objects, strict=True):
        dtype = value.type.dtype
        data = _field(code, object_, _DATA)
        code.do(f"store i64 {data}, ptr {_place(code, block, at)}")
        if dtype.block is None:  # blocks lie anywhere
            misplaced = _off_step(code, misplaced, data, dtype.itemsize)
        shape, strides = (code.let(f"inttoptr i64 {_field(code, object_, f)} to ptr") for f in (_SHAPE, _STRIDES))
        for axis, size in enumerate(value.type.shape):
            here = code.let(f"load i64, ptr {_place(code, shape, axis)}")
            if dtype.block is not None and axis == value.type.rank - 1:
                here = code.let(f"mul i64 {here}, {dtype.block}")
            wrong = _differs(code, wrong, here, code.dim(size))
            stride = code.let(f"load i64, ptr {_place(code, strides, axis)}")
            misplaced = _off_step(code, misplaced, stride, dtype.itemsize)
            elements = code.let(f"sdiv exact i64 {stride}, {dtype.itemsize}")
            code.do(f"store i64 {elements}, ptr {_place(code, block, at + 1 + axis)}")
    _return_if(code, wrong, DOES_NOT_FIT)
    _return_if(code, misplaced, MISPLACED)


def _differs(code: Code, so_far: str, x: str, y: str) -> str:
    """Not zero if `so_far` is not, or x is not y."""
    return code.let(f"or i64 {so_far}, {code.let(f'xor i64 {x}, {y}')}")


def _off_step(code: Code, so_far: str, x: str, step: int) -> str:
    """Not zero if `so_far` is not, or x is no multiple of the step."""
    rest = f"and i64 {x}, {step - 1}" if step & (step - 1) == 0 else f"srem i64 {x}, {step}"
    return code.let(f"or i64 {so_far}, {code.let(rest)}")


def _return_if(code: Code, flag: str, status: int) -> None:
    leave, stay = code.fresh_label("leave"), code.fresh_label("stay")
    code.do(f"br i1 {code.let(f'icmp ne i64 {flag}, 0')}, label %{leave}, label %{stay}")
    code.label(leave)
    code.do(f"ret i64 {status}")
    code.label(stay)


def _place(code: Code, pointer: str, word: int) -> str:
    return code.let(f"getelementptr inbounds i64, ptr {pointer}, i64 {word}")


def _object(code: Code, number: int) -> str:
    return code.let(f"load ptr, ptr {_place(code, '%args', number)}")


def _field(code: Code, object_: str, offset: int) -> str:
    place = code.let(f"getelementptr inbounds i8, ptr {object_}, i64 {_HEADER + offset}")
    return code.let(f"load i64, ptr {place}, align 8")
