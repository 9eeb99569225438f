"""From the samples of each operation: its tangent against finite differences, its transpose against its tangent.

First and second order, in F64, at several sizes. An operation that has floats for operands and result and does not say
what its derivative is makes these tests fail.
"""

from __future__ import annotations

from dataclasses import replace

import derivatives
import numpy as np
import pytest

from kina import autodiff
from kina.core.interpreter import run
from kina.core.ir import Apply, Function, Parameter, Value
from kina.core.verifier import verify
from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison
from kina.ops import Sample, all_operations
from kina.ops.base import Kind, has_tangent, result_type
from kina.types import DType, Tensor
from kina.types import sizes as dims_of


class _Anything:
    """A rule that accepts: the samples are well typed."""

    def __getattr__(self, name: str) -> object:
        return lambda *args, **kwargs: None


def _precise(sample: Sample) -> Sample:
    """The sample in F64, where it is of floats."""
    operation = sample.operation
    for p in operation.parameters():
        value = getattr(operation, p.name)
        if p.kind is Kind.DTYPE and value.is_float:
            operation = replace(operation, **{p.name: DType.F64})  # type: ignore[type-var]
    operands = tuple(t.with_dtype(DType.F64) if has_tangent(t) else t for t in sample.operands)
    return replace(sample, operation=operation, operands=operands)


def _result(sample: Sample) -> Tensor:
    return result_type(_Anything(), sample.operation, sample.operands)  # type: ignore[arg-type]


def _samples() -> list[object]:
    """The samples whose operands and result are floats, each once."""
    known: list[Sample] = []
    found = []
    for entry in all_operations():
        for n, given in enumerate(entry.samples()):
            sample = _precise(given)
            if sample.operation.flat:
                continue  # the derivative is not that of the meaning: that is what it is for
            if any(map(has_tangent, sample.operands)) and has_tangent(_result(sample)) and sample not in known:
                known.append(sample)
                found.append(pytest.param(sample, id=f"{entry.name}-{n}"))
    return found


SAMPLES = _samples()
SIZES = [0, 1, 3]


def _names(sample: Sample) -> list[str]:
    names: set[str] = set()
    for tensor in sample.operands:
        names.update(*(d.variables for d in dims_of(tensor)))
    for value in sample.operation.arguments().values():
        for d in value if isinstance(value, tuple) else (value,):
            if isinstance(d, Dim):
                names |= d.variables
    return sorted(names)


def _function(sample: Sample) -> Function:
    inputs = tuple(Value(f"x{n}", t) for n, t in enumerate(sample.operands))
    result = Value("y", _result(sample))
    parameters = tuple(Parameter(v.name, v) for v in inputs)
    statements = (Apply(result, sample.operation, inputs),)
    return Function("f", tuple(_names(sample)), (), parameters, result.type, statements, result)


def _inputs(sample: Sample, sizes: dict[str, int], rng: np.random.Generator) -> list[np.ndarray]:
    found = []
    for tensor in sample.operands:
        shape = tuple(d.evaluate(sizes) for d in tensor.shape)
        if tensor.bound is not None:
            found.append(rng.integers(0, tensor.bound.evaluate(sizes), shape))
        elif tensor.dtype is DType.BOOL:
            found.append(rng.random(shape) < 0.5)
        elif tensor.dtype.is_integer:
            found.append(rng.integers(0, 9, shape).astype(tensor.dtype.numpy))
        elif sample.positive:
            found.append(rng.uniform(0.3, 3, shape))
        else:
            found.append(rng.choice([-1, 1], shape) * rng.uniform(0.2, 2.5, shape))
    return found


def _case(sample: Sample, size: int) -> tuple[Function, dict[str, int], list[np.ndarray], np.random.Generator]:
    rng = np.random.default_rng(size)
    sizes = {name: size + (ord(name[0]) % 2 if size else 0) for name in _names(sample)}
    return _function(sample), sizes, _inputs(sample, sizes, rng), rng


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_tangent_of_an_operation_is_what_finite_differences_say(sample, size):
    derivatives.agree_with_differences(*_case(sample, size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_transpose_of_an_operation_is_adjoint_to_its_tangent(sample, size):
    derivatives.are_adjoint(*_case(sample, size))


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_second_derivative_of_an_operation_is_what_finite_differences_of_the_first_say(sample):
    function, sizes, inputs, rng = _case(sample, 2)
    v = derivatives.directions(function, inputs, rng)
    derivatives.agree_with_differences(autodiff.jvp(function), sizes, [*inputs, *v], rng)
    w = [rng.standard_normal(o.shape) for o in run(function, sizes, inputs)]
    derivatives.agree_with_differences(autodiff.vjp(function), sizes, [*inputs, *w], rng)


@pytest.mark.parametrize("sample", SAMPLES)
def test_derivatives_are_themselves_differentiated_in_reverse(sample):
    function, sizes, inputs, rng = _case(sample, 2)
    w = [rng.standard_normal(o.shape) for o in run(function, sizes, inputs)]
    derivatives.are_adjoint(autodiff.vjp(function), sizes, [*inputs, *w], rng)


@pytest.mark.parametrize("sample", SAMPLES)
def test_derivatives_of_operations_are_well_typed_for_all_sizes(sample):
    positive = tuple(Comparison(">=", variable(name), constant(1)) for name in _names(sample))
    function = replace(_function(sample), requires=positive)
    verify(autodiff.jvp(function))
    verify(autodiff.vjp(function))


def test_operations_without_samples_are_of_integers_only():
    for entry in all_operations():
        if not entry.samples():
            assert entry.name in {"floor_div", "remainder", "nonzero_along"}
