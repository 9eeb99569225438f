"""What a caller in Python is told when a call does not fit: one constructor for each thing that can be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kina.diagnostics import KinaError
from kina.diagnostics.names import nearest
from kina.dims.dim import Dim, UndefinedSize
from kina.dims.proposition import Proposition, variables
from kina.types import DType, List, Record, Tensor, Type, shape_text


@dataclass(frozen=True, slots=True)
class Head:
    """What messages say of a function: its name, its parameters, and its input tensors with their names.

    An input inside a tuple parameter is called by its path: `pair.0`.
    """

    function: str
    parameters: tuple[tuple[str, Type], ...]
    dimensions: tuple[str, ...]
    input_names: tuple[str, ...]
    inputs: tuple[Tensor, ...]

    def place_text(self, number: int, axis: int) -> str:
        """`axis 2 of x`."""
        return f"axis {axis} of {self.input_names[number]}"

    def usage(self) -> str:
        return f"{self.function}({', '.join(name for name, _ in self.parameters)})"


class CallError(KinaError):
    """A call whose arguments do not fit the function."""


def _error(head: Head, message: str, *lines: str) -> CallError:
    return CallError("\n  ".join([f"{head.function}: {message}", *lines]))


# ---------------------------------------------------------------- which arguments


def missing_arguments(head: Head, names: Sequence[str]) -> CallError:
    types = dict(head.parameters)
    return _error(
        head,
        f"missing argument{'s' if len(names) > 1 else ''} {', '.join(names)}",
        *(f"{name} : {types[name]}" for name in names),
        f"call it as {head.usage()}",
    )


def missing_seed(head: Head) -> CallError:
    """The last parameter of a function that draws is its seed."""
    given = ", ".join(name for name, _ in head.parameters[:-1])
    call = f"{head.function}({given}{', ' if given else ''}seed=0)"
    return _error(
        head, "draws random numbers, and needs a seed to draw them from",
        f"call it as {call}: the same seed gives the same numbers, on every machine",
    )  # fmt: skip


def too_many_arguments(head: Head, count: int) -> CallError:
    wanted = len(head.parameters)
    return _error(
        head,
        f"takes {wanted} argument{'' if wanted == 1 else 's'}, got {count}",
        f"call it as {head.usage()}",
    )


def unknown_argument(head: Head, name: str) -> CallError:
    names = [p for p, _ in head.parameters]
    close = nearest(name, [*names, *head.dimensions])
    sizes = [d for d in head.dimensions if d not in names]
    return _error(
        head,
        f"has no parameter and no size called {name}",
        *([f"did you mean {close}?"] if close else []),
        f"parameters: {', '.join(names) or 'none'}",
        f"sizes that may be given by name: {', '.join(sizes) or 'none'}",
    )


def argument_twice(head: Head, name: str) -> CallError:
    return _error(head, f"argument {name} is given twice, by position and by name")


# ---------------------------------------------------------------- what an argument is


def not_an_array(head: Head, name: str, tensor: Tensor, what: str, advice: str) -> CallError:
    """`what` completes "argument x"."""
    return _error(head, f"argument {name} {what}", f"expected {tensor}", advice)


def not_a_tuple(head: Head, name: str, wanted: Type, got: str) -> CallError:
    return _error(head, f"argument {name} has to be a tuple", f"expected {wanted}", f"got {got}")


def not_a_record(head: Head, name: str, wanted: Record, got: str) -> CallError:
    fields = ", ".join(field for field, _ in wanted.fields)
    return _error(head, f"argument {name} has to have the fields of {wanted}", f"expected {fields}", f"got {got}")


def wrong_fields(head: Head, name: str, wanted: Record, missing: Sequence[str], unknown: Sequence[str]) -> CallError:
    lacks = f"it lacks {', '.join(missing)}" if missing else ""
    has = f"it has {', '.join(unknown)}, which {wanted.name} has not" if unknown else ""
    fields = ", ".join(field for field, _ in wanted.fields)
    message = f"argument {name} does not have the fields of {wanted}"
    return _error(head, message, f"expected {fields}", *filter(None, (lacks, has)))


def empty_list(head: Head, name: str, wanted: List) -> CallError:
    advice = "give its tensors with an axis of size 0 in front, so that their other sizes are known"
    return _error(head, f"argument {name} is an empty list", f"expected {wanted}", advice)


def cannot_stack(head: Head, name: str, reason: str) -> CallError:
    return _error(head, f"the items of {name} do not stack: {reason}", "every item needs arrays of the same shapes")


def wrong_dtype(head: Head, number: int, got: str, advice: str) -> CallError:
    name, tensor = head.input_names[number], head.inputs[number]
    return _error(
        head, f"argument {name} has the wrong dtype", f"expected {tensor.dtype}, in {tensor}", f"got {got}", advice
    )


def inexact(head: Head, number: int, value: object) -> CallError:
    """A Python number that the parameter's dtype does not hold."""
    name, dtype = head.input_names[number], head.inputs[number].dtype
    return _error(head, f"argument {name}: {value!r} is not {_a(str(dtype))} value exactly", *_range(dtype))


def out_of_range(head: Head, number: int, value: object) -> CallError:
    name, dtype = head.input_names[number], head.inputs[number].dtype
    return _error(head, f"argument {name}: {value!r} is outside the range of {dtype}", *_range(dtype))


