"""The functions that a program's kernels become: one for all kernels that differ only in what they read and write.

The layers of a network are the same kernels on other arrays. A function is told by its last arguments where in the
argument block its arrays stand, so that it is emitted, optimised and compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kina.core.ir import Value
from kina.dims.dim import product
from kina.kernels.ir import BandKernel, GemmKernel, KernelProgram, LoopKernel
from kina.native.bands import emit_bands
from kina.native.code import Code
from kina.native.contraction import ContractionEmitter
from kina.native.layout import Layout, load_sizes, sizes_of, word
from kina.native.loops import Buffer, LoopEmitter
from kina.native.machine import Machine
from kina.types import Shape


@dataclass(frozen=True, slots=True)
class _Form:
    """A kernel with its values numbered instead of named, which of them come from outside, how they lie, and how it
    is called."""

    kernel: LoopKernel | GemmKernel
    outside: tuple[bool, ...]
    layouts: tuple[Shape | None, ...]
    band: bool


class Functions:
    """Emits functions as they are asked for; `texts` are all so far."""

    def __init__(self, program: KernelProgram, layout: Layout, machine: Machine) -> None:
        self.texts: list[str] = []
        self._program = program
        self._layout = layout
        self._machine = machine
        self._known: dict[str, str] = {}

    def call(self, kernel: LoopKernel | GemmKernel, arguments: str, *, band: bool = False) -> str:
        """The instruction that runs a kernel.

        A loop kernel takes `ptr args, i64 begin, i64 end`, a range of its tasks; a product `ptr args, i64 tid, i64 n`,
        or with `band`, which some rows of one batch are, `ptr args, i64 batch, i64 first, i64 rows, i64 tid`.
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

    def _code(self) -> Code:
        machine = self._machine
        fused = machine.vector_bytes >= 32 or machine.architecture in ("aarch64", "arm64")
        return Code(sizes_of(self._layout), fused=fused, avx512=machine.vector_bytes == 64)

    def _function(self, name: str, form: _Form) -> str:
        code, kernel = self._code(), form.kernel
        values = tuple(dict.fromkeys((*kernel.inputs, kernel.output)))
        forms = enumerate(zip(values, form.outside, form.layouts, strict=True))
        buffers = {v: _buffer(code, v, f"%place{n}", outside, shape) for n, (v, outside, shape) in forms}
        places = "".join(f", i64 %place{n}" for n in range(len(values)))
        if isinstance(kernel, LoopKernel):
            LoopEmitter(code, kernel, self._machine, buffers, in_cache=form.band).emit("%begin", "%end")
            parameters = "i64 %begin, i64 %end"
        else:
            scratch = word(code, self._layout.scratch, "ptr", "scratch")
            emitter = ContractionEmitter(code, kernel, self._machine, buffers, scratch)
            if form.band:
                emitter.emit_band()
                parameters = "i64 %batch, i64 %first, i64 %rows, i64 %tid"
            else:
                emitter.emit()
                parameters = "i64 %tid, i64 %n"
        return code.function(f"internal void @{name}(ptr %args, {parameters}{places})", load_sizes(self._layout))


def _numbered(kernel: LoopKernel | GemmKernel, values: tuple[Value, ...]) -> LoopKernel | GemmKernel:
    """The kernel with its values named by their numbers."""
    names = {value: Value(f"v{n}", value.type) for n, value in enumerate(values)}
    output = names[kernel.output]
    if isinstance(kernel, LoopKernel):
        return replace(kernel, name="", output=output, inputs=tuple(names[v] for v in kernel.inputs))
    left, right = (replace(o, value=names[o.value]) for o in (kernel.left, kernel.right))
    return replace(kernel, name="", output=output, left=left, right=right)


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
