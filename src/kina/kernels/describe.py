"""Kernels in readable form, for `kina explain --kernels`."""

from __future__ import annotations

from collections.abc import Iterator

from kina.dims.dim import Dim, constant, product
from kina.kernels.expressions import children, free_variables, most_steps, walk
from kina.kernels.ir import BandKernel, GemmKernel, Kernel, KernelProgram, LoopKernel
from kina.kernels.memory import bytes_of, plan_memory
from kina.ops.scalar import Call, Cast, Element, Literal, Lookup, Pieces, Reduce, Scalar, SizeValue
from kina.types import Tensor

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "and": "&&", "or": "||",
}  # fmt: skip
_SPLIT = "    // split over threads"


def describe(program: KernelProgram) -> str:
    """Every kernel with its loop nest, traffic and work, and why values are stored between them."""
    count = len(program.kernels)
    lines = [f"{program.function.name}: {count} kernel{'s' if count != 1 else ''}"]
    for number, kernel in enumerate(program.kernels, 1):
        lines += ["", f"kernel {number}: {kernel.output.name} : {kernel.output.type}"]
        lines += [f"  {line}" for line in _nest(kernel)]
        written = _bytes(_written(kernel), kernel.output.type)
        lines += [f"  reads {_traffic(kernel)} bytes, writes {written}; {_work(kernel)} operations"]
    if program.reasons:
        lines += ["", "stored between kernels:"]
        lines += [f"  {v.name} ({bytes_of(v)} bytes): {why}" for v, why in program.reasons]
        shared = [place for place in plan_memory(program).places if len(place.values) > 1]
        lines += [f"  one place, one after the other: {', '.join(v.name for v in place.values)}" for place in shared]
    for check in program.checks:
        lines += ["", f"checked first: {check.proposition}"]
    return "\n".join(lines)


def _nest(kernel: Kernel) -> Iterator[str]:
    if isinstance(kernel, GemmKernel):
        yield from _gemm(kernel)
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
    body = kernel.body
    shared: dict[Scalar, str] = {}
    inner = kernel.inner.variable if kernel.inner else None
    for reduction in _reductions(body):
        if inner is not None and inner in free_variables(reduction):
            continue
        name = f"{reduction.kind}{len(shared) + 1}"
        yield "  " * depth + f"{name} = {_text(reduction, kernel, names, shared)}"
        shared[reduction] = name
    if kernel.inner:
        yield "  " * depth + f"for {names[kernel.inner.variable]} < {kernel.inner.extent}:    // vectors"
        depth += 1
    place = ", ".join(_index(i, names) for i in kernel.index)
    yield "  " * depth + f"{kernel.output.name}[{place}] = {_text(body, kernel, names, shared)}"


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
    yield "  " * (depth + 1) + f"{kernel.output.name}[{place}] += {left} * {right}"


def _loop_names(kernel: LoopKernel) -> dict[str, str]:
    names = {loop.variable: name for loop, name in zip(kernel.loops, "ijklmnop", strict=False)}
    return names | {r.variable: f"r{r.variable[2:]}" if r.variable != "%r0" else "r" for r in _reductions(kernel.body)}


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


def _text(e: Scalar, kernel: LoopKernel, names: dict[str, str], shared: dict[Scalar, str]) -> str:
    if e in shared:
        return shared[e]

    def text(child: Scalar) -> str:
        return _text(child, kernel, names, shared)

    match e:
        case Element(operand, index):
            value = kernel.inputs[operand].name
            return f"{value}[{', '.join(_index(i, names) for i in index)}]" if index else value
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
            return _text(body, kernel, names | {variable: text(place)}, shared)


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
    """Arithmetic operations, a reduction's step and a function call counting one each."""
    if isinstance(kernel, BandKernel):
        return _work(kernel.first) + _work(kernel.middle) + _work(kernel.last)
    if isinstance(kernel, GemmKernel):
        return product([loop.extent for loop in kernel.batch]) * kernel.m * kernel.n * kernel.k * 2
    rows = product([loop.extent for loop in kernel.rows])
    each = constant(0)
    for reduction in _reductions(kernel.body):
        inside = kernel.inner is not None and kernel.inner.variable in free_variables(reduction)
        steps = most_steps(reduction) * (kernel.inner.extent if inside and kernel.inner else constant(1))
        each = each + steps * (_calls(reduction.body) + 1)
    per_element = _calls(kernel.body)
    return rows * (each + per_element * (kernel.inner.extent if kernel.inner else constant(1)))


def _calls(e: Scalar) -> int:
    """Operations of an expression, those inside reductions left out."""
    if isinstance(e, Reduce):
        return 0

    return isinstance(e, Call) + sum(map(_calls, children(e)))
