"""The way from NumPy arrays into machine code, compiled to Python for each program: about a microsecond a call.

The generated function sizes the results and the arena, takes their memory, and hands machine code one packed block:
the sizes, the arrays as Python objects, the number of threads. Machine code reads addresses, shapes and strides out
of the array objects itself (see `entry`), which NumPy's own interface takes longer for than a small kernel runs.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kina.core import interpreter
from kina.core.ir import Open, Require, Value, values_of
from kina.diagnostics import KinaError
from kina.dims import proposition
from kina.dims.atoms import CeilDiv, FloorDiv, Maximum, Minimum, Modulo, Variable, parts
from kina.dims.dim import Atom, Dim, product
from kina.dims.proposition import Proposition
from kina.kernels.ir import KernelProgram
from kina.kernels.memory import bytes_of, plan_memory
from kina.native.engine import Loaded
from kina.native.entry import ALIGNMENT, ENTRY, FITS, MISPLACED, thread_bands, work_of
from kina.native.layout import report_of
from kina.native.pool import SMALL, Pool, Reserved
from kina.native.regions import MOST, NO_MEMORY, TOO_LARGE, demands_of
from kina.native.runtime import threads

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Mapping[str, int], Sequence[Array]], tuple[Array, ...]]

_NO_ARENA = np.empty(0, np.uint8)


def compile_run(program: KernelProgram, code: Loaded, pool: Pool, scratch: int, worth_a_thread: int) -> Run:
    """`run(sizes, inputs)`, which gives the outputs, and keeps the code loaded. A thread needs `scratch` bytes.

    A second thread takes part where the work is at least `worth_a_thread` elements.
    """
    sizes = {name: f"n{k}" for k, name in enumerate(program.function.dimensions)}
    inputs = [f"x{k}" for k in range(len(program.inputs))]
    outputs = [f"y{k}" for k in range(len(program.outputs))]
    plan = plan_memory(program)
    late = {local for local, v in zip(outputs, program.outputs, strict=True) if program.known_with(v) is not None}
    words = len(sizes) + len(inputs) + len(outputs) - len(late) + (2 if program.straight else 3)
    scope: dict[str, Any] = {
        "call": ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)(code.address(ENTRY)),
        "code": code,  # unloaded when nothing holds it
        "pack": struct.Struct("@" + "q" * words).pack,
        "ndarray": np.ndarray, "asarray": np.asarray, "empty": np.empty, "zeros": np.zeros,
        "result": pool.result, "take": pool.take, "give": pool.give, "nothing": _NO_ARENA,
        "threads": threads, "too_large": lambda at: _refuse_too_large(program, at),
        "refused": lambda status, at, given: _refused(scope["run"], status, at, given),
    }  # fmt: skip
    lines = [f"{local} = sizes[{name!r}]" for name, local in sizes.items()]
    if sizes:
        limit = safe_size(program)
        lines.append(f"if {' or '.join(f'{local} > {limit}' for local in sizes.values())}: too_large(sizes)")
    if inputs:
        lines.append(f"{', '.join(inputs)}, = inputs")
        arrays = " and ".join(f"isinstance({local}, ndarray)" for local in inputs)
        lines.append(f"if not ({arrays}): return run(sizes, [asarray(x) for x in inputs])")
    open_ = [local for local, v in zip(outputs, program.function.outputs, strict=True) if _is_open(program, v)]
    for local, value in zip(outputs, program.function.outputs, strict=True):
        scope[f"t_{local}"] = value.type.dtype.numpy
        if local in late:
            continue
        most = [program.most(product(list(value.type.shape)))] if local in open_ else value.type.shape
        shape = "(" + "".join(f"{_python(d, sizes)}, " for d in most) + ")"
        lines.append(f"b = {_python(program.most(bytes_of(value)), sizes)}")
        lines.append(f"{local} = empty({shape}, t_{local}) if b < {SMALL} else result({shape}, t_{local}, b)")
    lines += _team_and_arena(program, sizes, scratch, worth_a_thread)
    objects = [f"id({local})" for local in (*inputs, *outputs, "arena") if local not in late]
    after: list[str] = []
    if not program.straight:
        objects.append("id(report)")
        report = report_of(program, plan)
        scope["report_size"] = report.words
        scope["failed"] = lambda status, at, given: _failed(program, status, at, given)
        lines.append("report = zeros(report_size, 'q')")
        made = {name: f"m{k}" for k, name in enumerate(program.sizes)}
        after = [f"status, {''.join(f'{local}, ' for local in made.values())}*_ = report.tolist()"]
        known = ", ".join(f"{name!r}: {local}" for name, local in made.items())
        after.append(f"if status: failed(status, {{**sizes, {known}}}, inputs)")
        scope |= {"trimmed": _trimmed, "Reserved": Reserved, "slots": report.places}
        if report.places:
            lines.append("reserved = Reserved(report, slots)")
        for local, stored, value in zip(outputs, program.outputs, program.function.outputs, strict=True):
            if local in open_:
                shape = "(" + "".join(f"{_python(d, {**sizes, **made})}, " for d in value.type.shape) + ")"
                place = next((at for p, at in zip(plan.late, report.places, strict=True) if stored in p.values), None)
                taken = f"reserved.result({place}, {shape}, t_{local})"
                after.append(f"{local} = " + (taken if local in late else f"trimmed({local}, {shape})"))
    lines += [
        f"status = call(pack({', '.join([*sizes.values(), *objects, 'team'])}))",
        "if arena is not nothing: give(arena)",
        f"if status != {FITS}: return refused(status, sizes, inputs)",
        *after,
        f"return ({''.join(f'{local}, ' for local in outputs)})",
    ]
    exec("def run(sizes, inputs):\n" + "".join(f"    {line}\n" for line in lines), scope)
    run: Run = scope["run"]
    return run


def _team_and_arena(program: KernelProgram, sizes: Mapping[str, str], scratch: int, worth: int) -> list[str]:
    work = " + ".join(_python(program.late(work_of(kernel)), sizes) for kernel in program.kernels) or "0"
    places = plan_memory(program).early
    padded = [f"(({_python(place.size, sizes)}) + {ALIGNMENT - 1} & -{ALIGNMENT})" for place in places]
    lines = [f"team = threads() if {work} >= {worth} else 1"]
    own = f"({scratch} + ({_python(thread_bands(program), sizes)})) * team"
    arena = [*padded, *([own] if scratch else [])]
    return [*lines, f"a = {' + '.join(arena)}" if arena else "a = 0", "arena = take(a) if a else nothing"]


def _is_open(program: KernelProgram, value: Value) -> bool:
    """Whether a result's size is known only when the program has run."""
    return any(not d.variables.isdisjoint(program.sizes) for d in value.type.shape)


