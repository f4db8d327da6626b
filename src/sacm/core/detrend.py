"""Stage 1: the straight line that would leak across the spectrum if it stayed in the window."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.core.config import Detrend


def detrend(x: Tensor, how: Detrend = "ols") -> Tensor:
    """`x_d = x - (T w* + b*)` of every series along the last axis; same shape as `x`.

    `ols`: least squares over t = 0 … L-1, in closed form. `endpoint`: the line through the first
    and the last value. `none`: nothing is taken away.
    """
    length = x.shape[-1]
    if how == "none":
        return x
    # An offset changes nothing of what is left, but a large one would drown it in rounding.
    level = x - x[..., :1]
    if length == 1:
        return level
    if how == "endpoint":
        time = torch.arange(length, device=x.device, dtype=x.dtype)
        return torch.addcmul(level, level[..., -1:] / (length - 1), time, value=-1)
    # Centred time decouples the normal equations, and is exact: a straight line leaves exactly 0.
    middle = (length - 1) / 2
    time = torch.arange(-middle, middle + 1, device=x.device, dtype=x.dtype)
    sum_of_squares = length * (length * length - 1) / 12
    slope = (level * time).sum(dim=-1, keepdim=True) / sum_of_squares
    return (level - level.mean(dim=-1, keepdim=True)).addcmul_(slope, time, value=-1)


def linear_trend(x: Tensor, how: Detrend = "ols") -> Tensor:
    """The trend `T w* + b*` that `detrend` takes away; same shape as `x`."""
    return x - detrend(x, how)
