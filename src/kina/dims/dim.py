"""Dimension expressions: integer polynomials over atoms, in normal form.

`B*H*S*D` and `(B*H)*S*D` are the same object, so equality of normal forms is identity; this alone
settles nearly every shape question. Build them with the operators and with `variable`, `constant`,
`floor_div`, `modulo`, `ceil_div`, `minimum`, `maximum`: there is no other way in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from weakref import WeakValueDictionary

from kina.dims.atoms import Atom, CeilDiv, FloorDiv, Maximum, Minimum, Modulo, Monomial, Variable, parts, without

__all__ = [
    "BUILDERS",
    "Atom",
    "CeilDiv",
    "Dim",
    "FloorDiv",
    "Maximum",
    "Minimum",
    "Modulo",
    "Monomial",
    "UndefinedSize",
    "UnwieldySize",
    "Variable",
    "ceil_div",
    "constant",
    "dim",
    "floor_div",
    "maximum",
    "minimum",
    "modulo",
    "of_monomial",
    "parts",
    "product",
    "variable",
    "without",
]

Terms = tuple[tuple[Monomial, int], ...]
"""Monomials with their coefficients, ascending by degree and then by the atoms' keys."""

_interned: WeakValueDictionary[Terms, Dim] = WeakValueDictionary()


class UndefinedSize(ArithmeticError):
    """A division by something that is not positive, while evaluating at concrete sizes."""


class UnwieldySize(ArithmeticError):
    """A polynomial with more terms, or larger numbers, than any program means: its text would fill pages."""


_MOST_TERMS = 2_000
_MOST_STEPS = 50_000
_MOST_BITS = 4_096


@dataclass(frozen=True, eq=False)
class Dim:
    """An integer polynomial over atoms: `terms` maps sorted monomials to non-zero coefficients.

    Equal polynomials are the same object (`is`, `==` and `hash` agree).
    """

    terms: Terms

    # ------------------------------------------------------------ queries

    @cached_property
    def value(self) -> int | None:
        """The number that a constant is, else None."""
        match self.terms:
            case ():
                return 0
            case (((), number),):
                return number
        return None

    def __int__(self) -> int:
        if self.value is None:
            raise ValueError(f"{self} is not a constant")
        return self.value

    def atoms(self) -> Iterator[Atom]:
        """The atoms at the top of this expression, without repetition."""
        seen: set[Atom] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if atom not in seen:
                    seen.add(atom)
                    yield atom

    def coefficient(self, monomial: Monomial) -> int:
        """The number before `monomial`; the constant term for the empty one."""
        return next((c for m, c in self.terms if m == monomial), 0)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of all variables inside."""
        names: set[str] = set()
        for atom in self.atoms():
            if isinstance(atom, Variable):
                names.add(atom.name)
            else:
                for part in parts(atom):
                    names |= part.variables
        return frozenset(names)

    @cached_property
    def denominators(self) -> tuple[Dim, ...]:
        """What must be positive for this to be defined, the innermost first; positive numbers left out."""
        found: dict[Dim, None] = {}
        for atom in self.atoms():
            for part in parts(atom):
                found.update(dict.fromkeys(part.denominators))
            if isinstance(atom, FloorDiv | Modulo | CeilDiv):
                value = atom.second.value
                if value is None or value <= 0:
                    found[atom.second] = None
        return tuple(found)

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Dim | int) -> Dim:
        other = dim(other)
        if not other.terms:
            return self
        if not self.terms:
            return other
        total = dict(self.terms)
        for monomial, coefficient in other.terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return _normal(total)

    def __mul__(self, other: Dim | int) -> Dim:
        other = dim(other)
        if other is _ONE:
            return self
        if len(self.terms) < len(other.terms):
            self, other = other, self
        match other.terms:
            case ():
                return other
            case ((monomial, coefficient),):  # multiplying by one term keeps the terms in order
                return _intern(tuple((_joined(m, monomial), c * coefficient) for m, c in self.terms))
        if len(self.terms) * len(other.terms) > _MOST_STEPS:
            raise UnwieldySize
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                joined = _joined(left, right)
                total[joined] = total.get(joined, 0) + a * b
        return _normal(total)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim | int) -> Dim:
        return self + dim(other) * -1

    def __radd__(self, other: int) -> Dim:
        return self + other

    def __rmul__(self, other: int) -> Dim:
        return self * other

    def __rsub__(self, other: int) -> Dim:
        return dim(other) - self

    # ------------------------------------------------------------ replacement and value

    def substitute(self, replacement: Mapping[str, Dim]) -> Dim:
        """This expression with variables replaced, all at once, and normalised again."""
        if not self.variables & replacement.keys():
            return self

        def replace(atom: Atom) -> Dim:
            if isinstance(atom, Variable):
                return replacement.get(atom.name) or variable(atom.name)
            first, second = (part.substitute(replacement) for part in parts(atom))
            return BUILDERS[type(atom)](first, second)

        return self.rebuild(replace)

    def rebuild(self, replace: Callable[[Atom], Dim]) -> Dim:
        """The polynomial with each atom replaced by `replace(atom)`."""
        total = _ZERO
        for monomial, coefficient in self.terms:
            factor = constant(coefficient)
            for atom in monomial:
                factor = replace(atom) * factor
            total = total + factor
        return total

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number this is at the given sizes.

        Raises `UndefinedSize` on division by zero or less, KeyError on a missing size.
        """
        total = 0
        for monomial, coefficient in self.terms:
            for atom in monomial:
                coefficient *= _atom_value(atom, sizes)
            total += coefficient
        return total

    # ------------------------------------------------------------ text

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in sorted(self.terms, key=_term_key):
            sign = "-" if coefficient < 0 else "+"
            body = _monomial_text(monomial, abs(coefficient), alone=len(self.terms) == 1 and coefficient > 0)
            text += f" {sign} {body}" if text else (f"-{body}" if sign == "-" else body)
        return text

    def factor_text(self) -> str:
        """The text in parentheses unless it is a single name, number or call."""
        text = str(self)
        return text if _is_tight(self) else f"({text})"

    def __repr__(self) -> str:
        return f"Dim({self})"


