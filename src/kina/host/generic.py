"""Which case of a generic function a call from Python means: its ranks and dtypes are read off the arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from kina.diagnostics import Diagnostic, KinaError
from kina.diagnostics.render import render
from kina.dims.dim import constant
from kina.elaborate.generics import Choice, admits
from kina.elaborate.result import Generic
from kina.host.errors import CallError
from kina.host.numbers import is_number
from kina.syntax import ast
from kina.types import DType, Record, Tensor, Tuple, Type


def choice_of(generic: Generic, args: Sequence[Any], named: Mapping[str, Any]) -> Choice:
    """What the arguments put for the binders. Numbers and lists of them tell only where no array does.

    Raises CallError where something stays open, or a dtype is outside its class.
    """
    declaration = generic.declaration
    matching = generic.matching()
    pairs = list(_pairs(declaration, args, named))
    for name in _dtypes_given(declaration, named):
        matching.dtypes[name] = _dtype_named(declaration.name, name, named[name])
    for numbers in (False, True):
        for p, value in pairs:
            described = _described(value, numbers)
            if p.type is not None and described is not None:
                matching.match(p.type, described)
    choice = matching.choice()
    if choice is None:
        missing = ", ".join(matching.open())
        raise CallError(f"{declaration.name}: the arguments do not say what {missing} is")
    for binder in declaration.binders:
        if binder.kind is not None and not admits(binder.kind, matching.dtypes[binder.name]):
            got = matching.dtypes[binder.name]
            raise CallError(f"{declaration.name}: {binder.name} would be {got}, and has to be {binder.kind}")
    return choice


def without_dtypes(generic: Generic, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named arguments of a call but those that give dtypes, which the instance for them no longer has."""
    given = _dtypes_given(generic.declaration, named)
    return {name: value for name, value in named.items() if name not in given}


def _dtypes_given(declaration: ast.FunctionDeclaration, named: Mapping[str, Any]) -> list[str]:
    """The dtype binders that a call gives by name. A parameter of that name goes first."""
    parameters = {p.name for p in declaration.parameters}
    return [b.name for b in declaration.binders if b.kind is not None and b.name in named and b.name not in parameters]


def _dtype_named(function: str, name: str, value: Any) -> DType:
    """The dtype that a call gives by name: `T="F32"`, or as NumPy writes it."""
    if isinstance(value, str) and value in DType.__members__:
        return DType[value]
    try:
        found = DType.of_numpy(np.dtype(value))
    except TypeError:
        found = None
    if found is None:
        raise CallError(f"{function}: {name} is a dtype, as in {name}=\"F32\" or {name}=np.float32, not {value!r}")
    return found


def not_for(generic: Generic, choice: Choice, errors: tuple[Diagnostic, ...]) -> KinaError:
    """The error where a function is wrong at the ranks and dtypes of a call, though right at those tried before."""
    name = generic.declaration.name
    return KinaError(f"{name} is not right for {choice.text}\n\n{render(errors, color=False, width=100)}", errors)


def _pairs(
    declaration: ast.FunctionDeclaration, args: Sequence[Any], named: Mapping[str, Any]
) -> Iterator[tuple[ast.Parameter, Any]]:
    for n, p in enumerate(declaration.parameters):
        if n < len(args):
            yield p, args[n]
        elif p.name in named:
            yield p, named[p.name]


def _described(value: Any, numbers: bool) -> Type | None:
    """The type of an argument as far as its kind tells: ranks, dtypes, fields. Numbers have I64, F32 or Bool."""
    if is_number(value):
        return Tensor(_dtype_of_number(value), ()) if numbers else None
    if isinstance(value, Mapping):
        return _record(value.items(), numbers)
    if is_dataclass(value) and not isinstance(value, type):
        return _record([(name, getattr(value, name)) for name in value.__dataclass_fields__], numbers)
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, list | tuple) or is_number(item) for item in value):
            return _numbers(value) if numbers else None
        items = [_described(item, numbers) for item in value]
        return Tuple(tuple(item for item in items if item is not None)) if None not in items else None
    dtype, rank = _dtype(value), getattr(value, "ndim", None)
    return Tensor(dtype, (constant(1),) * rank) if dtype is not None and isinstance(rank, int) else None


def _record(items: Any, numbers: bool) -> Record:
    described = [(str(name), _described(item, numbers)) for name, item in items]
    return Record("", (), tuple((name, item) for name, item in described if item is not None))


def _numbers(value: Sequence[Any]) -> Tensor | None:
    rank, item = 0, value
    while isinstance(item, list | tuple) and item:
        rank, item = rank + 1, item[0]
    return Tensor(_dtype_of_number(item), (constant(1),) * rank) if is_number(item) else None


def _dtype_of_number(value: Any) -> DType:
    if isinstance(value, bool | np.bool_):
        return DType.BOOL
    if isinstance(value, np.generic):
        return DType.of_numpy(value.dtype) or DType.F32
    return DType.I64 if isinstance(value, int) else DType.F32


def _dtype(value: Any) -> DType | None:
    """The dtype of an array of any library: PyTorch's are told by name."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return None
    try:
        return DType.of_numpy(np.dtype(str(dtype).removeprefix("torch.")) if "torch" in str(dtype) else dtype)
    except TypeError:
        return DType.BF16 if "bfloat16" in str(dtype) else None
