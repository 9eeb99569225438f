"""Surface expressions: names, literals, tuples, calls and operators."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from kina import std
from kina.core.ir import Stack, Struct, Tree, Value, parts, tree_type
from kina.diagnostics import Diagnostic, form_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.elaborate.calls import NamedFunction, call_declared
from kina.elaborate.closures import partial
from kina.elaborate.context import Context, Meaning, Package, Poison, Reported
from kina.elaborate.dispatch import (
    as_value,
    builtin_names,
    elaborates,
    find_builtin,
    infer,
    meaning_type,
    tensor,
    value,
)
from kina.elaborate.indexing import index
from kina.elaborate.lists import stacked_list
from kina.elaborate.literals import adapts, dtype_of, is_literal, is_number_name, literal
from kina.elaborate.operations import call_operation, operate, takes_fewer
from kina.elaborate.picking import FORMS
from kina.elaborate.records import field_of, item_of
from kina.elaborate.refs import assign, read
from kina.elaborate.spellings import kina_spelling
from kina.ops import Entry, all_operations, lookup
from kina.ops.creation import Position
from kina.ops.elementwise import OPERATORS
from kina.source import Span
from kina.syntax import ast
from kina.types import Arrow, DType, Tensor, Tuple, Type

# ---------------------------------------------------------------- names, literals, holes


@elaborates(ast.Name)
def _name(context: Context, e: ast.Name, expected: Type | None, name: str | None) -> Meaning:
    meaning = context.values.get(e.text)
    if isinstance(meaning, Poison):
        raise Reported
    if meaning is not None:
        return meaning
    if e.text in context.indices:
        return _loop_index(context, e, name)
    if is_number_name(context, e):
        return _literal(context, e, expected, name)
    return _call(context, e, e, (), expected, name)


def _loop_index(context: Context, e: ast.Name, name: str | None) -> Value:
    """The index of a loop as a value: it lies below the loop's bound."""
    if context.home.strict:
        instead = f"position {e.text} {context.indices[e.text]}"
        raise context.report(form_errors.sugar(e.span, "a loop's index as a value", instead))
    step, bound = context.dims[e.text], context.indices[e.text]
    if isinstance(step, Poison):
        raise Reported
    return context.apply(Position(step, bound), (), Tensor(DType.I64, (), bound), e.span, name)


def _unknown(context: Context, e: ast.Name) -> Diagnostic:
    """The error for a name that means no value. It is said once in a function, as what is missing is one thing."""
    if e.text in context.unknown or isinstance(context.dims.get(e.text), Poison):
        raise Reported
    if e.text in context.dims:
        return form_errors.dimension_where_value(e.span, e.text, (DType.F32, DType.F64, DType.I32))
    if e.text in _KNOWN_OPERATIONS:
        return form_errors.unsupported(e.span, f"the operation `{e.text}`")
    context.unknown.add(e.text)
    advice = kina_spelling(e.span) or _in_library(e)
    return form_errors.unknown_name(e.span, e.text, known_names(context), advice, _uses(context, e))


def _in_library(e: ast.Name) -> tuple[Help, ...]:
    """An import for what the standard library declares."""
    for module in std.names():
        source = std.find(module)
        if source is not None and re.search(rf"^let {re.escape(e.text)}(?![\w'])", source.text, re.M):
            line = f"import {module} ({e.text})"
            return (Help(f"{module} has it", (Edit(Span(e.span.source, 0, 0), line + "\n"),)),)
    return ()


def _uses(context: Context, e: ast.Name) -> tuple[Span, ...]:
    """All places of the function that is checked where a name stands that it does not know, this one first."""
    source, start, end = context.declaration.span
    found = re.finditer(rf"(?<![\w'.]){re.escape(e.text)}(?![\w'])", source.text[start:end])
    places = [Span(source, start + m.start(), start + m.end()) for m in found]
    return (e.span, *(place for place in places if place != e.span)) if e.span in places else (e.span,)


def known_names(context: Context) -> tuple[str, ...]:
    home = context.home
    own = (*home.declarations, *home.imported, *home.modules)
    values = (n for n in context.values if not n.startswith("%"))
    return (*values, *own, *(entry.name for entry in all_operations()), *builtin_names())


@elaborates(ast.Number, ast.Boolean, ast.ListLiteral)
def _literal(context: Context, e: ast.Expr, expected: Type | None, name: str | None) -> Tree:
    wanted = expected if isinstance(expected, Tensor) else None
    if isinstance(e, ast.ListLiteral) and not is_literal(context, e):
        return stacked_list(context, e, wanted, name)
    return literal(context, e, wanted, name)


