"""Dimension expressions: integer polynomials over atoms, in normal form.

`B*H*S*D` and `(B*H)*S*D` are the same object, so equality of normal forms is identity; this alone
settles nearly every shape question. Build them with the operators and with `variable`, `constant`,
`floor_div`, `modulo`, `ceil_div`, `minimum`, `maximum`: there is no other way in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Variable:
    """A named size. Names are unique within a function."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class FloorDiv:
    """`numerator div denominator`, rounded towards minus infinity."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{self.numerator.factor_text()} div {self.denominator.factor_text()}"


@dataclass(frozen=True, slots=True)
class Modulo:
    """`numerator mod denominator`, in `[0, denominator)`."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"{self.numerator.factor_text()} mod {self.denominator.factor_text()}"


@dataclass(frozen=True, slots=True)
class CeilDiv:
    """`numerator / denominator`, rounded up."""

    numerator: Dim
    denominator: Dim

    def __str__(self) -> str:
        return f"cdiv({self.numerator}, {self.denominator})"


@dataclass(frozen=True, slots=True)
class Minimum:
    left: Dim
    right: Dim

    def __str__(self) -> str:
        return f"min({self.left}, {self.right})"


@dataclass(frozen=True, slots=True)
class Maximum:
    left: Dim
    right: Dim

    def __str__(self) -> str:
        return f"max({self.left}, {self.right})"


Atom = Variable | FloorDiv | Modulo | CeilDiv | Minimum | Maximum
Monomial = tuple[Atom, ...]
"""Atoms of a product, sorted, with repetition; the empty monomial stands for 1."""

Terms = tuple[tuple[Monomial, int], ...]
_interned: dict[Terms, Dim] = {}


class UndefinedSize(ArithmeticError):
    """A division by something that is not positive, while evaluating at concrete sizes."""


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
                value = atom.denominator.value
                if value is None or value <= 0:
                    found[atom.denominator] = None
        return tuple(found)

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Dim | int) -> Dim:
        total = dict(self.terms)
        for monomial, coefficient in dim(other).terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return _normal(total)

    def __mul__(self, other: Dim | int) -> Dim:
        total: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in dim(other).terms:
                monomial = tuple(sorted(left + right, key=_atom_key)) if left and right else left or right
                total[monomial] = total.get(monomial, 0) + a * b
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
        total = constant(0)
        for monomial, coefficient in self.terms:
            product = constant(coefficient)
            for atom in monomial:
                product = product * replace(atom)
            total = total + product
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


def parts(atom: Atom) -> tuple[Dim, ...]:
    """The dimension expressions inside an atom, in order; none for a variable."""
    match atom:
        case Variable():
            return ()
        case Minimum(left, right) | Maximum(left, right):
            return (left, right)
        case FloorDiv(a, b) | Modulo(a, b) | CeilDiv(a, b):
            return (a, b)


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


def _atom_key(atom: Atom) -> tuple[int, str]:
    return (0 if isinstance(atom, Variable) else 1, str(atom))


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


def _normal(total: Mapping[Monomial, int]) -> Dim:
    terms = tuple(
        sorted(
            ((m, c) for m, c in total.items() if c != 0),
            key=lambda t: (len(t[0]), tuple(_atom_key(a) for a in t[0])),
        )
    )
    found = _interned.get(terms)
    if found is None:
        found = _interned[terms] = Dim(terms)
    return found


def _of_atom(atom: Atom) -> Dim:
    return _normal({(atom,): 1})


# ---------------------------------------------------------------- constructors


def of_monomial(monomial: Monomial) -> Dim:
    """The product of the atoms of a sorted monomial."""
    return _normal({monomial: 1})


def constant(value: int) -> Dim:
    return _normal({(): value})


def variable(name: str) -> Dim:
    return _of_atom(Variable(name))


def dim(value: Dim | int) -> Dim:
    """A number as a dimension; a dimension as itself."""
    return value if isinstance(value, Dim) else constant(value)


def floor_div(numerator: Dim | int, denominator: Dim | int) -> Dim:
    return _binary(FloorDiv, dim(numerator), dim(denominator))


def modulo(numerator: Dim | int, denominator: Dim | int) -> Dim:
    return _binary(Modulo, dim(numerator), dim(denominator))


def ceil_div(numerator: Dim | int, denominator: Dim | int) -> Dim:
    return _binary(CeilDiv, dim(numerator), dim(denominator))


def minimum(left: Dim | int, right: Dim | int) -> Dim:
    return _binary(Minimum, *_ordered(dim(left), dim(right)))


def maximum(left: Dim | int, right: Dim | int) -> Dim:
    return _binary(Maximum, *_ordered(dim(left), dim(right)))


def product(dims: tuple[Dim, ...] | list[Dim]) -> Dim:
    """The product of all; 1 for none."""
    total = constant(1)
    for d in dims:
        total = total * d
    return total


def _ordered(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    return (a, b) if str(a) <= str(b) else (b, a)


def _binary(kind: Callable[[Dim, Dim], Atom], a: Dim, b: Dim) -> Dim:
    """Folds what needs no facts: constants, division by 1, `min(a, a)`. Division by 0 is left as it is."""
    if kind in (Minimum, Maximum):
        if a is b:
            return a
    elif b.value == 1:
        return constant(0) if kind is Modulo else a
    if a.value is not None and b.value is not None and (b.value > 0 or kind in (Minimum, Maximum)):
        return constant(_apply(kind, a.value, b.value))  # type: ignore[arg-type]
    return _of_atom(kind(a, b))


BUILDERS: Mapping[type[Atom], Callable[[Dim, Dim], Dim]] = {
    FloorDiv: floor_div,
    Modulo: modulo,
    CeilDiv: ceil_div,
    Minimum: minimum,
    Maximum: maximum,
}
