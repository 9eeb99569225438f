"""The ten functions with Pyrefly's shape types."""

from shape_extensions import Shaped, shape_vars

import torch
from torch import Tensor


@shape_vars("B, S, D")
def rmsnorm(x: Shaped[Tensor, "[B, S, D]"], w: Shaped[Tensor, "[D]"], eps: float) -> Shaped[Tensor, "[B, S, D]"]:
    mean_square = (x * x).mean(dim=2, keepdim=True)
    return x * torch.rsqrt(mean_square + eps) * w


@shape_vars("B, S, D")
def rmsnorm_wrong(x: Shaped[Tensor, "[B, S, D]"], w: Shaped[Tensor, "[D]"], eps: float) -> Shaped[Tensor, "[B, S, D]"]:
    mean_square = (x * x).mean(dim=2)
    return x * torch.rsqrt(mean_square + eps) * w


@shape_vars("N, I, O")
def linear(
    x: Shaped[Tensor, "[N, I]"], w: Shaped[Tensor, "[O, I]"], b: Shaped[Tensor, "[O]"]
) -> Shaped[Tensor, "[N, O]"]:
    return x @ w.transpose(0, 1) + b


@shape_vars("N, I, O")
def linear_wrong(
    x: Shaped[Tensor, "[N, I]"], w: Shaped[Tensor, "[O, I]"], b: Shaped[Tensor, "[O]"]
) -> Shaped[Tensor, "[N, O]"]:
    return x @ w + b


@shape_vars("B, S, E, H")
def split_heads(x: Shaped[Tensor, "[B, S, E]"], h: Shaped[int, "H"]) -> Shaped[Tensor, "[B, H, S, E // H]"]:
    b, s, e = x.shape
    return x.reshape(b, s, h, e // h).transpose(1, 2)


@shape_vars("B, S, E, H")
def split_heads_wrong(x: Shaped[Tensor, "[B, S, E]"], h: Shaped[int, "H"]) -> Shaped[Tensor, "[B, H, S, E // H]"]:
    b, s, e = x.shape
    return x.reshape(b, h, s, e // h)


@shape_vars("B, S, E, H")
def merge_heads(x: Shaped[Tensor, "[B, H, S, E // H]"], e: Shaped[int, "E"]) -> Shaped[Tensor, "[B, S, E]"]:
    b, h, s, d = x.shape
    return x.transpose(1, 2).reshape(b, s, h * d)


@shape_vars("B, S, E, H")
def merge_heads_wrong(x: Shaped[Tensor, "[B, H, S, E // H]"], e: Shaped[int, "E"]) -> Shaped[Tensor, "[B, S, E]"]:
    b, _, s, _ = x.shape
    return x.reshape(b, s, e)


@shape_vars("N, C, H, W")
def flatten(x: Shaped[Tensor, "[N, C, H, W]"]) -> Shaped[Tensor, "[N, C * H * W]"]:
    n, c, h, w = x.shape
    return x.reshape(n, c * h * w)


@shape_vars("N, C, H, W")
def flatten_wrong(x: Shaped[Tensor, "[N, C, H, W]"]) -> Shaped[Tensor, "[N, C * H]"]:
    n, c, h, _ = x.shape
    return x.reshape(n, c * h)


@shape_vars("N")
def loss(predicted: Shaped[Tensor, "[N, 1]"], target: Shaped[Tensor, "[N]"]) -> Shaped[Tensor, "[]"]:
    error = predicted.squeeze(1) - target
    return (error * error).mean()


@shape_vars("N")
def loss_wrong(predicted: Shaped[Tensor, "[N, 1]"], target: Shaped[Tensor, "[N]"]) -> Shaped[Tensor, "[]"]:
    error = predicted - target
    return (error * error).mean()


@shape_vars("B, K, S, D, Q")
def repeat_kv(k: Shaped[Tensor, "[B, K, S, D]"], q: Shaped[int, "Q"]) -> Shaped[Tensor, "[B, Q, S, D]"]:
    heads = k.shape[1]
    return k.repeat_interleave(q // heads, dim=1)


@shape_vars("B, K, S, D, Q")
def repeat_kv_wrong(k: Shaped[Tensor, "[B, K, S, D]"], q: Shaped[int, "Q"]) -> Shaped[Tensor, "[B, Q, S, D]"]:
    heads = k.shape[1]
    return k.repeat_interleave(q // heads, dim=2)


@shape_vars("N, T, P")
def pool(x: Shaped[Tensor, "[N, T]"], p: Shaped[int, "P"]) -> Shaped[Tensor, "[N, T // P]"]:
    n, t = x.shape
    whole = x[:, : p * (t // p)]
    return whole.reshape(n, t // p, p).mean(dim=2)


@shape_vars("N, T, P")
def pool_wrong(x: Shaped[Tensor, "[N, T]"], p: Shaped[int, "P"]) -> Shaped[Tensor, "[N, T // P]"]:
    n, t = x.shape
    return x.reshape(n, t // p, p).mean(dim=2)


@shape_vars("S, D, N")
def grow(cache: Shaped[Tensor, "[S, D]"], new: Shaped[Tensor, "[N, 1, D]"]) -> Shaped[Tensor, "[S + N, D]"]:
    grown = cache
    for i in range(new.shape[0]):
        grown = torch.cat([grown, new[i]], dim=0)
    return grown


@shape_vars("S, D, N")
def grow_wrong(cache: Shaped[Tensor, "[S, D]"], new: Shaped[Tensor, "[N, 1, D]"]) -> Shaped[Tensor, "[S + N, D]"]:
    grown = cache
    for i in range(new.shape[0]):
        grown = torch.cat([grown, new[i], new[i]], dim=0)
    return grown


@shape_vars("C, H, W, P")
def patchify(
    x: Shaped[Tensor, "[C, H, W]"], p: Shaped[int, "P"]
) -> Shaped[Tensor, "[(H // P) * (W // P), C * P * P]"]:
    c, h, w = x.shape
    blocks = x.reshape(c, h // p, p, w // p, p)
    return blocks.permute(1, 3, 0, 2, 4).reshape((h // p) * (w // p), c * p * p)


@shape_vars("C, H, W, P")
def patchify_wrong(
    x: Shaped[Tensor, "[C, H, W]"], p: Shaped[int, "P"]
) -> Shaped[Tensor, "[(H // P) * (W // P), C * P * P]"]:
    c, h, w = x.shape
    return x.reshape((h // p) * (w // p), c * p * p)
