"""What else the page says of Pyrefly: each of these is named there."""

from shape_extensions import Shaped, shape_vars

import torch
from torch import Tensor


@shape_vars("N")
def loss_annotated_wrong(predicted: Shaped[Tensor, "[N, 1]"], target: Shaped[Tensor, "[N]"]) -> Shaped[Tensor, "[]"]:
    error: Shaped[Tensor, "[N]"] = predicted - target
    return (error * error).mean()


@shape_vars("B, S, E, H")
def merge_heads_to_e(x: Shaped[Tensor, "[B, H, S, E // H]"], e: Shaped[int, "E"]) -> Shaped[Tensor, "[B, S, E]"]:
    b, _, s, _ = x.shape
    return x.transpose(1, 2).reshape(b, s, e)


@shape_vars("")
def flatten_numbers_wrong(x: Shaped[Tensor, "[2, 3, 4]"]) -> Shaped[Tensor, "[2, 3]"]:
    return x.reshape(2, 3)


@shape_vars("N, C, H, W, O")
def conv(
    x: Shaped[Tensor, "[N, C, H, W]"], w: Shaped[Tensor, "[O, C, 3, 3]"]
) -> Shaped[Tensor, "[N, O, H - 2, W - 2]"]:
    return torch.nn.functional.conv2d(x, w)


@shape_vars("N, C, H, W, O")
def conv_wrong(
    x: Shaped[Tensor, "[N, C, H, W]"], w: Shaped[Tensor, "[O, C, 3, 3]"]
) -> Shaped[Tensor, "[N, O, H, W]"]:
    return torch.nn.functional.conv2d(x, w)
