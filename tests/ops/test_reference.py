"""What each operation means, against JAX; and its lowering, element by element, against its meaning."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from kina import types
from kina.dims.dim import Dim, constant
from kina.ops import Sample, all_operations, scalar
from kina.ops.random import threefry
from kina.types import DType, Tensor
from quantised_arrays import numbers_of, quantised

jax.config.update("jax_enable_x64", True)


def sizes_of(sample: Sample, size: Callable[[str], int]) -> dict[str, int]:
    names: set[str] = set()
    for tensor in sample.operands:
        for d in types.sizes(tensor):
            names |= d.variables
    for value in sample.operation.arguments().values():
        for d in value if isinstance(value, tuple) else (value,):
            if isinstance(d, Dim):
                names |= d.variables
    return {name: size(name) for name in sorted(names)}


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
        return rng.integers(0 if tensor.dtype is DType.U8 else -9, 10, shape).astype(tensor.dtype.numpy)
    values = rng.uniform(0.1, 3, shape) if sample.positive else rng.standard_normal(shape) * 2
    return values.astype(tensor.dtype.numpy)


SAMPLES = [
    pytest.param(sample, id=f"{entry.name}-{n}")
    for entry in all_operations()
    for n, sample in enumerate(entry.samples())
]

JAX: dict[str, Callable[..., Any]] = {
    "dim_value": lambda dim: jnp.int64(dim), "position": lambda dim, n: jnp.int64(dim),
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "pow": jnp.power,
    "zero_mul": lambda x, y: jnp.where((x == 0) | (y == 0), 0, x * y), "stop_gradient": jax.lax.stop_gradient,
    "min": jnp.minimum, "max": jnp.maximum, "eq": jnp.equal, "ne": jnp.not_equal, "lt": jnp.less, "le": jnp.less_equal,
    "gt": jnp.greater, "ge": jnp.greater_equal, "logical_and": jnp.logical_and, "logical_or": jnp.logical_or,
    "logical_not": jnp.logical_not, "neg": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "exp": jnp.exp,
    "log": jnp.log,
    "log1p": jnp.log1p, "expm1": jnp.expm1, "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "recip": lambda x: 1 / x,
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "tanh": jnp.tanh, "erf": jax.lax.erf, "sigmoid": jax.nn.sigmoid,
    "relu": lambda x: jnp.maximum(x, 0), "silu": jax.nn.silu, "softplus": jax.nn.softplus, "floor": jnp.floor,
    "ceil": jnp.ceil, "round": jnp.round, "is_nan": jnp.isnan, "select": jnp.where,
    "clamp": lambda x, low, high: jnp.minimum(jnp.maximum(x, low), high), "matmul": jnp.matmul,
    "gelu": lambda x, variant: jax.nn.gelu(x, approximate=variant == "tanh"),
    "softmax": lambda x, axis: jax.nn.softmax(x, axis), "log_softmax": lambda x, axis: jax.nn.log_softmax(x, axis),
    "broadcast": lambda x, shape: jnp.broadcast_to(x, shape), "reshape": lambda x, shape: jnp.reshape(x, shape),
    "reinterpret": lambda x, shape: jnp.reshape(x, shape), "transpose": lambda x, order: jnp.transpose(x, order),
    "expand_dims": lambda x, axis: jnp.expand_dims(x, axis), "squeeze": lambda x, axis: jnp.squeeze(x, axis),
    "repeat_interleave": lambda x, axis, n: jnp.repeat(x, n, axis),
    "concat": lambda *xs, axis: jnp.concatenate(xs, axis),
    "flatten_pair": lambda x, axis: x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :]),
    "slice": lambda x, axis, start, stop: jax.lax.slice_in_dim(x, start, stop, axis=axis),
    "cumsum": lambda x, axis: jnp.cumsum(x, axis, dtype=x.dtype),
    "cumprod": lambda x, axis: jnp.cumprod(x, axis, dtype=x.dtype),
    "cummax": lambda x, axis: jax.lax.cummax(x, axis),
    "every": lambda x, axis, n: x[(*[slice(None)] * axis, slice(None, None, n))],
    "roll": lambda x, axis, n: jnp.roll(x, n, axis),
    "windows": lambda x, axis, size, step, dilation: jnp.stack(
        [
            jnp.take(x, jnp.arange(size) * dilation + start, axis)
            for start in range(0, x.shape[axis] - dilation * (size - 1), step)
        ],
        axis,
    ),
    "flip": lambda x, axis: jnp.flip(x, axis),
    "repeat": lambda x, axis, n: jnp.concatenate([x] * n, axis),
    "pad": lambda x, axis, lo, hi: jnp.pad(x, [(lo, hi) if a == axis else (0, 0) for a in range(x.ndim)]),
    "stack": lambda *xs, axis: jnp.stack(xs, axis),
    "unflatten": lambda x, axis, sizes: x.reshape(*x.shape[:axis], *map(int, sizes), *x.shape[axis + 1 :]),
    "zeros": lambda dtype, shape: jnp.zeros(shape, dtype.numpy),
    "ones": lambda dtype, shape: jnp.ones(shape, dtype.numpy),
    "full": lambda x, shape: jnp.full(shape, x), "iota": lambda dtype, n: jnp.arange(n).astype(dtype.numpy),
    "eye": lambda dtype, n: jnp.eye(n).astype(dtype.numpy),
    "cast": lambda x, to: jnp.asarray(x).astype(to.numpy),
    "to_idx": lambda x, bound, what: jnp.asarray(x).astype(np.int64),
    "gather": lambda table, ids, axis: jnp.take(table, ids, axis), "take_along": jnp.take_along_axis,
    "one_hot": lambda ids, dtype, n: jax.nn.one_hot(ids, n, dtype=dtype.numpy),
    "dynamic_slice": lambda x, start, axis, n: jax.lax.dynamic_slice_in_dim(x, start, n, axis),
    "update_slice": lambda x, part, at, axis: jax.lax.dynamic_update_slice_in_dim(x, part, at, axis),
    "argsort": lambda x, axis: jnp.argsort(x, axis, stable=True),
    "arg_top_k": lambda x, axis, k: _arg_top_k(x, axis, k),
}  # fmt: skip


def _overlap_add(x: np.ndarray, axis: int, length: int, step: int, dilation: int) -> Any:
    """The transpose, as JAX finds it, of taking the windows."""
    count, size = x.shape[axis : axis + 2]
    places = np.arange(count)[:, None] * step + np.arange(size) * dilation
    whole = np.zeros((*x.shape[:axis], length, *x.shape[axis + 2 :]), x.dtype)
    _, pull = jax.vjp(lambda given: jnp.take(given, places, axis), whole.astype(np.float64))
    return np.asarray(pull(x.astype(np.float64))[0]).astype(x.dtype)


JAX["overlap_add"] = _overlap_add


def _arg_top_k(x: np.ndarray, axis: int, k: int) -> Any:
    last = jnp.moveaxis(x.astype(np.int8) if x.dtype == np.bool_ else x, axis, -1)  # JAX's knows no Bool
    return jnp.moveaxis(jax.lax.top_k(last, k)[1].astype(np.int64), -1, axis)


def _scatter(x: np.ndarray, ids: np.ndarray, updates: np.ndarray, kind: str, axis: int) -> Any:
    place = jnp.asarray(x).at[(*[slice(None)] * axis, ids)]
    if kind != "set":
        return getattr(place, kind)(updates)
    # Which of several stays is not said by JAX: here, the last one.
    result = np.array(x)
    rows = np.moveaxis(result, axis, 0)
    flat = np.moveaxis(updates.reshape(*x.shape[:axis], ids.size, *x.shape[axis + 1 :]), axis, 0)
    for n in range(ids.size):
        rows[ids.flat[n]] = flat[n]
    return result


JAX["scatter"] = _scatter


def _bits(key: np.ndarray, shape: tuple[int, ...]) -> Any:
    words = np.array([int(key) >> 32 & 0xFFFFFFFF, int(key) & 0xFFFFFFFF], np.uint32)
    return jax.random.bits(jax.random.wrap_key_data(words), shape, np.uint64)


def _fold_in(key: np.ndarray, n: np.ndarray) -> Any:
    def one(key: int, n: int) -> np.int64:
        words = [np.array([x >> 32 & 0xFFFFFFFF, x & 0xFFFFFFFF], np.uint32) for x in (int(key), int(n))]
        upper, lower = (int(x) for x in threefry_2x32(tuple(words[0]), words[1]))
        return np.uint64(upper << 32 | lower).astype(np.int64)

    return np.vectorize(one, otypes=[np.int64])(key, n)


def _unit(key: np.ndarray, shape: tuple[int, ...], count: int) -> Any:
    return (_bits(key, shape) >> (64 - count)).astype(np.float64) / 2.0**count


def _normal(key: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> Any:
    if dtype is DType.F64:
        pairs = _bits(key, (*shape, 2))
        u, v = ((pairs[..., 0] >> 1).astype(np.float64) + 0.5) / 2.0**63, (pairs[..., 1] >> 11) / 2.0**53
    else:
        bits = _bits(key, shape)
        u, v = ((bits >> 32).astype(np.float64) + 0.5) / 2.0**32, ((bits & 0xFFFFFFFF) >> 8) / 2.0**24
    return (jnp.sqrt(-2 * jnp.log(u)) * jnp.cos(2 * np.pi * v)).astype(dtype.numpy)


JAX |= {
    "fold_in": _fold_in,
    "random_bits": lambda key, shape: _bits(key, shape).astype(np.int64),
    "random_uniform": lambda key, dtype, shape: _unit(
        key, shape, {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}[dtype]
    ).astype(dtype.numpy),
    "random_normal": _normal,
    "random_gumbel": lambda key, dtype, shape: -jnp.log(
        -jnp.log1p(-((_bits(key, shape) >> 1).astype(np.float64) + 0.5) / 2.0**63)
    ).astype(dtype.numpy),
    "random_bernoulli": lambda key, p: _unit(key, p.shape, 53 if p.dtype == np.float64 else 24) < p,
    "random_index": lambda key, n, shape: ((_bits(key, shape) >> 1) % n).astype(np.int64),
}


def _reduce(kind: str, x: np.ndarray, axes: tuple[int, ...], keep: bool) -> Any:
    if kind in ("argmax", "argmin"):
        return getattr(jnp, kind)(x, axes[0], keepdims=keep)
    if kind == "logsumexp":
        return jax.nn.logsumexp(x, axes, keepdims=keep)
    return getattr(jnp, kind)(x, axes, keepdims=keep)


JAX["reduce"] = lambda x, kind, axes: _reduce(kind, x, axes, False)
JAX["reduce_keep"] = lambda x, kind, axes: _reduce(kind, x, axes, True)


def _plain(operands: list[np.ndarray]) -> list[np.ndarray]:
    """Quantised operands as the numbers that the gguf package reads out of them."""
    dtypes = [DType.of_numpy(x.dtype) for x in operands]
    return [numbers_of(x, d) if d is not None and d.block else x for x, d in zip(operands, dtypes, strict=True)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_reference_means_what_jax_computes(sample):
    sizes = sizes_of(sample, lambda name: 2 + ord(name[0]) % 3)
    operation = sample.operation.substitute({n: constant(s) for n, s in sizes.items()})
    rng = np.random.default_rng(1)
    operands = [draw(t, sizes, rng, sample) for t in sample.operands]
    static = {
        k: tuple(map(int, v)) if isinstance(v, tuple) and k == "shape" else int(v) if isinstance(v, Dim) else v
        for k, v in operation.arguments().items()
    }
    want = np.asarray(JAX[operation.name](*_plain(operands), **static))
    got = operation.reference(*operands)
    assert got.dtype == want.dtype or got.dtype == sample.operands[-1].dtype.numpy
    assert got.shape == want.shape
    narrow = {2: 2e-2, 4: 2e-5}.get(got.dtype.itemsize, 1e-12)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=narrow, atol=narrow)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.values[0].operation.fusible])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_the_lowering_computes_each_element_of_the_reference(sample, size):
    sizes = sizes_of(sample, lambda name: size)
    substitution = {n: constant(s) for n, s in sizes.items()}
    operation = sample.operation.substitute(substitution)
    typed = tuple(Tensor(t.dtype, tuple(d.substitute(substitution) for d in t.shape)) for t in sample.operands)
    rng = np.random.default_rng(2)
    operands = [draw(t, sizes, rng, sample) for t in sample.operands]
    want = operation.reference(*operands)
    got = np.empty(want.shape, want.dtype)
    with np.errstate(all="ignore"):
        for place in itertools.product(*map(range, want.shape)):
            got[place] = evaluate(operation.lower(typed, tuple(map(constant, place))), _plain(operands), {})
    assert got.dtype == want.dtype
    narrow = {2: 2e-2, 4: 5e-5}.get(got.dtype.itemsize, 1e-10)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=narrow, atol=narrow)


# ---------------------------------------------------------------- scalar expressions, evaluated one by one

PRIMITIVES: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative, "abs": np.abs,
    "min": np.minimum, "max": np.maximum, "pow": np.power, "exp": np.exp, "log": np.log, "log1p": np.log1p,
    "expm1": np.expm1, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "erf": lambda x: np.asarray(jax.lax.erf(x)), "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "select": np.where, "is_nan": np.isnan,
    "remainder": np.remainder, "threefry": threefry,
    "shift_right": lambda x, by: (x.view(f"u{x.dtype.itemsize}") >> by.astype(f"u{x.dtype.itemsize}")).view(x.dtype),
}  # fmt: skip
COMBINE: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and,
}  # fmt: skip


def identity(kind: str, dtype: np.dtype[Any]) -> Any:
    if kind in ("max", "min") and dtype.kind in "fV":
        return dtype.type(-np.inf if kind == "max" else np.inf)
    if kind in ("max", "min"):
        return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max
    return dtype.type({"sum": 0, "prod": 1, "any": False, "all": True}[kind])


def dtype_of(e: scalar.Scalar, operands: list[np.ndarray]) -> np.dtype[Any]:
    match e:
        case scalar.Element(operand, _):
            return operands[operand].dtype
        case scalar.Literal(_, dtype) | scalar.Cast(_, dtype):
            return dtype.numpy
        case scalar.SizeValue():
            return np.dtype(np.int64)
        case scalar.Call(function, arguments):
            if function in ("eq", "ne", "lt", "le", "gt", "ge", "is_nan"):
                return np.dtype(np.bool_)
            return dtype_of(arguments[-1], operands)
        case scalar.Reduce(_, _, _, body) | scalar.Lookup(_, _, _, body):
            return dtype_of(body, operands)
        case scalar.Pieces(_, pieces):
            return dtype_of(pieces[0][1], operands)


def evaluate(e: scalar.Scalar, operands: list[np.ndarray], loops: Mapping[str, int]) -> Any:
    """A scalar expression's value; indices are checked against the operand."""
    match e:
        case scalar.Element(operand, index):
            place = tuple(i.evaluate(loops) for i in index)
            assert all(0 <= i < n for i, n in zip(place, operands[operand].shape, strict=True)), "out of bounds"
            return operands[operand][place]
        case scalar.Literal(value, dtype):
            return np.asarray(value, np.float64 if dtype.is_float else None).astype(dtype.numpy)
        case scalar.SizeValue(dim):
            return np.int64(dim.evaluate(loops))
        case scalar.Call(function, arguments):
            values = [evaluate(a, operands, loops) for a in arguments]
            narrow = np.asarray(values[-1]).dtype
            wide = [
                np.asarray(v).astype(np.float32) if np.asarray(v).dtype.itemsize == 2 and narrow.kind in "fV" else v
                for v in values
            ]
            result = np.asarray(PRIMITIVES[function](*wide))
            return result if result.dtype == np.bool_ else result.astype(narrow)
        case scalar.Cast(operand, dtype):
            from kina.ops.elementwise import Cast

            return Cast(dtype).reference(np.asarray(evaluate(operand, operands, loops)))
        case scalar.Reduce(kind, variable, extent, body):
            total = np.asarray(identity(kind, dtype_of(body, operands)))
            for i in range(extent.evaluate(loops)):
                total = np.asarray(COMBINE[kind](total, evaluate(body, operands, {**loops, variable: i}))).astype(
                    total.dtype
                )
            return total
        case scalar.Pieces(position, pieces):
            at = position.evaluate(loops)
            for bound, piece in pieces:
                if at < bound.evaluate(loops):
                    return evaluate(piece, operands, loops)
            raise AssertionError("no piece")
        case scalar.Lookup(variable, extent, position, body):
            at = int(evaluate(position, operands, loops))
            assert 0 <= at < extent.evaluate(loops)
            return evaluate(body, operands, {**loops, variable: at})
