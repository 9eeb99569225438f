"""Declarations of functions: the head read, the body checked against it, core made of it."""

from __future__ import annotations

from dataclasses import replace

from kina.core.ir import Function, Parameter, Stack, Struct, Tree, Value, tree_type
from kina.diagnostics import effect_errors, form_errors
from kina.dims.dim import Dim, UnwieldySize
from kina.elaborate.closures import is_function
from kina.elaborate.context import Context, Declared, Meaning, ModuleContext, Package, Poison, Reported
from kina.elaborate.dispatch import check_meaning, final, infer, meaning_type
from kina.elaborate.effects import held, written_effects
from kina.elaborate.generics import NOT_GENERIC, Choice, is_generic, stand_ins
from kina.elaborate.keys import KEY
from kina.elaborate.module_context import Findings, Instance, noted
from kina.elaborate.refs import Ref
from kina.elaborate.result import Signature
from kina.elaborate.signatures import Head, enter_head, gives_functions
from kina.elaborate.type_expressions import read_type
from kina.source import Span
from kina.syntax import ast
from kina.syntax.printer import print_expr
from kina.types import Arrow, Type

# ---------------------------------------------------------------- for callers


def function_of(context: Context, declared: Declared, span: Span, choice: Choice = NOT_GENERIC) -> Function:
    """The function, elaborated now if it was not yet. Raises `Reported` if it recurses or has no readable signature.

    A function whose body has errors still serves to check its callers, which then count as failed too.
    """
    home, name = declared.home, declared.name
    ensure(context, declared, span)
    function = None
    if not is_generic(declared.declaration):
        function = home.functions.get(name)
    elif name not in home.failed:
        function, found = instance(home, declared.declaration, choice)
        context.module.current.include(found, f"this is so for {choice.text}, as a call needs it")
    if function is not None:
        return function
    context.failed = True
    if choice == NOT_GENERIC and name in home.interfaces:
        return home.interfaces[name]
    raise Reported


def ensure(context: Context, declared: Declared, span: Span) -> None:
    """Has the declaration checked, if it was not yet. Raises `Reported` if that is going on: it recurses then."""
    home, name = declared.home, declared.name
    if name in home.in_progress:
        cycle = [*home.in_progress[home.in_progress.index(name) :], name]
        raise context.report(form_errors.recursion(span, cycle))
    if name not in home.checked:
        elaborate_declaration(home, declared.declaration)


def is_readable(declared: Declared) -> bool:
    """Whether a checked declaration has a head without errors."""
    home, name = declared.home, declared.name
    return name not in home.failed or name in home.interfaces


def is_inlined(context: Context, declared: Declared, span: Span) -> bool:
    """Whether a function has no core of its own, as it takes or gives functions."""
    if gives_functions(declared.home, declared.declaration):
        return True
    if declared.declaration.result is not None:
        return False
    ensure(context, declared, span)
    return declared.name in declared.home.inlined


# ---------------------------------------------------------------- declarations


def elaborate_declaration(module: ModuleContext, declaration: ast.FunctionDeclaration) -> None:
    """Checks one declaration. Its errors are recorded; without any, its core joins the module.

    A generic one is checked case by case, up to the first that has errors.
    """
    name = declaration.name
    module.checked.add(name)
    with module.checking(name):
        if is_generic(declaration):
            _generic(module, declaration)
            return
        function = _case(module, declaration, NOT_GENERIC)
    if function is not None:
        module.functions[name] = function
    elif name not in module.inlined:
        module.failed.add(name)


def _generic(module: ModuleContext, declaration: ast.FunctionDeclaration) -> None:
    _sign_generic(module, declaration)
    found = module.current.diagnostics
    for number, choice in enumerate(stand_ins(declaration)):
        mark = len(found)
        _case(module, declaration, choice)
        if declaration.name in module.failed:
            if number > 0:
                note = f"this is so for {choice.text}; the function has to be right for all that its binders admit"
                found[mark:] = [noted(d, note) for d in found[mark:]]
            return
    signature = module.signatures[declaration.name]
    module.signatures[declaration.name] = replace(signature, effects=frozenset(module.effects[declaration.name]))
    if not gives_functions(module, declaration):
        module.generic[declaration.name] = declaration


def instance(module: ModuleContext, declaration: ast.FunctionDeclaration, choice: Choice) -> Instance:
    """A generic function for one choice of its binders, checked there once."""
    key = declaration.name, choice
    if key not in module.instances:
        found = Findings()
        with module.collecting(found):
            function = _case(module, declaration, choice)
        module.failed.discard(declaration.name)  # for other choices it can be right
        module.instances[key] = function, found
    return module.instances[key]


