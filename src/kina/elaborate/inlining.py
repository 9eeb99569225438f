"""Functions that are inlined where they are called: lambdas, local functions, and those that take or give functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kina.diagnostics import Diagnostic, form_errors
from kina.dims.dim import Dim
from kina.elaborate.arguments import Interface, match_arguments
from kina.elaborate.choosing import choose
from kina.elaborate.closures import FunctionType, Scope, apply_more, is_function, partial, result_of
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dimensions import read_assumption
from kina.elaborate.dispatch import check_meaning, elaborates, infer
from kina.elaborate.effects import effects_of, held, perform_all, written_effects
from kina.elaborate.generics import is_generic, stand_ins
from kina.elaborate.module_context import Cause, ModuleContext
from kina.elaborate.signatures import enter_head, given_for_binders
from kina.elaborate.type_expressions import bind_argument, read_type
from kina.source import Span
from kina.syntax import ast
from kina.types import Argument, Arrow, Tuple, Type

_LAMBDA = "this function"
_ANY_FUNCTION = Arrow(Tuple(()), Tuple(()))


@dataclass(frozen=True, slots=True)
class Closure:
    """A function with the scope that it was written in.

    `wanted` is the type that the place of a lambda asks for: it says what parameters without types are.
    """

    declaration: ast.FunctionDeclaration
    scope: Scope
    wanted: Arrow | None = None
    home: ModuleContext | None = None
    """Of a function of the top level the module that it stands in: what it does is what its type says."""

    def misuse(self, span: Span) -> Diagnostic:
        return form_errors.function_as_value(span, self.describe())

    def describe(self) -> str:
        return "a function" if self.declaration.name == _LAMBDA else f"the function `{self.declaration.name}`"

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        """The body, with the arguments in the places of the parameters."""
        parameters = self.declaration.parameters
        if len(arguments) > len(parameters) and isinstance(self.declaration.result, ast.Arrow):
            expanded = Closure(_expanded(self.declaration), self.scope, home=self.home)
            return expanded.apply(context, e, brackets, arguments, expected, name)
        if len(arguments) < len(parameters):
            missing = [p.name for p in parameters[len(arguments) :]]
            return partial(context, self, self.declaration.name, brackets, arguments, missing)
        now, more = arguments[: len(parameters)], arguments[len(parameters) :]
        found = self._inlined(context, e, brackets, now, None if more else expected, name)
        return apply_more(context, e, self.declaration.name, found, more, expected, name)

    def _inlined(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        bound, found = self.matched(context, e, brackets, arguments)
        with context.inside(e.span, self.declaration.name), context.scope():
            self._enter(context, bound)
            for p, meaning in zip(self.declaration.parameters, found, strict=True):
                context.dims.pop(p.name, None)
                context.values[p.name] = meaning
            with context.effects_apart() as performed:
                result = self._body(context, expected, name)
            known = context.facts
        self._perform(context, performed, e.span)
        context.facts = known  # of sizes: they hold as long as what comes after is reached
        return result

    def _perform(self, context: Context, performed: Mapping[str, Cause], span: Span) -> None:
        """What the body does is done where the function is called; another declaration's places mean nothing here."""
        if self.home is None:
            written = self.declaration.effects
            said = [effect for effect in performed if written is None or effect in written]
            context.perform_again({effect: performed[effect] for effect in said})  # others were reported there
            return
        shown = f"`{self.declaration.name}`"
        context.perform_again({effect: replace(cause, span=span, shown=shown) for effect, cause in performed.items()})
        effects = {*effects_of(self.home, self.declaration)} - {"state"}  # done if it was, to the refs of arguments
        perform_all(context, frozenset(effects), span, f"`{self.declaration.name}`")

    def _body(self, context: Context, expected: Type | None, name: str | None) -> Meaning:
        declaration = self.declaration
        if declaration.result is None:
            return infer(context, declaration.body, expected, name)
        wanted = read_type(context, declaration.result)
        if isinstance(wanted, Arrow):
            return infer(context, declaration.body, wanted, name)
        what = f"the result of {declaration.name}"
        return check_meaning(context, declaration.body, wanted, what, declaration.result.span, name)

    # ------------------------------------------------------------ binders

    def matched(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...]
    ) -> tuple[dict[str, Argument], list[Meaning]]:
        """What the binders stand for in a call, and the arguments, which have the parameters' types."""
        given: dict[str, Argument | int] = dict(given_for_binders(context, e.span, self.declaration, brackets))
        known = self._looked_at(context, e, arguments, given)
        places, open_sizes = self._places(context, given)
        interface = self._interface(context, known, places, open_sizes)
        dimensions, found = match_arguments(context, e, interface, {}, arguments, known)
        return {name: _put(argument, dimensions) for name, argument in places.items()}, found

    def _looked_at(
        self, context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...], given: dict[str, Argument | int]
    ) -> dict[int, Meaning]:
        """Arguments that have to be looked at before the parameters' types can be read: for parameters without a type,
        and for generic binders, which are added to `given`."""
        parameters = self.declaration.parameters
        wanted = FunctionType.of(self.wanted).parameters if self.wanted is not None else ()
        known: dict[int, Meaning] = {}
        for n, p in enumerate(parameters):
            if p.type is None:
                known[n] = infer(context, arguments[n], wanted[n] if n < len(wanted) else None)
        if is_generic(self.declaration):
            types = tuple(p.type for p in parameters)
            known |= choose(context, e.span, self.scope.home, self.declaration, types, arguments, given)
        return known

    def _places(
        self, context: Context, given: dict[str, Argument | int]
    ) -> tuple[dict[str, Argument], tuple[str, ...]]:
        """What each binder stands for while the head is read: a variable of its own where arguments are to say it."""
        places: dict[str, Argument] = {}
        open_sizes: list[Dim] = []
        for binder in self.declaration.binders:
            argument = given.get(binder.name)
            if isinstance(argument, int):
                argument = tuple(context.fresh_dimension(f"{binder.name}_{n + 1}") for n in range(argument))
                open_sizes += argument
            elif argument is None:
                argument = context.fresh_dimension(binder.name)
                open_sizes.append(argument)
            places[binder.name] = argument
        return places, tuple(map(str, open_sizes))

    def _interface(
        self, context: Context, known: Mapping[int, Meaning], places: dict[str, Argument], open_sizes: tuple[str, ...]
    ) -> Interface:
        """The head. Nothing is obliged while it is read: that was done where the function was declared."""
        declaration = self.declaration
        with context.scope(), context.trusted():
            self._enter(context, places)
            requires = tuple(fact for claim in declaration.requires for fact in read_assumption(context, claim))
            parameters = tuple(
                (p.name, read_type(context, p.type) if p.type is not None else _type_of(context, known[n], p.span))
                for n, p in enumerate(declaration.parameters)
            )
        return Interface(declaration.name, open_sizes, requires, parameters)

    def _enter(self, context: Context, given: Mapping[str, Argument]) -> None:
        self.scope.enter(context)
        for binder in self.declaration.binders:
            bind_argument(context, binder, given[binder.name])


