"""The functions that a program's kernels become: one for all kernels that differ only in what they read and write.

The layers of a network are the same kernels on other arrays. A function is told by its last arguments where in the
argument block its arrays stand, so that it is emitted, optimised and compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kina.core.ir import Value
from kina.dims.dim import product
from kina.kernels.ir import (
    BandKernel,
    GemmKernel,
    KernelProgram,
    LoopKernel,
    Operand,
    OrderKernel,
    PlacesKernel,
    ScatterKernel,
    Single,
)
from kina.native.bands import emit_bands
from kina.native.code import Code
from kina.native.contraction import ContractionEmitter
from kina.native.elements import Buffer
from kina.native.finishing import PARAMETERS, TILE_SIZES, FinishCall, emit_finish, read_context
from kina.native.layout import Layout, load_sizes, sizes_of, word
from kina.native.loops import LoopEmitter
from kina.native.machine import Machine
from kina.native.ordering import emit_order
from kina.native.picking import emit_places
from kina.native.scattering import emit_scatter
from kina.native.schedule import part_of
from kina.types import Shape


@dataclass(frozen=True, slots=True)
class _Form:
    """A kernel with its values numbered instead of named, which of them come from outside, how they lie, and how it
    is called."""

    kernel: Single
    outside: tuple[bool, ...]
    layouts: tuple[Shape | None, ...]
    band: bool

    @property
    def values(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys((*self.kernel.inputs, self.kernel.output)))


class Functions:
    """Emits functions as they are asked for; `texts` are all so far. Each thread has `scratch` bytes of its own."""

    def __init__(self, program: KernelProgram, layout: Layout, machine: Machine, scratch: int) -> None:
        self.texts: list[str] = []
        self._program = program
        self._layout = layout
        self._machine = machine
        self._scratch = scratch
        self._known: dict[str, str] = {}

    def call(self, kernel: Single, arguments: str, *, band: bool = False) -> str:
        """The instruction that runs a kernel.

        A loop kernel and an order take `ptr args, i64 begin, i64 end`, a range of their tasks; others
        `ptr args, i64 tid, i64 n`; with `band`, which some rows of one batch are, a product takes `ptr args, i64 batch,
        i64 first, i64 rows, i64 tid`.
        """
        values = tuple(dict.fromkeys((*kernel.inputs, kernel.output)))
        layouts = tuple(self._program.layouts.get(v) for v in values)
        form = _Form(_numbered(kernel, values), tuple(v in self._layout.inputs for v in values), layouts, band)
        said = repr(form)  # values are equal only to themselves
        name = self._known.get(said)
        if name is None:
            name = self._known[said] = f"kernel{len(self._known)}"
            self.texts.append(self._function(name, form))
        places = "".join(f", i64 {self._place(value)}" for value in values)
        return f"call void @{name}({arguments}{places})"

    def band_function(self, kernel: BandKernel) -> str:
        """The name of `(ptr args, i64 begin, i64 end, i64 tid, ptr own)`, which runs a range of the kernel's bands."""
        name = f"bands{len(self.texts)}"
        rows = "ptr {block}, i64 {batch}, i64 {first}, i64 {rows}, i64 %tid"
        calls = (
            self.call(kernel.first, rows, band=True),
            self.call(kernel.middle, "ptr {block}, i64 {begin}, i64 {end}", band=True),
            self.call(kernel.last, rows, band=True),
        )
        code = self._code()
        emit_bands(code, kernel, calls, self._layout.words, self._layout.temporaries)
        signature = f"internal void @{name}(ptr %args, i64 %begin, i64 %end, i64 %tid, ptr %own)"
        self.texts.append(code.function(signature, load_sizes(self._layout)))
        return name

    def _place(self, value: Value) -> int:
        return self._layout.places[value]

    def _code(self, more: Mapping[str, str] | None = None) -> Code:
        """A function's code, which knows the program's sizes and `more`."""
        machine = self._machine
        fused = machine.vector_bytes >= 32 or machine.architecture in ("aarch64", "arm64")
        sizes = {**sizes_of(self._layout), **(more or {})}
        return Code(sizes, fused=fused, avx512=machine.vector_bytes == 64)

    def _function(self, name: str, form: _Form) -> str:
        code = self._code()
        places = "".join(f", i64 %place{n}" for n in range(len(form.values)))
        parameters = self._emit(code, name, form, _buffers(code, form))
        return code.function(f"internal void @{name}(ptr %args, {parameters}{places})", load_sizes(self._layout))

    def _emit(self, code: Code, name: str, form: _Form, buffers: dict[Value, Buffer]) -> str:
        """The body of a kernel's function; gives its parameters."""
        match form.kernel:
            case LoopKernel() as kernel:
                LoopEmitter(code, kernel, self._machine, buffers, in_cache=form.band).emit("%begin", "%end")
                return "i64 %begin, i64 %end"
            case OrderKernel() as kernel:
                emit_order(code, kernel, buffers)
                return "i64 %begin, i64 %end"
            case ScatterKernel() as kernel:
                emit_scatter(code, kernel, buffers, part_of)
                return "i64 %tid, i64 %n"
            case PlacesKernel() as kernel:
                scratch = word(code, self._layout.scratch, "ptr", "scratch")
                emit_places(code, kernel, buffers, part_of, scratch, self._scratch)
                return "i64 %tid, i64 %n"
            case GemmKernel() as kernel:
                scratch = word(code, self._layout.scratch, "ptr", "scratch")
                finish = self._finish(name, form, kernel) if kernel.finish else None
                emitter = ContractionEmitter(code, kernel, self._machine, buffers, scratch, finish)
                if form.band:
                    emitter.emit_band()
                    return "i64 %batch, i64 %first, i64 %rows, i64 %tid"
                emitter.emit()
                return "i64 %tid, i64 %n"

    def _finish(self, name: str, form: _Form, kernel: GemmKernel) -> FinishCall:
        """The function that finishes the tiles of a product, emitted."""
        code = self._code(TILE_SIZES)
        emit_finish(code, kernel, self._machine, _buffers(code, form))
        prologue = [*read_context(kernel, len(form.values)), *load_sizes(self._layout)]
        self.texts.append(code.function(f"internal void @{name}_finish({PARAMETERS})", prologue))
        return FinishCall(f"{name}_finish", len(form.values))


