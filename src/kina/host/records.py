"""Arguments that are tuples, records or lists: what stands in the places of their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from kina.host import arrays, errors
from kina.host.errors import Head
from kina.types import Arrow, Exists, List, Record, Tensor, Tuple, Type, in_one


def tensors_of(head: Head, path: str, type_: Type, value: Any) -> list[Any]:
    """The tensors of an argument, left to right.

    A record takes any mapping with string keys, a dataclass, or another object with the fields as attributes; keys that
    the record lacks are refused. A list takes a sequence of its items, whose tensors are stacked (copied), or one value
    of its item's form whose tensors have the list's axis in front (not copied).
    """
    match type_:
        case Tensor():
            return [value]
        case Tuple(items):
            return _tuple(head, path, type_, items, value)
        case Record():
            return _record(head, path, type_, value)
        case List():
            return _list(head, path, type_, value)
        case Exists() | Arrow():
            raise TypeError(f"internal fault in Kina: {path} cannot be given from Python")


def _tuple(head: Head, path: str, type_: Type, items: tuple[Type, ...], value: Any) -> list[Any]:
    if not isinstance(value, tuple | list):
        raise errors.not_a_tuple(head, path, type_, type(value).__name__)
    if len(value) != len(items):
        raise errors.not_a_tuple(head, path, type_, f"{len(value)} item{'' if len(value) == 1 else 's'}")
    numbered = enumerate(zip(value, items, strict=True))
    return [leaf for k, (item, inner) in numbered for leaf in tensors_of(head, f"{path}.{k}", inner, item)]


def _record(head: Head, path: str, type_: Record, value: Any) -> list[Any]:
    given = _fields(value, [name for name, _ in type_.fields])
    if given is None:
        raise errors.not_a_record(head, path, type_, type(value).__name__)
    wanted = [name for name, _ in type_.fields]
    missing = [name for name in wanted if name not in given]
    unknown = [str(name) for name in given if name not in wanted]
    if missing or unknown:
        raise errors.wrong_fields(head, path, type_, missing, unknown)
    return [leaf for name, inner in type_.fields for leaf in tensors_of(head, f"{path}.{name}", inner, given[name])]


def _fields(value: Any, wanted: Sequence[str]) -> Mapping[str, Any] | None:
    """The fields of what was given for a record, or None where it has none."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    fields = getattr(value, "_fields", None)  # a named tuple
    if isinstance(value, tuple) and isinstance(fields, tuple):
        return dict(zip(fields, value, strict=True))
    found = {name: getattr(value, name) for name in wanted if hasattr(value, name)}
    return found or None


def _list(head: Head, path: str, type_: List, value: Any) -> list[Any]:
    if not isinstance(value, tuple | list) or isinstance(in_one(type_), Tuple):
        return tensors_of(head, path, in_one(type_), value)
    rows = [tensors_of(head, f"{path}[{n}]", type_.item, item) for n, item in enumerate(value)]
    if not rows:
        raise errors.empty_list(head, path, type_)
    return [arrays.stacked(head, path, column) for column in zip(*rows, strict=True)]
