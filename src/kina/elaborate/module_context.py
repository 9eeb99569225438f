"""What the declarations of a module share while they are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from kina.core.ir import Function
from kina.diagnostics import Diagnostic
from kina.dims.proposition import Proposition
from kina.elaborate.result import Obligation, Signature
from kina.source import Span
from kina.syntax import ast

T = TypeVar("T")


class Reported(Exception):
    """Raised once the diagnostic is recorded: unwinds to the nearest place where checking can go on."""


@dataclass(slots=True)
class Findings:
    """What the check of one declaration found, and the names of the top level that it looked up."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    said: set[tuple[str, Span, str]] = field(default_factory=set)
    settled: set[tuple[Span, Proposition]] = field(default_factory=set)
    """What was said and settled so far: several cases of a function have the same to say."""

    def report(self, diagnostic: Diagnostic) -> None:
        key = diagnostic.code, diagnostic.span, diagnostic.message
        if key not in self.said:
            self.said.add(key)
            self.diagnostics.append(diagnostic)

    def record(self, obligation: Obligation) -> None:
        key = obligation.span, obligation.proposition
        if key not in self.settled:
            self.settled.add(key)
            self.obligations.append(obligation)

    def include(self, found: Findings, note: str) -> None:
        """Takes over what was found in another function, errors with a note that says how it comes in here."""
        for diagnostic in found.diagnostics:
            self.report(noted(diagnostic, note))
        for obligation in found.obligations:
            self.record(obligation)


@dataclass(frozen=True, slots=True)
class Cause:
    """What brings an effect: the place, and what it is in words."""

    span: Span
    shown: str
    cells: frozenset[object] = frozenset()
    """Of `state` the refs that are changed or read, where they are known."""


Instance: TypeAlias = tuple[Function | None, Findings]
"""A generic function for one choice of its binders, without core if it has errors there, and what was found."""


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
    instances: dict[object, Instance] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    effects: dict[str, dict[str, Cause]] = field(default_factory=dict)
    """What each function may do, and what in it does so."""
    own: Findings = field(default_factory=Findings)
    """What was found outside functions: in imports and types."""
    findings: dict[str, Findings] = field(default_factory=dict)
    """What was found in each function."""
    in_check: list[Findings] = field(default_factory=list)
    generic: dict[str, ast.FunctionDeclaration] = field(default_factory=dict)
    """Generic functions without errors, which Python may call at the ranks and dtypes of its arrays."""
    checked: set[str] = field(default_factory=set)
    inlined: set[str] = field(default_factory=set)
    """Functions that turned out to give functions, so that they have no core."""
    failed: set[str] = field(default_factory=set)
    in_progress: list[str] = field(default_factory=list)
    types_in_progress: list[ast.TypeDeclaration] = field(default_factory=list)
    recursive_types: set[str] = field(default_factory=set)

    def find(self, e: ast.Expr) -> Declared | None:
        """The function or constant that a name means at the top level: one of this module, or an imported one."""
        home: ModuleContext | None
        match e:
            case ast.Name(text=name):
                self.current.names.add(name)
                if name in self.declarations:
                    return Declared(self, self.declarations[name])
                home, original = self.imported.get(name, _NOTHING)
            case ast.FieldAccess(target=ast.Name(text=module), name=original) if module in self.modules:
                self.current.names.add(module)
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
                self.current.names.add(name)
                home, original = (self, name) if name in self.types else self.imported.get(name, _NOTHING)
            case ast.FieldAccess(target=ast.Name(text=module), name=original):
                self.current.names.add(module)
                home = self.modules.get(module)
            case _:
                return None
        declaration = home.types.get(original) if home is not None else None
        return (home, declaration) if home is not None and declaration is not None else None

    def report(self, diagnostic: Diagnostic) -> Reported:
        """Records a finding; `raise context.report(...)` ends what was being checked."""
        self.current.report(diagnostic)
        return Reported()

    @property
    def current(self) -> Findings:
        """Where findings go now."""
        return self.in_check[-1] if self.in_check else self.own

    @contextmanager
    def checking(self, name: str) -> Iterator[None]:
        """While a function is checked, findings are its own."""
        self.findings[name] = Findings()
        with self.collecting(self.findings[name]):
            yield

    @contextmanager
    def collecting(self, found: Findings) -> Iterator[None]:
        """Sends findings to `found`."""
        self.in_check.append(found)
        try:
            yield
        finally:
            self.in_check.pop()

    @contextmanager
    def resumed(self, name: str) -> Iterator[None]:
        """While more is said of a function that was checked."""
        self.in_check.append(self.findings[name])
        try:
            yield
        finally:
            self.in_check.pop()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All that was said, once: callers of one instance of a generic function say the same about it."""
        found = [d for f in (self.own, *self.findings.values()) for d in f.diagnostics]
        return _once(found, lambda d: (d.code, d.span, d.message))

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        found = [o for f in (self.own, *self.findings.values()) for o in f.obligations]
        return _once(found, lambda o: (o.function, o.span, o.proposition))


def _once(items: list[T], key: Callable[[T], object]) -> tuple[T, ...]:
    """Of items with the same key the first."""
    first: dict[object, T] = {}
    for item in items:
        first.setdefault(key(item), item)
    return tuple(first.values())


def noted(d: Diagnostic, note: str) -> Diagnostic:
    return replace(d, notes=(*d.notes, note))


_NOTHING: tuple[ModuleContext | None, str] = (None, "")
