"""What is in scope while a function is elaborated, and where its findings go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from kina.core.ir import Apply, Check, Statement, Tree, Value
from kina.core.names import Names
from kina.diagnostics import Diagnostic, form_errors
from kina.dims.dim import Dim, variable
from kina.dims.proposition import And, Comparison, Proposition
from kina.dims.prover import NO_FACTS, Facts, Status, Verdict, settle
from kina.elaborate.keys import KEY, Keys, keys_of_step, next_key
from kina.elaborate.module_context import Cause, Declared, ModuleContext, Reported
from kina.elaborate.result import Obligation
from kina.ops.base import Operation
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Exists, Shape, Tensor, Type

__all__ = [
    "POISON", "Cell", "Context", "Declared", "FunctionValue", "Meaning", "ModuleContext", "Package", "Poison",
    "Reported",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for a value whose computation had an error, so that its uses say nothing more."""


POISON = Poison()


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """What a `ref` is: what it is called, what it holds is of this type, where it was made."""

    name: str
    type: Type
    span: Span


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
    stated: ast.Expr | None = None
    """The expression whose type its own `let` states."""
    measured: set[str] = field(default_factory=set)
    """The dimensions that come from values: nothing but a check when the program runs can bound them."""
    inlining: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    """The dimensions made in the body so far, by loops and from values, in order."""
    refused: set[Proposition] = field(default_factory=set)
    """Obligations already reported, so that the same one elsewhere says nothing more."""
    unknown: set[str] = field(default_factory=set)
    """Names already reported as meaning nothing."""
    performed: dict[str, Cause] = field(default_factory=dict)
    """The effects of what was elaborated so far, each with what brought it first."""
    failed: bool = False
    trusting: bool = False
    """Whether obligations are taken as met: while a head is read again that was checked where it is declared."""
    whole_blocks: list[Proposition] | None = None
    """While parameters are read: what dtypes that stand for binders require of sizes, as the function itself would."""

    cells: dict[Cell, Tree] = field(default_factory=dict)
    """What each ref that there is holds now."""
    own: set[Cell] = field(default_factory=set)
    """The refs made since effects are collected: what is done to them is no effect for anyone else."""
    keys: Keys = field(init=False)
    """Where draws get their keys from; outside loops from the seed, which is a parameter if anything draws."""

    def __post_init__(self) -> None:
        self.keys = self._keys_of_seed()

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
        outside = self.statements, self.cells
        self.statements, self.cells = [], dict(self.cells)
        try:
            with self.scope():
                yield self.statements
        finally:
            self.statements, self.cells = outside

    # ------------------------------------------------------------ effects

    def perform(self, effect: str, span: Span, shown: str) -> None:
        """What stands at a place has an effect."""
        self.performed.setdefault(effect, Cause(span, shown))

    def touch(self, cell: Cell, span: Span) -> None:
        """A ref is read or changed: an effect only for whoever does not own it."""
        self.perform_again({"state": Cause(span, f"`{span.text}`", frozenset((cell,)))})

    def perform_again(self, performed: Mapping[str, Cause]) -> None:
        """What was collected for itself is done here too; not what is done to refs that were made here."""
        for effect, cause in performed.items():
            cells = cause.cells - self.own
            if cause.cells and not cells:
                continue
            known = self.performed.setdefault(effect, cause)
            if cells != known.cells:
                self.performed[effect] = replace(known, cells=known.cells | cells)

    @contextmanager
    def effects_apart(self) -> Iterator[dict[str, Cause]]:
        """Collects effects for themselves: whoever asks decides whether they are effects of what is around."""
        outside, self.performed = (self.performed, self.own), {}
        self.own = set()
        try:
            yield self.performed
        finally:
            self.performed, self.own = outside

    @contextmanager
    def thrown_away(self) -> Iterator[dict[str, Cause]]:
        """For what is elaborated only to be checked: its statements and draws are none of the function's."""
        outside, self.keys = self.keys, self._keys_of_seed()
        try:
            with self.block(), self.effects_apart() as performed:
                yield performed
        finally:
            self.keys = outside

    def _keys_of_seed(self) -> Keys:
        return Keys(lambda: Value(self.fresh("seed"), KEY))

    def draw_key(self, span: Span) -> Value:
        """A key for what stands at a place."""
        return next_key(self.statements, self.keys, self.fresh, span)

    @contextmanager
    def repeated(self, step: Dim, span: Span) -> Iterator[list[Statement]]:
        """The block of a loop: what each step draws comes from a key of that step."""
        before, outside = self.statements, self.keys
        with self.block() as inside:
            self.keys = keys_of_step(outside, before, inside, step, self.fresh, span)
            try:
                yield inside
            finally:
                self.keys = outside

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
        obligation = Obligation(self.declaration.name, span, goal, why, verdict.status, verdict.used)
        self.module.current.record(obligation)


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