def _is_tight(d: Dim) -> bool:
    if d.value is not None:
        return d.value >= 0
    match d.terms:
        case (((Variable() | CeilDiv() | Minimum() | Maximum(),), 1),):
            return True
    return False


def _monomial_text(monomial: Monomial, coefficient: int, alone: bool) -> str:
    factors = [str(coefficient)] if coefficient != 1 or not monomial else []
    for atom in monomial:
        loose = isinstance(atom, FloorDiv | Modulo) and not (alone and len(monomial) == 1 and coefficient == 1)
        factors.append(f"({atom})" if loose else str(atom))
    return " * ".join(factors)


def _term_key(term: tuple[Monomial, int]) -> tuple[int, int, str]:
    monomial, coefficient = term
    return (-len(monomial), coefficient < 0, " ".join(map(str, monomial)))


def _atom_value(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Variable):
        return sizes[atom.name]
    first, second = (part.evaluate(sizes) for part in parts(atom))
    return _apply(type(atom), first, second)


def _apply(kind: type[Atom], a: int, b: int) -> int:
    if kind is Minimum:
        return min(a, b)
    if kind is Maximum:
        return max(a, b)
    if b <= 0:
        raise UndefinedSize(f"{a} divided by {b}")
    if kind is FloorDiv:
        return a // b
    return a % b if kind is Modulo else -(-a // b)


def _joined(left: Monomial, right: Monomial) -> Monomial:
    return tuple(sorted(left + right, key=_atom_key)) if left and right else left or right


_atom_key = attrgetter("key")


def _normal(total: Mapping[Monomial, int]) -> Dim:
    terms = [(m, c) for m, c in total.items() if c]
    if len(terms) > 1:
        terms.sort(key=lambda t: (len(t[0]), [a.key for a in t[0]]))
    return _intern(tuple(terms))


def _intern(terms: Terms) -> Dim:
    found = _interned.get(terms)
    if found is None:
        if len(terms) > _MOST_TERMS or any(c.bit_length() > _MOST_BITS for _, c in terms):
            raise UnwieldySize
        found = _interned[terms] = Dim(terms)
    return found


def _of_atom(atom: Atom) -> Dim:
    return _normal({(atom,): 1})


# ---------------------------------------------------------------- constructors


def of_monomial(monomial: Monomial) -> Dim:
    """The product of the atoms of a sorted monomial."""
    return _normal({monomial: 1})


@lru_cache(maxsize=256)
def constant(value: int) -> Dim:
    return _intern((((), value),) if value else ())


@lru_cache(maxsize=256)
def variable(name: str) -> Dim:
    return _of_atom(Variable(name))


_ZERO, _ONE = constant(0), constant(1)


def dim(value: Dim | int) -> Dim:
    """A number as a dimension; a dimension as itself."""
    return value if isinstance(value, Dim) else constant(value)


def floor_div(numerator: Dim | int, denominator: Dim | int) -> Dim:
    a, b = dim(numerator), dim(denominator)
    folded = _fold_division(FloorDiv, a, b)
    if folded is not None:
        return folded
    whole, rest = _multiples(a, b)
    return whole + (_fold_division(FloorDiv, rest, b) or _of_atom(FloorDiv(rest, b)))


def modulo(numerator: Dim | int, denominator: Dim | int) -> Dim:
    a, b = dim(numerator), dim(denominator)
    folded = _fold_division(Modulo, a, b)
    if folded is not None:
        return folded
    _, rest = _multiples(a, b)
    return _fold_division(Modulo, rest, b) or _of_atom(Modulo(rest, b))


def ceil_div(numerator: Dim | int, denominator: Dim | int) -> Dim:
    a, b = dim(numerator), dim(denominator)
    folded = _fold_division(CeilDiv, a, b)
    if folded is not None:
        return folded
    whole, rest = _multiples(a, b)
    return whole + (_fold_division(CeilDiv, rest, b) or _of_atom(CeilDiv(rest, b)))


def minimum(left: Dim | int, right: Dim | int) -> Dim:
    a, b = _ordered(dim(left), dim(right))
    margin = (b - a).value
    return _of_atom(Minimum(a, b)) if margin is None else a if margin >= 0 else b


def maximum(left: Dim | int, right: Dim | int) -> Dim:
    a, b = _ordered(dim(left), dim(right))
    margin = (b - a).value
    return _of_atom(Maximum(a, b)) if margin is None else b if margin >= 0 else a


def product(dims: tuple[Dim, ...] | list[Dim]) -> Dim:
    """The product of all; 1 for none."""
    total = constant(1)
    for d in dims:
        total = total * d
    return total


def _ordered(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    return (a, b) if str(a) <= str(b) else (b, a)


def _fold_division(kind: type[Atom], a: Dim, b: Dim) -> Dim | None:
    """The value of a division of numbers or by 1. Division by 0 or less is left as it is: it must stay visible."""
    if b.value == 1:
        return constant(0) if kind is Modulo else a
    if a.value is not None and b.value is not None and b.value > 0:
        return constant(_apply(kind, a.value, b.value))
    return None


def _multiples(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    """`(q, r)` with `a = b*q + r`: `q` has the terms of `a` that the one term of `b` divides.

    Then `a div b = q + r div b` wherever `b` is positive, and both are undefined elsewhere: so `r` is kept from being 0
    unless `b` is a positive number.
    """
    if len(b.terms) != 1:
        return constant(0), a
    ((divisor, factor),) = b.terms
    if not divisor and factor <= 0:
        return constant(0), a
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms:
        left = without(monomial, divisor)
        if left is not None and coefficient % factor == 0:
            whole[left] = coefficient // factor
        elif not monomial and not divisor:
            whole[()], rest[()] = divmod(coefficient, factor)
        else:
            rest[monomial] = coefficient
    if not whole or (divisor and not rest):
        return constant(0), a
    return _normal(whole), _normal(rest)


BUILDERS: Mapping[type[Atom], Callable[[Dim, Dim], Dim]] = {
    FloorDiv: floor_div,
    Modulo: modulo,
    CeilDiv: ceil_div,
    Minimum: minimum,
    Maximum: maximum,
}
