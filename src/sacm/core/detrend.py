"""Stage 1: the straight line that would leak across the spectrum if it stayed in the window."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.core.config import Detrend


def linear_trend(x: Tensor, how: Detrend = "ols") -> Tensor:
    """The trend `x_trend = T w* + b*` of every series along the last axis; same shape as `x`.

    `ols`: least squares over t = 0 … L-1, in closed form. `endpoint`: the line through the first
    and the last value. `none`: zero.
    """
    length = x.shape[-1]
    if how == "none":
        return torch.zeros_like(x)
    if length == 1:
        return x
    if how == "endpoint":
        time = torch.arange(length, device=x.device, dtype=x.dtype)
        first, last = x[..., :1], x[..., -1:]
        return torch.addcmul(first, (last - first) / (length - 1), time)
    # Centred time decouples the normal equations, and is exact: a straight line leaves exactly 0.
    middle = (length - 1) / 2
    time = torch.arange(-middle, middle + 1, device=x.device, dtype=x.dtype)
    sum_of_squares = length * (length * length - 1) / 12
    slope = (x * time).sum(dim=-1, keepdim=True) / sum_of_squares
    return torch.addcmul(x.mean(dim=-1, keepdim=True), slope, time)
