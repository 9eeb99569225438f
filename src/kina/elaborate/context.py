"""What is in scope while a function is elaborated, and where its findings go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from kina.core.ir import Apply, Check, Function, Statement, Tree, Value
from kina.core.names import Names
from kina.diagnostics import Diagnostic, form_errors
from kina.dims.dim import Dim, variable
from kina.dims.proposition import And, Comparison, Proposition
from kina.dims.prover import NO_FACTS, Facts, Status, Verdict, settle
from kina.elaborate.result import Obligation, Signature
from kina.ops.base import Operation
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Exists, Shape, Tensor, Type


class Reported(Exception):
    """Raised once the diagnostic is recorded: unwinds to the nearest place where checking can go on."""


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for a value whose computation had an error, so that its uses say nothing more."""


POISON = Poison()


@dataclass(frozen=True, slots=True)
class Package:
    """A value of an existential type: the type, the sizes of this function that its names stand for, the value."""

    type: Exists
    witnesses: tuple[Dim, ...]
    tree: Tree


class FunctionValue(Protocol):
    """What a name of function type stands for; see `elaborate.closures`. Functions are inlined: core has none."""

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        """The result for arguments that stand in the caller's context."""

    def misuse(self, span: Span) -> Diagnostic:
        """The error where it stands at a place that wants a value."""

    def describe(self) -> str:
        """What it is, for messages: its type where that is known."""


Meaning = Tree | Package | FunctionValue
"""What an expression stands for."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A function or constant, and the module that it stands in."""

    home: ModuleContext
    declaration: ast.FunctionDeclaration

    @property
    def name(self) -> str:
        return self.declaration.name


@dataclass(slots=True)
class ModuleContext:
    """What the functions of a module share.

    `interfaces` are functions without bodies, known as soon as their signatures are read. `instances` are the functions
    that generic ones (`...S`, `T : Float`) have become, by what was put for their binders.
    """

    strict: bool
    declarations: Mapping[str, ast.FunctionDeclaration]
    types: Mapping[str, ast.TypeDeclaration] = field(default_factory=dict)
    imported: Mapping[str, tuple[ModuleContext, str]] = field(default_factory=dict)
    """Names from other modules: where each is declared, and what it is called there."""
    modules: Mapping[str, ModuleContext] = field(default_factory=dict)
    """Modules under the names that this one uses for them."""
    shown: str = ""
    broken: bool = False
    """Whether it, as a module that others import, has errors."""
    functions: dict[str, Function] = field(default_factory=dict)
    interfaces: dict[str, Function] = field(default_factory=dict)
    instances: dict[object, Function | None] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    generic: dict[str, ast.FunctionDeclaration] = field(default_factory=dict)
    """Generic functions without errors, which Python may call at the ranks and dtypes of its arrays."""
    checked: set[str] = field(default_factory=set)
    inlined: set[str] = field(default_factory=set)
    """Functions that turned out to give functions, so that they have no core."""
    failed: set[str] = field(default_factory=set)
    in_progress: list[str] = field(default_factory=list)
    types_in_progress: list[ast.TypeDeclaration] = field(default_factory=list)
    recursive_types: set[str] = field(default_factory=set)
    known: set[tuple[str, Span, str]] = field(default_factory=set)
    """Findings so far, so that what several instances of a function have is said once."""
    settled: set[tuple[Span, Proposition]] = field(default_factory=set)

    def find(self, e: ast.Expr) -> Declared | None:
        """The function or constant that a name means at the top level: one of this module, or an imported one."""
        home: ModuleContext | None
        match e:
            case ast.Name(text=name):
                if name in self.declarations:
                    return Declared(self, self.declarations[name])
                home, original = self.imported.get(name, _NOTHING)
            case ast.FieldAccess(target=ast.Name(text=module), name=original) if module in self.modules:
                home = self.modules[module]
            case _:
                return None
        declaration = home.declarations.get(original) if home is not None else None
        return Declared(home, declaration) if home is not None and declaration is not None else None

    def find_type(self, e: ast.Name | ast.FieldAccess) -> tuple[ModuleContext, ast.TypeDeclaration] | None:
        """The type declaration that a name means, and the module that it stands in."""
        home: ModuleContext | None
        match e:
            case ast.Name(text=name):
                home, original = (self, name) if name in self.types else self.imported.get(name, _NOTHING)
            case ast.FieldAccess(target=ast.Name(text=module), name=original):
                home = self.modules.get(module)
            case _:
                return None
        declaration = home.types.get(original) if home is not None else None
        return (home, declaration) if home is not None and declaration is not None else None

    def report(self, diagnostic: Diagnostic) -> Reported:
        """Records a finding; `raise context.report(...)` ends what was being checked."""
        key = diagnostic.code, diagnostic.span, diagnostic.message
        if key not in self.known:
            self.known.add(key)
            self.diagnostics.append(diagnostic)
        return Reported()


