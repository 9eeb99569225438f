"""Trees of new values: what parameters, the results of calls, and the states of loops are."""

from __future__ import annotations

from kina.core.ir import Stack, Struct, Tree, Value, rename_tree
from kina.diagnostics import form_errors
from kina.dims.dim import Dim
from kina.elaborate.context import Context
from kina.source import Span
from kina.types import Arrow, Exists, List, Record, Tensor, Tuple, Type, in_one, sizes


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


def confine(context: Context, type_: Type, mark: int, span: Span, what: str) -> None:
    """A type that leaves a block may mention no dimension made inside: those after `mark` in `context.opened`."""
    inside = set(context.opened[mark:])
    for size in sizes(type_):
        if not inside.isdisjoint(size.variables):
            name = min(inside & size.variables)
            raise context.report(form_errors.size_escapes(span, what, name, type_))


def stacked(context: Context, yielded: Tree, bound: Dim, name: str | None) -> Tree:
    """What the steps yield, stacked: each tensor with an axis of the bound in front; records become a list."""

    def stack(v: Value) -> Value:
        return Value(context.fresh(name), v.type.with_shape((bound, *v.type.shape)))

    made = rename_tree(yielded, stack)
    return Stack(bound, made) if _has_records(made) else made


def _has_records(tree: Tree) -> bool:
    return isinstance(tree, Struct | Stack) or (isinstance(tree, tuple) and any(map(_has_records, tree)))


def is_settled(type_: Type) -> bool:
    """Whether a type that a place wants is one of values, with every size known (`?N` stands for one that is not)."""
    return not isinstance(type_, Exists | Arrow) and not any("?" in v for size in sizes(type_) for v in size.variables)
