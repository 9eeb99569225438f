"""Core -> kernels: which values are stored, and which are computed where they are used.

The rule is demand. Starting from what must be stored (results, contractions), every other value is
inlined into its users as a scalar expression, with three exceptions:

- a reduction is inlined only where it runs once for each of its elements: its index depends on all
  the loops of the kernel, or on all but the innermost (then it is computed once a row);
- what feeds several kernels is stored rather than computed in each, if it is costly or made of several large values;
- expressions are kept to a readable size.

The first one alone makes RMSNorm, softmax, LayerNorm and cross-entropy one kernel each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kina.core.ir import Apply, Check, Function, Statement, Value, made_by, statements_within, values_of
from kina.diagnostics import KinaError
from kina.dims import proposition
from kina.dims.atoms import Variable
from kina.dims.dim import Atom, Dim, constant, of_monomial, product, variable
from kina.dims.proposition import Comparison
from kina.dims.prover import Facts
from kina.kernels.bands import in_bands
from kina.kernels.epilogues import with_epilogues
from kina.kernels.expressions import COSTLY, canonical, free_variables, rebuild, simplify_indices, substitute, walk
from kina.kernels.ir import GemmKernel, Kernel, KernelProgram, Loop, LoopKernel, Operand, Step
from kina.kernels.ir import Scan as ScanLoop
from kina.kernels.memory import bytes_of
from kina.kernels.own import has_own_kernel, kernels_of_their_own, rounded, widened_value
from kina.kernels.parts import in_parts
from kina.kernels.ranges import NoBound, made_sizes
from kina.kernels.regions import Reasons, Region, dimensions_of, refuse_unknown_forms
from kina.ops.arranging import Unflatten
from kina.ops.contractions import Matmul
from kina.ops.precision import widened
from kina.ops.scalar import Call, Cast, Element, Index, Lookup, Pieces, Reduce, Scalar
from kina.ops.scans import Scan
from kina.ops.shape import Broadcast, ExpandDims, FlattenPair, Reinterpret, Reshape, Squeeze
from kina.types import DType

_ONE, _ZERO = constant(1), constant(0)
_REGROUPING = (Reshape, Reinterpret, FlattenPair, Unflatten, ExpandDims, Squeeze)
_LARGEST = 160
"""Nodes of the expression beyond which a value is stored."""
_MANY = 8
"""Operands of a value that are counted, at most."""


def fuse(function: Function) -> KernelProgram:
    """The kernels of a flat function (after `specialise`), in the loops and branches where they run."""
    refuse_unknown_forms(function)
    made = {name for s in statements_within(function.statements) for name in dimensions_of(s)}
    checks = [s for s in function.statements if isinstance(s, Check)]
    first = tuple(c for c in checks if made.isdisjoint(proposition.variables(c.proposition)))
    statements = tuple(s for s in function.statements if not (isinstance(s, Check) and s in first))
    measured = {name for name, bound in made_sizes(function.statements) if bound is None}
    fusion = Fusion(statements, function.outputs, Facts(function.requires), frozenset(measured))
    steps, outputs = fusion.sequence()
    program = KernelProgram(function, function.inputs, outputs, steps, first, fusion.reasons(outputs))
    for value in program.stored:
        if value.type.dtype.block is not None:
            what = f"it would store the quantised tensor {value.name} : {value.type}"
            refused = f"{function.name} cannot be compiled yet: {what}"
            raise KinaError(f"{refused}; the reference interpreter runs it (`.reference`)")
    try:
        for value in values_of(function):
            program.most(bytes_of(value))
    except NoBound as fault:
        raise KinaError(f"{function.name} cannot be compiled yet: {fault}; the reference interpreter runs it") from None
    return program


class _Recompute(Exception):
    """Raised while a body is built: this value has to be stored first."""

    def __init__(self, value: Value, reason: str) -> None:
        super().__init__(reason)
        self.value = value
        self.reason = reason


@dataclass(slots=True)
class _Body:
    """A body under construction: the kernel's loops, its inputs, and how its first reduction sat in the loops."""

    loops: tuple[Loop, ...]
    inputs: dict[Value, int] = field(default_factory=dict)
    once_a_row: bool | None = None
    bound: int = 0


