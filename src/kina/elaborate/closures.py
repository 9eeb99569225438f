"""Function values: named functions and operations, lambdas, local functions, partial applications.

They are inlined where they are applied, so that core has none. A lambda sees what was in scope where it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kina.core.ir import Stack, Struct, Value, tree_type
from kina.diagnostics import Diagnostic, form_errors
from kina.diagnostics.diagnostic import Help
from kina.dims.dim import Dim
from kina.elaborate.context import Context, FunctionValue, Meaning, ModuleContext, Package, Poison
from kina.elaborate.dispatch import as_value, infer, meaning_type
from kina.elaborate.effects import argument_held, perform_all
from kina.elaborate.matching import conform_types
from kina.elaborate.trees import new_tree
from kina.source import Span
from kina.syntax import ast
from kina.types import Arrow, DType, Shape, Type


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function type with its arguments in a row: `A -> B -> C` takes A and B and gives C."""

    parameters: tuple[Type, ...]
    result: Type

    @classmethod
    def of(cls, arrow: Arrow) -> FunctionType:
        parameters: list[Type] = []
        type_: Type = arrow
        while isinstance(type_, Arrow):
            parameters.append(type_.parameter)
            type_ = type_.result
        return cls(tuple(parameters), type_)


@dataclass(frozen=True, slots=True)
class Scope:
    """What was in scope where a function was written."""

    home: ModuleContext
    dims: dict[str, Dim | Poison]
    indices: dict[str, Dim]
    dtypes: dict[str, DType]
    segments: dict[str, Shape]
    values: dict[str, Meaning | Poison]

    @classmethod
    def of(cls, context: Context) -> Scope:
        copies = dict(context.dims), dict(context.indices), dict(context.dtypes), dict(context.segments)
        return cls(context.home, *copies, dict(context.values))

    @classmethod
    def top(cls, home: ModuleContext) -> Scope:
        """That of a module's declarations."""
        return cls(home, {}, {}, {}, {}, {})

    def enter(self, context: Context) -> None:
        """Within a scope of the context's own: names mean what they mean here. Facts stay those of the context."""
        context.home = self.home
        context.dims, context.indices, context.values = dict(self.dims), dict(self.indices), dict(self.values)
        context.dtypes, context.segments = dict(self.dtypes), dict(self.segments)


@dataclass(frozen=True, slots=True)
class Abstract:
    """A function parameter while the function that has it is checked: nothing is known of it but its type."""

    name: str
    type: Arrow

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        """A new value of the result's type, for arguments of the parameters' types."""
        inner = FunctionType.of(self.type)
        if brackets or len(arguments) > len(inner.parameters):
            usage = f"{self.name} : {self.type}"
            wanted = [str(type_) for type_ in inner.parameters]
            raise context.report(form_errors.wrong_argument_count(e.span, self.name, wanted, len(arguments), usage))
        for n, argument in enumerate(arguments):
            wanted_type = inner.parameters[n]
            if isinstance(wanted_type, Arrow):
                try_function(context, expect_function(context, argument, wanted_type, None), wanted_type, argument.span)
                continue
            found = as_value(context, infer(context, argument, wanted_type), argument.span)
            what = f"argument {n + 1} of {self.name}"
            conform_types(context, tree_type(found), wanted_type, argument.span, what, None)
        perform_all(context, _effects_on_the_way(self.type, len(arguments)), e.span, f"`{self.name}`")
        if len(arguments) < len(inner.parameters):
            return Abstract(self.name, _rest(self.type, len(arguments)))
        return new_tree(context, inner.result, name)

    def misuse(self, span: Span) -> Diagnostic:
        return form_errors.function_as_value(span, self.describe())

    def describe(self) -> str:
        return f"a function, {self.type}"


def _effects_on_the_way(arrow: Arrow, count: int) -> frozenset[str]:
    """Those of applying a function to its first arguments."""
    found: frozenset[str] = frozenset()
    type_: Type = arrow
    for _ in range(count):
        assert isinstance(type_, Arrow)
        found |= type_.effects
        type_ = type_.result
    return found


