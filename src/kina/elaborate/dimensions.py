"""Surface expressions read as dimensions, shapes and propositions.

Reading a division brings conditions: the divisor is positive, and for the exact `/` the remainder
is 0. Whoever asks decides whether the conditions are obliged (in code) or assumed (in `requires`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kina.diagnostics import form_errors as errors
from kina.diagnostics.diagnostic import Edit
from kina.dims.dim import (
    Atom,
    Dim,
    UnwieldySize,
    Variable,
    ceil_div,
    constant,
    floor_div,
    maximum,
    minimum,
    modulo,
    parts,
)
from kina.dims.proposition import And, Comparison, Or, Proposition, Relation, divides
from kina.elaborate.context import POISON, Context, Poison, Reported
from kina.elaborate.obligations import oblige
from kina.source import Span
from kina.syntax import ast
from kina.types import Shape


@dataclass(frozen=True, slots=True)
class Condition:
    """What a dimension expression needs in order to mean something."""

    proposition: Proposition
    why: str
    span: Span


@dataclass(slots=True)
class DimensionReader:
    """Reads one expression; gathers the conditions of its divisions in order."""

    context: Context
    conditions: list[Condition]

    def dim(self, e: ast.Expr) -> Dim:
        match e:
            case ast.Name(text=name):
                return self._name(e, name)
            case ast.Number(value=int() as value):
                return constant(value)
            case ast.Number():
                raise self.context.report(errors.not_a_dimension(e.span, "a dimension is a whole number"))
            case ast.Unary(operator="-", operand=operand):
                return -self.dim(operand)
            case ast.Binary(operator="+" | "-" | "*" | "/" | "div" | "mod" as operator, left=left, right=right):
                return self._binary(e, operator, self.dim(left), self.dim(right))
            case ast.Apply(function=ast.Name(text="cdiv" | "min" | "max" as name), arguments=arguments):
                return self._call(e, name, arguments)
            case ast.Hole(name=""):
                raise self.context.unreadable()
            case ast.Hole():
                raise self.context.report(errors.not_a_dimension(e.span, "a dimension cannot be a hole"))
            case _:
                raise self.context.report(
                    errors.not_a_dimension(
                        e.span, "dimensions are built from names, whole numbers, + - * / div mod, cdiv, min and max"
                    )
                )

    def _name(self, e: ast.Name, name: str) -> Dim:
        found = self.context.dims.get(name)
        if isinstance(found, Poison):
            raise Reported
        if found is not None:
            return found
        if name in self.context.values:
            raise self.context.report(errors.value_where_dimension(e.span, name))
        known = [n for n, d in self.context.dims.items() if not isinstance(d, Poison)]
        self.context.dims[name] = POISON
        raise self.context.report(errors.unknown_dimension(e.span, name, known, self._declare(name)))

    def _declare(self, name: str) -> Edit:
        """What makes the name a dimension of the function that is being checked."""
        declaration = self.context.declaration
        binders = declaration.binders
        place = binders[-1].span.end if binders else declaration.name_span.end
        at = Span(declaration.name_span.source, place, place)
        return Edit(at, f", {name}" if binders else f" [{name}]")

    def _binary(self, e: ast.Binary, operator: str, a: Dim, b: Dim) -> Dim:
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
        remainder = modulo(a, b)
        if operator == "/" and remainder.value != 0:  # says more than that the divisor is positive, so it comes first
            exact = Comparison("=", remainder, constant(0))
            self.conditions.append(Condition(exact, f"`/` is exact, so {a} has to be a multiple of {b}", e.span))
        self._positive(b, e.right.span, operator)
        return remainder if operator == "mod" else floor_div(a, b)

    def _call(self, e: ast.Apply, name: str, arguments: tuple[ast.Expr, ...]) -> Dim:
        if len(arguments) == 1 and isinstance(arguments[0], ast.TupleLiteral):
            arguments = arguments[0].items
        if len(arguments) != 2:
            raise self.context.report(errors.not_a_dimension(e.span, f"{name} takes two dimensions: {name}(a, b)"))
        a, b = map(self.dim, arguments)
        if name == "cdiv":
            self._positive(b, arguments[1].span, "cdiv")
            return ceil_div(a, b)
        return minimum(a, b) if name == "min" else maximum(a, b)

    def _positive(self, divisor: Dim, span: Span, operator: str) -> None:
        if divisor.value is None or divisor.value <= 0:
            claim = Comparison(">", divisor, constant(0))
            self.conditions.append(Condition(claim, f"the divisor of `{operator}` has to be positive", span))

    # ------------------------------------------------------------ propositions

    def proposition(self, e: ast.Expr, positive: bool = True) -> Proposition:
        """The proposition, or (`positive` false) its negation. Conditions of divisions stay with the
        comparison that has them, so that `N = 0 || M mod N = 0` means what it says."""
        match e:
            case ast.Binary(operator="&&" | "||" as operator, left=left, right=right):
                items = tuple(self.proposition(side, positive) for side in (left, right))
                return And(items) if (operator == "&&") == positive else Or(items)
            case ast.Unary(operator="not", operand=operand):
                return self.proposition(operand, not positive)
            case ast.Binary(operator="=" | "==" | "!=" | "<" | "<=" | ">" | ">=" as operator, left=left, right=right):
                inner = DimensionReader(self.context, [])
                a, b = inner.dim(left), inner.dim(right)
                return inner.with_conditions(_comparison(operator, a, b, positive))
            case ast.Binary(operator="divides", left=left, right=right):
                inner = DimensionReader(self.context, [])
                a, b = inner.dim(left), inner.dim(right)
                if positive:
                    return inner.with_conditions(divides(a, b))
                inner._positive(a, left.span, "divides")
                return inner.with_conditions(Comparison("!=", modulo(b, a), constant(0)))
            case ast.Boolean(value=value):
                return And(()) if value == positive else Or(())
            case _:
                raise self.context.report(errors.not_a_proposition(e.span))

    def with_conditions(self, p: Proposition) -> Proposition:
        return And((*(c.proposition for c in self.conditions), p)) if self.conditions else p


def _comparison(operator: str, a: Dim, b: Dim, positive: bool) -> Proposition:
    relation: Relation = "=" if operator == "==" else operator  # type: ignore[assignment]
    if not positive:
        opposite: dict[Relation, Relation] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
        relation = opposite[relation]
    return Comparison(relation, a, b)


# ---------------------------------------------------------------- what elaboration asks for


def read_dim(context: Context, e: ast.Expr) -> Dim:
    """A dimension in code: its divisions are obliged to be defined."""
    reader = DimensionReader(context, [])
    try:
        result = reader.dim(e)
    except UnwieldySize:
        raise context.report(errors.unwieldy_size(e.span)) from None
    for condition in reader.conditions:
        oblige(context, condition.proposition, condition.span, condition.why)
    return result


def read_size(context: Context, e: ast.Expr) -> Dim:
    """A dimension used as a size: obliged not to be negative."""
    size = read_dim(context, e)
    if size.value is not None and size.value < 0:
        raise context.report(errors.negative_size(e.span, size.value))
    if not is_natural(size):
        claim = Comparison(">=", size, constant(0))
        oblige(context, claim, e.span, f"{size} is used as a size, and a size cannot be negative")
    return size


def read_shape(context: Context, items: Iterable[ast.Expr]) -> Shape:
    sizes: list[Dim] = []
    for item in items:
        if isinstance(item, ast.Spread):
            sizes += _segment(context, item)
        else:
            sizes.append(read_size(context, item))
    return tuple(sizes)


def _segment(context: Context, item: ast.Spread) -> Shape:
    """The axes that `...S` stands for."""
    if item.name not in context.segments:
        raise context.report(errors.unknown_segment(item.span, item.name, list(context.segments)))
    return context.segments[item.name]


def read_assumption(context: Context, e: ast.Expr) -> tuple[Proposition, ...]:
    """A proposition to be assumed, with its own definedness, as facts in order."""
    try:
        return tuple(conjuncts(DimensionReader(context, []).proposition(e)))
    except UnwieldySize:
        raise context.report(errors.unwieldy_size(e.span)) from None


def read_claim(context: Context, e: ast.Expr) -> tuple[Proposition, ...]:
    """A proposition to be proved, as its conjuncts in order: definedness first."""
    return read_assumption(context, e)


def conjuncts(p: Proposition) -> Iterable[Proposition]:
    if isinstance(p, And):
        for item in p.items:
            yield from conjuncts(item)
    else:
        yield p


def is_natural(d: Dim) -> bool:
    """Whether a dimension is plainly never negative: sums and products of what is not negative."""
    return all(c > 0 and all(map(_natural_atom, monomial)) for monomial, c in d.terms)


def _natural_atom(atom: Atom) -> bool:
    return isinstance(atom, Variable) or all(map(is_natural, parts(atom)))
