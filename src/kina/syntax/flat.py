"""Trees as text on one line, with the parentheses that the grammar needs and few more."""

from __future__ import annotations

from collections.abc import Iterable

from kina.syntax import ast
from kina.syntax.literals import written_string
from kina.syntax.operators import (
    APPLICATION,
    ARGUMENT,
    ARROW,
    ASSIGNMENT,
    BINARY,
    COMPARISON,
    NEGATION,
    NOT,
    POSTFIX,
    POWER,
    RIGHT_ASSOCIATIVE,
    SUM,
)

_EXTENDING = -1
"""The level of forms that reach as far to the right as they can: as an operand they need parentheses."""

Lets = ast.Let | ast.LetDim | ast.LetAssert | ast.LetAssertEq | ast.LetFunction
_RARE_OPERATORS = frozenset({"mod", "div", "@"})
_CALLED_WITH_PARENTHESES = frozenset({"cdiv", "min", "max"})
_NOT_BEFORE_A_POINT = (ast.Number, ast.Hole, ast.Spread)


def print_expr(expr: ast.Expr) -> str:
    """The expression on one line; where it is read in parentheses or alone, it gives the same tree."""
    return flat(expr)


def level_of(e: ast.Expr) -> int:
    """How tightly the outermost form of an expression binds."""
    match e:
        case ast.Let() | ast.LetDim() | ast.LetAssert() | ast.LetAssertEq() | ast.LetFunction():
            return _EXTENDING
        case ast.Lambda() | ast.If() | ast.For() | ast.While() | ast.Exists():
            return _EXTENDING
        case ast.Arrow():
            return ARROW
        case ast.Binary(operator=operator):
            return BINARY[operator]
        case ast.Unary(operator="-"):
            return NEGATION
        case ast.Unary(operator="not"):
            return NOT
        case ast.Unary():
            return ARGUMENT
        case ast.Apply():
            return POSTFIX if is_tight_call(e) else APPLICATION
        case _:
            return POSTFIX


def is_extending(e: ast.Expr) -> bool:
    return level_of(e) == _EXTENDING


def is_tight_call(e: ast.Apply) -> bool:
    """`cdiv(a, b)`: what is written as in mathematics."""
    match e:
        case ast.Apply(function=ast.Name(text=name), arguments=(ast.TupleLiteral(items=items),)):
            return name in _CALLED_WITH_PARENTHESES and len(items) > 1
        case _:
            return False


def needs_parentheses(e: ast.Expr, level: int, equals: bool) -> bool:
    """Whether an expression needs parentheses where at least `level` is wanted; `equals`: whether `=` compares."""
    if isinstance(e, ast.Binary) and e.operator == "=" and not equals:
        return True
    own = level_of(e)
    if own == _EXTENDING:
        return level > ARROW
    return own < level


def flat(e: ast.Expr, level: int = ARROW, equals: bool = False) -> str:
    """An expression on one line, in parentheses where it binds more loosely than `level`."""
    if needs_parentheses(e, level, equals):
        return f"({_plain(e, True)})"
    return _plain(e, equals)


def operand_levels(e: ast.Binary) -> tuple[int, int]:
    """The levels that the two operands need to stand without parentheses."""
    level = BINARY[e.operator]
    if e.operator in RIGHT_ASSOCIATIVE:
        minus = isinstance(e.right, ast.Unary) and e.right.operator == "-" and level == POWER
        return level + 1, NEGATION if minus else level
    return (level + 1 if level == COMPARISON or _reads_badly(e) else level), level + 1


def _reads_badly(e: ast.Binary) -> bool:
    """Whether few would know how `a op b op c` groups: `B * K div K` is written `(B * K) div K`."""
    if not isinstance(e.left, ast.Binary) or BINARY[e.left.operator] != BINARY[e.operator]:
        return False
    return e.left.operator != e.operator and not {e.left.operator, e.operator}.isdisjoint(_RARE_OPERATORS)


def unary_level(operator: str) -> int:
    """The level that the operand needs: above what the grammar asks, in `not (a == b)` and `-(x ^ y)`."""
    return {"-": APPLICATION, "not": SUM}.get(operator, ARGUMENT)


