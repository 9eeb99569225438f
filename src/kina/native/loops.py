"""A loop kernel as an LLVM function over a range of its tasks (see `schedule`).

The inner loop runs over vectors where every load along it has stride 1 or 0, which is asked once a call for arrays
whose strides come from outside; otherwise, and for what is left over, it runs over single elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from kina.core.ir import Value
from kina.dims import dim as dims
from kina.dims.dim import Dim, product, variable
from kina.kernels.expressions import COSTLY, children, free_variables, rebuild, result_dtype, substitute, walk
from kina.kernels.ir import Loop, LoopKernel, Scan
from kina.native.code import Code, Operand, literal, memory_type, register_type
from kina.native.elements import Buffer
from kina.native.forms import reader_name
from kina.native.machine import Machine
from kina.native.primitives import emit_call, emit_cast, widen
from kina.native.reciprocals import with_reciprocals
from kina.native.schedule import (
    TILE_COLUMNS,
    TILE_ROWS,
    NotAlong,
    coefficient,
    has_row_reductions,
    stretch_of,
    stretches_of,
    task_loops,
    tiled_loop,
)
from kina.ops.scalar import Call, Cast, Element, Index, Literal, Lookup, Pieces, Reduce, Scalar, SizeValue
from kina.types import DType

_COLUMNS = 4
"""Vectors of the inner loop that reductions of columns run down at once: whole pages of memory, not single lines."""
_STREAMED = 16 << 20
"""Bytes of an output beyond which it is stored past the caches."""
_OUTPUT = -1
"""The operand number under which the inner loop reads back what a reduction kept in the output's row."""
_ACCUMULATORS = 4
"""Vectors that a reduction keeps in flight: hides the latency of addition, and keeps sums accurate."""
_BLOCK = 1024
"""Steps of a sum of floats after which its parts are added to the whole."""


@dataclass(frozen=True, slots=True)
class _Cached:
    """A part of a row reduction that the inner loop needs again, and the same part as the inner loop has it."""

    reduction: Reduce
    part: Scalar
    again: Scalar
    inner: str


