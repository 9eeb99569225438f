"""The way of a program through the house, in order.

source text -> syntax tree -> typed core -> one flat function -> kernels -> machine code
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kina.core.ir import Function
from kina.diagnostics import Diagnostic, KinaError, Severity
from kina.elaborate.result import Elaboration
from kina.source import Source

if TYPE_CHECKING:
    from kina.kernels import KernelProgram
    from kina.native import Executable


@dataclass(frozen=True, eq=False)
class Checked:
    """A module after parsing, type checking and proving."""

    source: Source
    elaboration: Elaboration
    syntax_diagnostics: tuple[Diagnostic, ...]
    strict: bool = False

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings, in order of place; those in imported modules come last. The help of errors has been tried."""
        from kina.diagnostics.trial import tried

        notes = [d for _, d in self._owned if d.severity is not Severity.ERROR]
        found = (*notes, *tried(self._errors, self.source, self._errors_of))
        return tuple(sorted(found, key=lambda d: (d.span.source is not self.source, d.span.start, d.span.end)))

    @property
    def ok(self) -> bool:
        return not self._errors

    @property
    def _owned(self) -> list[tuple[str | None, Diagnostic]]:
        return [*((None, d) for d in self.syntax_diagnostics), *self.elaboration.owned]

    @property
    def _errors(self) -> list[tuple[str | None, Diagnostic]]:
        return [(owner, d) for owner, d in self._owned if d.severity is Severity.ERROR]

    def _errors_of(self, edited: Source) -> list[tuple[str | None, Diagnostic]]:
        return check(edited, strict=self.strict, earlier=self)._errors

    def function(self, name: str) -> Function:
        """A checked function by name. Raises KinaError where there is none."""
        functions = self.elaboration.program.functions
        if name not in functions:
            raise KinaError(f"{self.source.name} has no function {name}; it has: {', '.join(functions) or 'none'}")
        return functions[name]


def check(source: Source, *, strict: bool = False, earlier: Checked | None = None) -> Checked:
    """Parses and checks. Never raises for a bad program: what is wrong is in `diagnostics`.

    After an edit, `earlier` is the check before it: what the edit cannot have changed is not checked again.
    """
    from kina.elaborate import elaborate
    from kina.imports import load
    from kina.syntax.parser import parse

    with _room_for_long_chains():
        parsed = parse(source)
        state = earlier.elaboration.state if earlier is not None else None
        elaboration = elaborate(parsed.module, strict=strict, load=load, earlier=state)
    for function in elaboration.program.functions.values():
        _verified(function, "elaboration")
    return Checked(source, elaboration, parsed.diagnostics, strict)


def core_text(*functions: Function) -> str:
    """The typed core of functions and of all that they call, as Kina that checks again."""
    from kina.core.printer import print_program

    return print_program(*functions)


def decomposed_text(function: Function) -> str:
    """The same, with composite operations as what they are made of."""
    from kina.passes.decompose import decompose

    return core_text(_verified(decompose(function), "decomposition"))


def lower(function: Function) -> KernelProgram:
    """Calls inlined, common work shared, operations fused into kernels."""
    from kina.kernels import fuse
    from kina.passes.guard import guard
    from kina.passes.simplify import eliminate_dead_code, simplify
    from kina.passes.sink import sink
    from kina.passes.specialise import specialise

    flat = _verified(specialise(function), "specialisation")
    simple = _verified(simplify(flat), "simplification")
    guarded = _verified(guard(simple), "guarding")
    return fuse(_verified(eliminate_dead_code(sink(guarded)), "sinking"))


def compile_function(function: Function) -> Executable:
    """Machine code for this machine and for all sizes."""
    from kina.native import compile
    from kina.native.machine import Machine

    return compile(lower(function), Machine.host())


# ---------------------------------------------------------------- around the stages

_FRAMES = 20_000
"""Python frames that the longest chain of operators which the parser accepts may take in later stages."""


@contextmanager
def _room_for_long_chains() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _verified(function: Function, stage: str) -> Function:
    """The function, re-checked if KINA_VERIFY=1: what is wrong then is a fault of the stage before.

    Raises InvalidCore, which names the stage and the statement; it is for whoever mends Kina, so nothing hides it.
    """
    if os.environ.get("KINA_VERIFY") == "1":
        from kina.core.verifier import InvalidCore, verify

        try:
            verify(function)
        except InvalidCore as fault:
            raise InvalidCore(f"after {stage}, {fault.message}") from None
    return function