def _plain(e: ast.Expr, equals: bool) -> str:
    match e:
        case ast.Name(text=text) | ast.Number(text=text):
            return text
        case ast.String(value=value):
            return written_string(value)
        case ast.Boolean(value=truth):
            return "true" if truth else "false"
        case ast.Hole(name=name):
            return f"?{name}" if name else "..."
        case ast.Spread(name=name):
            return f"...{name}"
        case ast.ListLiteral(items=items):
            return f"[{comma(items)}]"
        case ast.TupleLiteral(items=items):
            return f"({comma(items, True)}{',' if len(items) == 1 else ''})"
        case ast.RecordLiteral(fields=fields):
            return f"{{ {_fields(fields)} }}" if fields else "{}"
        case ast.RecordUpdate(base=base, fields=fields):
            return f"{{ {flat(base, ASSIGNMENT)} with {_fields(fields)} }}"
        case ast.Slice():
            return _slice(e)
        case ast.NamedItem(name=name, value=value):
            return f"{name}={flat(value)}"
        case ast.AxisPattern(inputs=inputs, output=output):
            return " ".join(f"{', '.join(map(_axes, inputs))} -> {_axes(output)}".split())
        case ast.Bracket(target=target, items=items):
            return f"{flat(target, POSTFIX)}[{comma(items)}]"
        case ast.FieldAccess(target=target, name=name):
            return f"{before_point(target)}.{name}"
        case ast.Projection(target=target, index=index):
            return f"{before_point(target)}.{index}"
        case ast.Apply(function=function, arguments=arguments):
            if is_tight_call(e):
                return flat(function) + flat(arguments[0])
            return " ".join([flat(function, ARGUMENT), *(flat(a, ARGUMENT) for a in arguments)])
        case ast.Unary(operator=operator, operand=operand):
            return _unary(operator, operand, equals)
        case ast.Binary():
            return _chain(e, equals)
        case ast.Arrow():
            return _arrow(e)
        case _:
            return _form(e, equals)


def _chain(e: ast.Binary, equals: bool) -> str:
    """A binary expression; a chain to the left is walked in a loop, since it may be long."""
    parts: list[str] = []
    while True:
        wanted, wanted_right = operand_levels(e)
        parts.append(f" {e.operator} {flat(e.right, wanted_right, equals)}")
        if not isinstance(e.left, ast.Binary) or needs_parentheses(e.left, wanted, equals):
            return flat(e.left, wanted, equals) + "".join(reversed(parts))
        e = e.left


def _unary(operator: str, operand: ast.Expr, equals: bool) -> str:
    if operator == "!":
        record = isinstance(operand, ast.RecordLiteral | ast.RecordUpdate)
        return f"!({flat(operand)})" if record else "!" + flat(operand, ARGUMENT)
    return f"{'-' if operator == '-' else 'not '}{flat(operand, unary_level(operator), equals)}"


def _arrow(e: ast.Arrow) -> str:
    ambiguous = e.effects is not None and (isinstance(e.result, ast.Arrow) or is_extending(e.result))
    result = f"({flat(e.result)})" if ambiguous else flat(e.result)
    return f"{flat(e.parameter, ASSIGNMENT)} -> {result}{effects(e.effects)}"


def _slice(e: ast.Slice) -> str:
    start, stop, step = ("" if part is None else flat(part) for part in (e.start, e.stop, e.step))
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def _axes(axes: Iterable[ast.PatternAxis]) -> str:
    return " ".join(f"({' '.join(map(str, a.names))})" if a.group else str(a.names[0]) for a in axes)


def before_point(target: ast.Expr) -> str:
    return f"({flat(target)})" if isinstance(target, _NOT_BEFORE_A_POINT) else flat(target, POSTFIX)


def comma(items: Iterable[ast.Expr], equals: bool = False) -> str:
    return ", ".join(flat(item, equals=equals) for item in items)


def _fields(fields: Iterable[ast.FieldBinding]) -> str:
    return ", ".join(f"{f.name} = {flat(f.value)}" for f in fields)


def effects(names: tuple[str, ...] | None) -> str:
    return "" if names is None else f" ! {{{', '.join(names)}}}"


# ---------------------------------------------------------------- forms with keywords


def _form(e: ast.Expr, equals: bool) -> str:
    match e:
        case ast.Let() | ast.LetDim() | ast.LetAssert() | ast.LetAssertEq() | ast.LetFunction():
            return _lets(e, equals)
        case ast.Lambda():
            return f"{lambda_head(e)} {flat(e.body, equals=equals)}"
        case ast.If(condition=condition, then=then, otherwise=otherwise):
            branches = f"then {flat(then, equals=equals)} else {flat(otherwise, equals=equals)}"
            return f"if {flat(condition, ASSIGNMENT, True)} {branches}"
        case ast.For():
            return _for(e, equals)
        case ast.While():
            return f"{while_head(e)} {states(e.states)} do {flat(e.body, equals=equals)}"
        case ast.Exists(names=names, requires=requires, body=body):
            facts = "".join(f" {requirement(p)}" for p in requires)
            return f"exists {binders(names)}{facts}. {flat(body, equals=equals)}"
        case _:
            raise TypeError(f"{type(e).__name__} is not an expression")


def _lets(e: ast.Expr, equals: bool) -> str:
    parts = []
    while isinstance(e, Lets):
        parts.append(f"{let_head(e)}{let_value(e)} in ")
        e = e.body
    return "".join(parts) + flat(e, equals=equals)


