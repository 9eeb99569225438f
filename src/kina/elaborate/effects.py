"""Effects: what calling a function may do besides giving a result.

Whatever has an effect says so (`Context.perform`). What a body performs is collected where the body is checked, and
held against what the type says; where no type is written, it is inferred. Below elaboration there are no effects.
"""

from __future__ import annotations

from collections.abc import Mapping

from kina.diagnostics import effect_errors
from kina.elaborate.context import Context
from kina.elaborate.module_context import Cause, ModuleContext
from kina.source import Span
from kina.syntax import ast
from kina.types import EFFECTS, Arrow, Type

__all__ = ["EFFECTS", "Cause", "arrow_effects", "effects_of", "held", "perform_all", "written_effects"]


def written_effects(context: Context, declaration: ast.FunctionDeclaration, *, top: bool) -> frozenset[str] | None:
    """The effects that a declaration's type allows, or None where they are to be inferred.

    A function of the top level whose result type is written, and no effect, is pure.
    """
    if declaration.effects is not None:
        return read_effects(context, declaration.effects, declaration.name_span)
    return frozenset() if top and declaration.result is not None else None


def read_effects(context: Context, names: tuple[str, ...], span: Span) -> frozenset[str]:
    for name in names:
        if name not in EFFECTS:
            raise context.report(effect_errors.unknown_effect(span, name, EFFECTS))
    return frozenset(names)


def held(
    context: Context, declaration: ast.FunctionDeclaration, allowed: frozenset[str] | None,
    performed: Mapping[str, Cause],
) -> dict[str, Cause]:  # fmt: skip
    """The effects of a function whose body `performed` some: all that its type says, an error for what it does not."""
    if allowed is None:
        return dict(performed)
    missing = _beyond(performed, allowed)
    if missing:
        result = declaration.result.span if declaration.result is not None else None
        context.report(
            effect_errors.undeclared(declaration.name, declaration.name_span, result, allowed, missing)
        )  # fmt: skip
    cause = Cause(declaration.name_span, f"`{declaration.name}`")
    return {effect: performed.get(effect, cause) for effect in EFFECTS if effect in allowed}


def effects_of(home: ModuleContext, declaration: ast.FunctionDeclaration) -> tuple[str, ...]:
    """The effects of calling a declared function, which has been checked, or whose type says them."""
    if declaration.effects is not None:
        return tuple(effect for effect in EFFECTS if effect in declaration.effects)
    if declaration.result is not None:
        return ()
    return tuple(home.effects.get(declaration.name, ()))


def perform_all(context: Context, effects: frozenset[str], span: Span, shown: str) -> None:
    for effect in EFFECTS:
        if effect in effects:
            context.perform(effect, span, shown)


def argument_held(context: Context, wanted: Arrow, performed: Mapping[str, Cause], span: Span) -> None:
    """A function that `performed` some effects stands where one of the type `wanted` is to be."""
    allowed = arrow_effects(wanted)
    missing = _beyond(performed, allowed)
    if missing:
        raise context.report(effect_errors.impure_argument(span, wanted, allowed, missing))


def arrow_effects(type_: Type) -> frozenset[str]:
    """The effects of applying a function to all its arguments."""
    found: frozenset[str] = frozenset()
    while isinstance(type_, Arrow):
        found |= type_.effects
        type_ = type_.result
    return found


def _beyond(performed: Mapping[str, Cause], allowed: frozenset[str]) -> dict[str, tuple[Span, str]]:
    return {effect: (c.span, c.shown) for effect, c in performed.items() if effect not in allowed}
