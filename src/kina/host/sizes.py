"""How the sizes of a call are read off the shapes of its arguments: a plan made once for each function.

First every bare dimension variable binds, left to right; then compound dimensions are solved one unknown
at a time (`2 * n`, `S + 1`, `B * H` with `B` known), and what has no unknown left is compared. The plan is
data: `follow` runs it with errors worded for the caller, `fast_path` compiles it to Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kina.dims.dim import Dim, UndefinedSize, Variable, constant, variable
from kina.dims.proposition import Proposition, holds
from kina.host import errors
from kina.types import Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """An axis of one of a function's input tensors, by number."""

    input: int
    axis: int


@dataclass(frozen=True, slots=True)
class Bind:
    """The size at `place` is the value of `name`."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Solve:
    """`coefficient * name + rest` is the size at `place`; both are known by then."""

    name: str
    coefficient: Dim
    rest: Dim
    place: Place


@dataclass(frozen=True, slots=True)
class Compare:
    """`dim` is known and must be the size at `place`."""

    dim: Dim
    place: Place


Step = Bind | Solve | Compare


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order; `missing` are the dimensions that neither the shapes nor the caller determine."""

    steps: tuple[Step, ...]
    missing: tuple[str, ...]


def make_plan(dimensions: Sequence[str], inputs: Sequence[Tensor], given: Collection[str]) -> Plan:
    """The plan for inputs of these types when the sizes `given` come from the caller by name."""
    known = set(given)
    steps: list[Step] = []
    compound: list[tuple[Dim, Place]] = []
    for number, tensor in enumerate(inputs):
        for axis, dim in enumerate(tensor.shape):
            place = Place(number, axis)
            name = _bare(dim)
            if name is not None and name not in known:
                known.add(name)
                steps.append(Bind(name, place))
            elif name is not None or dim.value is not None:
                steps.append(Compare(dim, place))
            else:
                compound.append((dim, place))
    steps.extend(_solve_all(compound, known))
    return Plan(tuple(steps), tuple(d for d in dimensions if d not in known))


def _bare(dim: Dim) -> str | None:
    match dim.terms:
        case (((Variable(name),), 1),):
            return name
    return None


def _solve_all(compound: list[tuple[Dim, Place]], known: set[str]) -> Iterable[Step]:
    """Steps for compound dimensions; those whose unknowns stay open give none. Extends `known`."""
    waiting = compound
    while waiting:
        later: list[tuple[Dim, Place]] = []
        for dim, place in waiting:
            unknown = dim.variables - known
            solution = _linear(dim, next(iter(unknown))) if len(unknown) == 1 else None
            if not unknown:
                yield Compare(dim, place)
            elif solution is not None:
                (name,) = unknown
                known.add(name)
                yield Solve(name, *solution, place)
            else:
                later.append((dim, place))
        if len(later) == len(waiting):
            return
        waiting = later


def _linear(dim: Dim, name: str) -> tuple[Dim, Dim] | None:
    """`(a, b)` with `dim = a * name + b` where neither mentions the name, or None."""
    rest = dim.substitute({name: constant(0)})
    coefficient = dim.substitute({name: constant(1)}) - rest
    # Normal forms are unique: the guess is right exactly if it multiplies out to the dimension.
    return (coefficient, rest) if coefficient * variable(name) + rest is dim else None


@dataclass
class Sizes:
    """What is known while a plan runs: the sizes, and in words where each came from."""

    values: dict[str, int]
    origins: dict[str, str] = field(default_factory=dict)


def follow(
    head: errors.Head, plan: Plan, requires: Iterable[Proposition], shapes: Sequence[tuple[int, ...]],
    given: Mapping[str, int],
) -> dict[str, int]:  # fmt: skip
    """The size of every dimension. Raises KinaError, worded for the caller, where the shapes do not fit.

    The ranks have been checked.
    """
    sizes = Sizes(dict(given), dict.fromkeys(given, "given by name"))
    for step in plan.steps:
        _take(head, step, shapes, sizes)
    if plan.missing:
        raise errors.undetermined_sizes(head, plan.missing, _enough(head, given))
    for claim in requires:
        try:
            if not holds(claim, sizes.values):
                raise errors.requires_fails(head, claim, sizes.values, sizes.origins)
        except UndefinedSize as fault:
            raise errors.requires_fails(head, claim, sizes.values, sizes.origins, str(fault)) from None
    return sizes.values


def _enough(head: errors.Head, given: Collection[str]) -> tuple[str, ...]:
    """Sizes that, given too, leave none open: the first choice of several."""
    names: list[str] = []
    while missing := make_plan(head.dimensions, head.inputs, {*given, *names}).missing:
        names.append(missing[0])
    return tuple(names)


def _take(head: errors.Head, step: Step, shapes: Sequence[tuple[int, ...]], sizes: Sizes) -> None:
    place = step.place
    size = shapes[place.input][place.axis]

    def mismatch(reason: str = "") -> Exception:
        return errors.wrong_shape(
            head, place.input, shapes[place.input], place.axis, sizes.values, sizes.origins, reason
        )

    try:
        match step:
            case Bind(name):
                value = size
            case Compare(dim):
                if dim.evaluate(sizes.values) != size:
                    raise mismatch()
                return
            case Solve(name, coefficient, rest):
                factor, product = coefficient.evaluate(sizes.values), size - rest.evaluate(sizes.values)
                if factor == product == 0:
                    raise errors.undetermined_sizes(head, (name,), (name,))
                value, remainder = divmod(product, factor) if factor else (0, product)
                if remainder or value < 0:
                    raise mismatch(f"no {name} makes {head.inputs[place.input].shape[place.axis]} equal {size}")
    except UndefinedSize as fault:
        raise mismatch(f"{fault} is undefined") from None
    sizes.values[name] = value
    sizes.origins[name] = f"from {head.place_text(place.input, place.axis)}"
