"""Surface expressions read as dimensions, shapes and propositions.

Reading a division brings conditions: the divisor is positive, and for the exact `/` the remainder
is 0. Whoever asks decides whether the conditions are obliged (in code) or assumed (in `requires`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kina.diagnostics import form_errors as errors
from kina.dims.dim import Atom, Dim, Variable, ceil_div, constant, floor_div, maximum, minimum, modulo, parts
from kina.dims.proposition import And, Comparison, Or, Proposition, Relation, divides
from kina.elaborate.context import Context, Poison, Reported
from kina.elaborate.obligations import oblige
from kina.source import Span
from kina.syntax import ast
from kina.types import Shape


@dataclass(frozen=True, slots=True)
class Condition:
    """What a dimension expression needs in order to mean something; `proposed` is the `requires` to offer, if any."""

    proposition: Proposition
    why: str
    span: Span
    proposed: Proposition | None = None


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
        raise self.context.report(errors.unknown_dimension(e.span, name, self.context.dims))

    def _binary(self, e: ast.Binary, operator: str, a: Dim, b: Dim) -> Dim:
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
        remainder = modulo(a, b)
        exact = Comparison("=", remainder, constant(0)) if operator == "/" and remainder.value != 0 else None
        self._positive(b, e.right.span, operator, exact)
        if operator == "mod":
            return remainder
        if exact is not None:
            self.conditions.append(Condition(exact, f"`/` is exact, so {a} has to be a multiple of {b}", e.span))
        return floor_div(a, b)

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

    def _positive(self, divisor: Dim, span: Span, operator: str, exact: Proposition | None = None) -> None:
        """The divisor is positive; of an exact division, the divisibility says so too."""
        if divisor.value is None or divisor.value <= 0:
            claim = Comparison(">", divisor, constant(0))
            self.conditions.append(Condition(claim, f"the divisor of `{operator}` has to be positive", span, exact))

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
    result = reader.dim(e)
    for condition in reader.conditions:
        oblige(context, condition.proposition, condition.span, condition.why, condition.proposed)
    return result


def read_size(context: Context, e: ast.Expr) -> Dim:
    """A dimension used as a size: obliged not to be negative."""
    size = read_dim(context, e)
    if not is_natural(size):
        claim = Comparison(">=", size, constant(0))
        oblige(context, claim, e.span, f"{size} is used as a size, and a size cannot be negative")
    return size


def read_shape(context: Context, items: Iterable[ast.Expr]) -> Shape:
    sizes = []
    for item in items:
        if isinstance(item, ast.Spread):
            raise context.report(errors.unsupported(item.span, "shape segments (`...S`)"))
        sizes.append(read_size(context, item))
    return tuple(sizes)


def read_assumption(context: Context, e: ast.Expr) -> tuple[Proposition, ...]:
    """A proposition to be assumed, with its own definedness, as facts in order."""
    return tuple(conjuncts(DimensionReader(context, []).proposition(e)))


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