class Fusion:
    """One block: a function's statements, or those inside a loop or branch, which make blocks of their own.

    Of the sizes `measured` nothing is known before they are read from values.
    """

    def __init__(
        self, statements: Sequence[Statement], results: Sequence[Value], facts: Facts, measured: frozenset[str]
    ) -> None:
        self.statements = statements
        self.results = results
        self.made = {s.result: s for s in statements if isinstance(s, Apply)}
        self.regions = [Region(s) for s in statements if not isinstance(s, Apply)]
        self.copies: dict[Value, Value] = {}
        self.stored: dict[Value, str] = {}
        self.parts: dict[Value, str] = {}
        self.inlined: set[Value] = set()
        self.inside: dict[Value, str] = {}
        self.joined: set[Value] = set()
        self.needed: set[Value] = set()
        self.facts = facts
        self.measured = measured

    def sequence(self) -> tuple[tuple[Step, ...], tuple[Value, ...]]:
        """The steps in order, and the value that each result is computed as."""
        outputs = self._outputs()
        self.stored.update(dict.fromkeys(outputs, "a result"))
        self.stored.update({v: "a contraction" for v in self.made if self._is_gemm(v) and v not in self.stored})
        own = [v for v, made in self.made.items() if has_own_kernel(made.operation)]
        self.stored.update({v: "a kernel of its own" for v in own if v not in self.stored})
        scans = (v for v, made in self.made.items() if isinstance(made.operation, Scan))
        self.stored.update({v: "a scan" for v in scans if v not in self.stored})
        for region in self.regions:
            self.copies.update(region.starts)
            self.stored.update(dict.fromkeys(region.starts, "where a loop starts"))
            self.stored.update({v: "used in a loop or branch" for v in region.reads if v in self.made})
        self._store_shared()
        return self._assembled(self._all_kernels(outputs), outputs), outputs

    def reasons(self, outputs: Sequence[Value]) -> tuple[tuple[Value, str], ...]:
        """Why values between the kernels were stored."""
        left_out = {v for r in self.regions for v in r.starts} | {*outputs, *self.joined}
        kept = {v: why for v, why in {**self.stored, **self.parts}.items() if v in self.needed and v not in left_out}
        return tuple({**kept, **self.inside}.items())

    def _assembled(self, made: dict[Value, list[Kernel]], outputs: tuple[Value, ...]) -> tuple[Step, ...]:
        """All in order. Where nothing else needs what is between, kernels are joined: attention, work on products."""
        starts = {v for region in self.regions for v in region.starts}
        entries = {v: tuple(in_bands(kernels, [v], self.measured)) for v, kernels in made.items() if v in starts}
        kept = {*outputs, *(v for r in self.regions for v in r.reads)}
        kept |= {v for kernels in entries.values() for kernel in kernels for v in kernel.inputs}
        runs: list[list[Kernel]] = [[]]
        between: list[Region] = []
        regions = {id(region.statement): region for region in self.regions}
        for statement in self.statements:
            if isinstance(statement, Apply):
                runs[-1] += made.get(statement.result, [])
            else:
                between.append(regions[id(statement)])
                runs.append([])
        runs[-1] += [kernel for copy in self.copies if copy not in starts for kernel in made.get(copy, [])]
        steps: list[Step] = []
        for number, run in enumerate(runs):
            others = {v for other in runs if other is not run for kernel in other for v in kernel.inputs}
            needed = tuple(dict.fromkeys((*outputs, *kept, *others)))
            whole = with_epilogues(in_bands(run, needed, self.measured), needed)
            self.joined |= {k.output for k in run} - {k.output for k in whole}
            steps += whole
            if number < len(between):
                step, reasons = between[number].step(self._fuse_block, entries, self.facts)
                self.inside |= reasons
                steps.append(step)
        self.needed = {*made, *self.parts}
        return tuple(steps)

    def _fuse_block(
        self, statements: Sequence[Statement], results: Sequence[Value], facts: Facts
    ) -> tuple[tuple[Step, ...], tuple[Value, ...], Reasons]:
        """A block inside."""
        fusion = Fusion(statements, results, facts, self.measured)
        steps, outputs = fusion.sequence()
        return steps, outputs, dict(fusion.reasons(outputs))

    def _all_kernels(self, outputs: tuple[Value, ...]) -> dict[Value, list[Kernel]]:
        """The kernels of all stored values. Where one cannot be made before another value is stored, that value is, and
        kernels that had it inlined are made again."""
        made: dict[Value, list[Kernel]] = {}
        inlined: dict[Value, set[Value]] = {}
        while True:
            order = self._order(outputs)
            missing = [value for value in order if value not in made]
            if not missing:
                return {value: made[value] for value in order}
            for value in missing:
                self.inlined = inlined[value] = set()
                try:
                    made[value] = self._kernels_of(value)
                except _Recompute as found:
                    self.stored[found.value] = found.reason
                    for user in [v for v in made if found.value in inlined[v]]:
                        del made[user]

    def _outputs(self) -> tuple[Value, ...]:
        """A value of its own for each result: what it is a mere reshape of; a copy where that is an input, or stands
        twice."""
        outputs: list[Value] = []
        from_regions = {v for region in self.regions for v in made_by(region.statement)}
        for result in self.results:
            value = self._same_in_memory(result)
            if (value in self.made or value in from_regions) and value not in outputs:
                outputs.append(value)
            else:
                name = f"copy of {value.name}"
                again = sum(other.name.startswith(name) for other in outputs)
                outputs.append(Value(f"{name} ({again + 1})" if again else name, value.type))
                self.copies[outputs[-1]] = value
        return tuple(outputs)

    def _same_in_memory(self, value: Value) -> Value:
        """The value that this one only regroups: in row-major order both are the same memory."""
        while (made := self.made.get(value)) is not None and isinstance(made.operation, _REGROUPING):
            (value,) = made.arguments
        return value

    # ------------------------------------------------------------ what is stored

    def _is_gemm(self, value: Value) -> bool:
        made = self.made.get(value)
        return made is not None and isinstance(made.operation, Matmul) and value.type.dtype.is_float

    def _store_shared(self) -> None:
        """Stores what is costly and feeds several stored values, and what has grown too large.

        Users are visited before what they use, so that it is known of each whether it is stored.
        """
        read = self._read_if_inlined()
        roots: dict[Value, set[Value]] = {v: {v} for v in self.stored}
        for copy, value in self.copies.items():
            roots.setdefault(value, set()).add(copy)
        for value, made in reversed(self.made.items()):
            feeds = roots.setdefault(value, set())
            if value in self.stored:
                feeds = {value}
            elif len(feeds) > 1 and (self._costly(made) or _cheaper_stored(len(feeds), len(read[value]))):
                self.stored[value] = "used by several kernels"
                feeds = {value}
            for argument in made.arguments:
                roots.setdefault(argument, set()).update(feeds)
        sizes: dict[Value, int] = {}
        for value, made in self.made.items():
            own = sum(1 for _ in walk(self._lowered(made))) if made.operation.fusible else 1
            size = own + sum(sizes.get(a, 1) for a in made.arguments if a not in self.stored)
            if size > _LARGEST and value not in self.stored:
                self.stored[value] = "its expression is large"
            sizes[value] = 1 if value in self.stored else size

    def _read_if_inlined(self) -> dict[Value, frozenset[Value]]:
        """The values, as large as itself, that each value comes from if all is inlined that may be; a few of them.

        In a residual stream there is one more with every layer.
        """
        read: dict[Value, frozenset[Value]] = {}
        for value, made in self.made.items():
            found = set[Value]()
            for argument in made.arguments:
                inlined = argument in self.made and argument not in self.stored
                found |= read[argument] if inlined else {argument}
            volume = product(list(value.type.shape))
            large = [v for v in found if product(list(v.type.shape)) is volume]
            read[value] = frozenset(sorted(large, key=lambda v: v.name)[:_MANY])
        return read

    def _costly(self, made: Apply) -> bool:
        return any(
            isinstance(e, Reduce) or (isinstance(e, Call) and e.function in COSTLY) for e in walk(self._lowered(made))
        )

    def _lowered(self, made: Apply, index: Index | None = None) -> Scalar:
        """The element of a statement's result at `index` (or at its own loops) over its operands."""
        place = index if index is not None else tuple(variable(f"%{n}") for n in range(made.result.type.rank))
        return made.operation.lower(tuple(a.type for a in made.arguments), place)

    def _order(self, outputs: tuple[Value, ...]) -> list[Value]:
        """The stored values in an order in which each can be computed; unneeded ones left out."""
        copies = [v for region in self.regions for v in region.starts]
        needed = {self.copies.get(value, value) for value in (*outputs, *copies)} | {*outputs, *copies}
        needed.update(v for region in self.regions for v in region.reads)
        for value, made in reversed(self.made.items()):
            if value in needed:
                needed.update(made.arguments)
        return [v for v in (*self.made, *self.copies) if v in needed and v in self.stored]

    # ------------------------------------------------------------ kernels

    def _kernels_of(self, value: Value) -> list[Kernel]:
        if self._is_gemm(value):
            return self._gemm(value)
        if value in self.made and isinstance(self.made[value].operation, Scan):
            return [self._scan(value)]
        if value in self.made and has_own_kernel(self.made[value].operation):
            return kernels_of_their_own(self.made[value], self._view)
        shape = value.type.shape
        loops = tuple(Loop(f"%i{n}", d) for n, d in enumerate(shape) if d is not _ONE)
        index = tuple(_ZERO if d is _ONE else variable(f"%i{n}") for n, d in enumerate(shape))
        body = _Body(loops)
        root = self.copies.get(value, value)
        expression = self._element(root, index, body, at_root=root is value)
        facts = self._within(loops)
        return list(self._split(value, loops, index, simplify_indices(canonical(expression), facts), body))

    def _within(self, loops: tuple[Loop, ...]) -> Facts:
        return self.facts.assume(*(Comparison("<", variable(loop.variable), loop.extent) for loop in loops))

    def _split(
        self, value: Value, loops: tuple[Loop, ...], index: Index, expression: Scalar, body: _Body
    ) -> Iterator[Kernel]:
        """One kernel for each piece of a body that is made of pieces along a loop: each copies without a test."""
        for node in walk(expression):
            if isinstance(node, Pieces):
                loop = next((x for x in loops if node.position is variable(x.variable)), None)
                if loop is not None and _can_split(loop, node):
                    yield from self._split_at(value, loops, index, expression, body, loop, node)
                    return
        if not loops:
            parts, expression = in_parts(value, expression, body.inputs)
            self.parts.update((kernel.output, "a reduction to one element, shared by threads") for kernel in parts)
            yield from map(_pruned, parts)
        yield _pruned(self._loop_kernel(value, loops, index, expression, body))

    def _split_at(
        self,
        value: Value,
        loops: tuple[Loop, ...],
        index: Index,
        expression: Scalar,
        body: _Body,
        loop: Loop,
        node: Pieces,
    ) -> Iterator[Kernel]:
        start = _ZERO
        for bound, _ in node.pieces:
            shifted = {loop.variable: variable(loop.variable) + start}
            part = substitute(_chosen(expression, node.position, start, bound), shifted)
            narrowed = tuple(Loop(x.variable, bound - start) if x is loop else x for x in loops)
            part = simplify_indices(part, self._within(narrowed))
            place = tuple(i.substitute(shifted) for i in index)
            kept = tuple(x for x in narrowed if x.extent is not _ONE)
            yield from self._split(value, kept, *_without_ones(narrowed, place, part), body)
            start = bound
            if bound is loop.extent:
                return

    def _loop_kernel(
        self, value: Value, loops: tuple[Loop, ...], index: Index, expression: Scalar, body: _Body
    ) -> LoopKernel:
        inputs = tuple(body.inputs)
        if not loops or (body.once_a_row is False and _runs_along_reductions(expression, loops[-1])):
            return LoopKernel(value.name, value, inputs, loops, None, index, expression)
        return LoopKernel(value.name, value, inputs, loops[:-1], loops[-1], index, expression)

    # ------------------------------------------------------------ bodies

    def _element(self, value: Value, index: Index, body: _Body, at_root: bool = False) -> Scalar:
        """The element of `value` at `index`: loaded if it is stored, else computed here."""
        made = self.made.get(value)
        if made is None or (value in self.stored and not at_root):
            return Element(body.inputs.setdefault(value, len(body.inputs)), index)
        self.inlined.add(value)
        lowered = self._fresh(self._lowered(made, index), body)
        if any(isinstance(e, Reduce) for e in walk(lowered)) and not at_root:
            self._admit_reduction(value, index, body)
        elif at_root and any(isinstance(e, Reduce) for e in walk(lowered)):
            body.once_a_row = self._once_a_row(lowered, body)
        return self._inlined(lowered, made.arguments, body)

    def _inlined(self, e: Scalar, arguments: tuple[Value, ...], body: _Body) -> Scalar:
        if isinstance(e, Element):
            return self._element(arguments[e.operand], e.index, body)
        return rebuild(e, lambda child: self._inlined(child, arguments, body))

    def _admit_reduction(self, value: Value, index: Index, body: _Body) -> None:
        """Refuses a reduction that would run more than once for the same element."""
        names = frozenset[str]().union(*(i.variables for i in index))
        loops = {loop.variable for loop in body.loops}
        used = {n for n in names if n.startswith("%")}
        outer = {loop.variable for loop in body.loops[:-1]}
        if used == loops and (body.once_a_row in (None, False) or not loops):
            body.once_a_row = False
        elif used == outer and body.loops and body.once_a_row in (None, True):
            body.once_a_row = True
        else:
            raise _Recompute(value, "its reduction does not run along the user's loops")

    def _once_a_row(self, lowered: Scalar, body: _Body) -> bool:
        """Whether the root's own reductions are the same all along the innermost loop (softmax), or make each
        element (sum)."""
        if not body.loops:
            return False
        inner = body.loops[-1].variable
        return not any(inner in free_variables(e) for e in walk(lowered) if isinstance(e, Reduce))

    def _fresh(self, e: Scalar, body: _Body) -> Scalar:
        """Bound variables renamed apart, so that inlining captures none."""
        if isinstance(e, Reduce | Lookup):
            body.bound += 1
            name = f"%b{body.bound}"
            inner = substitute(e.body, {e.variable: variable(name)})
            renamed = replace(e, variable=name, body=self._fresh(inner, body))
            if isinstance(renamed, Lookup):
                return replace(renamed, position=self._fresh(renamed.position, body))
            return renamed
        return rebuild(e, lambda child: self._fresh(child, body))

    # ------------------------------------------------------------ scans

    def _scan(self, value: Value) -> LoopKernel:
        """Rows in all axes but one; along that one, the total of what the operand has there."""
        made = self.made[value]
        assert isinstance(made.operation, Scan)
        (x,) = made.arguments
        loops = tuple(Loop(f"%i{n}", d) for n, d in enumerate(value.type.shape))
        along = loops[made.operation.axis]
        rows = tuple(loop for loop in loops if loop is not along)
        index = tuple(variable(loop.variable) for loop in loops)
        body = _Body((*rows, along))
        element = widened(self._element(x, index, body), x.type.dtype)
        expression = simplify_indices(canonical(element), self._within(loops))
        inputs, scan = tuple(body.inputs), ScanLoop(made.operation.combines, along)
        return _pruned(LoopKernel(value.name, value, inputs, rows, None, index, expression, scan))

    # ------------------------------------------------------------ contractions

    def _gemm(self, value: Value) -> list[Kernel]:
        """Products of halves are sums in F32, and rounded once by a kernel after it."""
        made = self.made[value]
        x, y = made.arguments
        loops = tuple(Loop(f"%i{n}", d) for n, d in enumerate(value.type.shape[:-2]))
        batch = tuple(variable(loop.variable) for loop in loops)
        m, n = value.type.shape[-2:]
        k = x.type.shape[-1]
        inside = (*loops, Loop("%m", m), Loop("%n", n), Loop("%k", k))
        left = self._matrix(x, (*batch, variable("%m"), variable("%k")), inside)
        right = self._matrix(y, (*batch, variable("%k"), variable("%n")), inside)
        stored = [operand.value.type.dtype for operand in (left, right)]
        mixed = stored[0] is not stored[1] and DType.F32 not in stored
        if mixed or all(dtype.block is not None for dtype in stored):
            raise _Recompute(self._unstretched(x), "an operand of a contraction, stored otherwise than the other one")
        wide = widened_value(value)
        gemm = GemmKernel(wide.name, wide, left, right, loops, m, n, k)
        return [gemm] if wide is value else [gemm, rounded(wide, value)]

    def _matrix(self, value: Value, index: Index, loops: tuple[Loop, ...]) -> Operand:
        """The operand of a contraction; of one that is a cast to F32 what it is of, which gemm widens as it reads."""
        found = self._view(value, index, loops, "an operand of a contraction", widens=True)
        whole = found.value.type.dtype.block is None or found.index[-1] is variable("%k")
        if not whole or not all(_affine(i, ("%m", "%n", "%k")) for i in found.index):
            raise _Recompute(self._unstretched(value), "an operand of a contraction that is no view")
        return found

    def _view(
        self, value: Value, index: Index, loops: tuple[Loop, ...], role: str, *, widens: bool = False
    ) -> Operand:
        """The operand of a kernel of its own kind as a view of something stored, or a demand to store it first.

        One that `widens` may be a view of halves or of quantised numbers, as F32.
        """
        body = _Body(loops)
        try:
            e = simplify_indices(self._element(value, index, body), self._within(loops))
        except _Recompute as found:
            if found.value is value:
                raise
            raise _Recompute(value, role) from None
        if widens and isinstance(e, Cast) and isinstance(e.operand, Element) and e.dtype is DType.F32:
            (source,) = body.inputs
            if source.type.dtype.block is not None or source.type.dtype.accumulator is DType.F32:
                e = e.operand
        if not isinstance(e, Element):
            raise _Recompute(self._unstretched(value), f"{role} that is no view")
        (source,) = body.inputs
        return Operand(source, e.index)

    def _unstretched(self, value: Value) -> Value:
        """What a value repeats: that is smaller, and the value is a view of it."""
        while (made := self.made.get(value)) is not None and isinstance(made.operation, Broadcast | ExpandDims):
            (argument,) = made.arguments
            if argument not in self.made or argument in self.stored:
                break
            value = argument
        return value


