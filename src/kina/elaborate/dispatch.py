"""From a surface expression to what it stands for: each form is elaborated by the function registered for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from kina.core.ir import Stack, Struct, Tree, Value, tree_type
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.dims.dim import UnwieldySize
from kina.elaborate.context import Context, Meaning, Package
from kina.elaborate.guesses import guess
from kina.elaborate.matching import conform
from kina.elaborate.packages import pack
from kina.source import Span
from kina.syntax import ast
from kina.types import Exists, Type

Handler = Callable[[Context, Any, Type | None, str | None], Meaning]
HandlerType = TypeVar("HandlerType", bound=Handler)
_handlers: dict[type, Handler] = {}


def elaborates(*forms: type) -> Callable[[HandlerType], HandlerType]:
    """Registers a function as the one that elaborates these forms: `(context, e, expected, name)`."""

    def register(handler: HandlerType) -> HandlerType:
        for form in forms:
            if form in _handlers:
                raise ValueError(f"{form.__name__} is elaborated twice")
            _handlers[form] = handler
        return handler

    return register


def infer(context: Context, e: ast.Expr, expected: Type | None = None, name: str | None = None) -> Meaning:
    """What an expression stands for.

    `expected` is what the place wants: it types literals and holes, and is not enforced here (see
    `check`). `name` is what a new value should be called. Raises `Reported` once an error is recorded.
    """
    handler = _handlers.get(type(e))
    if handler is None:
        raise context.report(form_errors.unsupported(e.span, _UNSUPPORTED.get(type(e), "this form")))
    try:
        return handler(context, e, expected, name)
    except UnwieldySize:
        raise context.report(form_errors.unwieldy_size(e.span)) from None


def value(context: Context, e: ast.Expr, expected: Type | None = None, name: str | None = None) -> Tree:
    """The value of an expression that has to be one: a tensor, or a tuple, record or list of such."""
    return as_value(context, infer(context, e, expected, name), e.span)


def as_value(context: Context, found: Meaning, span: Span) -> Tree:
    """What was found, if it is a value. A function, or a value whose sizes were not opened, is none."""
    if isinstance(found, Value | tuple | Struct | Stack):
        return found
    if isinstance(found, Package):
        names = found.type.names
        raise context.report(form_errors.unopened(span, found.type, names, _openings(context, span, names)))
    raise context.report(found.misuse(span))


def _openings(context: Context, span: Span, names: tuple[str, ...]) -> tuple[Help, ...]:
    """Names for the sizes that a value hides: where it was bound, or in a `let` before the body of the function."""
    source, sizes = span.source, f"[{', '.join(names)}]"
    bound = list(re.finditer(rf"\blet\s+(?={re.escape(span.text)}\s*=)", source.text[: span.start]))
    if bound:
        at = Span(source, bound[-1].end(), bound[-1].end())
        return (guess("name its size where it is bound", Edit(at, f"{sizes} ")),)
    start = context.declaration.body.span.start
    let = Edit(Span(source, start, start), f"let {sizes} opened = {span.text} in ")
    return (guess("name its size", let, Edit(span, "opened")),)


def tensor(context: Context, e: ast.Expr, expected: Type | None = None) -> Value:
    """The value of an expression that has to be a tensor."""
    found = value(context, e, expected)
    if not isinstance(found, Value):
        raise context.report(form_errors.not_a_value(e.span, kind_of(found)))
    return found


def kind_of(tree: Tree) -> str:
    """What a tree is, in words."""
    match tree:
        case Value():
            return "a tensor"
        case Struct(name):
            return f"a {name}"
        case Stack():
            return "a list"
        case _:
            return "a tuple"


def check(
    context: Context, e: ast.Expr, wanted: Type, what: str, declared: Span | None, name: str | None = None,
    origin: tuple[str, ...] = (),
) -> Tree:  # fmt: skip
    """The value of an expression that has to be of the type `wanted`, which is no existential."""
    found = value(context, e, wanted, name)
    conform(context, found, wanted, final(e).span, what, declared, origin)
    return found


def check_meaning(
    context: Context, e: ast.Expr, wanted: Type, what: str, declared: Span | None, name: str | None = None
) -> Meaning:
    """Like `check`; where an existential is wanted, what fits it is packed."""
    if isinstance(wanted, Exists):
        return pack(context, infer(context, e, wanted, name), wanted, final(e).span, what, declared)
    return check(context, e, wanted, what, declared, name)


def meaning_type(found: Meaning) -> object:
    """The type of what was found, for messages."""
    if isinstance(found, Package):
        return found.type
    if isinstance(found, Value | tuple | Struct | Stack):
        return tree_type(found)
    return found.describe()


def final(e: ast.Expr) -> ast.Expr:
    """The expression whose value a chain of lets has: where a mismatch is shown."""
    while isinstance(e, ast.Let | ast.LetDim | ast.LetAssert | ast.LetAssertEq | ast.LetFunction):
        e = e.body
    return e


_UNSUPPORTED: dict[type, str] = {
    ast.String: "strings outside imports and tests",
    ast.Spread: "a shape segment as a value",
}


# ---------------------------------------------------------------- names with a form of their own

Builtin = Callable[
    [Context, ast.Expr, tuple[ast.Expr, ...], tuple[ast.Expr, ...], "Type | None", "str | None"], Meaning
]
"""`(context, e, brackets, arguments, expected, name)`."""
BuiltinType = TypeVar("BuiltinType", bound=Builtin)
_builtins: dict[str, Builtin] = {}
_bracketed: dict[str, Builtin] = {}


def builtin(name: str, *, bracketed: bool = False) -> Callable[[BuiltinType], BuiltinType]:
    """Registers what elaborates calls of a name that is neither a function nor one operation: `map f xs`.

    A `bracketed` one has this form only with a bracket after its name; without, it is an operation.
    """

    def register(elaborate: BuiltinType) -> BuiltinType:
        known = _bracketed if bracketed else _builtins
        if name in known:
            raise ValueError(f"{name} is elaborated twice")
        known[name] = elaborate
        return elaborate

    return register


def exactly(
    context: Context, e: ast.Expr, name: str, wanted: tuple[str, ...], brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...], *, more: bool = False,
) -> None:  # fmt: skip
    """Refuses a call with a bracket, or with another number of arguments."""
    usage = f"{name} {' '.join(wanted)}"
    if brackets:
        raise context.report(form_errors.bad_attribute(e.span, f"`{name}` takes nothing in a bracket", usage))
    if len(arguments) < len(wanted) or (len(arguments) > len(wanted) and not more):
        count = len(arguments)
        raise context.report(form_errors.wrong_argument_count(e.span, name, wanted, count, usage, at_least=more))


def find_builtin(name: str, *, bracketed: bool = False) -> Builtin | None:
    """What elaborates calls of that name, with or without a bracket; None where nothing is registered."""
    return _builtins.get(name) or (_bracketed.get(name) if bracketed else None)


def builtin_names() -> tuple[str, ...]:
    return tuple(_builtins)
