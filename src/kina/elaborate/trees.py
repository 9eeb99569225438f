"""Trees of new values: what parameters, the results of calls, and the states of loops are."""

from __future__ import annotations

from kina.core.ir import Stack, Struct, Tree, Value
from kina.elaborate.context import Context
from kina.types import Arrow, Exists, List, Record, Tensor, Tuple, Type, in_one


def new_tree(context: Context, type_: Type, name: str | None, *, parameter: bool = False) -> Tree:
    """New values of a type. The parts of a parameter `p` are called `p.norm`, `p.0`; other parts have no name yet."""

    def part(label: str, item: Type) -> Tree:
        return new_tree(context, item, f"{name}.{label}" if parameter else None, parameter=parameter)

    match type_:
        case Tensor():
            return Value(context.fresh(name), type_)
        case Tuple(items):
            return tuple(part(str(n), item) for n, item in enumerate(items))
        case Record(record, arguments, fields):
            return Struct(record, arguments, tuple((field, part(field, item)) for field, item in fields))
        case List(size):
            return Stack(size, new_tree(context, in_one(type_), name, parameter=parameter))
        case Arrow() | Exists():
            raise TypeError(f"there are no values of {type_} in core")
