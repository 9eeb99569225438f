"""A declaration's head: what its binders are, what it requires, what its parameters are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kina.diagnostics import form_errors
from kina.dims.proposition import Proposition
from kina.elaborate.closures import Abstract
from kina.elaborate.context import POISON, Context, Meaning, ModuleContext, Poison, Reported
from kina.elaborate.dimensions import read_assumption
from kina.elaborate.generics import CLASSES, NOT_GENERIC, Choice
from kina.elaborate.trees import new_tree
from kina.elaborate.type_expressions import read_argument, read_type
from kina.source import Span
from kina.syntax import ast
from kina.types import Argument, Arrow, Exists


@dataclass(frozen=True, slots=True)
class Head:
    """A declaration's head, entered: its names are bound in the context, its requirements are facts there."""

    dimensions: tuple[str, ...]
    requires: tuple[Proposition, ...]
    parameters: tuple[tuple[str, Meaning | Poison], ...]


def enter_head(context: Context, declaration: ast.FunctionDeclaration, choice: Choice = NOT_GENERIC) -> Head:
    """Binds a declaration's binders and parameters. `choice` says what its generic binders stand for.

    A bad type poisons its parameter, so that the others are still read.
    """
    dimensions = _binders(context, declaration, choice)
    requires = _requires(context, declaration)
    context.whole_blocks = []
    parameters = _parameters(context, declaration)
    blocks, context.whole_blocks = context.whole_blocks, None
    context.assume(*blocks)
    return Head(dimensions, tuple(dict.fromkeys((*requires, *blocks))), parameters)


def _binders(context: Context, declaration: ast.FunctionDeclaration, choice: Choice) -> tuple[str, ...]:
    dtypes, ranks = dict(choice.dtypes), dict(choice.ranks)
    first: dict[str, Span] = {}
    names: list[str] = []
    for binder in declaration.binders:
        if binder.name in first:
            raise context.report(form_errors.defined_twice(binder.span, binder.name, first[binder.name]))
        first[binder.name] = binder.span
        if binder.kind is not None:
            if binder.kind not in CLASSES:
                raise context.report(form_errors.unknown_class(binder.span, binder.kind, CLASSES))
            context.dtypes[binder.name] = dtypes[binder.name]
        elif binder.segment:
            axes = [context.fresh_dimension(f"{binder.name}_{n + 1}") for n in range(ranks[binder.name])]
            context.segments[binder.name] = tuple(axes)
            names += map(str, axes)
        else:
            names.append(str(context.new_dimension(binder.name)))
    return tuple(names)


def _requires(context: Context, declaration: ast.FunctionDeclaration) -> tuple[Proposition, ...]:
    found: list[Proposition] = []
    for e in declaration.requires:
        facts = read_assumption(context, e)
        found.extend(facts)
        context.assume(*facts)
    return tuple(dict.fromkeys(found))


def _parameters(
    context: Context, declaration: ast.FunctionDeclaration
) -> tuple[tuple[str, Meaning | Poison], ...]:
    found: dict[str, Meaning | Poison] = {}
    first: dict[str, Span] = {}
    for p in declaration.parameters:
        if p.name in first:
            raise context.report(form_errors.defined_twice(p.span, p.name, first[p.name]))
        first[p.name] = p.span
        try:
            found[p.name] = _parameter(context, p)
        except Reported:
            found[p.name] = POISON
    context.values.update(found)
    return tuple(found.items())


def _parameter(context: Context, p: ast.Parameter) -> Meaning:
    if p.type is None:
        raise context.report(form_errors.missing_type(p.span, p.name))
    type_ = read_type(context, p.type)
    if isinstance(type_, Exists):
        raise context.report(form_errors.unsupported(p.type.span, "a parameter of an existential type"))
    if isinstance(type_, Arrow):
        return Abstract(p.name, type_)
    return new_tree(context, type_, p.name, parameter=True)


# ---------------------------------------------------------------- brackets of calls


def given_for_binders(
    context: Context, span: Span, declaration: ast.FunctionDeclaration, brackets: tuple[ast.Expr, ...]
) -> Mapping[str, Argument]:
    """What a bracket gives for a declaration's binders: by name, or in order among those that are not named."""
    binders = {b.name: b for b in declaration.binders}
    if len(brackets) > len(binders):
        raise context.report(form_errors.too_many_dimensions(span, declaration.name, list(binders), len(brackets)))
    named = {item.name for item in brackets if isinstance(item, ast.NamedItem)}
    others = (b for b in declaration.binders if b.name not in named)
    given: dict[str, Argument] = {}
    for item in brackets:
        if not isinstance(item, ast.NamedItem):
            binder = next(others)
            given[binder.name] = read_argument(context, binder, item)
            continue
        if context.home.strict:
            order = f"{declaration.name}[{', '.join(binders)}]"
            raise context.report(form_errors.sugar(item.span, "a dimension argument by name", f"all in order: {order}"))
        if item.name not in binders or item.name in given:
            raise context.report(form_errors.no_such_binder(item.span, declaration.name, item.name, list(binders)))
        given[item.name] = read_argument(context, binders[item.name], item.value)
    return given


# ---------------------------------------------------------------- what has to be inlined


def gives_functions(home: ModuleContext, declaration: ast.FunctionDeclaration) -> bool:
    """Whether a declaration takes or gives functions, and so is inlined where it is called."""
    types = [p.type for p in declaration.parameters]
    return any(e is not None and _mentions_functions(home, e) for e in (*types, declaration.result))


def _mentions_functions(home: ModuleContext, e: ast.Expr) -> bool:
    match e:
        case ast.Arrow():
            return True
        case ast.Bracket(target=ast.Name() | ast.FieldAccess() as target) | (ast.Name() | ast.FieldAccess() as target):
            found = home.find_type(target)
            if found is None or found[1].definition is None or found[1] in found[0].types_in_progress:
                return False
            found[0].types_in_progress.append(found[1])
            try:
                return _mentions_functions(found[0], found[1].definition)
            finally:
                found[0].types_in_progress.pop()
    return False