def _trimmed(x: Array, shape: tuple[int, ...]) -> Array:
    """The part of a result's memory that was used, as the result; a copy where much was not."""
    used = math.prod(shape)
    found = x[:used].reshape(shape)
    return found.copy() if 2 * used < x.size else found


def _failed(program: KernelProgram, status: int, sizes: Mapping[str, int], inputs: Sequence[Array]) -> None:
    """Raises KinaError for the check that ended the program. One without a message leaves that to the reference."""
    how, number = divmod(status, TOO_LARGE)
    demand = demands_of(program.steps)[number - 1]
    where = f"{demand.span}: " if demand.span else ""
    if isinstance(demand, Open):
        raise KinaError(where + _not_opened(program, demand, how * TOO_LARGE, sizes))
    if isinstance(demand, Require):
        if not demand.message:
            interpreter.run(program.function, {n: sizes[n] for n in program.function.dimensions}, inputs)
            raise AssertionError("internal fault in Kina: native code found a fault that the reference does not")
        raise KinaError(f"{where}{demand.message}")
    claim = demand.proposition
    raise KinaError(f"{where}the assertion {claim} does not hold for {_at(program, claim, sizes)}")


def _at(program: KernelProgram, claim: Proposition, sizes: Mapping[str, int]) -> str:
    """The sizes at which a proposition does not hold: the function's, and those that it mentions."""
    told = (*program.function.dimensions, *program.sizes)
    named = [n for n in told if n in program.function.dimensions or n in proposition.variables(claim)]
    return ", ".join(f"{name} = {sizes[name]}" for name in named)


