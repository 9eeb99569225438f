"""Where the true elements of a mask stand: each thread counts those of its part, then writes after the parts before.

Parts are stretches of the row-major order, so that the result is the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from kina.core.ir import Value
from kina.dims.dim import product, variable
from kina.kernels.ir import PlacesKernel
from kina.native.code import Code, Operand
from kina.native.elements import Buffer, load, store
from kina.types import DType

COUNT_BYTES = 64
"""What a thread needs for its count: a cache line, so that threads do not disturb each other."""
_WAIT = "call void @kina_barrier(i64 %n)"
_PLACE = "%j"


def emit_places(
    code: Code, kernel: PlacesKernel, buffers: Mapping[Value, Buffer], part: Callable[[Code, str, str], str],
    scratch: str, stride: int,
) -> None:  # fmt: skip
    """The body of `(ptr %args, i64 %tid, i64 %n, ...)`. `part` says where the share of a thread begins; each thread has
    `stride` bytes from `scratch` on."""
    total = code.dim(product([loop.extent for loop in kernel.loops]))
    begin, end = (part(code, total, which) for which in ("%tid", code.let("add i64 %tid, 1")))
    counter = code.at_entry("alloca i64", "count")
    code.do(f"store i64 0, ptr {counter}")
    with _true_elements(code, kernel, buffers, begin, end):
        _count(code, counter, "1")
    code.do(f"store i64 {code.let(f'load i64, ptr {counter}')}, ptr {_own(code, scratch, stride, '%tid')}")
    code.do(_WAIT)
    code.do(f"store i64 0, ptr {counter}")
    with code.loop("0", "%tid") as before:
        _count(code, counter, code.let(f"load i64, ptr {_own(code, scratch, stride, before)}"))
    code.do(_WAIT)  # before another kernel uses the scratch
    output = buffers[kernel.output]
    with _true_elements(code, kernel, buffers, begin, end):
        at = code.let(f"load i64, ptr {counter}")
        here = code.dim(variable(kernel.loops[kernel.axis].variable))
        with code.variable(_PLACE, at):
            store(code, Operand(here, DType.I64), output, (variable(_PLACE),))
        _count(code, counter, "1")
    code.do("ret void")


@contextmanager
def _true_elements(
    code: Code, kernel: PlacesKernel, buffers: Mapping[Value, Buffer], begin: str, end: str
) -> Iterator[None]:
    """A loop over a stretch; what is emitted inside runs where the mask is true, the loops' variables bound."""
    with code.loop(begin, end) as at, ExitStack() as nest:
        rest = at
        for loop in reversed(kernel.loops[1:]):
            extent = code.dim(loop.extent)
            nest.enter_context(code.variable(loop.variable, code.let(f"urem i64 {rest}, {extent}")))
            rest = code.let(f"udiv i64 {rest}, {extent}")
        nest.enter_context(code.variable(kernel.loops[0].variable, rest))
        flag = load(code, buffers[kernel.mask.value], kernel.mask.index).text
        chosen, done = code.fresh_label("chosen"), code.fresh_label("done")
        code.do(f"br i1 {flag}, label %{chosen}, label %{done}")
        code.label(chosen)
        yield
        code.do(f"br label %{done}")
        code.label(done)


def _count(code: Code, counter: str, more: str) -> None:
    now = code.let(f"load i64, ptr {counter}")
    code.do(f"store i64 {code.let(f'add i64 {now}, {more}')}, ptr {counter}")


def _own(code: Code, scratch: str, stride: int, thread: str) -> str:
    offset = code.let(f"mul i64 {thread}, {stride}")
    return code.let(f"getelementptr i8, ptr {scratch}, i64 {offset}")