def index_out_of_range(head: Head, number: int, bound: int, at: tuple[int, ...], value: int) -> CallError:
    """A number that is no index into an axis of `bound`, and where it stands."""
    name, tensor = head.input_names[number], head.inputs[number]
    place = f"{name}[{', '.join(map(str, at))}]" if at else name
    expected = f"expected {tensor}, where {tensor.bound} is {bound}"
    return _error(head, f"{place} is {value}, and has to lie in [0, {bound})", expected)


def wrong_number_kind(head: Head, number: int, value: object) -> CallError:
    """A bool where a number is wanted, a number where a Bool is."""
    name, dtype = head.input_names[number], head.inputs[number].dtype
    return _error(head, f"argument {name}: {value!r} is {_a(type(value).__name__)}, where {dtype} is expected")


def ragged(head: Head, number: int) -> CallError:
    name, tensor = head.input_names[number], head.inputs[number]
    return _error(head, f"argument {name} is a list whose rows differ in length", f"expected {tensor}")


def scalar_for_tensor(head: Head, number: int, value: object) -> CallError:
    name, tensor = head.input_names[number], head.inputs[number]
    return _error(
        head,
        f"argument {name} has to be a tensor, got the scalar {value!r}",
        f"expected {tensor}",
        "a scalar is not stretched at a call: fill an array, for example with numpy.full",
    )


def _a(noun: str) -> str:
    # Read aloud, I64 and F32 begin with a vowel.
    return f"an {noun}" if noun[0] in "IFaeio" else f"a {noun}"


def _range(dtype: DType) -> list[str]:
    if not dtype.is_integer:
        return []
    low, high = integer_limits(dtype)
    return [f"{dtype} holds the integers from {low} to {high}"]


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer dtype."""
    bits = 8 * dtype.itemsize
    return (0, 2**bits - 1) if dtype is DType.U8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


# ---------------------------------------------------------------- shapes and sizes


def wrong_rank(head: Head, number: int, shape: tuple[int, ...]) -> CallError:
    name, tensor = head.input_names[number], head.inputs[number]
    return _error(
        head,
        f"argument {name} has {_axes(len(shape))}, not {tensor.rank}",
        f"expected {shape_text(tensor.shape)}",
        f"got      {list(shape)}",
    )


def wrong_shape(
    head: Head, number: int, shape: tuple[int, ...], axis: int, sizes: Mapping[str, int],
    origins: Mapping[str, str], reason: str = "",
) -> CallError:  # fmt: skip
    """An axis does not fit. Shows the symbols, what they came to so far, and where each was bound."""
    name, tensor = head.input_names[number], head.inputs[number]
    known = [_value_text(d, sizes) for d in tensor.shape]
    rows = _columns(
        ["expected", *map(str, tensor.shape)], ["which is", *known], ["got", *map(str, shape)]
    )  # fmt: skip
    used = frozenset().union(*(d.variables for d in tensor.shape))
    return _error(
        head,
        f"argument {name} has the wrong shape in axis {axis}",
        *rows,
        *([reason] if reason else []),
        *_origin_lines(used, sizes, origins),
    )


def undetermined_sizes(head: Head, names: Sequence[str], enough: Sequence[str]) -> CallError:
    """The shapes leave `names` open; giving those of `enough` settles all."""
    parameters = {p for p, _ in head.parameters}
    hidden = [n for n in enough if n in parameters]
    given = ", ".join(f"{n}=..." for n in enough if n not in parameters)
    return _error(
        head,
        f"the arguments do not determine {', '.join(names)}",
        *([f"give by name: {head.function}(..., {given})"] if given else []),
        *(f"{n} is also a parameter, and a name at a call means the parameter: rename one" for n in hidden),
    )


def wrong_size(head: Head, name: str, value: object) -> CallError:
    return _error(head, f"the size {name} has to be an int >= 0, got {value!r}")


def requires_fails(
    head: Head, claim: Proposition, sizes: Mapping[str, int], origins: Mapping[str, str], undefined: str = ""
) -> CallError:
    """A `requires` is false at these sizes; `undefined` says what it divides by zero, if that is why."""
    numbers = _substituted(claim, sizes)
    return _error(
        head,
        f"requires {claim}, which does not hold for these arguments",
        f"here it is {numbers}" + (f", but {undefined} is undefined" if undefined else ""),
        *_origin_lines(variables(claim), sizes, origins),
    )


def _substituted(claim: Proposition, sizes: Mapping[str, int]) -> str:
    """The proposition with numbers for names, not worked out further."""
    from re import sub

    return sub(r"[^\W\d][\w']*+(?!\()", lambda word: str(sizes.get(word.group(), word.group())), str(claim))


def _value_text(dim: Dim, sizes: Mapping[str, int]) -> str:
    try:
        return str(dim.evaluate(sizes))
    except (KeyError, UndefinedSize):
        return "?"


def _columns(*rows: Sequence[str]) -> list[str]:
    """Label and shapes, each column as wide as its widest entry."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        label, *cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{label}  [{', '.join(cells)}]")
    return lines


def _origin_lines(names: Iterable[str], sizes: Mapping[str, int], origins: Mapping[str, str]) -> list[str]:
    return [f"{name} = {sizes[name]}, {origins[name]}" for name in sizes if name in set(names)]


def _axes(count: int) -> str:
    return "no axes" if count == 0 else f"{count} ax{'is' if count == 1 else 'es'}"
