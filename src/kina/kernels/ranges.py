"""The largest that a size can be, whatever the step: what memory is planned with.

Loops make sizes: how many steps were made so far, and in the end. Both lie between 0 and the loop's bound, so that a
size which mentions them is at most what its growing parts are at the bound and its shrinking parts at 0. A size that
is read from a value has a bound where a check says so; else nothing is known of it before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kina.core.ir import Check, For, Open, Statement, While, blocks_of
from kina.diagnostics import KinaError
from kina.dims.atoms import Atom, CeilDiv, FloorDiv, Maximum, Minimum, Modulo, Variable, parts
from kina.dims.dim import Dim, ceil_div, constant, floor_div, maximum, minimum, of_monomial, variable
from kina.dims.proposition import And, Comparison, Proposition

Range = tuple[str, Dim]
"""A size that a loop makes, and its bound, which may mention sizes that loops outside make."""

_ZERO = constant(0)


class NoBound(KinaError):
    """A size that is neither growing nor shrinking in a way that is understood."""


def made_sizes(statements: Sequence[Statement]) -> Iterator[tuple[str, Dim | None]]:
    """The sizes that loops make and that are read from values, in order, each with a bound where there is one."""
    for number, statement in enumerate(statements):
        match statement:
            case For(index=index, bound=bound):
                yield index, bound
            case While(index=index, steps=steps, bound=most):
                yield index, most
                yield steps, most
            case Open(dimension=name, facts=facts):
                claims = [*facts, *_checked_at_once(statements[number + 1 :])]
                yield name, next((b for claim in claims if (b := _bound_in(claim, name)) is not None), None)
        for block in blocks_of(statement):
            yield from made_sizes(block.statements)


def _checked_at_once(statements: Sequence[Statement]) -> Iterator[Proposition]:
    """The propositions that are checked before anything else is done."""
    for statement in statements:
        if not isinstance(statement, Check):
            return
        yield statement.proposition


def _bound_in(claim: Proposition, name: str) -> Dim | None:
    """The most that a size is where a proposition holds that bounds it."""
    size = variable(name)
    match claim:
        case Comparison("<=" | "=", left, right) | Comparison(">=", right, left) if left is size:
            return right if name not in right.variables else None
        case Comparison("<", left, right) | Comparison(">", right, left) if left is size:
            return right - 1 if name not in right.variables else None
        case And(items):
            return next((b for item in items if (b := _bound_in(item, name)) is not None), None)
    return None


def at_most(d: Dim, ranges: Sequence[Range]) -> Dim:
    """A bound of `d` without the sizes in `ranges`, which stand with the outer loops first. Raises NoBound."""
    for name, bound in reversed(ranges):
        if name in d.variables:
            d = _extreme(d, name, bound, up=True)
    return d


def _extreme(d: Dim, name: str, bound: Dim, *, up: bool) -> Dim:
    total = _ZERO
    for monomial, number in d.terms:
        if any(_mentions(a, name) for a in monomial):
            total = total + _extreme_product(d, monomial, name, bound, up=(number > 0) == up) * number
        else:
            total = total + (of_monomial(monomial) if monomial else constant(1)) * number
    return total


def _extreme_product(d: Dim, monomial: tuple[Atom, ...], name: str, bound: Dim, *, up: bool) -> Dim:
    """Of natural numbers, and at most one factor that may be negative."""
    if all(_is_natural(a) for a in monomial):
        total = constant(1)
        for atom in monomial:
            total = total * _extreme_atom(atom, name, bound, up=up)
        return total
    others = [a for a in monomial if not isinstance(a, Variable)]
    fixed = constant(1)
    power = constant(1)
    for atom in monomial:
        if isinstance(atom, Variable):
            fixed, power = (fixed, power * bound) if atom.name == name else (fixed * of_monomial((atom,)), power)
    steady = power.value == 1
    if len(others) > 1:
        raise NoBound(f"there is no known bound of the size {d} over all {name}")
    if not others:
        return fixed * power if up else _ZERO
    factor = _extreme_atom(others[0], name, bound, up=up)
    if not steady:
        factor = maximum(_ZERO, factor) if up else minimum(_ZERO, factor)
    return fixed * power * factor


def _mentions(atom: Atom, name: str) -> bool:
    if isinstance(atom, Variable):
        return atom.name == name
    return any(name in part.variables for part in parts(atom))


def _is_natural(atom: Atom) -> bool:
    """Whether an expression is plainly a natural number: made of natural numbers without a minus."""
    if isinstance(atom, Variable):
        return True
    made = parts(atom) if isinstance(atom, Minimum) else parts(atom)[:1] if not isinstance(atom, Modulo) else ()
    return all(number > 0 and all(map(_is_natural, monomial)) for part in made for monomial, number in part.terms)


def _extreme_atom(atom: Atom, name: str, bound: Dim, *, up: bool) -> Dim:
    if not _mentions(atom, name):
        return of_monomial((atom,))
    if isinstance(atom, Variable):
        return bound if up else _ZERO
    first, second = parts(atom)
    left, right = (_extreme(part, name, bound, up=up) for part in (first, second))
    match atom:
        case Minimum():
            return minimum(left, right)
        case Maximum():
            return maximum(left, right)
        case Modulo():
            return right if up else _ZERO
        case FloorDiv() | CeilDiv():
            divided = floor_div if isinstance(atom, FloorDiv) else ceil_div
            if name not in second.variables:
                return divided(left, second)
            # By a divisor of at least 1, a number that is not negative becomes no larger; a size is no less than 0.
            return maximum(_ZERO, left) if up else minimum(_ZERO, left)
