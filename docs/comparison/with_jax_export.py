"""The ten functions in JAX, exported with symbolic sizes: traced once for all of them, with the constraints given."""

import jax
import jax.numpy as jnp
from jax import export


def rmsnorm(x, w, eps):
    mean_square = jnp.mean(x * x, axis=2, keepdims=True)
    return x * jax.lax.rsqrt(mean_square + eps) * w


def rmsnorm_wrong(x, w, eps):
    mean_square = jnp.mean(x * x, axis=2)
    return x * jax.lax.rsqrt(mean_square + eps) * w


def linear(x, w, b):
    return x @ w.T + b


def linear_wrong(x, w, b):
    return x @ w + b


def split_heads(x, like):
    b, s, e = x.shape
    h = like.shape[0]
    return jnp.transpose(x.reshape(b, s, h, e // h), (0, 2, 1, 3))


def split_heads_wrong(x, like):
    b, s, e = x.shape
    h = like.shape[0]
    return x.reshape(b, h, s, e // h)


def merge_heads(x, like):
    b, h, s, d = x.shape
    return jnp.transpose(x, (0, 2, 1, 3)).reshape(b, s, h * d)


def merge_heads_wrong(x, like):
    b, _, s, _ = x.shape
    return x.reshape(b, s, like.shape[0])


def flatten(x):
    n, c, h, w = x.shape
    return x.reshape(n, c * h * w)


def flatten_wrong(x):
    n, c, h, _ = x.shape
    return x.reshape(n, c * h)


def loss(predicted, target):
    error = jnp.squeeze(predicted, 1) - target
    return jnp.mean(error * error)


def loss_wrong(predicted, target):
    error = predicted - target
    return jnp.mean(error * error)


def repeat_kv(k, like):
    return jnp.repeat(k, like.shape[0] // k.shape[1], axis=1)


def repeat_kv_wrong(k, like):
    return jnp.repeat(k, like.shape[0] // k.shape[1], axis=2)


def pool(x, like):
    n, t = x.shape
    p = like.shape[0]
    whole = x[:, : p * (t // p)]
    return jnp.mean(whole.reshape(n, t // p, p), axis=2)


def pool_wrong(x, like):
    n, t = x.shape
    p = like.shape[0]
    return jnp.mean(x.reshape(n, t // p, p), axis=2)


def grow(cache, new):
    grown = cache
    for i in range(new.shape[0]):
        grown = jnp.concatenate([grown, new[i]], axis=0)
    return grown


def grow_wrong(cache, new):
    grown = cache
    for i in range(new.shape[0]):
        grown = jnp.concatenate([grown, new[i], new[i]], axis=0)
    return grown


def patchify(x, like):
    c, h, w = x.shape
    p = like.shape[0]
    blocks = x.reshape(c, h // p, p, w // p, p)
    return jnp.transpose(blocks, (1, 3, 0, 2, 4)).reshape((h // p) * (w // p), c * p * p)


def patchify_wrong(x, like):
    c, h, w = x.shape
    p = like.shape[0]
    return x.reshape((h // p) * (w // p), c * p * p)


def merge_heads_to_e(x, like):
    """`merge_heads`, which names the size instead of calculating it."""
    b, _, s, _ = x.shape
    return jnp.transpose(x, (0, 2, 1, 3)).reshape(b, s, like.shape[0])


def conv(x, w):
    return jax.lax.conv(x, w, (1, 1), "VALID")


def conv_wrong(x, w):
    return jax.lax.conv(x, w, (1, 1), "SAME")


# A size that no array has comes from an array made for it: `like` has that many elements.
SIGNATURES = {
    "rmsnorm": (["B, S, D", "D", ""], "B, S, D", []),
    "linear": (["N, I", "O, I", "O"], "N, O", []),
    "split_heads": (["B, S, E", "H"], "B, H, S, floordiv(E, H)", ["mod(E, H) == 0"]),
    "merge_heads": (["B, H, S, floordiv(E, H)", "E"], "B, S, E", ["mod(E, H) == 0"]),
    "flatten": (["N, C, H, W"], "N, C*H*W", []),
    "loss": (["N, 1", "N"], "", []),
    "repeat_kv": (["B, K, S, D", "Q"], "B, Q, S, D", ["mod(Q, K) == 0"]),
    "pool": (["N, T", "P"], "N, floordiv(T, P)", []),
    "grow": (["S, D", "N, 1, D"], "S + N, D", []),
    "patchify": (["C, H, W", "P"], "floordiv(H, P)*floordiv(W, P), C*P*P", ["mod(H, P) == 0", "mod(W, P) == 0"]),
}
"""Parameter shapes, the result's shape (for the wrong versions too), and constraints."""

MORE = {
    "merge_heads_to_e": SIGNATURES["merge_heads"],
    "conv": (["N, C, H, W", "O, C, 3, 3"], "N, O, H - 2, W - 2", ["H >= 2", "W >= 2"]),
    "conv_wrong": (["N, C, H, W", "O, C, 3, 3"], "N, O, H - 2, W - 2", ["H >= 2", "W >= 2"]),
}
"""What else the page says of JAX."""

WRONG_RESULTS = {"flatten_wrong": "N, C*H"}
"""The result that a wrong version claims, where it is another one."""


def fault(name: str) -> str | None:
    """What JAX finds in a function while it is traced, or None.

    JAX functions declare no results, so the result is added to an array of the wanted shape, as a caller may do.
    """
    parameters, result, constraints = MORE[name] if name in MORE else SIGNATURES[name.removesuffix("_wrong")]
    result = WRONG_RESULTS.get(name, result)

    def used(wanted, *arguments):
        return jax.lax.add(globals()[name](*arguments), wanted)

    try:
        scope = export.SymbolicScope(constraints)
        shapes = [export.symbolic_shape(p, scope=scope) if p else () for p in (result, *parameters)]
        export.export(jax.jit(used, keep_unused=True))(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))
    except Exception as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return None


def called_fault() -> str | None:
    """What a call of the exported `flatten_wrong` raises, whose trace went through."""
    shape = export.symbolic_shape("N, C, H, W")
    exported = export.export(jax.jit(flatten_wrong))(jax.ShapeDtypeStruct(shape, jnp.float32))
    try:
        exported.call(jnp.ones((2, 3, 4, 5)))
    except Exception as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    return None
