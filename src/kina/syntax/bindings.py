"""The forms that begin with a keyword: `let` in its kinds, `fun`, `if`, `for`, `while`."""

from __future__ import annotations

from collections.abc import Callable

from kina.diagnostics import syntax_errors
from kina.source import Span
from kina.syntax import ast
from kina.syntax.cursor import Cursor, ParseError
from kina.syntax.expressions import ADD, expression, postfix, special
from kina.syntax.types import binders, effects, parameter, proposition, requirements, type_expression

Close = Callable[[ast.Expr], ast.Expr]
"""Makes the node of a let once its body is known."""


@special("let")
def let_chain(c: Cursor) -> ast.Expr:
    """Lets one after the other, and the expression at their end.

    After an error in one, parsing goes on at the next line that stands at or left of it.
    """
    closes: list[Close] = []
    failed = False
    while c.kind == "let":
        column = _column(c)
        try:
            closes.append(_let(c, column))
        except ParseError:
            failed = True
            c.skip_to_column(column)
        c.accept("in")
    if failed and c.kind == "end":
        raise ParseError
    body = expression(c)
    if failed:
        raise ParseError
    for close in reversed(closes):
        body = close(body)
    return body


def _column(c: Cursor) -> int:
    """The 1-based column of the current token."""
    return c.start - c.source.line_starts[c.source.line_of(c.start) - 1] + 1


def _let(c: Cursor, column: int) -> Close:
    """One let up to its `in`; layout ends it at the first line at or left of its column."""
    start = c.next().start
    limit, c.limit = c.limit, max(c.limit, column)
    equality, c.equality = c.equality, False
    level = c.level
    try:
        return _let_kind(c, start)
    finally:
        c.limit, c.equality, c.level = limit, equality, level


def _let_kind(c: Cursor, start: int) -> Close:
    after = c.following()
    if c.kind == "dim":
        c.next()
        name = c.name("the dimension's name")
        c.expect("=")
        value = expression(c)
        return lambda body: ast.LetDim(name.text, value, body, c.span_of(name), span=_to(start, c, body))
    if c.is_word("assert") and after == "(":
        c.next()
        claim = proposition(c)
        return lambda body: ast.LetAssert(claim, body, span=_to(start, c, body))
    if c.is_word("assert_eq") and after not in ("=", ":"):
        c.next()
        left, right = postfix(c), postfix(c)
        return lambda body: ast.LetAssertEq(left, right, body, span=_to(start, c, body))
    if c.kind == "name" and after in ("[", "(", "requires"):
        function = function_declaration(c, start)
        return lambda body: ast.LetFunction(function, body, span=_to(start, c, body))
    opened = binders(c)
    bound = pattern(c)
    type_ = type_expression(c) if c.accept(":") else None
    c.expect("=")
    value = expression(c)
    return lambda body: ast.Let(opened, bound, type_, value, body, span=_to(start, c, body))


def _to(start: int, c: Cursor, body: ast.Expr) -> Span:
    return Span(c.source, start, max(start, body.span.end))


def pattern(c: Cursor) -> ast.Pattern:
    """A name, or patterns in parentheses."""
    start = c.start
    if c.kind != "(":
        return ast.Pattern(c.name().text, span=c.span(start))
    items: list[ast.Pattern] = []
    with c.nested(), c.bracket("(", ")", equality=False):
        while c.kind != ")":
            items.append(pattern(c))
            if not c.accept(","):
                break
    return ast.Pattern(None, tuple(items), span=c.span(start))


def function_declaration(c: Cursor, start: int, documentation: str = "") -> ast.FunctionDeclaration:
    """What follows `let`: name, binders, `requires`, parameters, result, body."""
    name = c.name("a name to define")
    bound = binders(c)
    claims = list(requirements(c))
    parameters: list[ast.Parameter] = []
    while c.kind == "(":
        parameters.append(parameter(c))
        claims += requirements(c)
    result = type_expression(c) if c.accept(":") else None
    effect = effects(c)
    claims += requirements(c)
    c.expect("=", "`=` and the body" if result is not None else "`:` and the result's type, or `=`")
    body = expression(c)
    return ast.FunctionDeclaration(
        name.text, bound, tuple(claims), tuple(parameters), result, effect, body, c.span_of(name), documentation,
        span=c.span(start),
    )  # fmt: skip


# ---------------------------------------------------------------- fun, if, for, while


@special("fun")
def _fun(c: Cursor) -> ast.Expr:
    start = c.next().start
    parameters: list[ast.Parameter] = []
    while c.kind != "->":
        begin = c.start
        if c.kind == "(":
            parameters.append(parameter(c))
        else:
            name = c.name("a parameter, or `->`").text
            parameters.append(ast.Parameter(name, None, span=c.span(begin)))
    c.next()
    return ast.Lambda(tuple(parameters), expression(c), span=c.span(start))


@special("if")
def _if(c: Cursor) -> ast.Expr:
    start = c.next().start
    condition = _condition(c)
    c.expect("then")
    then = expression(c)
    c.expect("else")
    return ast.If(condition, then, expression(c), span=c.span(start))


def _condition(c: Cursor) -> ast.Expr:
    """An expression in which `=` is equality."""
    kept, c.equality = c.equality, True
    try:
        return expression(c)
    finally:
        c.equality = kept


@special("for")
def _for(c: Cursor) -> ast.Expr:
    start = c.next().start
    index = c.name("the loop's index").text
    c.expect("<", "`<` and the number of steps")
    bound = expression(c, ADD)
    states: tuple[ast.State, ...] = ()
    body: ast.Expr | None = None
    if c.accept("with"):
        states = _states(c)
        c.expect("do")
        body = expression(c)
    yielded: ast.Expr | None = None
    if c.kind == "yield" or body is None:
        c.expect("yield", "`with` and a state, or `yield` and a value")
        yielded = expression(c)
    return ast.For(index, bound, states, body, yielded, span=c.span(start))


@special("while")
def _while(c: Cursor) -> ast.Expr:
    start = c.next().start
    index: str | None = None
    bound: ast.Expr | None = None
    if c.kind == "[" and c.following() == "name" and c.following(2) == "<":
        with c.bracket("[", "]", equality=False):
            index = c.name().text
            c.expect("<")
            bound = expression(c, ADD)
    condition = _condition(c)
    c.expect("with", "`with` and a state")
    states = _states(c)
    c.expect("do")
    return ast.While(index, bound, condition, states, expression(c), span=c.span(start))


def _states(c: Cursor) -> tuple[ast.State, ...]:
    """`s : T = e`, or `(s : T, u : U) = (e, f)`."""
    start = c.start
    if c.kind != "(":
        name, type_ = _state_head(c)
        c.expect("=")
        return (ast.State(name, type_, expression(c), span=c.span(start)),)
    heads: list[tuple[str, ast.Expr | None]] = []
    with c.bracket("(", ")", equality=False):
        while c.kind != ")":
            heads.append(_state_head(c))
            if not c.accept(","):
                break
    c.expect("=")
    initial = expression(c)
    initials = initial.items if isinstance(initial, ast.TupleLiteral) else (initial,)
    if len(initials) != len(heads):
        c.diagnostics.append(syntax_errors.states_and_initials(initial.span, len(heads), len(initials)))
        raise ParseError
    return tuple(ast.State(n, t, e, span=e.span) for (n, t), e in zip(heads, initials, strict=True))


def _state_head(c: Cursor) -> tuple[str, ast.Expr | None]:
    name = c.name("the state's name").text
    return name, type_expression(c) if c.accept(":") else None
