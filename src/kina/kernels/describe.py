"""Kernels in readable form, for `kina explain --kernels`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kina.core.ir import Check, Open, Require, Value
from kina.dims.dim import Dim, constant, product
from kina.kernels.expressions import children, free_variables, most_steps, walk
from kina.kernels.ir import (
    BandKernel,
    Choice,
    GemmKernel,
    Kernel,
    KernelProgram,
    LoopKernel,
    OrderKernel,
    PlacesKernel,
    Repeat,
    ScatterKernel,
    Step,
)
from kina.kernels.memory import bytes_of, plan_memory
from kina.ops.scalar import Call, Cast, Element, Literal, Lookup, Pieces, Reduce, Scalar, SizeValue
from kina.types import Tensor

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
_SPLIT = "    // split over threads"
_PRODUCT = "product"
"""What an element of a product is called before it is finished."""


def describe(program: KernelProgram) -> str:
    """Every kernel with its loop nest, traffic and work, and why values are stored between them."""
    count = len(program.kernels)
    numbers = {id(kernel): number for number, kernel in enumerate(program.kernels, 1)}
    lines = [f"{program.function.name}: {count} kernel{'s' if count != 1 else ''}"]
    for step in program.steps:
        lines += ["", *_step(step, numbers)]
    if program.reasons:
        lines += ["", "stored between kernels:"]
        lines += [f"  {v.name} ({bytes_of(v)} bytes): {why}" for v, why in program.reasons]
        shared = [place for place in plan_memory(program).places if len(place.values) > 1]
        lines += [f"  one place, one after the other: {', '.join(v.name for v in place.values)}" for place in shared]
    for place in plan_memory(program).late:
        lines += ["", f"memory taken when {place.known_with} is known: {', '.join(v.name for v in place.values)}"]
    for check in program.checks:
        lines += ["", f"checked first: {check.proposition}"]
    return "\n".join(lines)


def _step(step: Step, numbers: Mapping[int, int]) -> Iterator[str]:
    """A kernel, or a loop or branch with what is in it."""
    match step:
        case Repeat():
            yield from _repeat(step, numbers)
        case Choice(condition=condition, then=then, otherwise=otherwise):
            shown = condition.name if isinstance(condition, Value) else str(condition)
            yield f"if {shown}:"
            yield from _inside(then, numbers)
            yield "else:"
            yield from _inside(otherwise, numbers)
        case Check(proposition=claim):
            yield f"check: {claim}"
        case Require(condition=condition, message=message):
            yield f"check: {condition.name}" + (f", else {message!r}" if message else "")
        case Open(dimension=name, value=value, facts=facts):
            yield f"{name} is {value.name}" + "".join(f"; check: {fact}" for fact in facts)
        case _:
            yield f"kernel {numbers[id(step)]}: {step.output.name} : {step.output.type}"
            yield from (f"  {line}" for line in _nest(step))
            written = _bytes(_written(step), step.output.type)
            yield f"  reads {_traffic(step)} bytes, writes {written}; {_work(step)} operations"


def _repeat(loop: Repeat, numbers: Mapping[int, int]) -> Iterator[str]:
    for kernel in loop.entry:
        yield from _step(kernel, numbers)
    most = "" if loop.bound is None else f" < {loop.bound}"
    yield f"{'for' if loop.steps is None else 'while'} {loop.index}{most}:"
    for item in loop.states:
        how = "grows in place" if item.grows else "has two places by turns"
        yield f"  state {item.state.name} : {item.state.type} {how}"
    for value, result in loop.yields:
        yield f"  {value.name} is a part of {result.name} : {result.type}"
    if loop.condition is not None:
        yield from _inside(loop.test, numbers)
        yield f"  as long as {loop.condition.name}"
    yield from _inside(loop.body, numbers)
    for kernel in loop.leaving:
        yield from _step(kernel, numbers)


def _inside(steps: Sequence[Step], numbers: Mapping[int, int]) -> Iterator[str]:
    for step in steps:
        yield from (f"  {line}" for line in _step(step, numbers))


def _nest(kernel: Kernel) -> Iterator[str]:
    if isinstance(kernel, GemmKernel):
        yield from _gemm(kernel)
        return
    if isinstance(kernel, OrderKernel | ScatterKernel | PlacesKernel):
        yield from _own(kernel)
        return
    if isinstance(kernel, BandKernel):
        yield f"band by band of rows, each through all of this in the caches of a thread:{_SPLIT}"
        for stage in (kernel.first, kernel.middle, kernel.last):
            yield from (f"  {line.removesuffix(_SPLIT)}" for line in _nest(stage))
        return
    names = _loop_names(kernel)
    depth = 0
    for loop in kernel.rows:
        note = _SPLIT if depth == 0 else ""
        yield "  " * depth + f"for {names[loop.variable]} < {loop.extent}:{note}"
        depth += 1
    body, read = kernel.body, [v.name for v in kernel.inputs]
    shared: dict[Scalar, str] = {}
    last = kernel.scan.loop if kernel.scan else kernel.inner
    inner = last.variable if last else None
    for reduction in _reductions(body):
        if inner is not None and inner in free_variables(reduction):
            continue
        name = f"{reduction.kind}{len(shared) + 1}"
        yield "  " * depth + f"{name} = {_text(reduction, read, names, shared)}"
        shared[reduction] = name
    if kernel.inner:
        yield "  " * depth + f"for {names[kernel.inner.variable]} < {kernel.inner.extent}:    // vectors"
        depth += 1
    place = ", ".join(_index(i, names) for i in kernel.index)
    if kernel.scan:
        loop, text = kernel.scan.loop, _text(body, read, names, shared)
        yield "  " * depth + f"for {names[loop.variable]} < {loop.extent}:    // one after the other"
        yield "  " * (depth + 1) + f"{kernel.output.name}[{place}] = {kernel.scan.kind} so far of {text}"
        return
    yield "  " * depth + f"{kernel.output.name}[{place}] = {_text(body, read, names, shared)}"


def _gemm(kernel: GemmKernel) -> Iterator[str]:
    names = {loop.variable: name for loop, name in zip(kernel.batch, "abcdefgh", strict=False)}
    names |= {"%m": "m", "%n": "n", "%k": "k"}
    depth = 0
    for loop in kernel.batch:
        yield "  " * depth + f"for {names[loop.variable]} < {loop.extent}:"
        depth += 1
    left, right = (
        f"{o.value.name}[{', '.join(_index(i, names) for i in o.index)}]" for o in (kernel.left, kernel.right)
    )
    place = ", ".join([*(names[loop.variable] for loop in kernel.batch), "m", "n"])
    yield "  " * depth + f"gemm m < {kernel.m}, n < {kernel.n}, k < {kernel.k}:    // packed register tiles"
    if kernel.finish is None:
        yield "  " * (depth + 1) + f"{kernel.output.name}[{place}] += {left} * {right}"
        return
    yield "  " * (depth + 1) + f"{_PRODUCT} += {left} * {right}"
    finished = _text(kernel.finish.body, (_PRODUCT, *(v.name for v in kernel.finish.inputs)), names, {})
    yield "  " * depth + "finished tile by tile:    // in L1"
    yield "  " * (depth + 1) + f"{kernel.output.name}[{place}] = {finished}"


def _own(kernel: OrderKernel | ScatterKernel | PlacesKernel) -> Iterator[str]:
    """Kernels of their own kind, in words: their loops are those of their values."""
    match kernel:
        case OrderKernel(keys=keys, size=size, count=count, descending=descending):
            way = "greatest" if descending else "least"
            yield f"row by row the positions of the {count} {way} of {size} in {keys.value.name}, by a heap:{_SPLIT}"
        case ScatterKernel(x=x, ids=ids, updates=updates, size=size, kind=kind):
            yield f"rows < {size} of {x.value.name}, each thread some:{_SPLIT}"
            yield f"  {kind} {updates.value.name} at {ids.value.name}, in order"
        case PlacesKernel(mask=mask, axis=axis, count=count):
            yield f"where along axis {axis} the {count} true elements of {mask.value.name} stand:{_SPLIT}"
            yield "  counted first, then written"


def _loop_names(kernel: LoopKernel) -> dict[str, str]:
    letters = [name for name in "ijklmnop" if name not in _sizes(kernel)]
    names = {loop.variable: name for loop, name in zip(kernel.loops, letters, strict=False)}
    return names | {r.variable: f"r{r.variable[2:]}" if r.variable != "%r0" else "r" for r in _reductions(kernel.body)}


def _sizes(kernel: LoopKernel) -> frozenset[str]:
    """The names of sizes, steps of loops among them, that stand in a kernel."""
    indices = [i for e in walk(kernel.body) if isinstance(e, Element) for i in e.index]
    values = [e.dim for e in walk(kernel.body) if isinstance(e, SizeValue)]
    extents = [loop.extent for loop in kernel.loops]
    return frozenset[str]().union(*(d.variables for d in (*indices, *values, *extents, *kernel.index)))


def _reductions(e: Scalar) -> Iterator[Reduce]:
    """Each different reduction once, inner ones first."""
    seen: set[Scalar] = set()
    for node in reversed(list(walk(e))):
        if isinstance(node, Reduce) and node not in seen:
            seen.add(node)
            yield node


def _index(i: Dim, names: dict[str, str]) -> str:
    text = str(i)
    for variable in sorted(names, key=len, reverse=True):
        text = text.replace(variable, names[variable])
    return text


def _text(e: Scalar, read: Sequence[str], names: dict[str, str], shared: dict[Scalar, str]) -> str:
    """An expression over operands that are called as `read` says."""
    if e in shared:
        return shared[e]

    def text(child: Scalar) -> str:
        return _text(child, read, names, shared)

    match e:
        case Element(operand, index):
            value = read[operand]
            return f"{value}[{', '.join(_index(i, names) for i in index)}]" if index and value != _PRODUCT else value
        case Literal(value, _):
            return str(value)
        case SizeValue(dim):
            return _index(dim, names)
        case Call(function, (left, right)) if function in _INFIX:
            return f"({text(left)} {_INFIX[function]} {text(right)})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(text, arguments))})"
        case Cast(operand, dtype):
            return f"{dtype}({text(operand)})"
        case Reduce(kind, variable, extent, body):
            return f"{kind} over {names[variable]} < {_index(extent, names)} of {text(body)}"
        case Pieces(position, pieces):
            parts = [f"{_index(position, names)} < {bound} ? {text(piece)}" for bound, piece in pieces[:-1]]
            return "(" + " : ".join([*parts, text(pieces[-1][1])]) + ")"
        case Lookup(variable, _, place, body):
            return _text(body, read, names | {variable: text(place)}, shared)


# ---------------------------------------------------------------- traffic and work


def _bytes(elements: Dim, type_: Tensor) -> Dim:
    return elements * type_.dtype.itemsize


def _written(kernel: Kernel) -> Dim:
    return (
        product([loop.extent for loop in kernel.loops])
        if isinstance(kernel, LoopKernel)
        else product(list(kernel.output.type.shape))
    )


def _traffic(kernel: Kernel) -> Dim:
    total = constant(0)
    for value in dict.fromkeys(kernel.inputs):
        total = total + bytes_of(value)
    return total


def _work(kernel: Kernel) -> Dim:
    """Arithmetic operations; a reduction's step, a call, and a number ordered or scattered count one each."""
    if isinstance(kernel, BandKernel):
        return _work(kernel.first) + _work(kernel.middle) + _work(kernel.last)
    if isinstance(kernel, GemmKernel):
        after = _calls(kernel.finish.body) if kernel.finish else 0
        return product([loop.extent for loop in kernel.batch]) * kernel.m * kernel.n * (kernel.k * 2 + after)
    if isinstance(kernel, PlacesKernel):
        return product([loop.extent for loop in kernel.loops]) * 2
    if isinstance(kernel, ScatterKernel):
        return product([loop.extent for loop in (*kernel.outer, *kernel.places, *kernel.inner)])
    rows = product([loop.extent for loop in kernel.rows])
    if isinstance(kernel, OrderKernel):
        return rows * kernel.size
    inner = kernel.scan.loop if kernel.scan else kernel.inner
    each = constant(0)
    for reduction in _reductions(kernel.body):
        inside = inner is not None and inner.variable in free_variables(reduction)
        steps = most_steps(reduction) * (inner.extent if inside and inner else constant(1))
        each = each + steps * (_calls(reduction.body) + 1)
    per_element = _calls(kernel.body) + (kernel.scan is not None)
    return rows * (each + per_element * (inner.extent if inner else constant(1)))


def _calls(e: Scalar) -> int:
    """Operations of an expression, those inside reductions left out."""
    if isinstance(e, Reduce):
        return 0

    return isinstance(e, Call) + sum(map(_calls, children(e)))
