"""What is in scope while a function is elaborated, and where its findings go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kina.core.ir import Apply, Check, Function, Statement, Tree, Value
from kina.core.names import Names
from kina.diagnostics import Diagnostic
from kina.dims.dim import Dim
from kina.dims.proposition import And, Comparison, Proposition
from kina.dims.prover import NO_FACTS, Facts, Status, Verdict, settle
from kina.elaborate.result import Obligation, Signature
from kina.ops.base import Operation
from kina.source import Span
from kina.syntax import ast
from kina.types import Tensor


class Reported(Exception):
    """Raised once the diagnostic is recorded: unwinds to the nearest place where checking can go on."""


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for a value whose computation had an error, so that its uses say nothing more."""


POISON = Poison()
Meaning = Tree | Poison
"""What a name in scope stands for."""


@dataclass(slots=True)
class ModuleContext:
    """What the functions of a module share.

    `interfaces` are functions without bodies, known as soon as their signatures are read.
    """

    strict: bool
    declarations: Mapping[str, ast.FunctionDeclaration]
    functions: dict[str, Function] = field(default_factory=dict)
    interfaces: dict[str, Function] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    in_progress: list[str] = field(default_factory=list)

    def report(self, diagnostic: Diagnostic) -> Reported:
        """Records a finding; `raise context.report(...)` ends what was being checked."""
        self.diagnostics.append(diagnostic)
        return Reported()


@dataclass(slots=True)
class Context:
    """The scope of one function: names, facts, and the core statements made so far."""

    module: ModuleContext
    declaration: ast.FunctionDeclaration
    facts: Facts = NO_FACTS
    dims: dict[str, Dim | Poison] = field(default_factory=dict)
    values: dict[str, Meaning] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    refused: set[Proposition] = field(default_factory=set)
    """Obligations already reported, so that the same one elsewhere says nothing more."""
    failed: bool = False

    # ------------------------------------------------------------ names

    def fresh(self, wanted: str | None) -> str:
        """A name for a value that no other value of the function has."""
        return self.names.fresh(wanted)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names bound and facts assumed inside are forgotten afterwards."""
        dims, values, facts = dict(self.dims), dict(self.values), self.facts
        try:
            yield
        finally:
            self.dims, self.values, self.facts = dims, values, facts

    # ------------------------------------------------------------ statements

    def apply(
        self, operation: Operation, arguments: tuple[Value, ...], type_: Tensor, span: Span, name: str | None = None
    ) -> Value:
        """Appends `name = operation(arguments)` and gives the new value."""
        result = Value(self.fresh(name), type_)
        self.statements.append(Apply(result, operation, arguments, span))
        return result

    def check_at_run_time(self, claim: Proposition, span: Span) -> None:
        self.statements.append(Check(claim, span))

    # ------------------------------------------------------------ proofs

    def report(self, diagnostic: Diagnostic) -> Reported:
        self.failed = True
        return self.module.report(diagnostic)

    def unreadable(self) -> Reported:
        """For what did not parse, a hole with an empty name: the parser has reported it."""
        self.failed = True
        return Reported()

    def assume(self, *facts: Proposition) -> None:
        self.facts = self.facts.assume(*facts)

    def settle(self, goal: Proposition, span: Span, why: str) -> Verdict:
        """Settles a goal under the facts in scope, and records it for `kina audit` if it is proved."""
        verdict = _IDENTICAL if _is_identity(goal) else settle(goal, self.facts)
        if verdict.status.proved:
            self.record(goal, span, why, verdict)
        return verdict

    def record(self, goal: Proposition, span: Span, why: str, verdict: Verdict) -> None:
        name = self.declaration.name
        self.module.obligations.append(Obligation(name, span, goal, why, verdict.status, verdict.used))


_IDENTICAL = Verdict(Status.NORMAL_FORM)


def _is_identity(goal: Proposition) -> bool:
    """Whether the goal says that an expression equals itself, division by zero aside."""
    match goal:
        case Comparison("=", left, right):
            return left is right and not left.denominators
        case And(items):
            return all(map(_is_identity, items))
    return False
