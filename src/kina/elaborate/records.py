"""Records: made, updated, taken apart; and the items of tuples and lists."""

from __future__ import annotations

from kina.core.ir import Stack, Struct, Tree, Value, parts, tree_type
from kina.diagnostics import form_errors
from kina.elaborate.closures import Scope, as_argument
from kina.elaborate.context import Context, ModuleContext
from kina.elaborate.dispatch import as_value, check, elaborates, value
from kina.elaborate.inlining import Closure
from kina.elaborate.spellings import kina_spelling
from kina.source import Span
from kina.syntax import ast
from kina.types import Record, Type


def item_of(tree: Tree, n: int) -> Tree:
    """Item number n of a tuple; of a list of tuples, the list of those items."""
    item = parts(tree)[n]
    return Stack(tree.size, item) if isinstance(tree, Stack) and not isinstance(item, Value) else item


def field_of(context: Context, e: ast.FieldAccess, target: Tree) -> Tree:
    """`layer.norm`; of a list of records, the list of that field."""
    inner = target.item if isinstance(target, Stack) else target
    at = Span(e.span.source, e.span.end - len(e.name), e.span.end)
    if isinstance(inner, Struct):
        names = [name for name, _ in inner.fields]
        if e.name in names:
            return item_of(target, names.index(e.name))
        raise context.report(form_errors.unknown_field(at, inner.name, e.name, names))
    if isinstance(inner, Value):
        raise context.report(form_errors.no_such_member(at, e.name, kina_spelling(at, e.target.span)))
    raise context.report(
        form_errors.wrong_tuple(at, "a tuple has items, such as `.0`, and no fields", tree_type(target))
    )


@elaborates(ast.RecordLiteral)
def _literal(context: Context, e: ast.RecordLiteral, expected: Type | None, name: str | None) -> Tree:
    """A record: of the type that its place wants, else of the only one in scope with these fields."""
    written = _once_each(context, e.fields)
    if isinstance(expected, Record):
        return _filled(context, e, expected, written)
    found = {field: value(context, e_) for field, e_ in written.items()}
    fitting = [
        (home, d)
        for home, d in _records(context.home)
        if d.fields is not None and {f.name for f in d.fields} == set(found)
    ]
    if len(fitting) != 1:
        raise context.report(form_errors.unknown_record(e.span, list(found), [d.name for _, d in fitting]))
    return _deduced(context, e, *fitting[0], written, found)


def _filled(context: Context, e: ast.RecordLiteral, wanted: Record, written: dict[str, ast.Expr]) -> Struct:
    names = [name for name, _ in wanted.fields]
    for binding in e.fields:
        if binding.name not in names:
            raise context.report(form_errors.unknown_field(_name_span(binding), wanted.name, binding.name, names))
    missing = [name for name in names if name not in written]
    if missing:
        raise context.report(form_errors.missing_fields(e.span, wanted.name, missing))
    made = {
        name: check(context, written[name], type_, f"the field `{name}` of {wanted.name}", None, name)
        for name, type_ in wanted.fields
    }
    return Struct(wanted.name, wanted.arguments, tuple(made.items()))


def _deduced(
    context: Context, e: ast.RecordLiteral, home: ModuleContext, declaration: ast.TypeDeclaration,
    written: dict[str, ast.Expr], found: dict[str, Tree],
) -> Struct:  # fmt: skip
    """The record type's arguments are found by laying its fields beside the values, as a call's are."""
    assert declaration.fields is not None
    parameters = tuple(ast.Parameter(field.name, field.type, span=field.span) for field in declaration.fields)
    maker = ast.FunctionDeclaration(
        declaration.name, declaration.binders, (), parameters, None, None, e, name_span=e.span, span=e.span
    )
    arguments = tuple(as_argument(context, found[p.name], written[p.name].span) for p in parameters)
    given, trees = Closure(maker, Scope.top(home)).matched(context, e, (), arguments)
    fields = tuple((p.name, as_value(context, tree, e.span)) for p, tree in zip(parameters, trees, strict=True))
    return Struct(declaration.name, tuple(given[b.name] for b in declaration.binders), fields)


@elaborates(ast.RecordUpdate)
def _update(context: Context, e: ast.RecordUpdate, expected: Type | None, name: str | None) -> Tree:
    """`{ r with field = e }`: every field keeps its type."""
    base = value(context, e.base, expected)
    if not isinstance(base, Struct):
        raise context.report(
            form_errors.wrong_tuple(e.base.span, "only a record has fields to update", tree_type(base))
        )
    written = _once_each(context, e.fields)
    names = [field for field, _ in base.fields]
    for binding in e.fields:
        if binding.name not in names:
            raise context.report(form_errors.unknown_field(_name_span(binding), base.name, binding.name, names))
    fields = []
    for field, old in base.fields:
        if field in written:
            what = f"the field `{field}` of {base.name}"
            fields.append((field, check(context, written[field], tree_type(old), what, None, field)))
        else:
            fields.append((field, old))
    return Struct(base.name, base.arguments, tuple(fields))


def _once_each(context: Context, fields: tuple[ast.FieldBinding, ...]) -> dict[str, ast.Expr]:
    found: dict[str, ast.FieldBinding] = {}
    for binding in fields:
        if binding.name in found:
            first = _name_span(found[binding.name])
            raise context.report(form_errors.defined_twice(_name_span(binding), binding.name, first))
        found[binding.name] = binding
    return {name: binding.value for name, binding in found.items()}


def _name_span(binding: ast.FieldBinding) -> Span:
    return Span(binding.span.source, binding.span.start, binding.span.start + len(binding.name))


def _records(home: ModuleContext) -> list[tuple[ModuleContext, ast.TypeDeclaration]]:
    """The types that a module can name without a prefix, and where they are declared."""
    imported = [(m, m.types[original]) for m, original in home.imported.values() if original in m.types]
    return [*((home, d) for d in home.types.values()), *imported]
