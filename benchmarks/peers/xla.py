"""JAX: XLA on the CPU, jitted for the exact sizes. Threads are bounded by the CPUs that the process may use, the
platform by the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from peers import Candidate
from workloads import EPS, Input, Workload, attention_scale

Array = jax.Array


def _rmsnorm(x: Array, weight: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + EPS) * weight


def _softmax(x: Array) -> Array:
    return jax.nn.softmax(x, axis=-1)


def _swiglu(x: Array, w_gate: Array, w_up: Array, w_down: Array) -> Array:
    return (jax.nn.silu(x @ w_gate) * (x @ w_up)) @ w_down


def _attention(q: Array, k: Array, v: Array) -> Array:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) * attention_scale(np.empty(q.shape)), axis=-1) @ v


def _causal(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) * attention_scale(np.empty(q.shape))
    earlier = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), axis=-1) @ v


def _cross_entropy(logits: Array, targets: Array) -> Array:
    picked = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


def _append(cache: Array, rows: Array) -> Array:
    whole = jnp.concatenate([cache, jnp.zeros_like(rows)])

    def step(n: Array, grown: Array) -> Array:
        return jax.lax.dynamic_update_slice(grown, rows[n][None], (len(cache) + n, 0))

    grown: Array = jax.lax.fori_loop(0, len(rows), step, whole)
    return grown


FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "rmsnorm": _rmsnorm,
    "softmax": _softmax,
    "swiglu": _swiglu,
    "attention": _attention,
    "causal_attention": _causal,
    "cross_entropy": _cross_entropy,
    "append": _append,
    "gemm": jnp.matmul,
}


class Xla:
    def __init__(self, threads: int) -> None:
        pass

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        arrays = [jax.device_put(a) for a in inputs]
        function = jax.jit(FUNCTIONS[workload.kind])
        return {"jit": Candidate(lambda: function(*arrays).block_until_ready())}

    def to_numpy(self, result: object) -> npt.NDArray[np.float32]:
        return np.asarray(result)
