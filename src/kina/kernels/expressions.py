"""Scalar expressions as data: walking, substitution, sizes, and simplification of indices by known ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kina.dims.atoms import Atom, FloorDiv, Modulo, Variable
from kina.dims.dim import Dim, constant, floor_div, modulo, of_monomial, variable
from kina.dims.division import divide
from kina.dims.proposition import Comparison
from kina.dims.prover import Facts, follows
from kina.ops.scalar import Call, Cast, Element, Literal, Lookup, Pieces, Reduce, Scalar, SizeValue
from kina.types import DType

_ZERO = constant(0)
COSTLY = frozenset({"exp", "log", "log1p", "expm1", "sin", "cos", "tan", "tanh", "erf", "pow", "threefry"})
"""Primitives that cost more than loading a stored value would."""


def children(e: Scalar) -> tuple[Scalar, ...]:
    match e:
        case Call(_, arguments):
            return arguments
        case Cast(operand, _):
            return (operand,)
        case Reduce(_, _, _, body):
            return (body,)
        case Pieces(_, pieces):
            return tuple(piece for _, piece in pieces)
        case Lookup(_, _, position, body):
            return (position, body)
    return ()


def walk(e: Scalar) -> Iterator[Scalar]:
    """The expression and all below it, the outermost first."""
    yield e
    for child in children(e):
        yield from walk(child)


def rebuild(e: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
    """The node with `change` applied to its children."""
    match e:
        case Call(function, arguments):
            return Call(function, tuple(map(change, arguments)))
        case Cast(operand, dtype):
            return Cast(change(operand), dtype)
        case Reduce(kind, name, extent, body):
            return Reduce(kind, name, extent, change(body))
        case Pieces(position, pieces):
            return Pieces(position, tuple((bound, change(piece)) for bound, piece in pieces))
        case Lookup(name, extent, position, body):
            return Lookup(name, extent, change(position), change(body))
    return e


def substitute(e: Scalar, replacement: Mapping[str, Dim]) -> Scalar:
    """Loop variables and sizes replaced. The own variable of a reduction or a lookup is left alone."""
    match e:
        case Element(operand, index):
            return Element(operand, tuple(i.substitute(replacement) for i in index))
        case SizeValue(dim):
            return SizeValue(dim.substitute(replacement))
        case Reduce(kind, name, extent, body):
            inner = {k: v for k, v in replacement.items() if k != name}
            return Reduce(kind, name, extent.substitute(replacement), substitute(body, inner))
        case Pieces(position, pieces):
            changed = tuple((b.substitute(replacement), substitute(piece, replacement)) for b, piece in pieces)
            return _from_the_first(position.substitute(replacement), changed)
        case Lookup(name, extent, position, body):
            inner = {k: v for k, v in replacement.items() if k != name}
            place = substitute(position, replacement)
            return Lookup(name, extent.substitute(replacement), place, substitute(body, inner))
    return rebuild(e, lambda child: substitute(child, replacement))


def _from_the_first(position: Dim, pieces: tuple[tuple[Dim, Scalar], ...]) -> Scalar:
    """Pieces whose position has no sizes added: they are taken off the bounds. Pieces that end before 0 are dropped
    where the position is never less."""
    shift = _ZERO
    for monomial, number in position.terms:
        term = of_monomial(monomial) * number
        if not any(name.startswith("%") for name in term.variables):
            shift = shift + term
    moved = [(bound - shift, piece) for bound, piece in pieces]
    *others, last = moved
    falls = any(number < 0 for _, number in (position - shift).terms)
    left = [(bound, piece) for bound, piece in others if falls or any(number > 0 for _, number in bound.terms)]
    return Pieces(position - shift, (*left, last)) if left else last[1]


def free_variables(e: Scalar) -> frozenset[str]:
    """The loop variables (`%...`) that an expression depends on."""
    match e:
        case Element(_, index):
            found = frozenset[str]().union(*(i.variables for i in index))
        case SizeValue(dim):
            found = dim.variables
        case Reduce(_, name, extent, body):
            found = extent.variables | (free_variables(body) - {name})
        case Pieces(position, pieces):
            bounds = frozenset[str]().union(*(bound.variables for bound, _ in pieces))
            found = position.variables.union(bounds, *(free_variables(p) for _, p in pieces))
        case Lookup(name, _, place, body):
            found = free_variables(place) | (free_variables(body) - {name})
        case _:
            found = frozenset[str]().union(*map(free_variables, children(e)))
    return frozenset(name for name in found if name.startswith("%"))


def most_steps(e: Reduce) -> Dim:
    """The extent of a reduction, or that of the first part where it is one of several."""
    return e.extent.substitute({name: _ZERO for name in e.extent.variables if name.startswith("%")})


def canonical(e: Scalar) -> Scalar:
    """Bound variables renamed by their height, so that equal reductions and lookups are equal as data.

    The height is one more than that of the highest one inside, so no variable is captured.
    """
    return _canonical(e)[0]


def _canonical(e: Scalar) -> tuple[Scalar, int]:
    if isinstance(e, Reduce):
        body, height = _canonical(e.body)
        name = f"%r{height}"
        if name != e.variable:
            body = substitute(body, {e.variable: variable(name)})
        return Reduce(e.kind, name, e.extent, body), height + 1
    if isinstance(e, Lookup):
        body, height = _canonical(e.body)
        place, other = _canonical(e.position)
        name = f"%r{height}"
        if name != e.variable:
            body = substitute(body, {e.variable: variable(name)})
        return Lookup(name, e.extent, place, body), max(height + 1, other)
    highest = 0

    def change(child: Scalar) -> Scalar:
        nonlocal highest
        renamed, height = _canonical(child)
        highest = max(highest, height)
        return renamed

    return rebuild(e, change), highest


def result_dtype(e: Scalar, dtypes: tuple[DType, ...]) -> DType:
    """The element type of an expression over inputs of these types."""
    match e:
        case Element(operand, _):
            return dtypes[operand]
        case Literal(_, dtype) | Cast(_, dtype):
            return dtype
        case SizeValue():
            return DType.I64
        case Call("eq" | "ne" | "lt" | "le" | "gt" | "ge" | "is_nan" | "and" | "or" | "not", _):
            return DType.BOOL
        case Call(_, arguments):
            return result_dtype(arguments[-1], dtypes)
        case Reduce(body=body) | Lookup(body=body):
            return result_dtype(body, dtypes)
        case Pieces(pieces=pieces):
            return result_dtype(pieces[0][1], dtypes)


# ---------------------------------------------------------------- indices


def simplify_indices(e: Scalar, facts: Facts) -> Scalar:
    """Divisions in indices resolved by what is known of the loops: `(b*H + h) div H` is `b` where `h < H`.

    `facts` hold for the loops outside `e`; those of reductions inside are added on the way.
    """
    match e:
        case Element(operand, index):
            return Element(operand, tuple(simplify_index(i, facts) for i in index))
        case SizeValue(dim):
            return SizeValue(simplify_index(dim, facts))
        case Reduce(_, name, extent, body):
            inside = facts.assume(Comparison("<", variable(name), extent))
            return replace(e, body=simplify_indices(body, inside))
        case Pieces(position, pieces):
            return Pieces(simplify_index(position, facts), tuple((b, simplify_indices(p, facts)) for b, p in pieces))
        case Lookup(name, extent, place, body):
            inside = facts.assume(Comparison("<", variable(name), extent))
            return Lookup(name, extent, simplify_indices(place, facts), simplify_indices(body, inside))
    return rebuild(e, lambda child: simplify_indices(child, facts))


def simplify_index(index: Dim, facts: Facts) -> Dim:
    """An index with its `div` and `mod` resolved where the remainder's range is known."""
    if all(isinstance(atom, Variable) for atom in index.atoms()):
        return index

    def resolve(atom: Atom) -> Dim:
        match atom:
            case FloorDiv(first, second):
                return _divided(simplify_index(first, facts), simplify_index(second, facts), facts)[0]
            case Modulo(first, second):
                return _divided(simplify_index(first, facts), simplify_index(second, facts), facts)[1]
            case Variable(name):
                return variable(name)
            case _:  # a size, such as the least of two
                return of_monomial((atom,))

    return index.rebuild(resolve)


def _divided(a: Dim, b: Dim, facts: Facts) -> tuple[Dim, Dim]:
    """Quotient and remainder, without `div` and `mod` where the remainder is known to lie in `[0, b)`."""
    if b.value is None or b.value > 1:
        quotient, rest = divide(a, b)
        inside = (Comparison(">=", rest, _ZERO), Comparison("<", rest, b))
        if all(follows(claim, facts) for claim in inside):
            return quotient, rest
    return floor_div(a, b), modulo(a, b)