_NOTHING: tuple[ModuleContext | None, str] = (None, "")


@dataclass(slots=True)
class Context:
    """The scope of one function: names, facts, and the core statements made so far.

    `indices` are the loop indices among the dimensions, which are values too, below the bound that stands there.
    `dtypes` and `segments` are what dtype variables and `...S` stand for. Names of the top level are those of `home`:
    another module's while a function or type of it is taken apart.
    """

    module: ModuleContext
    home: ModuleContext
    declaration: ast.FunctionDeclaration
    facts: Facts = NO_FACTS
    dims: dict[str, Dim | Poison] = field(default_factory=dict)
    indices: dict[str, Dim] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    segments: dict[str, Shape] = field(default_factory=dict)
    values: dict[str, Meaning | Poison] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    names: Names = field(default_factory=Names)
    dimensions: Names = field(default_factory=Names)
    naming: tuple[str, ...] = ()
    """What the sizes of the value that is being opened are to be called."""
    measured: set[str] = field(default_factory=set)
    """The dimensions that come from values: nothing but a check when the program runs can bound them."""
    inlining: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    """The dimensions made in the body so far, by loops and from values, in order."""
    refused: set[Proposition] = field(default_factory=set)
    """Obligations already reported, so that the same one elsewhere says nothing more."""
    failed: bool = False
    trusting: bool = False
    """Whether obligations are taken as met: while a head is read again that was checked where it is declared."""

    # ------------------------------------------------------------ names

    def fresh(self, wanted: str | None) -> str:
        """A name for a value that no other value of the function has."""
        return self.names.fresh(wanted)

    def fresh_dimension(self, wanted: str) -> Dim:
        """A dimension that no other name of the function means."""
        name = self.dimensions.fresh(wanted)
        self.opened.append(name)
        return variable(name)

    def measured_dimensions(self, names: tuple[str, ...]) -> list[Dim]:
        """Dimensions that come from values, called as the `let` that opens them says, else `names`."""
        wanted = self.naming if len(self.naming) == len(names) else names
        self.naming = ()
        made = [self.fresh_dimension(name) for name in wanted]
        self.measured.update(map(str, made))
        return made

    def new_dimension(self, name: str) -> Dim:
        """A dimension of its own that is called `name` from here on."""
        made = self.fresh_dimension(name)
        self.dims[name] = made
        self.values.pop(name, None)
        self.indices.pop(name, None)
        return made

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names bound and facts assumed inside are forgotten afterwards."""
        before = (self.home, self.dims, self.indices, self.dtypes, self.segments, self.values, self.facts)
        self.dims, self.indices, self.values = dict(self.dims), dict(self.indices), dict(self.values)
        self.dtypes, self.segments = dict(self.dtypes), dict(self.segments)
        try:
            yield
        finally:
            self.home, self.dims, self.indices, self.dtypes, self.segments, self.values, self.facts = before

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """For reading again a head that was checked where it is declared."""
        before, self.trusting = self.trusting, True
        try:
            yield
        finally:
            self.trusting = before

    @contextmanager
    def inside(self, span: Span, name: str) -> Iterator[None]:
        """While the body of a function is inlined: one that comes to itself again would never end."""
        if self.inlining.count(name) > _DEEPEST:
            raise self.report(form_errors.recursion(span, [name, name]))
        self.inlining.append(name)
        try:
            yield
        finally:
            self.inlining.pop()

    @contextmanager
    def block(self) -> Iterator[list[Statement]]:
        """A scope whose statements go into a list of their own: the block of a loop or branch."""
        outside = self.statements
        self.statements = []
        try:
            with self.scope():
                yield self.statements
        finally:
            self.statements = outside

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
        if self.trusting:
            return _IDENTICAL
        verdict = _IDENTICAL if _is_identity(goal) else settle(goal, self.facts)
        if verdict.status.proved:
            self.record(goal, span, why, verdict)
        return verdict

    def record(self, goal: Proposition, span: Span, why: str, verdict: Verdict) -> None:
        if (span, goal) not in self.module.settled:  # several instances of a function oblige the same
            self.module.settled.add((span, goal))
            name = self.declaration.name
            self.module.obligations.append(Obligation(name, span, goal, why, verdict.status, verdict.used))


_DEEPEST = 30
"""How often a function may stand inside itself while it is inlined, as in `twice (twice (twice f))`."""
_IDENTICAL = Verdict(Status.NORMAL_FORM)


def _is_identity(goal: Proposition) -> bool:
    """Whether the goal says that an expression equals itself, division by zero aside."""
    match goal:
        case Comparison("=", left, right):
            return left is right and not left.denominators
        case And(items):
            return all(map(_is_identity, items))
    return False
