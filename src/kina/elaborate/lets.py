"""Chains of `let`: names, dimensions, assertions, local functions, opened existentials."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from kina.core.ir import Stack, Value, parts, tree_type
from kina.diagnostics import effect_errors, form_errors
from kina.dims.proposition import equal
from kina.elaborate.closures import expect_function, try_function
from kina.elaborate.context import POISON, Cell, Context, Meaning, Package, Reported
from kina.elaborate.dimensions import read_claim, read_dim
from kina.elaborate.dispatch import as_value, check_meaning, elaborates, infer, meaning_type
from kina.elaborate.effects import held, written_effects
from kina.elaborate.inlining import local_function
from kina.elaborate.matching import conform_types
from kina.elaborate.obligations import assert_
from kina.elaborate.records import item_of
from kina.elaborate.refs import captured
from kina.elaborate.type_expressions import read_type
from kina.source import Span
from kina.syntax import ast
from kina.types import Arrow, Type

Found = TypeVar("Found")
Chain = ast.Let | ast.LetDim | ast.LetAssert | ast.LetAssertEq | ast.LetFunction


@elaborates(ast.Let, ast.LetDim, ast.LetAssert, ast.LetAssertEq, ast.LetFunction)
def _let_chain(context: Context, e: ast.Expr, expected: Type | None, name: str | None) -> Meaning:
    """A chain of lets, one after the other, then the value of the last body."""
    return through_lets(context, e, lambda last: infer(context, last, expected, name))


def through_lets(context: Context, e: ast.Expr, then: Callable[[ast.Expr], Found]) -> Found:
    """What `then` makes of the last body of a chain of lets, where the names of all of them are bound."""
    before = tuple(context.cells)
    with context.scope():
        poisoned = False
        while isinstance(e, Chain):
            try:
                _bind(context, e)
            except Reported:
                poisoned = True
                _poison(context, e)
            e = e.body
        result = then(e)
        if poisoned:
            raise Reported
        known = context.facts
    _end_refs(context, before, result, e.span)
    context.facts = known  # of sizes: they hold as long as what comes after is reached
    return result


def _refuse_missing_in(context: Context, e: Chain) -> None:
    """Under --strict the `in` of a let has to be written."""
    match e:
        case ast.LetAssert(proposition=last) | ast.LetAssertEq(right=last) | ast.LetFunction(function=last):
            end = last.span.end
        case _:
            end = e.value.span.end
    source = e.span.source
    between = _COMMENT.sub(" ", source.text[end : e.body.span.start])
    if not re.search(r"\bin\b", between):
        raise context.report(form_errors.sugar(Span(source, e.span.start, end), "leaving out `in`", "`in` after it"))


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def _end_refs(context: Context, before: tuple[Cell, ...], result: object, span: Span) -> None:
    """The refs that a chain of lets made are no more: nothing that it gives may see them."""
    made = [cell for cell in context.cells if cell not in before]
    if made:
        context.cells = {cell: context.cells[cell] for cell in before}
        escaped = next((cell for cell in captured(result) if cell in made), None)
        if escaped is not None:
            raise context.report(effect_errors.ref_escapes(span, escaped.span, captured=True))


def _bind(context: Context, e: Chain) -> None:
    if context.home.strict:
        _refuse_missing_in(context, e)
    match e:
        case ast.Let():
            _bind_let(context, e)
        case ast.LetDim():
            d = read_dim(context, e.value)
            context.values.pop(e.name, None)
            context.indices.pop(e.name, None)
            context.dims[e.name] = d
        case ast.LetAssert():
            for claim in read_claim(context, e.proposition):
                assert_(context, claim, e.proposition.span)
        case ast.LetAssertEq():
            left, right = read_dim(context, e.left), read_dim(context, e.right)
            assert_(context, equal(left, right), e.left.span.to(e.right.span))
        case ast.LetFunction(function=function) if not function.parameters and not function.binders:
            _bind_with_effects(context, e)
        case ast.LetFunction():
            context.values[e.function.name] = local_function(context, e.function)


def _bind_with_effects(context: Context, e: ast.LetFunction) -> None:
    """`let x : T ! {rand} = e in`: a value, whose computation has no other effects than those."""
    declaration = e.function
    pattern = ast.Pattern(declaration.name, span=declaration.name_span)
    allowed = written_effects(context, declaration, top=False)
    with context.effects_apart() as performed:
        _bind_let(context, ast.Let((), pattern, declaration.result, declaration.body, e.body, span=e.span))
    held(context, declaration, allowed, performed)
    context.perform_again(performed)


def _bind_let(context: Context, e: ast.Let) -> None:
    name = e.pattern.name if e.pattern.name not in (None, "_") else None
    wanted = read_type(context, e.type) if e.type is not None and not e.opened else None
    what = f"`{name}`" if name else "this"
    outside, context.naming = context.naming, tuple(binder.name for binder in e.opened)
    context.stated = e.value if e.type is not None else None
    if wanted is None or e.type is None:
        found = infer(context, e.value, None, name)
    elif isinstance(wanted, Arrow):
        found = expect_function(context, e.value, wanted, None)
        got = try_function(context, found, wanted, e.value.span)
        result: Type = wanted
        while isinstance(result, Arrow):
            result = result.result
        conform_types(context, got, result, e.value.span, f"what {what} gives", e.type.span)
    else:
        found = check_meaning(context, e.value, wanted, what, e.type.span, name)
    context.naming = outside
    if e.opened:
        found = _open(context, e, found, what)
    _bind_pattern(context, e.pattern, found)


def _open(context: Context, e: ast.Let, found: Meaning, what: str) -> Meaning:
    """`let [n] y : T = e`: the sizes that `e` hides get names; the type may mention them."""
    if not isinstance(found, Package):
        raise context.report(form_errors.nothing_to_open(e.value.span, meaning_type(found)))
    if len(e.opened) != len(found.witnesses):
        raise context.report(form_errors.wrong_opening(e.opened[0].span, len(e.opened), found.type))
    for binder, witness in zip(e.opened, found.witnesses, strict=True):
        context.values.pop(binder.name, None)
        context.indices.pop(binder.name, None)
        context.dims[binder.name] = witness
    if e.type is not None:
        wanted = read_type(context, e.type)
        conform_types(context, tree_type(found.tree), wanted, e.value.span, what, e.type.span)
    return found.tree


def _bind_pattern(context: Context, pattern: ast.Pattern, found: Meaning) -> None:
    if pattern.name is not None:
        if pattern.name != "_":
            context.dims.pop(pattern.name, None)
            context.indices.pop(pattern.name, None)
            context.values[pattern.name] = found
        return
    tree = as_value(context, found, pattern.span)
    if not isinstance(tree, tuple | Stack) or isinstance(tree, Value):
        raise context.report(form_errors.wrong_tuple(pattern.span, "a tuple is taken apart here", tree_type(tree)))
    count = len(parts(tree))
    if count != len(pattern.items):
        message = f"{len(pattern.items)} names for a tuple of {count}"
        raise context.report(form_errors.wrong_tuple(pattern.span, message, tree_type(tree)))
    for n, item in enumerate(pattern.items):
        _bind_pattern(context, item, item_of(tree, n))


def _poison(context: Context, e: Chain) -> None:
    """After an error: what the let would have bound means nothing, and says nothing more."""
    match e:
        case ast.Let():
            for binder in e.opened:
                context.dims[binder.name] = POISON
            for name, _ in _pattern_names(e.pattern):
                context.values[name] = POISON
        case ast.LetDim():
            context.dims[e.name] = POISON
        case ast.LetFunction():
            context.values[e.function.name] = POISON


def _pattern_names(pattern: ast.Pattern) -> list[tuple[str, Span]]:
    if pattern.name is not None:
        return [(pattern.name, pattern.span)]
    return [n for item in pattern.items for n in _pattern_names(item)]
