"""One equation over the integers: which variable or product it determines, and by what."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from kina.dims.dim import Dim, Monomial, Variable, constant, of_monomial, variable
from kina.dims.division import divide

_MARK = "⌊"


def quotient_variable(numerator: Dim, denominator: Dim) -> Dim:
    """The variable that stands for `numerator div denominator`: no user's name looks like it, the same for the same."""
    return variable(f"{_MARK}{numerator.factor_text()}/{denominator.factor_text()}⌋")


def remainder_variable(numerator: Dim, denominator: Dim) -> Dim:
    """The variable that stands for `numerator mod denominator`, named likewise."""
    return variable(f"{_MARK}{numerator.factor_text()} mod {denominator.factor_text()}⌋")


def difference_variable(larger: Dim, smaller: Dim) -> Dim:
    """The variable that stands for `larger - smaller`."""
    return variable(f"{_MARK}{larger.factor_text()} - {smaller.factor_text()}⌋")


def is_ours(name: str) -> bool:
    """Whether a variable was brought in by one of the above."""
    return name.startswith(_MARK)


def without_content(equation: Dim) -> Dim | None:
    """`equation = 0` with the common factor of the coefficients divided out; None when no integers solve it."""
    content = gcd(*(c for m, c in equation.terms if m))
    if content == 0 or equation.coefficient(()) % content:
        return None
    return divide(equation, constant(content))[0]


def solve_variable(equation: Dim, is_natural: Callable[[Dim], bool]) -> tuple[str, Dim] | None:
    """`x = value` for a variable with coefficient 1 or -1 that occurs nowhere else.

    Prefers a value that is clearly not negative, then a user's variable, then a long value.
    """
    best: tuple[tuple[bool, bool, int], str, Dim] | None = None
    for monomial, coefficient in equation.terms:
        match monomial:
            case (Variable(name) as atom,) if abs(coefficient) == 1:
                rest = equation - of_monomial((atom,)) * coefficient
                if name in rest.variables:
                    continue
                value = rest * -coefficient
                rank = (is_natural(value), not is_ours(name), len(value.terms))
                if best is None or rank > best[0]:
                    best = (rank, name, value)
    return None if best is None else (best[1], best[2])


def solve_pair(equation: Dim) -> tuple[Dim, str, Dim, str, Dim] | None:
    """All solutions of `a*x + b*y + c = 0` for coprime `a`, `b`: a parameter, then `x` and `y` in terms of it.

    The parameter is `x div b`.
    """
    match [(m, c) for m, c in equation.terms if m]:
        case [((Variable(x),), a), ((Variable(y),), b)] if gcd(a, b) == 1:
            number = equation.coefficient(())
            step, sign = abs(b), 1 if b > 0 else -1
            x0 = -number * pow(a, -1, step) % step
            y0 = (-number - a * x0) // b
            parameter = quotient_variable(variable(x), constant(step))
            return parameter, x, x0 + parameter * step, y, y0 - parameter * (sign * a)
    return None


def product_rule(equation: Dim) -> tuple[Monomial, Dim] | None:
    """A product of users' variables that the equation gives a value, as in `T*k = E*q`.

    Only between variables, and never one of higher degree, so that rewriting does not let expressions grow.
    """
    if not all(isinstance(atom, Variable) for atom in equation.atoms()):
        return None
    degree = max(len(monomial) for monomial, _ in equation.terms)
    for monomial, coefficient in reversed(equation.terms):
        if len(monomial) < max(degree, 2) or abs(coefficient) != 1:
            continue
        if not any(isinstance(a, Variable) and is_ours(a.name) for a in monomial):
            return monomial, (equation - of_monomial(monomial) * coefficient) * -coefficient
    return None
