"""Record types as a module declares them, for whoever makes values of them outside: weights bound to them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kina.elaborate.context import Context, ModuleContext
from kina.elaborate.generics import CLASSES, admits
from kina.elaborate.type_expressions import bind_argument, read_type
from kina.syntax import ast
from kina.types import DType, Record


@dataclass(frozen=True, slots=True)
class RecordForm:
    """`type Layer [D, F, W : Weight] = { ... }`, without errors."""

    declaration: ast.TypeDeclaration
    home: ModuleContext

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of its sizes, in order."""
        return tuple(b.name for b in self.declaration.binders if b.kind is None)

    @property
    def dtypes(self) -> Mapping[str, str]:
        """Its dtype binders, each with its class."""
        return {b.name: b.kind for b in self.declaration.binders if b.kind is not None}

    def admits(self, binder: str, dtype: DType) -> bool:
        """Whether a dtype may be put for a binder."""
        return admits(self.dtypes[binder], dtype)

    def type(self, dtypes: Mapping[str, DType]) -> Record:
        """The record over its own sizes, with these dtypes put for its binders. Sizes are taken as defined."""
        head = self.declaration
        named = ast.FunctionDeclaration(
            head.name, head.binders, (), (), None, None, ast.Hole("", span=head.span), name_span=head.name_span,
            span=head.span,
        )  # fmt: skip
        context = Context(self.home, self.home, named)
        for binder in head.binders:
            if binder.kind is not None:
                bind_argument(context, binder, dtypes[binder.name])
            else:
                bind_argument(context, binder, context.new_dimension(binder.name))
        with context.trusted():
            fields = tuple((field.name, read_type(context, field.type)) for field in head.fields or ())
        arguments = tuple(context.dims[b.name] if b.kind is None else dtypes[b.name] for b in head.binders)
        return Record(head.name, arguments, fields)  # type: ignore[arg-type]


def record_forms(home: ModuleContext) -> Mapping[str, RecordForm]:
    """The record types of a module by name, but for those over any number of axes (`...S`)."""
    found = {name: RecordForm(d, home) for name, d in home.types.items() if d.fields is not None}
    return {name: form for name, form in found.items() if _plain(form.declaration)}


def _plain(declaration: ast.TypeDeclaration) -> bool:
    return all(not b.segment and (b.kind is None or b.kind in CLASSES) for b in declaration.binders)
