"""A kernel program as one LLVM module with one entry point.

The entry takes sizes and NumPy's array objects, and makes of them a block of 64-bit words, laid out by `Layout`:
sizes, then for each input its address and strides in elements, then the outputs' addresses and those of the
temporaries in the arena. It runs the body on the threads: each kernel's tasks in equal parts, a barrier between
kernels that depend on each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kina.core.ir import Value
from kina.dims.dim import Dim, constant, maximum, product
from kina.kernels.expressions import children, most_steps
from kina.kernels.ir import BandKernel, GemmKernel, Kernel, KernelProgram, LoopKernel
from kina.kernels.memory import MemoryPlan, plan_memory
from kina.native.bands import band_bytes, band_tasks, emit_bands
from kina.native.code import Code
from kina.native.contraction import ContractionEmitter, gemm_dtype
from kina.native.gemm_library import gemm_declaration
from kina.native.loops import Buffer, LoopEmitter
from kina.native.machine import Machine
from kina.native.mathematics import DECLARED_LIBRARY
from kina.native.schedule import has_row_reductions, tasks_of
from kina.native.tiling import scratch_bytes
from kina.ops.scalar import Reduce, Scalar

ENTRY = "kina_entry"
ALIGNMENT = 64
FITS, MISPLACED, DOES_NOT_FIT = 0, 1, 2
"""What the entry returns: done; an array's elements do not lie at whole steps of their size; wrong shapes."""

_HEADER = object.__basicsize__
_DATA, _RANK, _SHAPE, _STRIDES = 0, 8, 16, 24
"""Where NumPy keeps what an array is, in bytes after the header that all Python objects have."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each thing stands in the argument block, in words."""

    sizes: Mapping[str, int]
    inputs: Mapping[Value, int]
    outputs: Mapping[Value, int]
    temporaries: Mapping[Value, int]
    scratch: int

    @property
    def words(self) -> int:
        return self.scratch + 1


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
    temporaries = {value: at + n for n, value in enumerate((*program.temporaries, *program.between_stages))}
    at += len(temporaries)
    return Layout(sizes, inputs, outputs, temporaries, at)