class LoopEmitter:
    """Emits one kernel. `memo` holds what was already computed at this point of the nest."""

    def __init__(
        self,
        code: Code,
        kernel: LoopKernel,
        machine: Machine,
        buffers: Mapping[Value, Buffer],
        *,
        in_cache: bool = False,
    ) -> None:
        """`in_cache`: the output is a part of something and read again at once: it stays in caches, its rows whole."""
        self.in_cache = in_cache
        self.code = code
        self.kernel = kernel
        self.inputs = tuple(buffers[v] for v in kernel.inputs)
        self.output = buffers[kernel.output]
        self.dtypes = tuple(v.type.dtype for v in kernel.inputs)
        widest = max(d.itemsize for d in self._computed_types() if d.block is None)
        self.lanes = max(1, machine.vector_bytes // max(widest, 4))
        self.width = machine.vector_bytes
        self.x86 = machine.architecture == "x86_64"
        self.memo: dict[tuple[Scalar, bool], Operand] = {}
        self.along: str | None = None
        self.cached: _Cached | None = None

    def _computed_types(self) -> set[DType]:
        found = {self.output.dtype}
        for e in walk(self.kernel.body):
            found.add(result_dtype(e, self.dtypes))
        return found

    # ------------------------------------------------------------ the nest

    def emit(self, begin: str, end: str) -> None:
        """All tasks from `begin` to `end`."""
        code, kernel = self.code, self.kernel
        stretches = "1" if self.in_cache else code.dim(stretches_of(kernel))
        with code.loop(begin, end) as task:
            row = code.let(f"udiv i64 {task}, {stretches}") if kernel.inner else task
            with self._rows(list(task_loops(kernel)), row):
                if kernel.scan is not None:
                    self._scan(kernel.scan)
                elif kernel.inner is None:
                    self._store(self.value(kernel.body))
                else:
                    self._row(kernel.inner, code.let(f"urem i64 {task}, {stretches}"))
            self.memo.clear()
        if self._streams():
            code.do("call void @llvm.x86.sse.sfence()")  # stores past the caches are not ordered by themselves
        code.do("ret void")

    @contextmanager
    def _rows(self, loops: list[Loop], row: str) -> Iterator[None]:
        """The row loops' variables from the number of the row, the last loop fastest."""
        if not loops:
            yield
            return
        *outer, last = loops
        extent = self.code.dim(last.extent)
        register = self.code.let(f"urem i64 {row}, {extent}") if outer else row
        rest = self.code.let(f"udiv i64 {row}, {extent}") if outer else row
        with self.code.variable(last.variable, register), self._rows(outer, rest):
            yield

    def _row(self, inner: Loop, stretch: str) -> None:
        tiled = tiled_loop(self.kernel)
        if tiled is None:
            self._inner(inner, stretch)
        else:
            self._tile(tiled, inner, stretch)

    def _inner(self, loop: Loop, stretch: str) -> None:
        body = with_reciprocals(self.kernel.body, loop.variable, self.dtypes)
        if has_row_reductions(self.kernel):
            start, stop = "0", self.code.dim(loop.extent)
            self._cache_row(body, loop)
            self._hoist(body, loop.variable)
        else:
            start, stop = self._stretch(loop, stretch)
            self._hoist(body, loop.variable)
        if self.cached is not None:
            body = _replaced(body, self.cached.again, Element(_OUTPUT, self.kernel.index))
        middle = start
        if self.lanes > 1 and self._stores_along(loop.variable) and self._vectorises(body, loop.variable):
            if any(isinstance(e, Reduce) and loop.variable in free_variables(e) for e in walk(body)):
                middle = self._vector_loop(body, loop.variable, middle, stop, _COLUMNS * self.lanes)
            elif self.cached is None and self._streams():
                middle = self._vector_loop(body, loop.variable, middle, stop, self.lanes, past_caches=True)
            middle = self._vector_loop(body, loop.variable, middle, stop, self.lanes)
        self._element_loop(body, loop.variable, middle, stop)
        self.cached = None

    def _tile(self, tiled: Loop, inner: Loop, stretch: str) -> None:
        """A few rows: vectors row by row where all is contiguous, else small blocks of all the rows."""
        code, body, name = self.code, self.kernel.body, inner.variable
        start, stop = self._stretch(inner, stretch)
        first = code.let(f"mul nsw i64 {code.dim(variable(tiled.variable))}, {TILE_ROWS}")
        last = _smaller(code, code.let(f"add nsw i64 {first}, {TILE_ROWS}"), code.dim(tiled.extent))
        middle = start
        if self.lanes > 1 and self._stores_along(name) and self._vectorises(body, name):
            middle = self._vector_end(body, name, start, stop, self.lanes)
            with self._loop(tiled.variable, first, last, 1):
                self._vector_loop(body, name, start, middle, self.lanes)
        with code.loop(middle, stop, TILE_COLUMNS) as left:
            right = _smaller(code, code.let(f"add nsw i64 {left}, {TILE_COLUMNS}"), stop)
            with self._loop(tiled.variable, first, last, 1):
                self._hoist(body, name)
                self._element_loop(body, name, left, right)

    def _element_loop(self, body: Scalar, variable: str, start: str, stop: str) -> None:
        with self._loop(variable, start, stop, 1):
            self._store(self.value(body))

    def _stretch(self, loop: Loop, number: str) -> tuple[str, str]:
        """Where a stretch of the inner loop begins and ends."""
        code, length = self.code, stretch_of(self.kernel)
        if self.in_cache:
            return "0", code.dim(loop.extent)
        start = code.let(f"mul nsw i64 {number}, {length}")
        return start, _smaller(code, code.let(f"add nsw i64 {start}, {length}"), code.dim(loop.extent))

    def _vector_loop(
        self, body: Scalar, variable: str, start: str, stop: str, lanes: int, *, past_caches: bool = False
    ) -> str:
        """Stores as many whole vectors as there are, and gives the place after them. What goes `past_caches` is stored
        only if it is worth it here."""
        kept, self.lanes = self.lanes, lanes
        middle = self._vector_end(body, variable, start, stop, lanes)
        if past_caches:
            middle = self.code.let(f"select i1 {self._worth_streaming(variable, start)}, i64 {middle}, i64 {start}")
        with self._loop(variable, start, middle, lanes), self._vector(variable):
            self._store(widen(self.code, self.value(body), lanes), past_caches=past_caches)
        self.lanes = kept
        return middle

    def _streams(self) -> bool:
        """Whether vectors of the output can be stored past the caches: they fill a register of the machine."""
        return (
            not self.in_cache
            and self.x86
            and self.output.dtype is not DType.BOOL
            and self.lanes * self.output.dtype.itemsize == self.width
        )

    def _worth_streaming(self, variable: str, start: str) -> str:
        """Whether the output is too large to be found in a cache later, and its row here begins at a whole vector."""
        code = self.code
        volume = code.dim(product(list(self.kernel.output.type.shape)))
        large = code.at_entry(f"icmp sgt i64 {volume}, {_STREAMED // self.output.dtype.itemsize}")
        with code.variable(variable, start):
            address = code.let(f"ptrtoint ptr {self._address(self.output, self.kernel.index)} to i64")
        aligned = code.let(f"icmp eq i64 {code.let(f'and i64 {address}, {self.width - 1}')}, 0")
        return code.let(f"and i1 {large}, {aligned}")

    @contextmanager
    def _loop(self, variable: str, start: str, stop: str, step: int) -> Iterator[None]:
        """A loop over `variable`; what is computed inside is forgotten after it."""
        kept = dict(self.memo)
        with self.code.loop(start, stop, step) as register, self.code.variable(variable, register):
            yield
        self.memo = kept

    @contextmanager
    def _vector(self, variable: str) -> Iterator[None]:
        kept, self.along = self.along, variable
        try:
            yield
        finally:
            self.along = kept

    def _vector_end(self, e: Scalar, variable: str, start: str, stop: str, step: int) -> str:
        """Where the vector loop ends: the last whole vector, or at once if some load is not contiguous."""
        code = self.code
        length = code.let(f"sub nsw i64 {stop}, {start}")
        positive = code.let(f"call i64 @llvm.smax.i64(i64 {length}, i64 0)")
        whole = code.let(f"and i64 {positive}, {-step}")
        for condition in self._contiguous(e, variable):
            whole = code.let(f"select i1 {condition}, i64 {whole}, i64 0")
        return code.let(f"add nsw i64 {start}, {whole}")

    def _store(self, value: Operand, *, past_caches: bool = False) -> None:
        """The output at the kernel's index: a vector along the vector loop, where the output is contiguous."""
        code, dtype = self.code, self.output.dtype
        pointer = self._address(self.output, self.kernel.index)
        memory = memory_type(dtype, value.lanes)
        text = value.text
        if dtype is DType.BOOL:
            text = code.let(f"zext {value} to {memory}")
        how = f"align {self.width}, !nontemporal !0" if past_caches else f"align {dtype.itemsize}"
        code.do(f"store {memory} {text}, ptr {pointer}, {how}")

    # ------------------------------------------------------------ values

    def value(self, e: Scalar) -> Operand:
        """The value of an expression here: a vector where it depends on the vector loop, else a scalar."""
        along = self.along
        vector = along is not None and along in free_variables(e)
        key = (e, vector)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._value(e)
        return found

    def _value(self, e: Scalar) -> Operand:
        code = self.code
        match e:
            case Element(operand, index):
                return self._load(self._buffer(operand), index)
            case Literal(value, dtype):
                return literal(value, dtype)
            case SizeValue(dim):
                return self._size(dim)
            case Call(function, arguments):
                return emit_call(code, function, [self.value(a) for a in arguments])
            case Cast(Element(operand, index), dtype) if self._buffer(operand).dtype.block is not None:
                return emit_cast(code, self._read_block(self._buffer(operand), index), dtype)
            case Cast(Lookup() as lookup, dtype) if result_dtype(lookup, self.dtypes).block is not None:
                return self._lookup(replace(lookup, body=Cast(lookup.body, dtype)))
            case Cast(operand, dtype):
                return emit_cast(code, self.value(operand), dtype)
            case Reduce():
                return self._reduce(e)
            case Pieces():
                return self._pieces(e)
            case Lookup():
                return self._lookup(e)

    def _buffer(self, operand: int) -> Buffer:
        return self.output if operand == _OUTPUT else self.inputs[operand]

    def _load(self, buffer: Buffer, index: Index) -> Operand:
        code, dtype = self.code, buffer.dtype
        lanes = self.lanes if self.along is not None and any(self.along in i.variables for i in index) else 1
        pointer = self._address(buffer, index)
        memory = memory_type(dtype, lanes)
        text = code.let(f"load {memory}, ptr {pointer}, align {dtype.itemsize}")
        if dtype is DType.BOOL:
            text = code.let(f"icmp ne {memory} {text}, {'0' if lanes == 1 else 'zeroinitializer'}")
        return Operand(text, dtype, lanes)

    def _read_block(self, buffer: Buffer, index: Index) -> Operand:
        """A number, or a vector of them, out of a block. Vectors begin at multiples of their length, so that each lies
        within one block."""
        code, dtype = self.code, buffer.dtype
        assert dtype.block is not None
        lanes = self.lanes if self.along is not None and self.along in index[-1].variables else 1
        position = code.dim(index[-1])
        block = code.let(f"udiv i64 {position}, {dtype.block}")
        first = code.let(f"urem i64 {position}, {dtype.block}")
        offset = code.let(f"mul nsw i64 {block}, {buffer.strides[-1]}")
        for i, stride in zip(index[:-1], buffer.strides[:-1], strict=True):
            offset = code.let(f"add nsw i64 {offset}, {code.let(f'mul nsw i64 {code.dim(i)}, {stride}')}")
        place = code.let(f"getelementptr inbounds {memory_type(dtype)}, ptr {buffer.pointer}, i64 {offset}")
        type_ = register_type(DType.F32, lanes)
        found = code.let(f'call {type_} @"{reader_name(dtype, lanes)}"(ptr {place}, i64 {first})')
        return Operand(found, DType.F32, lanes)

    def _address(self, buffer: Buffer, index: Index) -> str:
        """The element's address; what does not depend on the innermost variables is added up first."""
        code = self.code
        offset: str | None = None
        for i, stride in sorted(zip(index, buffer.strides, strict=True), key=lambda pair: len(pair[0].variables)):
            if i.value == 0:
                continue
            position = code.dim(i)
            contiguous = self.along is not None and self.along in i.variables
            step = position if contiguous or stride == "1" else code.let(f"mul nsw i64 {position}, {stride}")
            offset = step if offset is None else code.let(f"add nsw i64 {offset}, {step}")
        if offset is None:
            return buffer.pointer
        return code.let(f"getelementptr inbounds {memory_type(buffer.dtype)}, ptr {buffer.pointer}, i64 {offset}")

    def _size(self, dim: Dim) -> Operand:
        register = self.code.dim(dim)
        if self.along is None or self.along not in dim.variables:
            return Operand(register, DType.I64)
        base = widen(self.code, Operand(register, DType.I64), self.lanes)
        step = coefficient(dim, self.along)
        steps = widen(self.code, Operand(self.code.dim(step), DType.I64), self.lanes)
        ramp = "<" + ", ".join(f"i64 {n}" for n in range(self.lanes)) + ">"
        offsets = self.code.let(f"mul {steps}, {ramp}")
        return Operand(self.code.let(f"add {base}, {offsets}"), DType.I64, self.lanes)

    def _pieces(self, e: Pieces) -> Operand:
        """Branches, so that only the chosen piece is evaluated."""
        code = self.code
        dtype = result_dtype(e, self.dtypes)
        slot = code.at_entry(f"alloca {register_type(dtype)}", "slot")
        position = code.dim(e.position)
        done = code.fresh_label("chosen")
        for number, (bound, piece) in enumerate(e.pieces):
            here, after = code.fresh_label("piece"), code.fresh_label("after")
            if number < len(e.pieces) - 1:
                inside = code.let(f"icmp slt i64 {position}, {code.dim(bound)}")
                code.do(f"br i1 {inside}, label %{here}, label %{after}")
            else:
                code.do(f"br label %{here}")
            code.label(here)
            kept = dict(self.memo)
            code.do(f"store {self.value(piece)}, ptr {slot}")
            self.memo = kept
            code.do(f"br label %{done}")
            if number < len(e.pieces) - 1:
                code.label(after)
        code.label(done)
        return Operand(code.let(f"load {register_type(dtype)}, ptr {slot}"), dtype)

    def _lookup(self, e: Lookup) -> Operand:
        """The body at a place that is computed; what depends on it is forgotten after it."""
        position = self.value(e.position)
        assert position.lanes == 1, "lookups whose places differ along a vector run over single elements"
        kept = dict(self.memo)
        with self.code.variable(e.variable, position.text):
            found = self.value(e.body)
        self.memo = kept
        return found

    # ------------------------------------------------------------ reductions

    def _reduce(self, e: Reduce) -> Operand:
        if self.along is not None and self.along in free_variables(e):
            return self._reduce_steps(e, self.lanes)
        kept, self.along = self.along, None
        nested = any(isinstance(n, Reduce) and e.variable in free_variables(n) for n in walk(e.body))
        if nested or self.lanes == 1 or not self._vectorises(e.body, e.variable):
            result = self._reduce_steps(e, 1)
        else:
            result = self._reduce_vectors(e)
        self.along = kept
        return result

    def _reduce_steps(self, e: Reduce, lanes: int) -> Operand:
        """Step by step; with lanes, for several elements of the result at once."""
        self._hoist(e.body, e.variable)
        totals = [self._accumulator(e, lanes)]
        with (
            self._blocks(e, "0", self.code.dim(e.extent), _BLOCK, totals, lanes) as (start, stop),
            self._loop(e.variable, start, stop, 1),
        ):
            self._accumulate(e, totals[0], lanes, self.value(e.body))
            self._keep(e, vector=False)
        return self._loaded(e, totals[0], lanes)

    def _reduce_vectors(self, e: Reduce) -> Operand:
        """Along vectors: several in flight, then one at a time, then single elements, then all together."""
        code, lanes = self.code, self.lanes
        self._hoist(e.body, e.variable)
        extent = code.dim(e.extent)
        totals = [self._accumulator(e, lanes) for _ in range(_ACCUMULATORS)]
        rest = self._accumulator(e, 1)
        wide = self._vector_end(e.body, e.variable, "0", extent, lanes * _ACCUMULATORS)
        end = self._vector_end(e.body, e.variable, "0", extent, lanes)
        step = lanes * _ACCUMULATORS
        with (
            self._blocks(e, "0", wide, _BLOCK * step, totals, lanes) as (first, last),
            code.loop(first, last, step) as start,
        ):
            for number, total in enumerate(totals):
                at = code.let(f"add nsw i64 {start}, {number * lanes}")
                self._accumulate_at(e, total, at, vector=True)
        with code.loop(wide, end, lanes) as at:
            self._accumulate_at(e, totals[0], at, vector=True)
        with self._blocks(e, end, extent, _BLOCK, [rest]) as (first, last), code.loop(first, last) as at:
            self._accumulate_at(e, rest, at, vector=False)
        parts_ = [self._loaded(e, total, lanes) for total in totals]
        while len(parts_) > 1:
            parts_ = [self._combine(e, a, b) for a, b in zip(parts_[::2], parts_[1::2], strict=True)]
        return self._combine(e, self._across(e, parts_[0]), self._loaded(e, rest, 1))

    @contextmanager
    def _blocks(
        self, e: Reduce, start: str, stop: str, size: int, totals: list[str], lanes: int = 1
    ) -> Iterator[tuple[str, str]]:
        """Accumulates from `start` to `stop` in blocks where `e` is a sum of floats: first in a block, then blocks.

        Else a long sum stands still: 2^24 in F32 does not change by adding 1. The body accumulates in `totals`.
        """
        code = self.code
        if e.kind != "sum" or not result_dtype(e, self.dtypes).is_float:
            yield start, stop
            return
        sums = [self._accumulator(e, lanes) for _ in totals]
        with code.loop(start, stop, size) as first:
            most = code.let(f"add nsw i64 {first}, {size}")
            yield first, code.let(f"call i64 @llvm.smin.i64(i64 {most}, i64 {stop})")
            for total, part in zip(sums, totals, strict=True):
                self._accumulate(e, total, lanes, self._loaded(e, part, lanes))
                self._restart(e, part, lanes)
        for total, part in zip(sums, totals, strict=True):
            code.do(f"store {self._loaded(e, total, lanes)}, ptr {part}")

    def _accumulate_at(self, e: Reduce, total: str, at: str, *, vector: bool) -> None:
        kept = dict(self.memo)
        with self.code.variable(e.variable, at):
            if vector:
                with self._vector(e.variable):
                    self._accumulate(e, total, self.lanes, self.value(e.body))
            else:
                self._accumulate(e, total, 1, self.value(e.body))
            self._keep(e, vector)
        self.memo = kept

    def _accumulator(self, e: Reduce, lanes: int) -> str:
        dtype = result_dtype(e, self.dtypes)
        slot = self.code.at_entry(f"alloca {register_type(dtype, lanes)}", "total")
        self._restart(e, slot, lanes)
        return slot

    def _restart(self, e: Reduce, total: str, lanes: int) -> None:
        start = widen(self.code, identity(e.kind, result_dtype(e, self.dtypes)), lanes)
        self.code.do(f"store {start}, ptr {total}")

    def _accumulate(self, e: Reduce, total: str, lanes: int, value: Operand) -> None:
        now = self._loaded(e, total, lanes)
        combined = self._combine(e, now, widen(self.code, value, lanes))
        self.code.do(f"store {combined}, ptr {total}")

    def _loaded(self, e: Reduce, total: str, lanes: int) -> Operand:
        dtype = result_dtype(e, self.dtypes)
        return Operand(self.code.let(f"load {register_type(dtype, lanes)}, ptr {total}"), dtype, lanes)

    def _combine(self, e: Reduce, a: Operand, b: Operand) -> Operand:
        return emit_call(self.code, _COMBINE[e.kind], [a, b])

    def _across(self, e: Reduce, x: Operand) -> Operand:
        """The lanes of a vector combined, halves with halves."""
        code = self.code
        while x.lanes > 1:
            half = x.lanes // 2
            low, high = (
                Operand(code.let(f"shufflevector {x}, {x.type} poison, {_mask(start, half)}"), x.dtype, half)
                for start in (0, half)
            )
            if half == 1:
                low, high = (Operand(code.let(f"extractelement {x}, i64 {n}"), x.dtype) for n in (0, 1))
            x = self._combine(e, low, high)
        return x

    def _scan(self, scan: Scan) -> None:
        """Along a row, one element after the other: each is combined with the total so far, which is stored."""
        code, body = self.code, self.kernel.body
        start = identity(scan.kind, result_dtype(body, self.dtypes))
        total = code.at_entry(f"alloca {start.type}", "total")
        code.do(f"store {start}, ptr {total}")
        self._hoist(body, scan.loop.variable)
        with self._loop(scan.loop.variable, "0", code.dim(scan.loop.extent), 1):
            value = self.value(body)
            so_far = Operand(code.let(f"load {start.type}, ptr {total}"), value.dtype)
            combined = emit_call(code, _COMBINE[scan.kind], [so_far, value])
            code.do(f"store {combined}, ptr {total}")
            self._store(emit_cast(code, combined, self.output.dtype))

    # ------------------------------------------------------------ moving work out of loops

    def _hoist(self, e: Scalar, variable: str) -> None:
        """Computes, before a loop over `variable`, the largest parts of `e` that do not depend on it."""
        if isinstance(e, Literal | Pieces):
            return
        if variable not in free_variables(e):
            if all(map(self.code.is_bound, free_variables(e))):
                self.value(e)
            return
        for child in children(e):
            self._hoist(child, variable)

    def _cache_row(self, body: Scalar, loop: Loop) -> None:
        """Chooses what a reduction along the row computes and the inner loop needs again.

        It is kept in the output's row, which the inner loop overwrites only after reading.
        """
        if self.kernel.index[-1] is not variable(loop.variable):
            return
        needed = set(_outside_reductions(body))
        for reduction in walk(body):
            if not isinstance(reduction, Reduce) or reduction.extent is not loop.extent:
                continue
            for e in walk(reduction.body):
                if not isinstance(e, Call) or e.function not in COSTLY or reduction.variable not in free_variables(e):
                    continue
                again = substitute(e, {reduction.variable: variable(loop.variable)})
                if again in needed and result_dtype(e, self.dtypes) is self.output.dtype:
                    self.cached = _Cached(reduction, e, again, loop.variable)
                    return

    def _keep(self, e: Reduce, vector: bool) -> None:
        """Stores what the inner loop will need again."""
        if self.cached is None or self.cached.reduction != e:
            return
        with self._vector(e.variable) if vector else nullcontext():
            value = self.value(self.cached.part)
        index = tuple(i.substitute({self.cached.inner: variable(e.variable)}) for i in self.kernel.index)
        pointer = self._address(self.output, index)
        self.code.do(f"store {value}, ptr {pointer}, align {self.output.dtype.itemsize}")

    # ------------------------------------------------------------ contiguity

    def _vectorises(self, e: Scalar, variable: str) -> bool:
        """Whether loads along a variable can be vectors, if strides turn out to be 1."""
        for node in walk(e):
            if isinstance(node, Pieces) and variable in free_variables(node):
                return False
            if isinstance(node, Lookup) and variable in free_variables(node.position):
                return False
            try:
                if isinstance(node, Element):
                    self._strides_along(node, variable)
                elif isinstance(node, SizeValue):
                    coefficient(node.dim, variable)
            except NotAlong:
                return False
        return True

    def _stores_along(self, variable: str) -> bool:
        """Whether the output is written contiguously along a variable."""
        *outer, last = self.kernel.index
        steady = all(variable not in i.variables for i in outer)
        return steady and (last - dims.variable(variable)).variables.isdisjoint({variable})

    def _strides_along(self, node: Element, variable: str) -> list[str]:
        """The strides of the axes that move with the variable, one step each. Raises NotAlong."""
        moving = []
        if self._buffer(node.operand).dtype.block is not None:
            if any(variable in i.variables for i in node.index) and (
                node.index[-1] is not dims.variable(variable) or any(variable in i.variables for i in node.index[:-1])
            ):
                raise NotAlong
            return []
        for i, stride in zip(node.index, self._buffer(node.operand).strides, strict=True):
            step = coefficient(i, variable)
            if step.value == 0:
                continue
            if step.value != 1 or not (stride == "1" or stride.startswith("%stride")):
                raise NotAlong
            moving.append(stride)
        if len(moving) > 1:
            raise NotAlong
        return moving

    def _contiguous(self, e: Scalar, variable: str) -> list[str]:
        """Conditions under which all loads along the variable are contiguous."""
        asked: dict[str, None] = {}
        for node in walk(e):
            if isinstance(node, Element):
                asked.update(dict.fromkeys(s for s in self._strides_along(node, variable) if s != "1"))
        return [self.code.at_entry(f"icmp eq i64 {stride}, 1", "unit") for stride in asked]


# ---------------------------------------------------------------- small pieces


_COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}


def identity(kind: str, dtype: DType) -> Operand:
    """What a reduction of nothing gives."""
    if kind in ("any", "all"):
        return literal(kind == "all", dtype)
    if kind in ("sum", "prod"):
        return literal(0 if kind == "sum" else 1, dtype)
    if dtype.is_float:
        return literal(float("-inf") if kind == "max" else float("inf"), dtype)
    least, greatest = dtype.integer_range
    return literal(least if kind == "max" else greatest, dtype)


def _smaller(code: Code, x: str, y: str) -> str:
    return code.let(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")


def _mask(start: int, count: int) -> str:
    return f"<{count} x i32> <" + ", ".join(f"i32 {n}" for n in range(start, start + count)) + ">"


def _replaced(e: Scalar, old: Scalar, new: Scalar) -> Scalar:
    return new if e == old else rebuild(e, lambda child: _replaced(child, old, new))


def _outside_reductions(e: Scalar) -> Iterator[Scalar]:
    yield e
    if not isinstance(e, Reduce):
        for child in children(e):
            yield from _outside_reductions(child)