# ---------------------------------------------------------------- small pieces


def _can_split(loop: Loop, node: Pieces) -> bool:
    """Whether a loop's pieces can be loops of their own: they end where the loop does, and none at a computed place."""
    bounds = [bound for bound, _ in node.pieces]
    computed = any(name.startswith("%") for bound in bounds for name in bound.variables)
    return not computed and any(bound is loop.extent for bound in bounds)


def _cheaper_stored(kernels: int, operands: int) -> bool:
    """Whether writing a value and reading it in some kernels moves less memory than reading its operands in all."""
    return kernels * operands > operands + 1 + kernels


def _affine(index: Dim, names: tuple[str, ...]) -> bool:
    """Whether an index is linear in these loop variables, apart from anything in the others."""
    for monomial, _ in index.terms:
        linear = sum(isinstance(a, Variable) and a.name in names for a in monomial)
        hidden = any(not isinstance(a, Variable) and any(n in _of_atom(a).variables for n in names) for a in monomial)
        if linear > 1 or hidden:
            return False
    return True


def _of_atom(atom: Atom) -> Dim:
    return of_monomial((atom,))


def _chosen(e: Scalar, position: Dim, start: Dim, bound: Dim) -> Scalar:
    """The expression where `start <= position < bound`: every `Pieces` that has just this piece is that piece.

    Others at the same position (pieces inside the piece, or cut at other places) stay, to be chosen from at
    their own bounds.
    """
    if isinstance(e, Pieces) and e.position is position:
        begin = _ZERO
        for limit, piece in e.pieces:
            if begin is start and limit is bound:
                return _chosen(piece, position, start, bound)
            begin = limit
    return rebuild(e, lambda child: _chosen(child, position, start, bound))


