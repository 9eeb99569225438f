"""The ten functions with jaxtyping's annotations, checked by beartype whenever one is called."""

from beartype import beartype
from jaxtyping import Float, jaxtyped

import torch
from torch import Tensor

checked = jaxtyped(typechecker=beartype)


@checked
def rmsnorm(x: Float[Tensor, "B S D"], w: Float[Tensor, "D"], eps: float) -> Float[Tensor, "B S D"]:
    mean_square = (x * x).mean(dim=2, keepdim=True)
    return x * torch.rsqrt(mean_square + eps) * w


@checked
def rmsnorm_wrong(x: Float[Tensor, "B S D"], w: Float[Tensor, "D"], eps: float) -> Float[Tensor, "B S D"]:
    mean_square = (x * x).mean(dim=2)
    return x * torch.rsqrt(mean_square + eps) * w


@checked
def linear(x: Float[Tensor, "N I"], w: Float[Tensor, "O I"], b: Float[Tensor, "O"]) -> Float[Tensor, "N O"]:
    return x @ w.transpose(0, 1) + b


@checked
def linear_wrong(x: Float[Tensor, "N I"], w: Float[Tensor, "O I"], b: Float[Tensor, "O"]) -> Float[Tensor, "N O"]:
    return x @ w + b


@checked
def split_heads(x: Float[Tensor, "B S E"], h: int) -> Float[Tensor, "B {h} S E//{h}"]:
    b, s, e = x.shape
    return x.reshape(b, s, h, e // h).transpose(1, 2)


@checked
def split_heads_wrong(x: Float[Tensor, "B S E"], h: int) -> Float[Tensor, "B {h} S E//{h}"]:
    b, s, e = x.shape
    return x.reshape(b, h, s, e // h)


@checked
def merge_heads(x: Float[Tensor, "B H S D"], e: int) -> Float[Tensor, "B S {e}"]:
    b, h, s, d = x.shape
    return x.transpose(1, 2).reshape(b, s, h * d)


@checked
def merge_heads_wrong(x: Float[Tensor, "B H S D"], e: int) -> Float[Tensor, "B S {e}"]:
    b, _, s, _ = x.shape
    return x.reshape(b, s, e)


@checked
def flatten(x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N C*H*W"]:
    n, c, h, w = x.shape
    return x.reshape(n, c * h * w)


@checked
def flatten_wrong(x: Float[Tensor, "N C H W"]) -> Float[Tensor, "N C*H"]:
    n, c, h, _ = x.shape
    return x.reshape(n, c * h)


@checked
def loss(predicted: Float[Tensor, "N 1"], target: Float[Tensor, "N"]) -> Float[Tensor, ""]:
    error = predicted.squeeze(1) - target
    return (error * error).mean()


@checked
def loss_wrong(predicted: Float[Tensor, "N 1"], target: Float[Tensor, "N"]) -> Float[Tensor, ""]:
    error = predicted - target
    return (error * error).mean()


@checked
def repeat_kv(k: Float[Tensor, "B K S D"], q: int) -> Float[Tensor, "B {q} S D"]:
    return k.repeat_interleave(q // k.shape[1], dim=1)


@checked
def repeat_kv_wrong(k: Float[Tensor, "B K S D"], q: int) -> Float[Tensor, "B {q} S D"]:
    return k.repeat_interleave(q // k.shape[1], dim=2)


@checked
def pool(x: Float[Tensor, "N T"], p: int) -> Float[Tensor, "N T//{p}"]:
    n, t = x.shape
    whole = x[:, : p * (t // p)]
    return whole.reshape(n, t // p, p).mean(dim=2)


@checked
def pool_wrong(x: Float[Tensor, "N T"], p: int) -> Float[Tensor, "N T//{p}"]:
    n, t = x.shape
    return x.reshape(n, t // p, p).mean(dim=2)


@checked
def grow(cache: Float[Tensor, "S D"], new: Float[Tensor, "N 1 D"]) -> Float[Tensor, "S+N D"]:
    grown = cache
    for i in range(new.shape[0]):
        grown = torch.cat([grown, new[i]], dim=0)
    return grown


@checked
def grow_wrong(cache: Float[Tensor, "S D"], new: Float[Tensor, "N 1 D"]) -> Float[Tensor, "S+N D"]:
    grown = cache
    for i in range(new.shape[0]):
        grown = torch.cat([grown, new[i], new[i]], dim=0)
    return grown


@checked
def patchify(x: Float[Tensor, "C H W"], p: int) -> Float[Tensor, "(H//{p})*(W//{p}) C*{p}*{p}"]:
    c, h, w = x.shape
    blocks = x.reshape(c, h // p, p, w // p, p)
    return blocks.permute(1, 3, 0, 2, 4).reshape((h // p) * (w // p), c * p * p)


@checked
def patchify_wrong(x: Float[Tensor, "C H W"], p: int) -> Float[Tensor, "(H//{p})*(W//{p}) C*{p}*{p}"]:
    c, h, w = x.shape
    return x.reshape((h // p) * (w // p), c * p * p)


@checked
def loss_annotated_wrong(predicted: Float[Tensor, "N 1"], target: Float[Tensor, "N"]) -> Float[Tensor, ""]:
    """`loss_wrong`, which also says what it takes the error for."""
    error = predicted - target
    assert isinstance(error, Float[Tensor, "N"])
    return (error * error).mean()


def _ones(*shape: int) -> Tensor:
    return torch.ones(shape)


CALLS = {
    "rmsnorm": [(_ones(2, 3, 4), _ones(4), 1e-6), (_ones(4, 4, 4), _ones(4), 1e-6)],
    "linear": [(_ones(2, 3), _ones(4, 3), _ones(4)), (_ones(2, 3), _ones(3, 3), _ones(3))],
    "split_heads": [(_ones(2, 3, 8), 4)],
    "merge_heads": [(_ones(2, 4, 3, 5), 20)],
    "flatten": [(_ones(2, 3, 4, 5),), (_ones(2, 3, 4, 1),)],
    "loss": [(_ones(5, 1), _ones(5))],
    "repeat_kv": [(_ones(2, 3, 4, 5), 6), (_ones(2, 3, 4, 5), 3)],
    "pool": [(_ones(2, 7), 3), (_ones(2, 6), 3)],
    "grow": [(_ones(3, 4), _ones(2, 1, 4)), (_ones(3, 4), _ones(0, 1, 4))],
    "patchify": [(_ones(2, 6, 9), 3)],
}
"""Arguments by function: first sizes without coincidences, then (where there are such) sizes that hide the mistake."""