def _not_opened(program: KernelProgram, step: Open, how: int, sizes: Mapping[str, int]) -> str:
    """Why a value did not become a dimension."""
    name, size = step.dimension, sizes[step.dimension]
    if how == TOO_LARGE:
        return f"{name} is {size}, and what depends on it would have more bytes than can be addressed"
    if how == NO_MEMORY:
        return f"{name} is {size}, and there is no memory for what depends on it"
    if size < 0:
        return f"{name} would be {size}, and a dimension is not negative"
    claim = next(fact for fact in step.facts if not proposition.holds(fact, sizes))
    return f"{claim} does not hold for {_at(program, claim, sizes)}"


def _refused(run: Run, status: int, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Calls again with copies of arrays whose elements do not lie at whole steps of their size."""
    if status != MISPLACED:
        raise AssertionError("internal fault in Kina: the inputs are not of the program's shapes")
    return run(sizes, [_placed(x) for x in inputs])


def _placed(x: Array) -> Array:
    misplaced = any(s % x.itemsize for s in x.strides) or x.ctypes.data % x.dtype.alignment
    return x.copy(order="C") if misplaced else x


# ---------------------------------------------------------------- sizes


def safe_size(program: KernelProgram) -> int:
    """A size up to which all of a function's dimensions are safe: nothing then reaches `MOST`."""
    volumes = [program.most(bytes_of(v)) for v in values_of(program.function)]
    size = MOST
    while size > 1 and any(_magnitude(v, size) >= MOST for v in volumes):
        size //= 2
    return size


def _refuse_too_large(program: KernelProgram, sizes: Mapping[str, int]) -> None:
    """Raises KinaError where a value would have more bytes than an index can count (axes of size 0 aside)."""
    for value in values_of(program.function):
        size = value.type.dtype.itemsize
        if program.known_with(value) is not None:
            continue  # it is measured when its size is known
        for d in value.type.shape:
            size *= max(1, program.most(d).evaluate(sizes))
        if size >= MOST:
            at = ", ".join(f"{name} = {n}" for name, n in sizes.items())
            raise KinaError(f"{value.name} : {value.type} is too large for {at}: {size} bytes cannot be addressed")


def _magnitude(d: Dim, size: int) -> int:
    """A bound of `|d|` where every variable is at most `size`."""
    total = 0
    for monomial, number in d.terms:
        term = abs(number)
        for atom in monomial:
            term *= size if isinstance(atom, Variable) else max(_magnitude(part, size) for part in parts(atom)) + 1
        total += term
    return total


def _python(d: Dim, names: Mapping[str, str]) -> str:
    """A dimension as a Python expression."""
    terms = ["*".join([str(c), *(_python_atom(a, names) for a in monomial)]) for monomial, c in d.terms]
    return " + ".join(terms) or "0"


def _python_atom(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, Variable):
        return names[atom.name]
    a, b = (_python(part, names) for part in parts(atom))
    match atom:
        case FloorDiv():
            return f"(({a}) // ({b}))"
        case Modulo():
            return f"(({a}) % ({b}))"
        case CeilDiv():
            return f"(-(-({a}) // ({b})))"
        case Minimum():
            return f"min({a}, {b})"
        case Maximum():
            return f"max({a}, {b})"


# ---------------------------------------------------------------- array objects


def _fields_lie_as_expected() -> bool:
    """Whether an array object's address, rank, shape and strides are where machine code will look for them."""
    if sys.implementation.name != "cpython":
        return False
    x = np.empty((3, 5), np.float32)[:, ::2]
    words = (ctypes.c_int64 * 4).from_address(id(x) + object.__basicsize__)
    rank = (ctypes.c_int32 * 1).from_address(id(x) + object.__basicsize__ + 8)[0]
    if words[0] != x.ctypes.data or rank != 2:
        return False
    shape, strides = ((ctypes.c_int64 * 2).from_address(words[n]) for n in (2, 3))
    return tuple(shape) == x.shape and tuple(strides) == x.strides


if not _fields_lie_as_expected():  # the layout is part of NumPy's binary interface since its first version
    raise ImportError("Kina needs CPython with NumPy on a 64-bit machine: array objects are not laid out as expected")