def let_head(e: Lets) -> str:
    """A let up to and with its `=` and a space, or `let assert `."""
    match e:
        case ast.LetDim(name=name):
            return f"let dim {name} = "
        case ast.LetAssert():
            return "let assert "
        case ast.LetAssertEq():
            return "let assert_eq "
        case ast.LetFunction(function=function):
            return f"let {signature(function)} = "
        case ast.Let(opened=opened, pattern=bound, type=annotation):
            unnamed = bool(opened) and bound.name == "_" and annotation is None
            names = [*([binders(opened)] if opened else []), *([] if unnamed else [pattern(bound)])]
            return f"let {' '.join(names)}{'' if annotation is None else f' : {flat(annotation)}'} = "


def let_value(e: Lets) -> str:
    match e:
        case ast.LetAssert(proposition=proposition):
            return f"({flat(proposition, equals=True)})"
        case ast.LetAssertEq(left=left, right=right):
            return f"{flat(left, ARGUMENT)} {flat(right, ARGUMENT)}"
        case ast.LetFunction(function=function):
            return flat(function.body)
        case ast.Let(value=value) | ast.LetDim(value=value):
            return flat(value)


def lambda_head(e: ast.Lambda) -> str:
    return f"fun {' '.join(map(parameter, e.parameters))} ->"


def _for(e: ast.For, equals: bool) -> str:
    text = for_head(e)
    if e.body is not None:
        text += f" {states(e.states)} do {loop_body(e, equals)}"
    return text if e.yielded is None else f"{text} yield {flat(e.yielded, equals=equals)}"


def loop_body(e: ast.For, equals: bool) -> str:
    assert e.body is not None
    return f"({flat(e.body)})" if body_needs_parentheses(e) else flat(e.body, equals=equals)


def body_needs_parentheses(e: ast.For) -> bool:
    """Whether the `yield` of a loop would be read as that of a loop at the end of its body."""
    inner: ast.Expr | None = e.body if e.yielded is not None else None
    while inner is not None:
        match inner:
            case ast.For(yielded=None):
                return True
            case ast.For(yielded=following) | ast.If(otherwise=following):
                inner = following
            case ast.Let() | ast.LetDim() | ast.LetAssert() | ast.LetAssertEq() | ast.LetFunction():
                inner = inner.body
            case ast.Lambda() | ast.While() | ast.Exists():
                inner = inner.body
            case ast.Arrow(result=following):
                inner = following
            case _:
                inner = None
    return False


def for_head(e: ast.For) -> str:
    return f"for {e.index} < {flat(e.bound, SUM)}"


def while_head(e: ast.While) -> str:
    bound = "" if e.bound is None else f" [{e.index} < {flat(e.bound, SUM)}]"
    return f"while{bound} {_condition(e.condition)}"


def _condition(e: ast.Expr) -> str:
    """A condition after `while`, where a list would be read as the bound."""
    text = flat(e, ASSIGNMENT, True)
    return f"({text})" if text.startswith("[") else text


def states(all_states: tuple[ast.State, ...]) -> str:
    """`with s : T = e`, or `with (s : T, t) = (e, f)`."""
    if len(all_states) == 1:
        (state,) = all_states
        return f"with {state_head(state)} = {flat(state.initial)}"
    heads = ", ".join(map(state_head, all_states))
    return f"with ({heads}) = ({comma((s.initial for s in all_states), True)})"


def state_head(state: ast.State) -> str:
    return state.name if state.type is None else f"{state.name} : {flat(state.type)}"


# ---------------------------------------------------------------- binders, parameters, signatures


def binders(names: Iterable[ast.Binder]) -> str:
    return f"[{', '.join(map(_binder, names))}]"


def _binder(b: ast.Binder) -> str:
    return f"{'...' if b.segment else ''}{b.name}{f' : {b.kind}' if b.kind else ''}"


def parameter(p: ast.Parameter) -> str:
    return p.name if p.type is None else f"({p.name} : {flat(p.type)})"


def pattern(p: ast.Pattern) -> str:
    return p.name if p.name is not None else f"({', '.join(map(pattern, p.items))})"


def requirement(proposition: ast.Expr) -> str:
    return f"requires ({flat(proposition, equals=True)})"


def signature_parts(f: ast.FunctionDeclaration) -> list[str]:
    """The parts of a signature after the name and the binders, each of which may have a line of its own."""
    parts = [*map(requirement, f.requires), *map(parameter, f.parameters)]
    if f.result is not None:
        ambiguous = f.effects is not None and (isinstance(f.result, ast.Arrow) or is_extending(f.result))
        parts.append(f": ({flat(f.result)})" if ambiguous else f": {flat(f.result)}")
    if f.effects is not None:
        parts.append(effects(f.effects).strip())
    return parts


def signature_name(f: ast.FunctionDeclaration) -> str:
    return f"{f.name} {binders(f.binders)}" if f.binders else f.name


def signature(f: ast.FunctionDeclaration) -> str:
    return " ".join([signature_name(f), *signature_parts(f)])
