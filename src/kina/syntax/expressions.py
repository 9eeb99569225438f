"""Expressions: operators by precedence, application, postfix forms, atoms.

Loosest to tightest: `:=`, `|>`, `||`, `&&`, `not`, comparisons, `+ -`, `* / @ mod div`, unary `-`, `^`, application,
`e[...] e.field e.0`, atoms. `let fun if for while` stand wherever an operand may, and reach as far as they can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kina.diagnostics import syntax_errors
from kina.diagnostics.diagnostic import Help
from kina.syntax import ast
from kina.syntax.cursor import Cursor, ParseError
from kina.syntax.lexer import number_value, string_value

ASSIGN, PIPE, OR, AND, NOT, COMPARE, ADD, MULTIPLY, NEGATE, POWER, APPLY = range(11)
LEVELS: Mapping[str, int] = {
    ":=": ASSIGN, "|>": PIPE, "||": OR, "&&": AND, "==": COMPARE, "=": COMPARE, "!=": COMPARE, "<": COMPARE,
    "<=": COMPARE, ">": COMPARE, ">=": COMPARE, "divides": COMPARE, "+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY,
    "@": MULTIPLY, "mod": MULTIPLY, "div": MULTIPLY,
}  # fmt: skip
"""How tightly each binary operator but `^` binds."""

_ARGUMENT = frozenset({"name", "number", "string", "(", "[", "{", "...", "?", "true", "false", "!"})
"""What an argument may begin with."""

Special = Callable[[Cursor], ast.Expr]
_special: dict[str, Special] = {}


def special(keyword: str) -> Callable[[Special], Special]:
    """Registers the parser of a form that begins with a keyword."""

    def register(parser: Special) -> Special:
        _special[keyword] = parser
        return parser

    return register


def expression(c: Cursor, level: int = ASSIGN) -> ast.Expr:
    """An expression whose operators bind at least as tightly as `level`."""
    with c.nested():
        start = c.start
        left = _prefix(c, level)
        deep = c.level
        while True:
            operator = c.kind
            binds = LEVELS.get(operator, -1)
            if binds < level or (operator == "=" and not c.equality):
                return left
            deep += 1
            c.check_level(deep)
            sign = c.next()
            right = expression(c, binds if binds == ASSIGN else binds + 1)
            left = ast.Binary(operator, left, right, c.span_of(sign), span=c.span(start))  # type: ignore[arg-type]
            if binds == COMPARE:
                _refuse_chain(c)


def _refuse_chain(c: Cursor) -> None:
    if LEVELS.get(c.kind) == COMPARE and (c.kind != "=" or c.equality):
        c.diagnostics.append(syntax_errors.chained_comparison(c.here()))
        raise ParseError


def _prefix(c: Cursor, level: int) -> ast.Expr:
    kind, start = c.kind, c.start
    if kind in _special:
        return _special[kind](c)
    if kind == "not" and level <= NOT:
        c.next()
        return ast.Unary("not", expression(c, NOT), span=c.span(start))
    if kind == "-":
        c.next()
        with c.nested():
            return ast.Unary("-", _prefix(c, NEGATE), span=c.span(start))
    base = _application(c)
    if c.kind == "^":
        sign = c.next()
        with c.nested():
            exponent = _prefix(c, POWER)
        return ast.Binary("^", base, exponent, c.span_of(sign), span=c.span(start))
    return base


def _application(c: Cursor) -> ast.Expr:
    start = c.start
    function = postfix(c)
    arguments: list[ast.Expr] = []
    while c.kind in _ARGUMENT:
        arguments.append(postfix(c))
    return ast.Apply(function, tuple(arguments), span=c.span(start)) if arguments else function


def postfix(c: Cursor) -> ast.Expr:
    """An atom with what touches it: `f[axis=1]`, `x[0, :]`, `layer.norm`, `pair.0`."""
    start = c.start
    e = atom(c)
    deep = c.level
    while True:
        token = c.token
        if token.kind not in ("[", ".") or token.spaced:
            return e
        deep += 1
        c.check_level(deep)
        if token.kind == "[":
            e = ast.Bracket(e, _items(c, e), span=c.span(start))
        else:
            c.next()
            if c.kind == "number":
                e = ast.Projection(e, int(c.next().text), span=c.span(start))
            else:
                e = ast.FieldAccess(e, c.name("a field's name or number").text, span=c.span(start))


# ---------------------------------------------------------------- tight brackets


def _items(c: Cursor, target: ast.Expr) -> tuple[ast.Expr, ...]:
    """Attributes, dimension arguments, an index, or the pattern of `einsum` and `rearrange`."""
    items: list[ast.Expr] = []
    with c.bracket("[", "]", equality=False):
        if isinstance(target, ast.Name) and target.text in ("einsum", "rearrange") and c.kind != "]":
            items.append(_axis_pattern(c))
            if not c.accept(","):
                return tuple(items)
        while c.kind != "]":
            items.append(_item(c))
            if not c.accept(","):
                break
    return tuple(items)


def _item(c: Cursor) -> ast.Expr:
    start = c.start
    if c.kind == "name" and c.following() == "=":
        name = c.next().text
        c.next()
        return ast.NamedItem(name, expression(c), span=c.span(start))
    first = None if c.kind == ":" else expression(c)
    if c.kind != ":":
        assert first is not None
        return first
    bounds: list[ast.Expr | None] = [first]
    while len(bounds) < 3 and c.accept(":"):
        bounds.append(None if c.kind in (":", ",", "]") else expression(c))
    return ast.Slice(bounds[0], bounds[1], bounds[2] if len(bounds) > 2 else None, span=c.span(start))


def _axis_pattern(c: Cursor) -> ast.AxisPattern:
    """`b h s d, b h t d -> b h s t`."""
    start = c.start
    inputs = [_pattern_axes(c)]
    while c.accept(","):
        inputs.append(_pattern_axes(c))
    c.expect("->", "`->` and the axes of the result")
    return ast.AxisPattern(tuple(inputs), _pattern_axes(c), span=c.span(start))


def _pattern_axes(c: Cursor) -> tuple[ast.PatternAxis, ...]:
    axes: list[ast.PatternAxis] = []
    while c.kind in ("name", "number", "...", "("):
        start = c.start
        if c.kind == "(":
            names: list[str | int] = []
            with c.bracket("(", ")", equality=False):
                while c.kind in ("name", "number", "..."):
                    names.append(_axis_name(c))
            axes.append(ast.PatternAxis(tuple(names), True, span=c.span(start)))
        else:
            axes.append(ast.PatternAxis((_axis_name(c),), span=c.span(start)))
    return tuple(axes)


def _axis_name(c: Cursor) -> str | int:
    token = c.next()
    if token.kind != "number":
        return token.text
    if not token.text.isdigit():
        raise c.error("a whole number")
    return int(token.text)


# ---------------------------------------------------------------- atoms


def atom(c: Cursor) -> ast.Expr:
    """A name, literal, hole, or something in brackets."""
    token, start = c.token, c.start
    match token.kind:
        case "name":
            c.next()
            return ast.Name(token.text, span=c.span_of(token))
        case "number":
            c.next()
            return ast.Number(token.text, number_value(token.text), span=c.span_of(token))
        case "string":
            c.next()
            return ast.String(string_value(token.text), span=c.span_of(token))
        case "true" | "false":
            c.next()
            return ast.Boolean(token.kind == "true", span=c.span_of(token))
        case "...":
            c.next()
            if c.kind == "name" and not c.token.spaced:
                return ast.Spread(c.next().text, span=c.span(start))
            return ast.Hole(None, span=c.span_of(token))
        case "?":
            c.next()
            return ast.Hole(c.name("the hole's name").text, span=c.span(start))
        case "!":
            c.next()
            with c.nested():
                return ast.Unary("!", postfix(c), span=c.span(start))
        case "(":
            return _parenthesised(c)
        case "[":
            return _list(c)
        case "{":
            return _record(c)
    raise c.error("an expression", _missing_operand(c))


def _missing_operand(c: Cursor) -> Help | None:
    if c.kind == "end" and c.position and c.tokens[c.position - 1].kind == "in":
        return Help("after `in` comes the expression whose value this is")
    return None


def _parenthesised(c: Cursor) -> ast.Expr:
    """`(e)` is e itself; `(a, b)` a tuple, as a value or as a type; `()` the empty tuple."""
    from kina.syntax.types import type_tail

    start = c.start
    items: list[ast.Expr] = []
    comma = False
    with c.bracket("(", ")", equality=True):
        while c.kind != ")":
            items.append(type_tail(c))
            comma = c.accept(",")
            if not comma:
                break
    if len(items) == 1 and not comma:
        return items[0]
    return ast.TupleLiteral(tuple(items), span=c.span(start))


def _list(c: Cursor) -> ast.ListLiteral:
    start = c.start
    items: list[ast.Expr] = []
    with c.bracket("[", "]", equality=False):
        while c.kind != "]":
            items.append(expression(c))
            if not c.accept(","):
                break
    return ast.ListLiteral(tuple(items), span=c.span(start))


def _record(c: Cursor) -> ast.Expr:
    """`{ a = e }`, or `{ base with a = e }`."""
    start = c.start
    base: ast.Expr | None = None
    fields: list[ast.FieldBinding] = []
    with c.bracket("{", "}", equality=False):
        if c.kind != "}" and c.following() != "=":
            base = postfix(c)
            c.expect("with", "`with` and the fields that change")
        while c.kind != "}":
            begin = c.start
            name = c.name("a field's name").text
            c.expect("=")
            fields.append(ast.FieldBinding(name, expression(c), span=c.span(begin)))
            if not c.accept(","):
                break
    if base is not None:
        return ast.RecordUpdate(base, tuple(fields), span=c.span(start))
    return ast.RecordLiteral(tuple(fields), span=c.span(start))
