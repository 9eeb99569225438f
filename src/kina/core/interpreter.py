"""The reference interpreter: what every program means, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kina.core.ir import Apply, Call, Check, Function, Tree, Value, leaves
from kina.diagnostics import KinaError
from kina.dims.dim import constant
from kina.dims.proposition import holds
from kina.ops.base import Array

Environment = dict[Value, Array]


def run(function: Function, sizes: Mapping[str, int], inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs of `function` at concrete sizes, one array a tensor of the result.

    `inputs` are the arrays of `function.inputs`. Every intermediate array is compared with its type,
    so a type rule that disagrees with the meaning of its operation is found here. Raises KinaError
    where a run-time check fails.
    """
    values: Environment = dict(zip(function.inputs, inputs, strict=True))
    for value, array in values.items():
        _confirm(value, array, sizes)
    replacement = {name: constant(size) for name, size in sizes.items()}
    for statement in function.statements:
        match statement:
            case Apply(result, operation, arguments):
                operands = [values[v] for v in arguments]
                values[result] = operation.substitute(replacement).reference(*operands)
                _confirm(result, values[result], sizes)
            case Call(result, callee, dimensions, arguments):
                inner = {n: d.evaluate(sizes) for n, d in zip(callee.dimensions, dimensions, strict=True)}
                given = [values[v] for tree in arguments for v in leaves(tree)]
                values.update(zip(leaves(result), run(callee, inner, given), strict=True))
            case Check(proposition, span):
                if not holds(proposition, sizes):
                    where = f"{span}: " if span else ""
                    at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                    raise KinaError(f"{where}the assertion {proposition} does not hold for {at}")
    return tuple(values[v] for v in function.outputs)


def _confirm(value: Value, array: Array, sizes: Mapping[str, int]) -> None:
    shape = tuple(d.evaluate(sizes) for d in value.type.shape)
    if array.shape != shape or array.dtype != value.type.dtype.numpy:
        raise AssertionError(
            f"internal fault in Kina: {value.name} is typed {value.type} ({shape} here) "
            f"but the reference made {array.dtype}{list(array.shape)}"
        )


def rebuild(tree: Tree, arrays: Sequence[Array]) -> object:
    """Flat outputs put back into the shape of a result tree: nested tuples of arrays."""
    supply = iter(arrays)

    def build(node: Tree) -> object:
        return next(supply) if isinstance(node, Value) else tuple(build(item) for item in node)

    return build(tree)


def empty_like(function: Function, sizes: Mapping[str, int]) -> tuple[Array, ...]:
    """Uninitialised arrays for the outputs, row-major."""
    return tuple(np.empty(tuple(d.evaluate(sizes) for d in v.type.shape), v.type.dtype.numpy) for v in function.outputs)