@elaborates(ast.Hole)
def _hole(context: Context, e: ast.Hole, expected: Type | None, name: str | None) -> NoReturn:
    if e.name == "":
        raise context.unreadable()
    named = [(n, v) for n, v in context.values.items() if not isinstance(v, Poison) and not n.startswith("%")]
    scope = [(n, meaning_type(v)) for n, v in named]
    raise context.report(form_errors.hole(e.span, e.name, expected, scope))


# ---------------------------------------------------------------- tuples, fields


@elaborates(ast.TupleLiteral)
def _tuple(context: Context, e: ast.TupleLiteral, expected: Type | None, name: str | None) -> Tree:
    wanted: tuple[Type | None, ...] = (None,) * len(e.items)
    if isinstance(expected, Tuple) and len(expected.items) == len(e.items):
        wanted = expected.items
    return tuple(value(context, item, w) for item, w in zip(e.items, wanted, strict=True))


@elaborates(ast.Projection)
def _projection(context: Context, e: ast.Projection, expected: Type | None, name: str | None) -> Tree:
    target = value(context, e.target)
    if isinstance(target, Value | Struct):
        raise context.report(form_errors.wrong_tuple(e.span, f"`.{e.index}` takes a tuple apart", tree_type(target)))
    if e.index >= len(parts(target)):
        message = f"the tuple has {len(parts(target))} items, numbered from 0"
        raise context.report(form_errors.wrong_tuple(e.span, message, tree_type(target)))
    return item_of(target, e.index)


@elaborates(ast.FieldAccess)
def _field(context: Context, e: ast.FieldAccess, expected: Type | None, name: str | None) -> Meaning:
    if isinstance(e.target, ast.Name) and e.target.text not in context.values:
        if context.home.find(e) is not None:
            return _call(context, e, e, (), expected, name)
        if e.target.text in context.home.modules:
            known = context.home.modules[e.target.text].declarations
            raise context.report(form_errors.no_such_export(e.span, e.target.text, e.name, known))
    return field_of(context, e, value(context, e.target))


# ---------------------------------------------------------------- calls


@elaborates(ast.Apply)
def _apply(context: Context, e: ast.Apply, expected: Type | None, name: str | None) -> Meaning:
    return _call(context, e, e.function, e.arguments, expected, name)


