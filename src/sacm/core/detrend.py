"""Stage 1: remove the straight line of a series; its jump at the edges would fill the spectrum."""

from __future__ import annotations

import torch
from torch import Tensor

from sacm.core.config import Detrend


def detrend(x: Tensor, how: Detrend = "ols") -> Tensor:
    """Remove the trend of every series along the last axis: `x_d = x - (T w* + b*)`.

    Args:
        x: Series `[..., L]`.
        how: ``"ols"`` for least squares over t = 0 … L-1 in closed form, ``"endpoint"`` for the
            line through the first and the last value, ``"none"`` to return `x` itself.

    Returns:
        What is left, `[..., L]`.

    Example:
        >>> detrend(torch.tensor([1.0, 3.0, 5.0]))
        tensor([0., 0., 0.])
    """
    length = x.shape[-1]
    if how == "none":
        return x
    # The offset has no influence on the result, but a large one would cost precision.
    level = x - x[..., :1]
    if length == 1:
        return level
    if how == "endpoint":
        time = torch.arange(length, device=x.device, dtype=x.dtype)
        return torch.addcmul(level, level[..., -1:] / (length - 1), time, value=-1)
    # With centred time, slope and mean are independent, and a straight line leaves exactly 0.
    middle = (length - 1) / 2
    time = torch.arange(-middle, middle + 1, device=x.device, dtype=x.dtype)
    sum_of_squares = length * (length * length - 1) / 12
    slope = (level * time).sum(dim=-1, keepdim=True) / sum_of_squares
    return (level - level.mean(dim=-1, keepdim=True)).addcmul_(slope, time, value=-1)


def linear_trend(x: Tensor, how: Detrend = "ols") -> Tensor:
    """Return the trend `T w* + b*` that `detrend` takes away; same shape as `x`."""
    return x - detrend(x, how)