def thread_scratch(program: KernelProgram, machine: Machine) -> int:
    """Bytes that each thread needs beside the temporaries."""
    most = max((scratch_bytes(machine, dtype, 1) for dtype in gemm_dtypes(program)), default=0)
    return -(-most // ALIGNMENT) * ALIGNMENT


def thread_bands(program: KernelProgram) -> Dim:
    """Bytes that each thread needs, after all threads' scratch, for the bands of attention."""
    most = constant(0)
    for kernel in program.kernels:
        if isinstance(kernel, BandKernel):
            needed = band_bytes(kernel)
            most = needed if most.value == 0 or most is needed else maximum(most, needed)
    return most


def program_key(program: KernelProgram, machine: Machine) -> str:
    """A text that differs for programs with different machine code, shorter to make than their IR.

    Names of values are unique in a program, so the kernels' own form says all.
    """
    what = (program.function.dimensions, program.inputs, program.outputs, program.kernels, plan_memory(program))
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
    functions = [f for n, kernel in enumerate(program.kernels) for f in _kernel(program, layout, n, kernel, machine)]
    plan = plan_memory(program)
    functions.append(_body(program, layout, plan, thread_scratch(program, machine)))
    functions.append(_entry(program, layout, plan))
    declarations = [*DECLARED_LIBRARY, "declare void @kina_run(ptr, ptr, i64)", "declare void @kina_barrier(i64)"]
    declarations += [gemm_declaration(dtype) for dtype in gemm_dtypes(program)]
    return "\n\n".join(["\n".join(declarations), *functions]) + "\n\n!0 = !{i32 1}\n"


def gemm_dtypes(program: KernelProgram) -> list[str]:
    """The dtypes that the program multiplies matrices of, as `gemm` knows them."""
    products = [k for k in program.kernels if isinstance(k, GemmKernel | BandKernel)]
    return sorted({gemm_dtype(k.output.type.dtype) for k in products})


# ---------------------------------------------------------------- kernels


def _kernel(program: KernelProgram, layout: Layout, number: int, kernel: Kernel, machine: Machine) -> Iterator[str]:
    """The functions of a kernel: one, or one for each stage and one that runs them."""
    name = f"kernel{number}"
    if not isinstance(kernel, BandKernel):
        yield _function(program, layout, name, kernel, machine)
        return
    for stage, part in (("first", kernel.first), ("middle", kernel.middle), ("last", kernel.last)):
        yield _function(program, layout, f"{name}.{stage}", part, machine, band=True)
    code = Code(_sizes(layout))
    emit_bands(code, kernel, name, layout.words, layout.temporaries)
    signature = f"internal void @{name}(ptr %args, i64 %begin, i64 %end, i64 %tid, ptr %own)"
    yield code.function(signature, _load_sizes(program, layout))


def _function(
    program: KernelProgram,
    layout: Layout,
    name: str,
    kernel: LoopKernel | GemmKernel,
    machine: Machine,
    *,
    band: bool = False,
) -> str:
    """A kernel as a function of tasks or threads; with `band`, of some rows of a batch."""
    fused = machine.vector_bytes >= 32 or machine.architecture in ("aarch64", "arm64")
    code = Code(_sizes(layout), fused=fused, avx512=machine.vector_bytes == 64)
    prologue = _load_sizes(program, layout)
    buffers = {v: _buffer(code, layout, v) for v in {*kernel.inputs, kernel.output}}
    if isinstance(kernel, GemmKernel):
        scratch = _word(code, layout.scratch, "ptr", "scratch")
        emitter = ContractionEmitter(code, kernel, machine, buffers, scratch)
        if band:
            emitter.emit_band()
            rows = "i64 %batch, i64 %first, i64 %rows, i64 %tid"
            return code.function(f"internal void @{name}(ptr %args, {rows})", prologue)
        emitter.emit()
        return code.function(f"internal void @{name}(ptr %args, i64 %tid, i64 %n)", prologue)
    LoopEmitter(code, kernel, machine, buffers, in_cache=band).emit("%begin", "%end")
    return code.function(f"internal void @{name}(ptr %args, i64 %begin, i64 %end)", prologue)


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


def _body(program: KernelProgram, layout: Layout, plan: MemoryPlan, scratch: int) -> str:
    """All kernels, one after the other, each thread with its part of the tasks."""
    code = Code(_sizes(layout))
    for number, kernel in enumerate(program.kernels):
        if number in plan.waits:
            code.do("call void @kina_barrier(i64 %n)")
        if isinstance(kernel, GemmKernel):
            code.do(f"call void @kernel{number}(ptr %args, i64 %tid, i64 %n)")
            continue
        tasks = code.dim(band_tasks(kernel) if isinstance(kernel, BandKernel) else tasks_of(kernel))
        begin, end = (_part(code, tasks, which) for which in ("%tid", code.let("add i64 %tid, 1")))
        own = ""
        if isinstance(kernel, BandKernel):
            own = f", i64 %tid, ptr {_own_bands(code, layout, scratch, thread_bands(program))}"
        code.do(f"call void @kernel{number}(ptr %args, i64 {begin}, i64 {end}{own})")
    code.do("ret void")
    return code.function("internal void @body(ptr %args, i64 %tid, i64 %n)", _load_sizes(program, layout))


def _own_bands(code: Code, layout: Layout, scratch: int, bands: Dim) -> str:
    """This thread's memory for bands: after the scratch of all threads."""
    start = _word(code, layout.scratch, "ptr", "scratch")
    after = code.let(f"mul i64 %n, {scratch}")
    own = code.let(f"mul i64 %tid, {code.dim(bands)}")
    return code.let(f"getelementptr i8, ptr {start}, i64 {code.let(f'add i64 {after}, {own}')}")


def _part(code: Code, tasks: str, which: str) -> str:
    """Where the part of a thread begins: `tasks * which / n`, without overflow for any number of tasks."""
    quotient = code.let(f"udiv i64 {tasks}, %n")
    rest = code.let(f"urem i64 {tasks}, %n")
    whole = code.let(f"mul i64 {quotient}, {which}")
    extra = code.let(f"mul i64 {rest}, {which}")
    share = code.let(f"udiv i64 {extra}, %n")
    return code.let(f"add i64 {whole}, {share}")


def work_of(kernel: Kernel) -> Dim:
    """Roughly how many elements a kernel computes or combines."""
    if isinstance(kernel, BandKernel):
        return work_of(kernel.first) + work_of(kernel.middle) + work_of(kernel.last)
    if isinstance(kernel, GemmKernel):
        return product([loop.extent for loop in kernel.batch]) * kernel.m * kernel.n * kernel.k
    rows = product([loop.extent for loop in kernel.rows])
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

    Its block has the sizes, then the addresses of the array objects: inputs, outputs, the arena; then the threads.
    """
    code = Code(_sizes(layout))
    block = code.at_entry(f"alloca [{layout.words} x i64], align {ALIGNMENT}", "args")
    for number in layout.sizes.values():
        code.do(f"store i64 %size.{number}, ptr {_place(code, block, number)}")
    objects = [_object(code, len(layout.sizes) + n) for n in range(len(layout.inputs) + len(layout.outputs) + 1)]
    _read_inputs(code, layout, objects[: len(layout.inputs)], block)
    for at, object_ in zip(layout.outputs.values(), objects[len(layout.inputs) : -1], strict=True):
        code.do(f"store i64 {_field(code, object_, _DATA)}, ptr {_place(code, block, at)}")
    here = _field(code, objects[-1], _DATA)
    for place in plan.places:
        for value in place.values:
            code.do(f"store i64 {here}, ptr {_place(code, block, layout.temporaries[value])}")
        padded = code.let(f"add i64 {code.dim(place.size)}, {ALIGNMENT - 1}")
        rounded = code.let(f"and i64 {padded}, {-ALIGNMENT}")
        here = code.let(f"add i64 {here}, {rounded}")
    code.do(f"store i64 {here}, ptr {_place(code, block, layout.scratch)}")
    threads = code.let(f"load i64, ptr {_place(code, '%args', len(layout.sizes) + len(objects))}")
    code.do(f"call void @kina_run(ptr @body, ptr {block}, i64 {threads})")
    code.do(f"ret i64 {FITS}")
    return code.function(f"i64 @{ENTRY}(ptr %args)", _load_sizes(program, layout))


def _read_inputs(code: Code, layout: Layout, objects: list[str], block: str) -> None:
    """Addresses, and strides in elements. Returns from the entry if an array does not fit, or is misplaced."""
    wrong = "0"
    for value, object_ in zip(layout.inputs, objects, strict=True):
        rank = code.let(f"and i64 {_field(code, object_, _RANK)}, {2**32 - 1}")
        wrong = _differs(code, wrong, rank, str(value.type.rank))
    _return_if(code, wrong, DOES_NOT_FIT)
    misplaced = "0"
    for (value, at), object_ in zip(layout.inputs.items(), objects, strict=True):
        itemsize = value.type.dtype.itemsize
        data = _field(code, object_, _DATA)
        code.do(f"store i64 {data}, ptr {_place(code, block, at)}")
        misplaced = _off_step(code, misplaced, data, itemsize)
        shape, strides = (code.let(f"inttoptr i64 {_field(code, object_, f)} to ptr") for f in (_SHAPE, _STRIDES))
        for axis, size in enumerate(value.type.shape):
            wrong = _differs(code, wrong, code.let(f"load i64, ptr {_place(code, shape, axis)}"), code.dim(size))
            stride = code.let(f"load i64, ptr {_place(code, strides, axis)}")
            misplaced = _off_step(code, misplaced, stride, itemsize)
            elements = code.let(f"ashr i64 {stride}, {itemsize.bit_length() - 1}")
            code.do(f"store i64 {elements}, ptr {_place(code, block, at + 1 + axis)}")
    _return_if(code, wrong, DOES_NOT_FIT)
    _return_if(code, misplaced, MISPLACED)


def _differs(code: Code, so_far: str, x: str, y: str) -> str:
    """Not zero if `so_far` is not, or x is not y."""
    return code.let(f"or i64 {so_far}, {code.let(f'xor i64 {x}, {y}')}")


def _off_step(code: Code, so_far: str, x: str, step: int) -> str:
    """Not zero if `so_far` is not, or x is no multiple of the step, a power of two."""
    return code.let(f"or i64 {so_far}, {code.let(f'and i64 {x}, {step - 1}')}")


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
