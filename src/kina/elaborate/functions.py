"""Declarations of functions: the signature read, the body checked against it."""

from __future__ import annotations

from kina.core.ir import Function, Parameter, tree_type
from kina.diagnostics import form_errors
from kina.dims.dim import UnwieldySize, variable
from kina.dims.proposition import Proposition
from kina.elaborate.context import POISON, Context, ModuleContext, Reported
from kina.elaborate.dimensions import read_assumption
from kina.elaborate.expressions import check, infer
from kina.elaborate.result import Signature
from kina.elaborate.trees import new_tree
from kina.elaborate.type_expressions import read_type
from kina.source import Span
from kina.syntax import ast
from kina.types import Type


def function_named(context: Context, name: str, span: Span) -> Function:
    """The function, elaborated now if it was not yet. Raises `Reported` if it recurses or has no readable signature.

    A function whose body has errors still serves to check its callers, which then count as failed too.
    """
    module = context.module
    if name in module.in_progress:
        cycle = [*module.in_progress[module.in_progress.index(name) :], name]
        raise context.report(form_errors.recursion(span, cycle))
    if name not in module.functions and name not in module.failed:
        elaborate_function(module, module.declarations[name])
    if name in module.functions:
        return module.functions[name]
    context.failed = True
    if name in module.interfaces:
        return module.interfaces[name]
    raise Reported


def elaborate_function(module: ModuleContext, declaration: ast.FunctionDeclaration) -> None:
    """Checks one declaration. Its errors are recorded; without any, its core joins the module."""
    context = Context(module, declaration)
    module.in_progress.append(declaration.name)
    try:
        function = _function(context, declaration)
        if not context.failed:
            module.functions[declaration.name] = function
    except Reported:
        pass
    except UnwieldySize:
        context.report(form_errors.unwieldy_size(declaration.name_span))
    finally:
        module.in_progress.pop()
    if declaration.name not in module.functions:
        module.failed.add(declaration.name)


def _function(context: Context, declaration: ast.FunctionDeclaration) -> Function:
    dimensions = _binders(context, declaration)
    if declaration.effects:
        context.report(form_errors.unsupported(declaration.name_span, "effects"))
    requires = _requires(context, declaration)
    parameters = _parameters(context, declaration)
    wanted = read_type(context, declaration.result) if declaration.result is not None else None
    if wanted is not None and not context.failed:
        _sign(context, dimensions, requires, parameters, wanted)
        interface = Function(declaration.name, dimensions, requires, parameters, wanted, (), ())
        context.module.interfaces[declaration.name] = interface
    if wanted is not None and declaration.result is not None:
        what = f"the result of {declaration.name}"
        result = check(context, declaration.body, wanted, what, declaration.result.span)
    else:
        result = infer(context, declaration.body)
        _sign(context, dimensions, requires, parameters, tree_type(result))
    return Function(
        declaration.name, dimensions, requires, parameters, wanted or tree_type(result), tuple(context.statements),
        result, declaration.documentation,
    )  # fmt: skip


def _sign(
    context: Context, dimensions: tuple[str, ...], requires: tuple[Proposition, ...],
    parameters: tuple[Parameter, ...], result: Type,
) -> None:  # fmt: skip
    listed = tuple((p.name, tree_type(p.value)) for p in parameters)
    name = context.declaration.name
    context.module.signatures[name] = Signature(name, dimensions, requires, listed, result)


def _binders(context: Context, declaration: ast.FunctionDeclaration) -> tuple[str, ...]:
    first: dict[str, Span] = {}
    for binder in declaration.binders:
        if binder.segment:
            raise context.report(form_errors.unsupported(binder.span, "shape segments (`...S`)"))
        if binder.kind is not None:
            raise context.report(form_errors.unsupported(binder.span, "dtype variables"))
        if binder.name in first:
            raise context.report(form_errors.defined_twice(binder.span, binder.name, first[binder.name]))
        first[binder.name] = binder.span
        context.dims[binder.name] = variable(binder.name)
    return tuple(first)


def _requires(context: Context, declaration: ast.FunctionDeclaration) -> tuple[Proposition, ...]:
    found: list[Proposition] = []
    for e in declaration.requires:
        facts = read_assumption(context, e)
        found.extend(facts)
        context.assume(*facts)
    return tuple(dict.fromkeys(found))


def _parameters(context: Context, declaration: ast.FunctionDeclaration) -> tuple[Parameter, ...]:
    """The parameters' values. A bad type poisons its parameter, so that the others are still read."""
    found: list[Parameter] = []
    first: dict[str, Span] = {}
    for p in declaration.parameters:
        if p.name in first:
            raise context.report(form_errors.defined_twice(p.span, p.name, first[p.name]))
        first[p.name] = p.span
        try:
            if p.type is None:
                raise context.report(form_errors.missing_type(p.span, p.name))
            value = new_tree(context, read_type(context, p.type), p.name, parameter=True)
            found.append(Parameter(p.name, value))
            context.values[p.name] = value
        except Reported:
            context.values[p.name] = POISON
    return tuple(found)
