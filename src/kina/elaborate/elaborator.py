"""A module's syntax tree -> typed core, with every obligation settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TypeVar

# Each registers the forms that it elaborates.
from kina.elaborate import branches, builtins, expressions, lets, loops, records  # noqa: F401  # isort: skip
from kina.elaborate import convolution, derivatives, draws, einsum, patterns, picking  # noqa: F401  # isort: skip
from kina.elaborate import splitting, stretching  # noqa: F401  # isort: skip
from kina.core.ir import Call, Function, Program, statements_within
from kina.diagnostics import Diagnostic, Severity, form_errors
from kina.elaborate.claims import check_tests
from kina.elaborate.context import Context, ModuleContext, Reported
from kina.elaborate.functions import elaborate_declaration
from kina.elaborate.generics import CLASSES
from kina.elaborate.incremental import Known, State, carry_over
from kina.elaborate.result import Elaboration, Generic
from kina.elaborate.type_expressions import bind_argument, read_type
from kina.source import Source, Span
from kina.syntax import ast
from kina.types import DType

Load = Callable[[ast.ImportDeclaration, Source], "Imported"]
"""Finds and parses the module that an import names, seen from a source."""


class NotFound(Exception):
    """A module that is not there or cannot be read: why, and which modules there are instead."""

    def __init__(self, why: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.known = known


@dataclass(frozen=True, slots=True)
class Imported:
    """A module as it was found: `key` is the same for every import of it."""

    key: str
    source: Source
    module: ast.Module
    diagnostics: tuple[Diagnostic, ...]


def nothing_to_import(declaration: ast.ImportDeclaration, source: Source) -> Imported:
    """For programs that stand alone."""
    raise NotFound("this program was not read from a file, so there is nothing to look beside")


@dataclass(slots=True)
class Loader:
    """The modules of a program, each elaborated once."""

    load: Load
    earlier: Mapping[str, Known] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    modules: dict[str, ModuleContext] = field(default_factory=dict)
    in_progress: list[str] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    """What was found in modules that were imported."""

    def imported(self, context: ModuleContext, e: ast.ImportDeclaration) -> ModuleContext | None:
        """The module that a declaration names, elaborated; None after an error, which is recorded."""
        try:
            found = self.load(e, e.span.source)
        except NotFound as fault:
            context.report(form_errors.cannot_import(e.span, e.path, fault.why, fault.known))
            return None
        if found.key in self.in_progress:
            cycle = [*self.in_progress[self.in_progress.index(found.key) :], found.key]
            context.report(form_errors.import_cycle(e.span, cycle))
            return None
        if found.key not in self.modules:
            self.modules[found.key] = self._elaborated(found)
        module = self.modules[found.key]
        if module.broken:
            context.report(form_errors.import_has_errors(e.span, e.path))
        return module

    def _elaborated(self, found: Imported) -> ModuleContext:
        """An imported module. Of what is found in it, errors are shown with what imports it."""
        earlier = self.earlier.get(found.key)
        if earlier is not None and earlier.text == found.source.text and self._same_imports(earlier, found):
            module = earlier.context
        else:
            module = self.elaborated(found.module, found.key)
        self.known[found.key] = Known(found.source.text, module)
        errors = [d for d in (*found.diagnostics, *module.diagnostics) if d.severity is Severity.ERROR]
        self.findings += errors
        module.broken = bool(errors)
        return module

    def _same_imports(self, earlier: Known, found: Imported) -> bool:
        """Whether all that an imported module imports itself is what it was."""
        context = ModuleContext(False, {})
        imports = [d for d in found.module.declarations if isinstance(d, ast.ImportDeclaration)]
        now = [self.imported(context, d) for d in imports]
        before = [*earlier.context.modules.values(), *(m for m, _ in earlier.context.imported.values())]
        return all(any(m is b for b in before) for m in now)

    def elaborated(self, tree: ast.Module, key: str, old: State | None = None, strict: bool = False) -> ModuleContext:
        """A module with every declaration checked. Errors do not stop it: each function is checked on its own."""
        functions: dict[str, ast.FunctionDeclaration] = {}
        types: dict[str, ast.TypeDeclaration] = {}
        context = ModuleContext(strict, functions, types, shown=key)
        self.in_progress.append(key)
        try:
            for declaration in tree.declarations:
                match declaration:
                    case ast.FunctionDeclaration(name=name):
                        _declare(context, functions, name, declaration, declaration.name_span)
                    case ast.TypeDeclaration(name=name):
                        _declare(context, types, name, declaration, declaration.name_span)
                    case ast.ImportDeclaration():
                        self._import(context, declaration)
                    case ast.TestDeclaration():
                        pass  # the program's own are checked last, those of modules that it imports not at all
        finally:
            self.in_progress.pop()
        for type_declaration in types.values():
            _check_type(context, type_declaration)
        source = tree.span.source
        if old is not None:
            carry_over(old, context, source)
        for name, function in functions.items():
            if name not in context.checked:
                elaborate_declaration(context, function)
        context.functions = {name: context.functions[name] for name in functions if name in context.functions}
        context.findings = {name: context.findings[name] for name in functions}
        return context

    def _import(self, context: ModuleContext, e: ast.ImportDeclaration) -> None:
        module = self.imported(context, e)
        if module is None:
            return
        names, modules = dict(context.imported), dict(context.modules)
        if e.names is None or e.alias is not None:
            modules[e.alias or _called(e)] = module
        for imported in e.names or ():
            if imported.name not in module.declarations and imported.name not in module.types:
                known = [*module.declarations, *module.types]
                context.report(form_errors.nothing_imported(imported.span, imported.name, e.path, known))
                continue
            names[imported.alias or imported.name] = (module, imported.name)
        context.imported, context.modules = names, modules


def elaborate(
    module: ast.Module, *, strict: bool = False, load: Load = nothing_to_import, earlier: State | None = None
) -> Elaboration:
    """Checks every declaration, and the modules that it imports.

    `strict` refuses surface sugar in this module, so that what is accepted is core as it is printed. `earlier` is the
    state of an earlier check of the same file: what an edit since then cannot have changed is not checked again.
    """
    loader = Loader(load, {} if earlier is None else earlier.modules)
    context = loader.elaborated(module, "", earlier, strict)
    program = Program(_callees_first(context.functions))
    tests = check_tests(context, [d for d in module.declarations if isinstance(d, ast.TestDeclaration)])
    generic = {name: Generic(declaration, context) for name, declaration in context.generic.items()}
    findings = (*context.diagnostics, *loader.findings)
    state = State(context, module.span.source, loader.known)
    return Elaboration(program, context.signatures, findings, generic, state, context.obligations, tuple(tests))


def _called(e: ast.ImportDeclaration) -> str:
    """What a module is called where nothing is said: `nn` of `std.nn`, `layers` of `"models/layers.kina"`."""
    return PurePath(e.path).stem if e.quoted else e.path.rpartition(".")[2]


Declaration = TypeVar("Declaration", ast.FunctionDeclaration, ast.TypeDeclaration)


def _declare(
    context: ModuleContext, known: dict[str, Declaration], name: str, declaration: Declaration, span: Span
) -> None:
    first = known.get(name)
    if first is not None:
        context.report(form_errors.defined_twice(span, name, first.name_span))
    else:
        known[name] = declaration


def _check_type(module: ModuleContext, declaration: ast.TypeDeclaration) -> None:
    """Reads a type for whatever its binders may be. What its sizes oblige is obliged where it is used."""
    named = ast.FunctionDeclaration(
        declaration.name, declaration.binders, (), (), None, None, ast.Hole("", span=declaration.span),
        name_span=declaration.name_span, span=declaration.span,
    )  # fmt: skip
    context = Context(module, module, named)
    first: dict[str, Span] = {}
    try:
        for binder in declaration.binders:
            if binder.name in first:
                raise context.report(form_errors.defined_twice(binder.span, binder.name, first[binder.name]))
            first[binder.name] = binder.span
            if binder.segment:
                bind_argument(context, binder, (context.fresh_dimension(binder.name),))
            elif binder.kind is None:
                bind_argument(context, binder, context.new_dimension(binder.name))
            elif binder.kind in CLASSES:
                bind_argument(context, binder, DType.F32)
            else:
                raise context.report(form_errors.unknown_class(binder.span, binder.kind, CLASSES))
        with context.trusted():
            for e in _types_of(context, declaration):
                module.types_in_progress.append(declaration)
                try:
                    read_type(context, e)
                finally:
                    module.types_in_progress.pop()
    except Reported:
        pass


def _types_of(context: Context, declaration: ast.TypeDeclaration) -> Iterator[ast.Expr]:
    first: dict[str, Span] = {}
    for item in declaration.fields or ():
        if item.name in first:
            raise context.report(form_errors.defined_twice(item.span, item.name, first[item.name]))
        first[item.name] = item.span
        yield item.type
    if declaration.definition is not None:
        yield declaration.definition


def _callees_first(functions: dict[str, Function]) -> dict[str, Function]:
    """The functions in an order in which each stands after those of the module that it calls."""
    ordered: dict[str, Function] = {}

    def visit(function: Function) -> None:
        if function.name in ordered:
            return
        for statement in statements_within(function.statements):
            if isinstance(statement, Call) and functions.get(statement.function.name) is statement.function:
                visit(statement.function)
        ordered[function.name] = function

    for function in functions.values():
        visit(function)
    return ordered
