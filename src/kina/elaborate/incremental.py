"""A module checked again after an edit: only what the edit can have changed.

A function is checked again if its text changed, or what it looks up did: the head of a function that it calls, the
whole of one that is inlined or generic, a type, an import. What was found in the others is kept, at its new places.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kina.core.ir import Apply, Block, Call, Check, For, Function, If, Open, Require, Statement, While
from kina.diagnostics import Diagnostic
from kina.elaborate.functions import elaborate_declaration
from kina.elaborate.module_context import Findings, ModuleContext
from kina.source import Source, Span
from kina.syntax import ast


@dataclass(frozen=True, slots=True)
class Known:
    """An imported module, and the text that it was made from."""

    text: str
    context: ModuleContext


@dataclass(frozen=True, slots=True)
class State:
    """What a later check can start from: the module, its source, and the modules that it imports."""

    context: ModuleContext
    source: Source
    modules: Mapping[str, Known]


def carry_over(old: State, new: ModuleContext, source: Source) -> None:
    """Puts into a module whose names are known, and whose functions are not checked, what an earlier check found.

    Does nothing where what stands outside functions changed: then all functions are checked again.
    """
    if _outside(old.context, old.source) != _outside(new, source):
        return
    if not _same_modules(old.context, new):
        return
    _Carried(old.context, new, old.source, source).carry()


def _outside(context: ModuleContext, source: Source) -> tuple[object, ...]:
    """What functions depend on besides functions, as text."""
    types = tuple((name, _text(d.span, source)) for name, d in context.types.items())
    return context.strict, types, tuple(context.imported), tuple(context.modules)


def _text(span: Span, source: Source) -> str:
    return source.text[span.start : span.end]


def _same_modules(old: ModuleContext, new: ModuleContext) -> bool:
    names = all(old.imported[n] == found for n, found in new.imported.items())
    return names and all(old.modules[n] is found for n, found in new.modules.items())


@dataclass(slots=True)
class _Carried:
    old: ModuleContext
    new: ModuleContext
    before: Source
    after: Source
    moved: dict[Function, Function] = field(default_factory=dict)
    places: tuple[tuple[int, int, int], ...] | None = None

    def carry(self) -> None:
        """Checks what changed and what depends on it, until no head of a function changes any more."""
        changed = self._changed()
        kept = [name for name in self.new.declarations if name not in changed]
        waiting = {name for name in kept if not self.old.findings[name].names.isdisjoint(changed & self._whole())}
        gone = {name for name in self.old.declarations if name not in self.new.declarations}
        fresh = {name for name in changed if name not in self.old.declarations}
        waiting |= {name for name in kept if not self.old.findings[name].names.isdisjoint(gone | fresh)}
        kept = [name for name in kept if name not in waiting]
        for name in kept:
            self._keep(name)
        before = {name: self._head(self.old, name) for name in self.new.declarations}
        again = set(self.new.declarations) - set(kept)
        while again:
            for name in again:
                self._forget(name)
            for name, declaration in self.new.declarations.items():
                if name in again and name not in self.new.checked:
                    elaborate_declaration(self.new, declaration)
            heads = {name for name in again if before[name] != self._head(self.new, name)}
            before = {name: self._head(self.new, name) for name in self.new.declarations}
            again = {name for name in before if not self.new.findings[name].names.isdisjoint(heads)}
        self.new.functions = {name: self._function(f) for name, f in self.new.functions.items()}

    def _changed(self) -> set[str]:
        """The functions whose own text is not what it was."""
        found = set()
        for name, declaration in self.new.declarations.items():
            earlier = self.old.declarations.get(name)
            same = earlier is not None and name in self.old.findings
            if not same or _whole_text(declaration, self.after) != _whole_text(earlier, self.before):
                found.add(name)
        return found

    def _whole(self) -> set[str]:
        """The functions of which callers depend on more than the head."""
        generic = {name for name, d in self.old.declarations.items() if any(b.segment or b.kind for b in d.binders)}
        return generic | self.old.inlined | {n for n, d in self.old.declarations.items() if d.result is None}

    def _head(self, context: ModuleContext, name: str) -> object:
        """What callers depend on."""
        return str(context.signatures.get(name)), name in context.inlined, name in context.failed

    # ------------------------------------------------------------ what is kept

    def _keep(self, name: str) -> None:
        old, new = self.old, self.new
        move = self._move()
        found = old.findings[name]
        diagnostics = [move.diagnostic(d) for d in found.diagnostics]
        obligations = [replace(o, span=move.span(o.span)) for o in found.obligations]
        new.findings[name] = Findings(diagnostics, obligations, set(found.names))
        new.checked.add(name)
        for names, others in ((old.failed, new.failed), (old.inlined, new.inlined)):
            if name in names:
                others.add(name)
        if name in old.signatures:
            new.signatures[name] = old.signatures[name]
        if name in old.functions:
            new.functions[name] = old.functions[name]
        if name in old.effects:
            new.effects[name] = {
                effect: replace(cause, span=move.span(cause.span)) for effect, cause in old.effects[name].items()
            }
        if name in old.interfaces:
            new.interfaces[name] = old.interfaces[name]
        if name in old.generic:
            new.generic[name] = new.declarations[name]

    def _forget(self, name: str) -> None:
        new = self.new
        for names in (new.checked, new.failed, new.inlined):
            names.discard(name)
        for table in (new.findings, new.signatures, new.functions, new.interfaces, new.generic, new.effects):
            table.pop(name, None)

    def _function(self, function: Function) -> Function:
        """A function at its place in the new source, with calls of what its callees are now."""
        if function not in self.moved:
            self.moved[function] = replace(function, statements=self._move().statements(function.statements))
        return self.moved[function]

    def _callee(self, function: Function) -> Function:
        earlier = self.old.functions.get(function.name) is function
        return self._function(self.new.functions[function.name] if earlier else function)

    def _move(self) -> _Move:
        """Code that was inlined stands in another declaration, which may have moved otherwise."""
        if self.places is None:
            old, new = self.old.declarations, self.new.declarations
            both = [(old[name].span, new[name].span.start - old[name].span.start) for name in old if name in new]
            self.places = tuple(sorted((span.start, span.end, delta) for span, delta in both))
        return _Move(self.before, self.after, self.places, self._callee)


def _whole_text(declaration: ast.FunctionDeclaration | None, source: Source) -> str:
    return "" if declaration is None else declaration.documentation + _text(declaration.span, source)


@dataclass(frozen=True, slots=True)
class _Move:
    """Puts places of one source where they are in another. `places` are start, end and shift of what was kept."""

    before: Source
    after: Source
    places: tuple[tuple[int, int, int], ...]
    callee: Callable[[Function], Function]

    def span(self, span: Span) -> Span:
        if span.source is not self.before:  # in an imported module, whose code was inlined
            return span
        n = bisect_right(self.places, (span.start, len(self.before.text), 0)) - 1
        delta = self.places[n][2] if n >= 0 and span.start <= self.places[n][1] else 0
        return Span(self.after, span.start + delta, span.end + delta)

    def diagnostic(self, d: Diagnostic) -> Diagnostic:
        labels = tuple(replace(label, span=self.span(label.span)) for label in d.labels)
        edits = [tuple(replace(e, span=self.span(e.span)) for e in h.edits) for h in d.help]
        help_ = tuple(replace(h, edits=e) for h, e in zip(d.help, edits, strict=True))
        return replace(d, span=self.span(d.span), labels=labels, help=help_)

    def statements(self, statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(self.statement, statements))

    def statement(self, statement: Statement) -> Statement:
        span = None if statement.span is None else self.span(statement.span)
        match statement:
            case Apply() | Check() | Open() | Require():
                return replace(statement, span=span)
            case Call(function=function):
                return replace(statement, span=span, function=self.callee(function))
            case If(then=then, otherwise=otherwise):
                return replace(statement, span=span, then=self.block(then), otherwise=self.block(otherwise))
            case For(body=body):
                return replace(statement, span=span, body=self.block(body))
            case While(condition=condition, body=body):
                return replace(statement, span=span, condition=self.block(condition), body=self.block(body))

    def block(self, block: Block) -> Block:
        return replace(block, statements=self.statements(block.statements))
