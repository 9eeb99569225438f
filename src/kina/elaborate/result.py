"""What elaboration gives: core, findings, and how every obligation was settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kina.core.ir import Function, Program
from kina.diagnostics import Diagnostic, Severity
from kina.dims.proposition import Proposition
from kina.dims.prover import Status
from kina.source import Span
from kina.syntax import ast
from kina.types import Arrow, Type, effects_text

if TYPE_CHECKING:
    from kina.elaborate.claims import Test
    from kina.elaborate.generics import Choice, Matching
    from kina.elaborate.incremental import State
    from kina.elaborate.module_context import ModuleContext


@dataclass(frozen=True, slots=True)
class Obligation:
    """A proposition that had to hold in `function`, and how that was settled.

    A status of `UNDECIDED` on an assertion means a run-time check; `used` are the facts of the proof.
    """

    function: str
    span: Span
    proposition: Proposition
    why: str
    status: Status
    used: tuple[Proposition, ...] = ()

    @property
    def status_text(self) -> str:
        """As `kina audit` shows it: `runtime` where a check is left."""
        return "runtime" if self.status is Status.UNDECIDED else self.status.value


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's type as its author wrote it; printed, it is the head of a Kina declaration.

    Of a generic function, types and requirements are text: they have no form before its binders are chosen.
    """

    name: str
    dimensions: tuple[str, ...]
    requires: tuple[Proposition | str, ...]
    parameters: tuple[tuple[str, Type | str], ...]
    result: Type | str
    effects: frozenset[str] = frozenset()

    def __str__(self) -> str:
        head = self.name + (f"[{', '.join(self.dimensions)}]" if self.dimensions else "")
        requires = "".join(f" requires ({p})" for p in self.requires)
        parameters = "".join(f" ({name} : {type_})" for name, type_ in self.parameters)
        result = f"({self.result})" if self.effects and isinstance(self.result, Arrow) else self.result
        return f"{head}{requires}{parameters} : {result}{effects_text(self.effects)}"


@dataclass(frozen=True, slots=True)
class Generic:
    """A function with `...S` or `T : Float` among its binders: it has core for each choice of them."""

    declaration: ast.FunctionDeclaration
    home: ModuleContext

    def matching(self) -> Matching:
        """To be told the types of arguments; it gives the choice that they make."""
        from kina.elaborate.generics import Matching

        return Matching(self.home, self.declaration)

    def instance(self, choice: Choice) -> Function | tuple[Diagnostic, ...]:
        """The function for a choice, or the errors that it has there."""
        from kina.elaborate.functions import instance

        function, found = instance(self.home, self.declaration, choice)
        return function or tuple(found.diagnostics)


@dataclass(frozen=True, slots=True)
class Elaboration:
    """A checked module. `program` holds the functions without errors; `signatures` all that could be read."""

    program: Program
    signatures: Mapping[str, Signature]
    diagnostics: tuple[Diagnostic, ...]
    generic: Mapping[str, Generic]
    """Generic functions without errors."""
    state: State = field(repr=False)
    """For checking the module again after an edit."""
    obligations: tuple[Obligation, ...]
    tests: tuple[Test, ...] = ()
    """The module's own tests that have no errors."""

    @property
    def owned(self) -> list[tuple[str | None, Diagnostic]]:
        """What was found, with the function that it was found in; None for imports, types, and other modules."""
        context = self.state.context
        own = [(None, d) for d in context.own.diagnostics]
        imported = [(None, d) for d in self.diagnostics[len(context.diagnostics) :]]
        return [*own, *((name, d) for name, found in context.findings.items() for d in found.diagnostics), *imported]

    @property
    def ok(self) -> bool:
        """Whether there is no error (warnings and notes may be there)."""
        return all(d.severity is not Severity.ERROR for d in self.diagnostics)