def _expanded(declaration: ast.FunctionDeclaration) -> ast.FunctionDeclaration:
    """A function that gives a function, as one that takes that one's argument too: its type may say of a size what no
    other argument says."""
    arrow = declaration.result
    assert isinstance(arrow, ast.Arrow)
    name = f"%{len(declaration.parameters)}"
    body = ast.Apply(declaration.body, (ast.Name(name, span=arrow.parameter.span),), span=declaration.body.span)
    parameters = (*declaration.parameters, ast.Parameter(name, arrow.parameter, span=arrow.parameter.span))
    return replace(declaration, parameters=parameters, result=arrow.result, body=body)


def _put(argument: Argument, dimensions: Mapping[str, Dim]) -> Argument:
    if isinstance(argument, Dim):
        return argument.substitute(dimensions)
    return tuple(d.substitute(dimensions) for d in argument) if isinstance(argument, tuple) else argument


def _type_of(context: Context, found: Meaning, span: Span) -> Type:
    """The type of an argument for a parameter without one; a function is taken as it is."""
    return _ANY_FUNCTION if is_function(found) else result_of(context, found, span)


# ---------------------------------------------------------------- lambdas and local functions


@elaborates(ast.Lambda)
def _lambda(context: Context, e: ast.Lambda, expected: Type | None, name: str | None) -> Meaning:
    declaration = ast.FunctionDeclaration(
        _LAMBDA, (), (), e.parameters, None, None, e.body, name_span=e.span, span=e.span
    )
    wanted = expected if isinstance(expected, Arrow) else None
    closure = Closure(declaration, Scope.of(context), wanted)
    if wanted is None and all(p.type is not None for p in e.parameters):
        _check_definition(context, declaration)
    return closure


def local_function(context: Context, declaration: ast.FunctionDeclaration) -> Closure:
    """A function declared in a body: checked here, inlined where it is called."""
    closure = Closure(declaration, Scope.of(context))
    _check_definition(context, declaration)
    return closure


def _check_definition(context: Context, declaration: ast.FunctionDeclaration) -> None:
    """Checks a function for whatever its binders and parameters may be; what core it makes is thrown away."""
    allowed = written_effects(context, declaration, top=False)
    for choice in stand_ins(declaration):
        mark = len(context.module.current.diagnostics)
        with context.thrown_away() as performed, context.inside(declaration.span, declaration.name):
            enter_head(context, declaration, choice)
            Closure(declaration, Scope.of(context))._body(context, None, None)
            held(context, declaration, allowed, performed)
        if len(context.module.current.diagnostics) > mark:
            return
