"""The call boundary: from a Python call to sizes and arrays, and from arrays back to the caller's kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kina.core.interpreter import rebuild
from kina.core.ir import Function, Value, tree_type
from kina.host import arrays, errors
from kina.host.arrays import Kind
from kina.host.errors import Head
from kina.host.fast_path import Match, compile_match
from kina.host.records import tensors_of
from kina.host.sizes import Plan, follow, make_plan
from kina.ops.base import Array
from kina.types import Type, parts

Run = Callable[[Mapping[str, int], Sequence[Array]], tuple[Array, ...]]
"""What an executable does: sizes and input arrays to output arrays."""

_LAYOUTS_KEPT = 64


class Executable(Protocol):
    """A function that can be run."""

    def run(self, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Fresh row-major arrays, one a tensor of the result. Raises KinaError where a run-time check fails.

        Inputs have the dtypes and shapes of the function at these sizes, and any strides and alignment.
        """


class Boundary:
    """What stands between Python and one function. Holds no state but what it has precompiled.

    Arguments go by position or name. A size that the shapes do not determine is given by its name; where a
    parameter has the same name, the name means the parameter.
    """

    def __init__(self, function: Function, *, draws: bool = False) -> None:
        self.function = function
        self._draws = draws
        self.head = head_of(function)
        self._layouts: dict[tuple[int | str, ...], Match] = {}
        self._plans: dict[frozenset[str], Plan] = {}
        self._single = isinstance(function.result, Value)

    def call(self, run: Run, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Runs the function on the arguments of a Python call. Raises KinaError, worded for the caller."""
        match = self._layouts.get((len(args), *named))
        if match is not None:
            matched = match(*args, *named.values())
            if matched is not None:
                outputs = run(*matched)
                return outputs[0] if self._single else rebuild(self.function.result, outputs)
        return self._general(run, args, named)

    def _general(self, run: Run, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        values, given = self._bind(args, named)
        leaves: list[Any] = []
        for name, type_ in self.head.parameters:
            leaves += tensors_of(self.head, name, type_, values[name])
        inputs = [arrays.to_numpy(self.head, k, leaf) for k, leaf in enumerate(leaves)]
        shapes = [t.dtype.shape_of(x) for t, x in zip(self.head.inputs, inputs, strict=True)]
        sizes = follow(self.head, self._plan(given), self.function.requires, shapes, given)
        for number, (tensor, x) in enumerate(zip(self.head.inputs, inputs, strict=True)):
            if tensor.bound is not None:
                _in_range(self.head, number, tensor.bound.evaluate(sizes), x)
        outputs = run(sizes, inputs)
        self._learn(args, named)
        kind = arrays.result_kind(leaves)
        if kind is not Kind.NUMPY:
            outputs = tuple(arrays.give(x, kind) for x in outputs)
        return outputs[0] if self._single else rebuild(self.function.result, outputs)

    def _bind(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """The values of parameters, and the sizes given by name."""
        names = [name for name, _ in self.head.parameters]
        if len(args) > len(names):
            raise errors.too_many_arguments(self.head, len(args))
        values: dict[str, Any] = dict(zip(names, args, strict=False))
        given: dict[str, int] = {}
        for name, value in named.items():
            if name in values:
                raise errors.argument_twice(self.head, name)
            if name in names:
                values[name] = value
            elif name in self.head.dimensions:
                given[name] = _size(self.head, name, value)
            else:
                raise errors.unknown_argument(self.head, name)
        missing = [name for name in names if name not in values]
        if missing == names[-1:] and self._draws:
            raise errors.missing_seed(self.head)
        if missing:
            raise errors.missing_arguments(self.head, missing)
        return values, given

    def _plan(self, given: Mapping[str, int]) -> Plan:
        key = frozenset(given)
        if key not in self._plans:
            self._plans[key] = make_plan(self.head.dimensions, self.head.inputs, key)
        return self._plans[key]

    def _learn(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Precompiles this way of passing arguments, now that a call has shown it to be right."""
        layout: tuple[int | str, ...] = (len(args), *named)
        if layout not in self._layouts and len(self._layouts) < _LAYOUTS_KEPT:
            passed = [name for name, _ in self.head.parameters[: len(args)]] + list(named)
            match = compile_match(self.function, passed)
            if match is not None:
                self._layouts[layout] = match


def head_of(function: Function) -> Head:
    """What messages say of a function."""
    parameters = tuple((p.name, tree_type(p.value)) for p in function.parameters)
    names = [name for parameter, type_ in parameters for name in _names(parameter, type_)]
    return Head(
        function.name, parameters, function.dimensions, tuple(names), tuple(v.type for v in function.inputs)
    )  # fmt: skip


def _names(path: str, type_: Type) -> list[str]:
    inner = parts(type_)
    return [name for label, item in inner for name in _names(f"{path}.{label}", item)] if inner else [path]


def _in_range(head: Head, number: int, bound: int, x: Array) -> None:
    """Indices are checked once, here: the program reads with them unchecked."""
    wrong = (x < 0) | (x >= bound)
    if wrong.any():
        at = tuple(int(n) for n in np.argwhere(wrong)[0])
        raise errors.index_out_of_range(head, number, bound, at, int(x[at]))


def _size(head: Head, name: str, value: Any) -> int:
    """A size given by name. NumPy's integers will do."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise errors.wrong_size(head, name, value)
    try:
        size = value.__index__()
    except TypeError:
        raise errors.wrong_size(head, name, value) from None
    if size < 0:
        raise errors.wrong_size(head, name, value)
    return int(size)