def _numbered(kernel: Single, values: tuple[Value, ...]) -> Single:
    """The kernel with its values named by their numbers."""
    names = {value: Value(f"v{n}", value.type) for n, value in enumerate(values)}
    output = names[kernel.output]

    def of(operand: Operand) -> Operand:
        return replace(operand, value=names[operand.value])

    match kernel:
        case LoopKernel(inputs=inputs):
            return replace(kernel, name="", output=output, inputs=tuple(names[v] for v in inputs))
        case GemmKernel(left=left, right=right, finish=finish):
            after = finish and replace(finish, inputs=tuple(names[v] for v in finish.inputs))
            return replace(kernel, name="", output=output, left=of(left), right=of(right), finish=after)
        case OrderKernel(keys=keys):
            return replace(kernel, name="", output=output, keys=of(keys))
        case PlacesKernel(mask=mask):
            return replace(kernel, name="", output=output, mask=of(mask))
        case ScatterKernel(x=x, ids=ids, updates=updates):
            return replace(kernel, name="", output=output, x=of(x), ids=of(ids), updates=of(updates))


def _buffers(code: Code, form: _Form) -> dict[Value, Buffer]:
    """Where the kernel's values lie; the function knows their places as `%place0` and so on."""
    forms = enumerate(zip(form.values, form.outside, form.layouts, strict=True))
    return {v: _buffer(code, v, f"%place{n}", outside, shape) for n, (v, outside, shape) in forms}


def _buffer(code: Code, value: Value, place: str, outside: bool, layout: Shape | None) -> Buffer:
    """A tensor's address and strides, read in the entry block. What we allocate is row-major, in its own shape or a
    larger one."""
    pointer = word(code, place, "ptr", "data")
    shape = layout or value.type.shape
    if outside:
        words = (code.at_entry(f"add i64 {place}, {axis + 1}", "word") for axis in range(len(shape)))
        return Buffer(pointer, value.type.dtype, tuple(word(code, n, "i64", "stride") for n in words))
    strides = tuple(code.dim(product(list(shape[axis + 1 :]))) for axis in range(len(shape)))
    return Buffer(pointer, value.type.dtype, strides)
