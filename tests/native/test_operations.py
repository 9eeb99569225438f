"""Native code against the reference interpreter: every operation's samples, at many sizes and layouts."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
import pytest

from kina import native
from kina.core.interpreter import run
from kina.core.ir import Apply, Function, Parameter, Value
from kina.dims.dim import Dim
from kina.kernels import fuse
from kina.ops import Sample, all_operations
from kina.passes.guard import guard
from kina.types import DType, Tensor
from kina.types import sizes as dims_of
from quantised_arrays import quantised

MACHINE = native.Machine.host()
SAMPLES = [
    pytest.param(sample, id=f"{entry.name}-{n}")
    for entry in all_operations()
    for n, sample in enumerate(entry.samples())
]
SIZES = [0, 1, 2, 7, 17, 64, 130]


class _Anything:
    """A rule that accepts: the samples are well typed."""

    def __getattr__(self, name: str) -> object:
        return lambda *args, **kwargs: None


def names_of(sample: Sample) -> list[str]:
    names: set[str] = set()
    for tensor in sample.operands:
        names.update(*(d.variables for d in dims_of(tensor)))
    for value in sample.operation.arguments().values():
        for d in value if isinstance(value, tuple) else (value,):
            if isinstance(d, Dim):
                names |= d.variables
    return sorted(names)


def function_of(sample: Sample) -> Function:
    operands = tuple(Value(f"x{n}", t) for n, t in enumerate(sample.operands))
    result = Value("y", sample.operation.type(_Anything(), *sample.operands))  # type: ignore[arg-type]
    parameters = tuple(Parameter(v.name, v) for v in operands)
    statement = Apply(result, sample.operation, operands)
    return Function("f", tuple(names_of(sample)), (), parameters, result.type, (statement,), result)


def draw(tensor: Tensor, sizes: Mapping[str, int], rng: np.random.Generator, sample: Sample) -> np.ndarray:
    shape = tuple(d.evaluate(sizes) for d in tensor.shape)
    limit = tensor.bound or sample.below
    if limit is not None:
        most = min(limit.evaluate(sizes), tensor.dtype.integer_range[1])
        return rng.integers(0, most, shape).astype(tensor.dtype.numpy)
    if tensor.dtype.block is not None:
        return quantised(rng.standard_normal(shape), tensor.dtype)
    if tensor.dtype is DType.BOOL:
        return rng.random(shape) < 0.5
    if tensor.dtype.is_integer:
        return rng.integers(0 if tensor.dtype is DType.U8 else -100, 100, shape).astype(tensor.dtype.numpy)
    if sample.operation.arguments().get("kind") == "prod":
        return rng.uniform(0.9, 1.1, shape).astype(tensor.dtype.numpy)  # no overflow, whatever the order
    values = rng.uniform(0.1, 3, shape) if sample.positive else rng.standard_normal(shape) * 2
    return values.astype(tensor.dtype.numpy)


def layouts(x: np.ndarray, rng: np.random.Generator):
    """The same values: contiguous, transposed in memory, every second element, backwards, and misplaced."""
    yield x
    if x.ndim:
        yield np.asfortranarray(x)
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 3), x.dtype)
        wide[..., 1 : 2 * x.shape[-1] + 1 : 2] = x
        yield wide[..., 1 : 2 * x.shape[-1] + 1 : 2]
        yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        padded = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
        padded[..., 1:] = x
        yield padded[..., 1:]


MOST = 200_000
"""Elements of a tensor in these tests, at most."""


def sizes_near(size: int, round_: int, function: Function) -> dict[str, int]:
    """Sizes about as large as asked, different from each other, and smaller where a tensor would be huge."""
    tensors = [v.type for v in (*function.inputs, *function.outputs)]
    while True:
        sizes = {n: size + (i * round_) % 3 for i, n in enumerate(function.dimensions)}
        if all(prod(d.evaluate(sizes) for d in t.shape) <= MOST for t in tensors):
            return sizes
        size = size * 3 // 4


def tolerance(dtype: DType) -> float:
    return {DType.F64: 1e-12, DType.F32: 2e-5, DType.F16: 2e-3, DType.BF16: 1.6e-2}.get(dtype, 0)


def agree(got: np.ndarray, want: np.ndarray, dtype: DType) -> None:
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    limit = tolerance(dtype)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=limit, atol=limit)


@pytest.mark.parametrize("sample", SAMPLES)
def test_native_code_agrees_with_the_reference_at_all_sizes_and_layouts(sample):
    function = function_of(sample)
    executable = native.compile(fuse(guard(function)), MACHINE)
    rng = np.random.default_rng(3)
    for round_, size in enumerate(SIZES):
        sizes = sizes_near(size, round_, function)
        inputs = [draw(t, sizes, rng, sample) for t in sample.operands]
        (want,) = run(function, sizes, inputs)
        for laid_out in zip(*(layouts(x, rng) for x in inputs), strict=False):
            (got,) = executable.run(sizes, laid_out)
            agree(got, want, function.outputs[0].type.dtype)


SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 1.2e-38, 3.4e38, -3.4e38),
    *(0.5, -0.5, 1.5, 2.5, 88.0, -104.0),
]


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.values[0].operation.family == "elementwise"])
def test_special_values_go_the_way_of_the_reference(sample):
    if any(not t.dtype.is_float for t in sample.operands):
        pytest.skip("integers have no special values")
    function = function_of(sample)
    executable = native.compile(fuse(guard(function)), MACHINE)
    column = np.array(SPECIAL).reshape(-1, 1)
    row = np.array(SPECIAL).reshape(1, -1)
    grid = [np.broadcast_to(v, (len(SPECIAL), len(SPECIAL))) for v in (column, row, row.T[::-1])]
    with np.errstate(all="ignore"):
        inputs = [g.astype(t.dtype.numpy) for g, t in zip(grid, sample.operands, strict=False)]
    sizes = {"A": len(SPECIAL), "B": len(SPECIAL)}
    (want,) = run(function, sizes, inputs)
    (got,) = executable.run(sizes, inputs)
    agree(got, want, function.outputs[0].type.dtype)