def _rest(arrow: Arrow, count: int) -> Arrow:
    for _ in range(count):
        assert isinstance(arrow.result, Arrow)
        arrow = arrow.result
    return arrow


@dataclass(frozen=True, slots=True)
class Partial:
    """A function and its first arguments."""

    function: FunctionValue
    shown: str
    brackets: tuple[ast.Expr, ...]
    given: tuple[tuple[Meaning, Span], ...]
    missing: tuple[str, ...]
    advice: tuple[Help, ...] = ()

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        first = tuple(as_argument(context, found, span) for found, span in self.given)
        return self.function.apply(context, e, self.brackets, (*first, *arguments), expected, name)

    def misuse(self, span: Span) -> Diagnostic:
        if not self.given:
            return form_errors.function_where_value(span, self.shown, self.missing)
        return form_errors.partial_application(span, self.shown, self.missing, self.advice)

    def describe(self) -> str:
        return f"`{self.shown}`, which also needs {', '.join(self.missing)}"


def as_argument(context: Context, found: Meaning, span: Span) -> ast.Name:
    """An expression for what is known already, by a name that no program can write."""
    name = f"%{context.fresh('%')}"
    context.values[name] = found
    return ast.Name(name, span=span)


def partial(
    context: Context, function: FunctionValue, shown: str, brackets: tuple[ast.Expr, ...],
    arguments: Sequence[ast.Expr], missing: Sequence[str], advice: tuple[Help, ...] = (),
) -> Partial:  # fmt: skip
    """A function applied to fewer arguments than it takes: they are computed once, here."""
    if arguments and context.home.strict:
        span = arguments[0].span.to(arguments[-1].span)
        instead = f"fun {' '.join(missing)} -> {shown} ... {' '.join(missing)}"
        raise context.report(form_errors.sugar(span, "partial application", instead))
    given = tuple((infer(context, argument), argument.span) for argument in arguments)
    return Partial(function, shown, brackets, given, tuple(missing), advice)


def apply_more(
    context: Context, e: ast.Expr, shown: str, found: Meaning, arguments: tuple[ast.Expr, ...], expected: Type | None,
    name: str | None,
) -> Meaning:  # fmt: skip
    """What was found, applied to the arguments that are left over."""
    if not arguments:
        return found
    if isinstance(found, Value | tuple | Struct | Stack | Package):
        raise context.report(form_errors.too_many_arguments(e.span, shown, len(arguments), meaning_type(found)))
    return found.apply(context, e, (), arguments, expected, name)


# ---------------------------------------------------------------- where a function is wanted


def is_function(found: Meaning | Poison | None) -> bool:
    return found is not None and not isinstance(found, Value | tuple | Struct | Stack | Package | Poison)


def expect_function(context: Context, e: ast.Expr, wanted: Type | None, known: Meaning | None) -> FunctionValue:
    """The function that an expression has to be."""
    found = known if known is not None else infer(context, e, wanted)
    if isinstance(found, Value | tuple | Struct | Stack | Package):
        raise context.report(form_errors.function_wanted(e.span, wanted, meaning_type(found)))
    return found


def try_function(context: Context, function: FunctionValue, wanted: Arrow, span: Span) -> Type:
    """The type of what a function gives for arguments of the wanted types: its body is checked on them."""
    inner = FunctionType.of(wanted)
    with context.thrown_away() as performed:
        arguments = []
        for type_ in inner.parameters:
            made: Meaning = Abstract("this", type_) if isinstance(type_, Arrow) else new_tree(context, type_, None)
            arguments.append(as_argument(context, made, span))
        call = ast.Name(span.text, span=span)
        found = function.apply(context, call, (), tuple(arguments), inner.result, None)
        result = result_of(context, found, span)
    argument_held(context, wanted, performed, span)
    return result


def result_of(context: Context, found: Meaning, span: Span) -> Type:
    """The type of a function's result."""
    return found.type if isinstance(found, Package) else tree_type(as_value(context, found, span))

