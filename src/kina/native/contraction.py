"""A contraction as calls of gemm: batches split over threads, or each batch by all of them, or all as one.

Where the right operand is the same for every batch and the rows of the left one follow each other through
the batches in memory (a linear layer), the batches are more rows of a single product: asked once a
call, by comparing strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kina.core.ir import Value
from kina.dims.dim import Dim, constant, product, variable
from kina.kernels.ir import GemmKernel, Operand
from kina.native.code import Code, memory_type
from kina.native.elements import Buffer
from kina.native.finishing import FinishCall
from kina.native.forms import Form
from kina.native.machine import Machine
from kina.native.schedule import NotAlong, coefficient
from kina.native.tiling import scratch_bytes
from kina.types import DType

_ZERO = constant(0)


def form_of(kernel: GemmKernel) -> Form:
    """The form of gemm that runs a contraction."""
    dtype = "f64" if kernel.output.type.dtype is DType.F64 else "f32"
    return Form(dtype, _stored_as(kernel.left), _stored_as(kernel.right))


def _stored_as(operand: Operand) -> str:
    return str(operand.value.type.dtype).lower()


class ContractionEmitter:
    """Emits one contraction; each thread calls it with its number."""

    def __init__(
        self, code: Code, kernel: GemmKernel, machine: Machine, buffers: dict[Value, Buffer], scratch: str,
        finish: FinishCall | None = None,
    ) -> None:  # fmt: skip
        self.code = code
        self.kernel = kernel
        self.left = buffers[kernel.left.value]
        self.right = buffers[kernel.right.value]
        self.output = buffers[kernel.output]
        self.form = form_of(kernel)
        self.scratch = scratch
        self.scratch_bytes = scratch_bytes(machine, self.form.dtype, 1)
        self.finish = finish

    def emit(self) -> None:
        """The whole contraction, this thread's part."""
        code, kernel = self.code, self.kernel
        m = code.dim(kernel.m)
        if not kernel.batch:
            self._call(m, self.scratch, "%tid", "%n")
            code.do("ret void")
            return
        joined = self._rows_follow()
        if joined is not None:
            one, many = code.fresh_label("joined"), code.fresh_label("batches")
            code.do(f"br i1 {joined}, label %{one}, label %{many}")
            code.label(one)
            rows = code.dim(product([*(loop.extent for loop in kernel.batch), kernel.m]))
            with ExitStack() as stack:
                for loop in kernel.batch:
                    stack.enter_context(code.variable(loop.variable, "0"))
                self._call(rows, self.scratch, "%tid", "%n")
            code.do("ret void")
            code.label(many)
        self._batches(m)
        code.do("ret void")

    def emit_band(self) -> None:
        """The rows from `%first`, `%rows` of them, of batch number `%batch`: all by the calling thread."""
        code = self.code
        own = self._own_scratch()
        with self._batch("%batch"), code.variable("%m", "%first"):
            self._call("%rows", own, "0", "1", variable("%m"))
        code.do("ret void")

    def _own_scratch(self) -> str:
        offset = self.code.let(f"mul i64 %tid, {self.scratch_bytes}")
        return self.code.let(f"getelementptr inbounds i8, ptr {self.scratch}, i64 {offset}")

    def _batches(self, m: str) -> None:
        """Enough batches are dealt out whole; few are each shared by all threads."""
        code = self.code
        count = code.dim(product([loop.extent for loop in self.kernel.batch]))
        plenty = code.let("shl i64 %n, 2")
        whole = code.let(f"icmp sge i64 {count}, {plenty}")
        alone, shared, done = (code.fresh_label(s) for s in ("alone", "shared", "done"))
        code.do(f"br i1 {whole}, label %{alone}, label %{shared}")
        code.label(alone)
        own = self._own_scratch()
        per_thread = code.let(f"udiv i64 {count}, %n")
        rest = code.let(f"urem i64 {count}, %n")
        bounds = []
        for which in ("%tid", code.let("add i64 %tid, 1")):
            extra = code.let(f"call i64 @llvm.umin.i64(i64 {which}, i64 {rest})")
            base = code.let(f"mul i64 {per_thread}, {which}")
            bounds.append(code.let(f"add i64 {base}, {extra}"))
        self._range(m, bounds[0], bounds[1], own, "0", "1")
        code.do(f"br label %{done}")
        code.label(shared)
        self._range(m, "0", count, self.scratch, "%tid", "%n")
        code.do(f"br label %{done}")
        code.label(done)

    def _range(self, m: str, begin: str, end: str, scratch: str, tid: str, threads: str) -> None:
        code = self.code
        with code.loop(begin, end) as number, self._batch(number):
            self._call(m, scratch, tid, threads)

    @contextmanager
    def _batch(self, number: str) -> Iterator[None]:
        """The batch loops' variables from the number of the batch, the last loop fastest."""
        code, rest = self.code, number
        with ExitStack() as stack:
            for position, loop in reversed(list(enumerate(self.kernel.batch))):
                extent = code.dim(loop.extent)
                index = code.let(f"urem i64 {rest}, {extent}") if position else rest
                rest = code.let(f"udiv i64 {rest}, {extent}") if position else rest
                stack.enter_context(code.variable(loop.variable, index))
            yield

    # ------------------------------------------------------------ operands

    def _call(self, m: str, scratch: str, tid: str, threads: str, first: Dim = _ZERO) -> None:
        """`m` rows of the product of the batch at hand, from row `first`."""
        code, kernel = self.code, self.kernel
        n, k = code.dim(kernel.n), code.dim(kernel.k)
        a = self._pointer(kernel.left, self.left, first)
        b = self._pointer(kernel.right, self.right, _ZERO)
        index = tuple(variable(loop.variable) for loop in kernel.batch)
        c = self._offset_pointer(self.output, (*index, first, _ZERO))
        a_strides = (self._stride(kernel.left, self.left, "%m"), self._stride(kernel.left, self.left, "%k"))
        b_strides = (self._stride(kernel.right, self.right, "%k"), self._stride(kernel.right, self.right, "%n"))
        c_strides = self.output.strides[-2:]
        arguments = ", ".join(
            [
                *(f"i64 {size}" for size in (m, n, k)),
                f"ptr {a}", *(f"i64 {s}" for s in a_strides),
                f"ptr {b}", *(f"i64 {s}" for s in b_strides),
                f"ptr {c}", *(f"i64 {s}" for s in c_strides),
                f"ptr {scratch}", f"i64 {tid}", f"i64 {threads}", *self._finish(),
            ]
        )  # fmt: skip
        code.do(f"call void @{self.form.name}({arguments})")

    def _finish(self) -> tuple[str, str]:
        """The function that finishes parts of the product, and what it is told: the number of this batch."""
        if self.finish is None:
            return "ptr null", "ptr null"
        number = constant(0)
        for loop in self.kernel.batch:
            number = number * loop.extent + variable(loop.variable)
        return self.finish.tell(self.code, self.code.dim(number))

    def _pointer(self, operand: Operand, buffer: Buffer, first: Dim) -> str:
        """Where the operand's matrix of this batch begins, from row `first` of the left one."""
        start = {"%m": first, "%n": _ZERO, "%k": _ZERO}
        return self._offset_pointer(buffer, tuple(i.substitute(start) for i in operand.index))

    def _offset_pointer(self, buffer: Buffer, index: tuple[Dim, ...]) -> str:
        code = self.code
        offset = "0"
        for i, stride in zip(index, buffer.strides, strict=True):
            if i.value != 0:
                step = code.let(f"mul nsw i64 {code.dim(i)}, {stride}")
                offset = code.let(f"add nsw i64 {offset}, {step}")
        return code.let(f"getelementptr inbounds {memory_type(buffer.dtype)}, ptr {buffer.pointer}, i64 {offset}")

    def _stride(self, operand: Operand, buffer: Buffer, along: str) -> str:
        """How far apart in memory neighbours along a loop variable are, in elements."""
        code = self.code
        total = "0"
        for i, stride in zip(operand.index, buffer.strides, strict=True):
            step = coefficient(i, along)
            if step.value != 0:
                moved = code.let(f"mul nsw i64 {code.dim(step)}, {stride}")
                total = code.let(f"add nsw i64 {total}, {moved}")
        return total

    def _rows_follow(self) -> str | None:
        """Whether the batches are just more rows: a condition, or None where the operands rule it out."""
        code, kernel = self.code, self.kernel
        names = {loop.variable for loop in kernel.batch}
        if any(names & i.variables for i in kernel.right.index):
            return None
        try:
            expected = self._stride(kernel.left, self.left, "%m")
            extent = code.dim(kernel.m)
            condition = "true"
            for loop in reversed(kernel.batch):
                expected = code.let(f"mul nsw i64 {expected}, {extent}")
                actual = self._stride(kernel.left, self.left, loop.variable)
                same = code.let(f"icmp eq i64 {actual}, {expected}")
                condition = code.let(f"and i1 {condition}, {same}")
                extent = code.dim(loop.extent)
        except NotAlong:
            return None
        return condition
