"""Positions in order, by a heap in the output's own row: N log k steps, no other memory, the same in every row.

The heap has the last in order of the k first so far at its root. After Williams, "Algorithm 232: Heapsort" (1964).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from kina.core.ir import Value
from kina.dims.dim import Dim, product
from kina.kernels.ir import OrderKernel
from kina.native.code import Code, Operand
from kina.native.elements import Buffer, load, store
from kina.native.primitives import emit_call, emit_cast
from kina.types import DType


def order_tasks(kernel: OrderKernel) -> Dim:
    """One for each row."""
    return product([loop.extent for loop in kernel.rows])


def emit_order(code: Code, kernel: OrderKernel, buffers: Mapping[Value, Buffer]) -> None:
    """The body of `(ptr %args, i64 %begin, i64 %end, ...)`, a range of the rows."""
    with code.loop("%begin", "%end") as task, ExitStack() as nest:
        rest = task
        for loop in reversed(kernel.rows):
            extent = code.dim(loop.extent)
            nest.enter_context(code.variable(loop.variable, code.let(f"urem i64 {rest}, {extent}")))
            rest = code.let(f"udiv i64 {rest}, {extent}")
        _Row(code, kernel, buffers).emit()
    code.do("ret void")


class _Row:
    """One row: `count` positions in the output, ordered by the keys that they are positions of."""

    def __init__(self, code: Code, kernel: OrderKernel, buffers: Mapping[Value, Buffer]) -> None:
        self.code = code
        self.kernel = kernel
        self.keys = buffers[kernel.keys.value]
        self.output = buffers[kernel.output]
        self.hole, self.child = (code.at_entry("alloca i64", stem) for stem in ("hole", "child"))

    def emit(self) -> None:
        code, size, count = self.code, self.code.dim(self.kernel.size), self.code.dim(self.kernel.count)
        with code.loop("0", count) as at:
            self._put(at, at)
        half = code.let(f"lshr i64 {count}, 1")
        with code.loop("0", half) as done:
            left = code.let(f"sub i64 {half}, {done}")
            self._sift(code.let(f"sub i64 {left}, 1"), count)
        kept = code.let(f"select i1 {code.let(f'icmp eq i64 {count}, 0')}, i64 {size}, i64 {count}")
        with code.loop(kept, size) as new:
            self._if(self._before(new, self._at("0")), lambda: self._replace_last(new, count))
        with code.loop("1", count) as done:
            last = code.let(f"sub i64 {count}, {done}")
            root, other = self._at("0"), self._at(last)
            self._put(last, root)
            self._put("0", other)
            self._sift("0", last)

    def _replace_last(self, new: str, count: str) -> None:
        self._put("0", new)
        self._sift("0", count)

    def _sift(self, root: str, count: str) -> None:
        """Moves what stands at `root` down until all below come before it."""
        code = self.code
        head, both, right, one, move, done = map(
            code.fresh_label, ("sift", "both", "right", "one", "move", "sifted")
        )  # fmt: skip
        item = self._at(root)
        code.do(f"store i64 {root}, ptr {self.hole}")
        code.do(f"br label %{head}")
        code.label(head)
        hole = code.let(f"load i64, ptr {self.hole}")
        left = code.let(f"add i64 {code.let(f'shl i64 {hole}, 1')}, 1")
        code.do(f"store i64 {left}, ptr {self.child}")
        code.do(f"br i1 {code.let(f'icmp slt i64 {left}, {count}')}, label %{both}, label %{done}")
        code.label(both)
        next_ = code.let(f"add i64 {left}, 1")
        code.do(f"br i1 {code.let(f'icmp slt i64 {next_}, {count}')}, label %{right}, label %{one}")
        code.label(right)
        later = self._before(self._at(left), self._at(next_))
        code.do(f"store i64 {code.let(f'select i1 {later}, i64 {next_}, i64 {left}')}, ptr {self.child}")
        code.do(f"br label %{one}")
        code.label(one)
        child = code.let(f"load i64, ptr {self.child}")
        below = self._at(child)
        code.do(f"br i1 {self._before(item, below)}, label %{move}, label %{done}")
        code.label(move)
        self._put(hole, below)
        code.do(f"store i64 {child}, ptr {self.hole}")
        code.do(f"br label %{head}")
        code.label(done)
        self._put(code.let(f"load i64, ptr {self.hole}"), item)

    # ------------------------------------------------------------ positions and keys

    def _at(self, place: str) -> str:
        with self.code.variable("%j", place):
            return load(self.code, self.output, self.kernel.index).text

    def _put(self, place: str, position: str) -> None:
        with self.code.variable("%j", place):
            store(self.code, Operand(position, DType.I64), self.output, self.kernel.index)

    def _key(self, position: str) -> Operand:
        with self.code.variable("%k", position):
            key = load(self.code, self.keys, self.kernel.keys.index)
        return emit_cast(self.code, key, key.dtype.accumulator)

    def _before(self, first: str, second: str) -> str:
        """Whether one position comes before another."""
        code, x, y = self.code, self._key(first), self._key(second)
        if self.kernel.descending:
            x, y = y, x
        less, greater = self._less(x, y), self._less(y, x)
        lower = code.let(f"icmp slt i64 {first}, {second}")
        tied = code.let(f"select i1 {greater}, i1 false, i1 {lower}")
        return code.let(f"or i1 {less}, {tied}")

    def _less(self, x: Operand, y: Operand) -> str:
        """NaN is the greatest."""
        if not x.dtype.is_float:
            return emit_call(self.code, "lt", [x, y]).text
        number = self.code.let(f"fcmp ord {x}, {x.text}")
        return self.code.let(f"and i1 {number}, {self.code.let(f'fcmp ult {x}, {y.text}')}")

    def _if(self, condition: str, then: Callable[[], None]) -> None:
        code = self.code
        here, after = code.fresh_label("then"), code.fresh_label("after")
        code.do(f"br i1 {condition}, label %{here}, label %{after}")
        code.label(here)
        then()
        code.do(f"br label %{after}")
        code.label(after)