def _without_ones(loops: tuple[Loop, ...], index: Index, e: Scalar) -> tuple[Index, Scalar]:
    """Loops of a single step dropped: their variable is 0."""
    zeros = {x.variable: _ZERO for x in loops if x.extent is _ONE}
    if not zeros:
        return index, e
    return tuple(i.substitute(zeros) for i in index), substitute(e, zeros)


def _pruned(kernel: LoopKernel) -> LoopKernel:
    """The kernel with only the inputs that its body reads."""
    used = sorted({e.operand for e in walk(kernel.body) if isinstance(e, Element)})
    body = _renumber(kernel.body, {n: position for position, n in enumerate(used)})
    return replace(kernel, inputs=tuple(kernel.inputs[n] for n in used), body=body)


def _renumber(e: Scalar, numbers: dict[int, int]) -> Scalar:
    if isinstance(e, Element):
        return Element(numbers[e.operand], e.index)
    return rebuild(e, lambda child: _renumber(child, numbers))


def _runs_along_reductions(e: Scalar, inner: Loop) -> bool:
    """Whether memory is walked along the reductions rather than along the innermost loop.

    Seen from the last index of each load inside a reduction, which is the one of stride 1.
    """
    along_reduction = along_loop = 0
    for reduction in walk(e):
        if isinstance(reduction, Reduce):
            for load in walk(reduction.body):
                if isinstance(load, Element) and load.index:
                    last = load.index[-1].variables
                    along_reduction += reduction.variable in last
                    along_loop += inner.variable in last
    return along_reduction > along_loop
