"""Types, and what binds names: binders, parameters, effects, `requires`."""

from __future__ import annotations

from kina.syntax import ast
from kina.syntax.cursor import Cursor
from kina.syntax.expressions import expression, postfix


def type_expression(c: Cursor) -> ast.Expr:
    """A type: `F32[B, S]`, `(A, B)`, `A -> B ! {rand}`, `exists [n] requires (P). T`."""
    with c.nested():
        start = c.start
        if c.kind == "exists":
            return _exists(c)
        return _arrow(c, postfix(c), start)


def type_tail(c: Cursor) -> ast.Expr:
    """What stands in parentheses: an expression, or a type with an arrow."""
    if c.kind == "exists":
        return type_expression(c)
    start = c.start
    return _arrow(c, expression(c), start)


def _arrow(c: Cursor, parameter: ast.Expr, start: int) -> ast.Expr:
    if not c.accept("->"):
        return parameter
    result = type_expression(c)
    return ast.Arrow(parameter, result, effects(c), span=c.span(start))


def _exists(c: Cursor) -> ast.Exists:
    start = c.start
    c.next()
    names = binders(c)
    claims = requirements(c)
    c.expect(".", "`.` and the type")
    return ast.Exists(names, claims, type_expression(c), span=c.span(start))


def binders(c: Cursor) -> tuple[ast.Binder, ...]:
    """`[B, ...S, T : Float]`, or nothing."""
    found: list[ast.Binder] = []
    if c.kind != "[":
        return ()
    with c.bracket("[", "]", equality=False):
        while c.kind != "]":
            start = c.start
            segment = c.accept("...")
            name = c.name("a dimension's name").text
            kind = c.name("a dtype class").text if c.accept(":") else None
            found.append(ast.Binder(name, segment, kind, span=c.span(start)))
            if not c.accept(","):
                break
    return tuple(found)


def requirements(c: Cursor) -> tuple[ast.Expr, ...]:
    """Any number of `requires (P)`."""
    found: list[ast.Expr] = []
    while c.accept("requires"):
        found.append(proposition(c))
    return tuple(found)


def proposition(c: Cursor) -> ast.Expr:
    """`(P)`, in which `=` is equality."""
    with c.bracket("(", ")", equality=True):
        return expression(c)


def parameter(c: Cursor) -> ast.Parameter:
    """`(x : T)`."""
    start = c.start
    with c.bracket("(", ")", equality=False):
        name = c.name("a parameter's name").text
        type_ = type_expression(c) if c.accept(":") else None
    return ast.Parameter(name, type_, span=c.span(start))


def effects(c: Cursor) -> tuple[str, ...] | None:
    """`! {rand, io}`, or nothing."""
    if not c.accept("!"):
        return None
    names: list[str] = []
    with c.bracket("{", "}", equality=False):
        while c.kind != "}":
            names.append(c.name("an effect").text)
            if not c.accept(","):
                break
    return tuple(names)