@elaborates(ast.Bracket)
def _bracket(context: Context, e: ast.Bracket, expected: Type | None, name: str | None) -> Meaning:
    """`constant[N]`; a bracket after a value is an index."""
    return _call(context, e, e, (), expected, name)


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation as a function."""

    entry: Entry
    target: ast.Name

    def misuse(self, span: Span) -> Diagnostic:
        return form_errors.function_where_value(span, self.entry.name, self.entry.operand_names)

    def describe(self) -> str:
        return f"the operation `{self.entry.name}`"

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        return call_operation(context, e, self.target, self.entry, brackets, arguments, infer, expected, name)


def _call(
    context: Context, e: ast.Expr, function: ast.Expr, arguments: tuple[ast.Expr, ...], expected: Type | None,
    name: str | None,
) -> Meaning:  # fmt: skip
    brackets = function.items if isinstance(function, ast.Bracket) else ()
    target = function.target if isinstance(function, ast.Bracket) else function
    if isinstance(target, ast.Apply) and function is target:
        return _call(context, e, target.function, (*target.arguments, *arguments), expected, name)
    known = context.values.get(target.text) if isinstance(target, ast.Name) else None
    declared = context.home.find(target) if known is None else None
    if declared is not None:
        if not arguments and declared.declaration.parameters and function is e:
            missing = tuple(p.name for p in declared.declaration.parameters)
            return partial(context, NamedFunction(declared), declared.name, brackets, (), missing)
        return call_declared(context, e, declared, brackets, arguments, expected, name)
    if known is None and isinstance(target, ast.Name):
        return _call_name(context, e, target, brackets, arguments, expected, name)
    found = infer(context, target)
    if isinstance(found, Value | tuple | Struct | Stack | Package):
        if isinstance(function, ast.Bracket) and not arguments:
            return index(context, function, as_value(context, found, target.span), name)
        raise context.report(form_errors.not_a_function(target.span, meaning_type(found)))
    return found.apply(context, e, brackets, arguments, expected, name)


def _call_name(
    context: Context, e: ast.Expr, target: ast.Name, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """A call of a name that is neither in scope nor declared: an operation, or one with a form of its own."""
    if target.text in context.dims and not isinstance(context.dims[target.text], Poison):
        raise context.report(_unknown(context, target))
    form = find_builtin(target.text, bracketed=bool(brackets))
    if form is not None:
        return form(context, e, brackets, arguments, expected, name)
    entry = lookup(target.text)
    if entry is None:
        raise context.report(_unknown(context, target))
    function = _Operation(entry, target)
    if takes_fewer(entry, len(arguments)) and (not arguments or isinstance(expected, Arrow)):
        missing = entry.operand_names[len(arguments) :]
        return partial(context, function, entry.name, brackets, arguments, missing)
    return function.apply(context, e, brackets, arguments, expected, name)


_KNOWN_OPERATIONS = frozenset(
    """
    jacobian hessian checkpoint custom_vjp print emit
    """.split()  # noqa: SIM905
)
"""Operations of the language that this version lacks: named in the error, listed in docs/status.md."""


# ---------------------------------------------------------------- operators


@elaborates(ast.Binary)
def _binary(context: Context, e: ast.Binary, expected: Type | None, name: str | None) -> Meaning:
    operator = e.operator
    if operator in ("|>", "@") and context.home.strict:
        instead = "matmul x y" if operator == "@" else "f x"
        raise context.report(form_errors.sugar(e.operator_span, f"`{operator}`", instead))
    if operator == "|>":
        return _pipe(context, e, expected, name)
    if operator == "@":
        operands, spans = _operands(context, (e.left, e.right), expected)
        return operate(context, "matmul", {}, "@", e.span, operands, spans, name)
    if operator in ("/", "div", "mod"):
        return _division(context, e, expected, name)
    if operator == ":=":
        return assign(context, e)
    if operator not in OPERATORS:
        raise context.report(form_errors.unsupported(e.operator_span, f"`{operator}` on tensors"))
    gives_bool = operator in ("==", "=", "!=", "<", "<=", ">", ">=")
    arithmetic = operator in ("+", "-", "*", "^")
    operands, spans = _operands(context, (e.left, e.right), None if gives_bool else expected, arithmetic=arithmetic)
    return operate(context, OPERATORS[operator], {}, operator, e.span, operands, spans, name)


def _division(context: Context, e: ast.Binary, expected: Type | None, name: str | None) -> Value:
    """`/` is of floats, or of integers and then rounded down, as `div` always is; `mod` is what is left."""
    operands, spans = _operands(context, (e.left, e.right), expected, arithmetic=True)
    whole = e.operator == "div" or operands[0].type.dtype.is_integer
    operation = "remainder" if e.operator == "mod" else "floor_div" if whole else "div"
    return operate(context, operation, {}, e.operator, e.span, operands, spans, name)


def _operands(
    context: Context, es: tuple[ast.Expr, ...], expected: Type | None, *, arithmetic: bool = False
) -> tuple[tuple[Value, ...], tuple[Span, ...]]:
    """Operands of one dtype: a literal takes that of the others."""
    first, *others = sorted(range(len(es)), key=lambda n: adapts(context, es[n]))
    values = {first: tensor(context, es[first], dtype_of(expected))}
    for n in others:
        known: Type | None = values[first].type
        if arithmetic and values[first].type.dtype is DType.BOOL:
            known = None  # a number stays one, so that the error is about the Bool
        values[n] = tensor(context, es[n], known if isinstance(es[n], ast.Hole) else dtype_of(known))
    return tuple(values[n] for n in range(len(es))), tuple(e.span for e in es)


def _pipe(context: Context, e: ast.Binary, expected: Type | None, name: str | None) -> Meaning:
    """`x |> f a` is `f a x`; of an operation, x becomes the last operand, before shapes and the like."""
    match e.right:
        case ast.Apply(function=function, arguments=arguments):
            return _call(context, e, function, _with_piped(context, function, arguments, e.left), expected, name)
        case _:
            return _call(context, e, e.right, (e.left,), expected, name)


def _with_piped(
    context: Context, function: ast.Expr, arguments: tuple[ast.Expr, ...], piped: ast.Expr
) -> tuple[ast.Expr, ...]:
    target = function.target if isinstance(function, ast.Bracket) else function
    own = context.home.find(target) is not None or (isinstance(target, ast.Name) and target.text in context.values)
    entry = None
    if isinstance(target, ast.Name) and not own:
        entry = FORMS.get(target.text) or lookup(target.text)
    trailing = sum(not p.bracket for p in entry.parameters) if entry else 0
    cut = len(arguments) - trailing
    return (*arguments[:cut], piped, *arguments[cut:])


@elaborates(ast.Unary)
def _unary(context: Context, e: ast.Unary, expected: Type | None, name: str | None) -> Meaning:
    if is_literal(context, e):
        return _literal(context, e, expected, name)
    if e.operator == "!":
        return read(context, e)
    operation = {"-": "neg", "not": "logical_not"}[e.operator]
    x = tensor(context, e.operand, dtype_of(expected))
    return operate(context, operation, {}, e.operator, e.span, (x,), (e.operand.span,), name)
