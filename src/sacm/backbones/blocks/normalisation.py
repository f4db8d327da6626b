"""Reversible instance normalisation, with the statistics as values and never as state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from sacm.backbones.blocks.precision import full_precision, widen


class InstanceStatistics(NamedTuple):
    """Mean and standard deviation over time of each window and channel, each `[..., 1, C]`."""

    mean: Tensor
    std: Tensor


def instance_statistics(x: Tensor, *, eps: float = 1e-5) -> InstanceStatistics:
    """Mean and sqrt(population variance + eps) of `[..., L, C]` over time, without gradient."""
    with full_precision(x):
        variance, mean = torch.var_mean(widen(x).detach(), dim=-2, correction=0, keepdim=True)
        std = (variance + eps).sqrt()
    return InstanceStatistics(mean.to(x.dtype), std.to(x.dtype))


class RevIN(nn.Module):
    """Normalise each window and channel over time, and undo it on the way out."""

    def __init__(self, channels: int, *, affine: bool = False, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def normalise(self, x: Tensor) -> tuple[Tensor, InstanceStatistics]:
        """`[..., L, C]` to its normalised form and the statistics that restore it."""
        statistics = instance_statistics(x, eps=self.eps)
        x = (x - statistics.mean) / statistics.std
        if self.weight is not None and self.bias is not None:
            x = x * self.weight + self.bias
        return x, statistics

    def restore(self, y: Tensor, statistics: InstanceStatistics) -> Tensor:
        """`[..., H, C]` back in the units of the window."""
        if self.weight is not None and self.bias is not None:
            y = (y - self.bias) / (self.weight + 1e-10)
        return y * statistics.std + statistics.mean
