"""Refs: names whose value changes. Core has none: `!r` is the value that was assigned last, an `if` that assigns gives
one value more, a loop that assigns has one more state.

    let r = ref x in          the cell of r holds x
    let _ = r := !r + 1.0 in  it holds x + 1.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from kina.core.ir import Tree, Value, leaves, tree_type
from kina.diagnostics import Diagnostic, effect_errors, form_errors
from kina.elaborate.closures import Partial
from kina.elaborate.context import Cell, Context, Meaning
from kina.elaborate.dispatch import builtin, check, exactly, infer, meaning_type, value
from kina.elaborate.inlining import Closure
from kina.elaborate.trees import new_tree
from kina.source import Span
from kina.syntax import ast
from kina.types import Type


@dataclass(frozen=True, slots=True)
class Ref:
    """What a name stands for that was bound to `ref x`. It is no value: it goes nowhere but down into functions."""

    cell: Cell

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        raise context.report(form_errors.not_a_function(e.span, self.describe()))

    def misuse(self, span: Span) -> Diagnostic:
        return effect_errors.ref_escapes(span, self.cell.span)

    def describe(self) -> str:
        return f"a ref of {self.cell.type}"


@builtin("ref")
def _ref(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`let r = ref x in`: a name whose value changes, from x on; its type stays that of x."""
    exactly(context, e, "ref", ("x",), brackets, arguments)
    tree = value(context, arguments[0])
    cell = Cell(name or "this ref", tree_type(tree), e.span)
    context.cells[cell] = tree
    context.own.add(cell)
    return Ref(cell)


def read(context: Context, e: ast.Unary) -> Tree:
    """`!r`."""
    cell = _cell(context, e.operand, "`!` reads a ref")
    context.touch(cell, e.span)
    return context.cells[cell]


def assign(context: Context, e: ast.Binary) -> Tree:
    """`r := x`, whose own value is `()`."""
    cell = _cell(context, e.left, "`:=` sets a ref")
    keeps = (f"`{cell.name}` keeps the type of its first value, {cell.type}",)
    found = check(context, e.right, cell.type, f"what `{cell.name}` is set to", cell.span, cell.name, keeps)
    context.touch(cell, e.span)
    context.cells[cell] = found
    return ()


def _cell(context: Context, e: ast.Expr, what: str) -> Cell:
    found = infer(context, e)
    if not isinstance(found, Ref):
        raise context.report(effect_errors.not_a_ref(e.span, what, meaning_type(found)))
    if found.cell not in context.cells:
        raise context.report(effect_errors.ref_escapes(e.span, found.cell.span))
    return found.cell


# ---------------------------------------------------------------- refs in loops


@dataclass(slots=True)
class Carried:
    """The refs that a loop may assign: each is one more state of it."""

    cells: tuple[Cell, ...]
    initial: tuple[Value, ...]
    states: tuple[Value, ...] = ()

    @classmethod
    def through(cls, context: Context, *bodies: ast.Expr | None) -> Carried:
        """Those that are assigned in what the steps compute, or in functions named there."""
        found = {cell for body in bodies if body is not None for cell in _assigned(context.values, body)}
        cells = tuple(cell for cell in context.cells if cell in found)
        return cls(cells, tuple(v for cell in cells for v in leaves(context.cells[cell])))

    def enter(self, context: Context) -> None:
        """At the start of a step's block: the cells hold what the step before left in them."""
        trees = [new_tree(context, cell.type, cell.name) for cell in self.cells]
        self.states = tuple(v for tree in trees for v in leaves(tree))
        context.cells.update(zip(self.cells, trees, strict=True))

    def following(self, context: Context) -> tuple[Value, ...]:
        """At its end: what it leaves in them."""
        return tuple(v for cell in self.cells for v in leaves(context.cells[cell]))

    def leave(self, context: Context, *others: Tree | None) -> tuple[Value, ...]:
        """After the loop, which gives others too: the cells hold what the last step left in them."""
        alone = len(self.initial) == 1 and not any(leaves_of(others))
        trees = [new_tree(context, cell.type, cell.name if alone else None) for cell in self.cells]
        context.cells.update(zip(self.cells, trees, strict=True))
        return tuple(v for tree in trees for v in leaves(tree))


def leaves_of(trees: Iterable[Tree | None]) -> tuple[Value, ...]:
    """The tensors of some trees, of those that there are."""
    return tuple(v for tree in trees if tree is not None for v in leaves(tree))


def _assigned(values: Mapping[str, object], e: ast.Node) -> Iterator[Cell]:
    """The cells that an expression may assign, where its names mean these values: those whose refs it names otherwise
    than to read them. More than it does assign does no harm."""
    match e:
        case ast.Unary(operator="!", operand=ast.Name()):
            return
        case ast.Name(text=name):
            yield from _reached(values.get(name))
        case _:
            for child in _children(e):
                yield from _assigned(values, child)


def _reached(found: object) -> Iterator[Cell]:
    match found:
        case Ref(cell):
            yield cell
        case Closure(declaration=declaration, scope=scope):
            yield from _assigned(scope.values, declaration.body)
        case Partial(function=function, given=given):
            yield from _reached(function)
            for meaning, _ in given:
                yield from _reached(meaning)


def captured(found: object) -> Iterator[Cell]:
    """The cells that a function sees, if what was found is a function."""
    match found:
        case Closure(declaration=declaration, scope=scope):
            for name in _names(declaration.body):
                inner = scope.values.get(name)
                if isinstance(inner, Ref):
                    yield inner.cell
                else:
                    yield from captured(inner)
        case Partial(function=function, given=given):
            yield from captured(function)
            for meaning, _ in given:
                yield from captured(meaning)


def _names(e: ast.Node) -> Iterator[str]:
    if isinstance(e, ast.Name):
        yield e.text
    for child in _children(e):
        yield from _names(child)


def _children(e: ast.Node) -> Iterator[ast.Node]:
    for field in fields(e):
        inner = getattr(e, field.name)
        for item in inner if isinstance(inner, tuple) else (inner,):
            if isinstance(item, ast.Node):
                yield item