def _case(module: ModuleContext, declaration: ast.FunctionDeclaration, choice: Choice) -> Function | None:
    """A declaration checked for one choice: its core, or None where it has errors or is one to be inlined."""
    context = Context(module, module, declaration)
    module.in_progress.append(declaration.name)
    try:
        function = _function(context, declaration, choice)
        if not context.failed:
            return function
    except Reported:
        pass
    except UnwieldySize:
        context.report(form_errors.unwieldy_size(declaration.name_span))
    finally:
        module.in_progress.pop()
    module.failed.add(declaration.name)
    return None


def _function(context: Context, declaration: ast.FunctionDeclaration, choice: Choice) -> Function | None:
    allowed = written_effects(context, declaration, top=True)
    head = enter_head(context, declaration, choice)
    wanted = read_type(context, declaration.result) if declaration.result is not None else None
    if allowed and "rand" in allowed:
        _seed_free(context, declaration)
    inlined = any(is_function(found) for _, found in head.parameters) or isinstance(wanted, Arrow)
    if wanted is not None and not inlined and not context.failed and not choice.dtypes and not choice.ranks:
        _sign(context, head, wanted, allowed or frozenset())
        parameters, dimensions = _core_parameters(head), head.dimensions
        if allowed and "rand" in allowed:
            parameters = (*parameters, Parameter(SEED, Value(SEED, KEY)))
        interface = Function(declaration.name, dimensions, head.requires, parameters, wanted, (), ())
        context.module.interfaces[declaration.name] = interface
    found = _body(context, declaration, wanted)
    if isinstance(found, Ref):
        raise context.report(found.misuse(final(declaration.body).span))
    effects = held(context, declaration, allowed, context.performed)
    context.module.effects[declaration.name] = context.module.effects.get(declaration.name, {}) | effects
    if inlined or is_function(found):
        context.module.inlined.add(declaration.name)
        return None
    result, type_, witnesses = _result(found)
    if wanted is None and not choice.dtypes and not choice.ranks:
        _sign(context, head, type_, frozenset(effects))
    parameters = _core_parameters(head)
    if "rand" in effects:
        _seed_free(context, declaration)
        parameters = (*parameters, Parameter(SEED, context.keys.key))
    return Function(
        declaration.name + choice.suffix, head.dimensions, head.requires, parameters, wanted or type_,
        tuple(context.statements), result, declaration.documentation, witnesses,
    )  # fmt: skip


def _body(context: Context, declaration: ast.FunctionDeclaration, wanted: Type | None) -> Meaning:
    if wanted is None or declaration.result is None or isinstance(wanted, Arrow):
        return infer(context, declaration.body, wanted)
    what = f"the result of {declaration.name}"
    return check_meaning(context, declaration.body, wanted, what, declaration.result.span)


def _result(found: Meaning) -> tuple[Tree, Type, tuple[Dim, ...]]:
    if isinstance(found, Package):
        return found.tree, found.type, found.witnesses
    assert isinstance(found, Value | tuple | Struct | Stack), meaning_type(found)
    return found, tree_type(found), ()


def _core_parameters(head: Head) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name, found)
        for name, found in head.parameters
        if isinstance(found, Value | tuple | Struct | Stack) and not isinstance(found, Poison)
    )


SEED = "seed"
"""The last parameter, in core, of a function that draws: its key."""


def _seed_free(context: Context, declaration: ast.FunctionDeclaration) -> None:
    """A function that draws has no parameter that callers from outside would mean by `seed=`."""
    for p in declaration.parameters:
        if p.name == SEED:
            raise context.report(effect_errors.seed_taken(p.span, declaration.name))


# ---------------------------------------------------------------- signatures


def _sign(context: Context, head: Head, result: Type, effects: frozenset[str]) -> None:
    listed = tuple((p.name, tree_type(p.value)) for p in _core_parameters(head))
    name = context.declaration.name
    context.module.signatures[name] = Signature(
        name, head.dimensions, head.requires, listed, result, effects
    )  # fmt: skip


def _sign_generic(module: ModuleContext, declaration: ast.FunctionDeclaration) -> None:
    """A generic function's signature, as it is written."""
    binders = tuple(binder.span.text for binder in declaration.binders)
    requires = tuple(print_expr(claim) for claim in declaration.requires)
    parameters = tuple((p.name, print_expr(p.type)) for p in declaration.parameters if p.type is not None)
    result = print_expr(declaration.result) if declaration.result is not None else "..."
    module.signatures[declaration.name] = Signature(
        declaration.name, binders, requires, parameters, result, frozenset(declaration.effects or ())
    )  # fmt: skip
