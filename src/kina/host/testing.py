"""Runs the tests of a Kina module, and finds out of one that fails which values do not agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kina.core.ir import Apply, Call, Function, Statement, Value, leaves, made_by, tree_type
from kina.diagnostics import KinaError
from kina.elaborate.claims import Test
from kina.host.boundary import Executable
from kina.ops.base import Array
from kina.ops.elementwise import OPERATORS
from kina.source import Span
from kina.types import DType, Tensor

Compile = Callable[[Function], Executable]

_LONGEST = 90


@dataclass(frozen=True)
class Outcome:
    """What became of a test: nothing in `failures` means that it holds. Each failure is a line, then its details."""

    test: Test
    failures: tuple[tuple[str, ...], ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failures


def run_test(test: Test, compile: Compile) -> Outcome:
    """Runs a test to its end, and once more for the values where a claim is false."""
    if test.function is None:  # the checker has refused what was to be refused
        return Outcome(test)
    try:
        executable = compile(test.function)
    except KinaError as lack:
        return Outcome(test, ((f"{test.span}: {lack}",),))
    try:
        outputs = executable.run({}, [])
    except KinaError as refusal:
        return _after_refusal(test, str(refusal))
    if test.rejects is not None:
        return Outcome(test, ((f'{test.span}: it ran to its end, and was to be refused with "{test.rejects}"',),))
    if all(map(bool, outputs)):
        return Outcome(test)
    return Outcome(test, tuple(_explained(test.function, outputs, compile)))


def _after_refusal(test: Test, said: str) -> Outcome:
    if test.rejects is None:
        return Outcome(test, ((said,),))
    if test.rejects in said:
        return Outcome(test)
    return Outcome(test, ((said, f'it was to be refused with "{test.rejects}"'),))


# ---------------------------------------------------------------- why a claim is false


@dataclass(frozen=True)
class _Witness:
    """A part of a claim that can be false by itself, and the values that it is about by what they are called.

    `agree` says whether the two values are meant to be equal, exactly or nearly.
    """

    claim: Value
    what: str
    span: Span | None
    shown: tuple[tuple[str, Value], ...] = ()
    agree: bool = False


def _explained(function: Function, outputs: Sequence[Array], compile: Compile) -> Iterator[tuple[str, ...]]:
    """For each false claim, the parts of it that are false with their values."""
    made = {value: statement for statement in function.statements for value in made_by(statement)}
    false = [claim for claim, holds in zip(function.outputs, outputs, strict=True) if not holds]
    witnesses = [w for claim in false for w in _witnesses(claim, made)]
    values = list(dict.fromkeys(v for w in witnesses for v in (w.claim, *(v for _, v in w.shown))))
    found = dict(zip(values, _evaluated(function, values, compile), strict=True))
    for w in witnesses:
        if not np.all(found[w.claim]):
            place = f"{w.span}: " if w.span else ""
            yield (f"{place}{w.what}", *_details(w, found))


def _evaluated(function: Function, values: list[Value], compile: Compile) -> tuple[Array, ...]:
    """The test run again for values inside it."""
    result = tuple(values)
    return compile(replace(function, result=result, result_type=tree_type(result))).run({}, [])


def _witnesses(claim: Value, made: Mapping[Value, Statement]) -> Iterator[_Witness]:
    """Follows a claim back through `&&` and `reduce[all]` to comparisons and to the functions that judge."""
    match made.get(claim):
        case Apply(operation=operation, arguments=(left, right)) if operation.name == "logical_and":
            yield from _witnesses(left, made)
            yield from _witnesses(right, made)
        case Apply(operation=operation, arguments=(x,)) if operation.arguments().get("kind") == "all":
            yield from _witnesses(x, made)
        case Apply(operation=operation, arguments=(x,)) if operation.name == "reshape":
            yield from _witnesses(x, made)
        case Apply(operation=operation, arguments=(left, right), span=span) if operation.name in _COMPARISONS:
            sides = (("left", left), ("right", right))
            sign = _COMPARISONS[operation.name]
            yield _Witness(claim, f"left {sign} right does not hold", span, sides, operation.name == "eq")
        case Apply(operation=operation, arguments=(x,), span=span) if operation.name == "logical_not":
            inner = made.get(x)
            shown = _arguments(inner) if isinstance(inner, Call) else ()
            yield _Witness(claim, f"{_text(span)} does not hold", span, shown)
        case Call(span=span) as call:
            shown = _arguments(call)
            agree = len(shown) >= 2 and shown[-2][1].type == shown[-1][1].type
            yield _Witness(claim, f"{_text(span)} does not hold", span, shown, agree)
        case statement:
            span = None if statement is None else statement.span
            yield _Witness(claim, "this is false", span)


def _arguments(call: Call) -> tuple[tuple[str, Value], ...]:
    names = [p.name for p in call.function.parameters]
    return tuple((n, v) for n, tree in zip(names, call.arguments, strict=True) for v in leaves(tree))


def _text(span: Span | None) -> str:
    text = " ".join(span.text.split()) if span else "this"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


_COMPARISONS = {name: sign for sign, name in OPERATORS.items() if sign in ("==", "!=", "<", "<=", ">", ">=")}


def _details(w: _Witness, found: Mapping[Value, Array]) -> Iterator[str]:
    width = max((len(name) for name, _ in w.shown), default=0)
    for name, value in w.shown:
        yield f"{name.ljust(width)}  {_shown(found[value], value.type)}"
    if w.agree:
        (_, left), (_, right) = w.shown[-2:]
        yield from _difference(found[left], found[right])


def _shown(x: Array, type_: Tensor) -> str:
    wide = x.astype(np.float32) if type_.dtype in (DType.BF16, DType.F16) else x
    if x.ndim == 0:
        return f"{type_.dtype}[]  {wide[()]}"
    text = np.array2string(wide, threshold=32, edgeitems=3, precision=8, separator=", ")
    return f"{type_.dtype}{list(x.shape)}  {' '.join(text.split())}"


def _difference(left: Array, right: Array) -> Iterator[str]:
    """Where two arrays of one shape are furthest apart."""
    if left.ndim == 0 or left.size == 0:
        return
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    apart = np.where(np.isnan(apart), np.inf, apart)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(apart)), apart.shape))
    count = int(np.count_nonzero(apart))
    if count:
        yield f"{count} of {left.size} differ, most at {list(at)}: {left[at]} and {right[at]}"
