"""Calls of declared functions: core calls with every dimension explicit, or the body inlined."""

from __future__ import annotations

from dataclasses import dataclass

from kina.core.ir import Call, Function, Stack, Struct, Tree, Value, tree_type
from kina.diagnostics import Diagnostic, form_errors
from kina.dims.dim import Dim
from kina.elaborate.arguments import Interface, match_arguments
from kina.elaborate.choosing import choose
from kina.elaborate.closures import Scope, partial
from kina.elaborate.context import Context, Declared, Meaning, Package, Reported
from kina.elaborate.effects import effects_of, perform_all
from kina.elaborate.functions import ensure, function_of, is_inlined, is_readable
from kina.elaborate.generics import NOT_GENERIC, Choice, is_generic
from kina.elaborate.inlining import Closure
from kina.elaborate.packages import opened
from kina.elaborate.signatures import given_for_binders
from kina.elaborate.suggestions import call_advice
from kina.elaborate.trees import new_tree
from kina.source import Span
from kina.syntax import ast
from kina.types import Argument, DType, Exists, Type, substitute


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A declared function as a value."""

    declared: Declared

    def misuse(self, span: Span) -> Diagnostic:
        names = [p.name for p in self.declared.declaration.parameters]
        return form_errors.function_where_value(span, self.declared.name, names)

    def describe(self) -> str:
        return f"the function `{self.declared.name}`"

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        return call_declared(context, e, self.declared, brackets, arguments, expected, name)


def call_declared(
    context: Context, e: ast.Expr, declared: Declared, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`f[dimensions] arguments`. With too few arguments it is a function of the others."""
    declaration = declared.declaration
    count = len(declaration.parameters)
    if is_inlined(context, declared, e.span):
        ensure(context, declared, e.span)
        if declared.name in declared.home.failed:
            context.failed = True
            raise Reported
        function = Closure(declaration, Scope.top(declared.home), home=declared.home)
        return function.apply(context, e, brackets, arguments, expected, name)
    if len(arguments) < count:
        missing = [p.name for p in declaration.parameters[len(arguments) :]]
        advice = call_advice(e, _name_span(e, declaration), arguments, missing=True)
        return partial(context, NamedFunction(declared), declared.name, brackets, arguments, missing, advice)
    if len(arguments) > count:
        ensure(context, declared, e.span)
        if not is_readable(declared):
            context.failed = True
            raise Reported
        raise context.report(_wrong_count(e, declaration, arguments))
    return _call(context, e, declared, brackets, arguments, name)


def _call(
    context: Context, e: ast.Expr, declared: Declared, brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...], name: str | None,
) -> Meaning:  # fmt: skip
    declaration = declared.declaration
    given: dict[str, Argument | int] = dict(given_for_binders(context, e.span, declaration, brackets))
    known: dict[int, Meaning] = {}
    choice = NOT_GENERIC
    if is_generic(declaration):
        types = [p.type for p in declaration.parameters]
        known = choose(context, e.span, declared.home, declaration, types, arguments, given)
        choice = _choice(declaration, given)
    callee = function_of(context, declared, e.span, choice)
    said = frozenset(effects_of(declared.home, declaration)) - {"state"}  # it takes no function, and so no ref
    perform_all(context, said, e.span, f"`{declared.name}`")
    given_by_callers = callee.parameters[: len(declaration.parameters)]
    parameters = tuple((p.name, tree_type(p.value)) for p in given_by_callers)
    interface = Interface(declared.name, callee.dimensions, callee.requires, parameters)
    sizes = _sizes(declaration, given, callee)
    dimensions, found = match_arguments(context, e, interface, sizes, arguments, known)
    if context.home.strict and len(sizes) < len(callee.dimensions):
        instead = f"{declared.name}[{', '.join(callee.dimensions)}] with the sizes meant"
        raise context.report(form_errors.sugar(e.span, "leaving out dimension arguments", instead))
    trees: list[Tree] = [f for f in found if isinstance(f, Value | tuple | Struct | Stack)]
    if len(callee.parameters) > len(given_by_callers):
        trees.append(context.draw_key(e.span))
    return _emit(context, e.span, callee, dimensions, trees, name)


def _choice(declaration: ast.FunctionDeclaration, given: dict[str, Argument | int]) -> Choice:
    dtypes = tuple((b.name, d) for b in declaration.binders if isinstance(d := given.get(b.name), DType))
    ranks = []
    for b in declaration.binders:
        axes = given.get(b.name)
        if b.segment and isinstance(axes, tuple | int):
            ranks.append((b.name, axes if isinstance(axes, int) else len(axes)))
    return Choice(dtypes, tuple(ranks))


def _sizes(declaration: ast.FunctionDeclaration, given: dict[str, Argument | int], callee: Function) -> dict[str, Dim]:
    """The callee's dimensions that the bracket gives: its names stand in the order of the binders."""
    names = iter(callee.dimensions)
    sizes: dict[str, Dim] = {}
    for binder in declaration.binders:
        argument = given.get(binder.name)
        if binder.kind is not None:
            continue
        if isinstance(argument, int):
            for _ in range(argument):
                next(names)
        elif isinstance(argument, tuple):
            sizes |= {next(names): d for d in argument}
        else:
            name = next(names)
            if isinstance(argument, Dim):
                sizes[name] = argument
    return sizes


def _emit(
    context: Context, span: Span, callee: Function, dimensions: dict[str, Dim], trees: list[Tree], name: str | None
) -> Meaning:
    ordered = tuple(dimensions[d] for d in callee.dimensions)
    result_type = substitute(callee.result_type, dimensions)
    if not isinstance(result_type, Exists):
        result = new_tree(context, result_type, name)
        context.statements.append(Call(result, callee, ordered, tuple(trees), (), span))
        return result
    new = opened(context, result_type)
    result = new_tree(context, substitute(result_type.body, new), name)
    context.statements.append(Call(result, callee, ordered, tuple(trees), tuple(map(str, new.values())), span))
    return Package(result_type, tuple(new.values()), result)


def _wrong_count(e: ast.Expr, declaration: ast.FunctionDeclaration, arguments: tuple[ast.Expr, ...]) -> Diagnostic:
    names = [p.name for p in declaration.parameters]
    help_ = call_advice(e, _name_span(e, declaration), arguments, missing=False)
    usage = f"{declaration.name} {' '.join(names)}"
    return form_errors.wrong_argument_count(e.span, declaration.name, names, len(arguments), usage, help_)


def _name_span(e: ast.Expr, declaration: ast.FunctionDeclaration) -> Span:
    return Span(e.span.source, e.span.start, e.span.start + len(declaration.name))
