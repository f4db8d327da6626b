"""Statistics of windows and distances of maps, in float32 at least, whatever the rest runs in."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.errors import ArgumentError

FLOOR = 1e-4


def full_precision(x: Tensor) -> torch.autocast:
    """Context in which autocast is off on the device of `x`."""
    return torch.autocast(x.device.type, enabled=False)


def widen(x: Tensor) -> Tensor:
    """Half-width floats become float32; float32 and float64 stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


Statistics = tuple[Tensor, Tensor]  # mean and deviation over time, each `[..., 1, C]`


class RevIN(nn.Module):
    """Normalise each window and channel over time, and undo it on the way out; keeps no state.

    With `channels`, each gets a learned scale and shift on the way in.
    """

    def __init__(self, channels: int | None = None) -> None:
        super().__init__()
        self.weight = None if channels is None else nn.Parameter(torch.ones(channels))
        self.bias = None if channels is None else nn.Parameter(torch.zeros(channels))

    def normalise(self, x: Tensor) -> tuple[Tensor, Statistics]:
        """`[..., L, C]` to its normalised form and its statistics, which get no gradient."""
        with full_precision(x):
            variance, mean = torch.var_mean(widen(x).detach(), dim=-2, correction=0, keepdim=True)
            std = (variance + 1e-5).sqrt()
        mean, std = mean.to(x.dtype), std.to(x.dtype)
        x = (x - mean) / std
        if self.weight is not None and self.bias is not None:
            x = x * self.weight + self.bias
        return x, (mean, std)

    def restore(self, y: Tensor, statistics: Statistics) -> Tensor:
        """`[..., H, C]` back in the units of the window."""
        if self.weight is not None and self.bias is not None:
            y = (y - self.bias) / (self.weight + 1e-10)
        mean, std = statistics
        return y * std + mean


class MovingAverage(nn.Module):
    """Centred mean of `kernel` steps, stride 1, the ends repeated outwards; length is kept."""

    def __init__(self, kernel: int = 25) -> None:
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ArgumentError(f"a centred moving average needs an odd kernel, got {kernel}.")
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(1, -1, x.shape[-1])  # [1, rows, T]
        half = self.kernel // 2
        padded = F.pad(rows, (half, half), mode="replicate")  # replicate may exceed T
        return F.avg_pool1d(padded, self.kernel, stride=1).reshape(x.shape)


def symmetric_distance(first: Tensor, second: Tensor) -> Tensor:
    """D(a, b) + D(b, a) of maps `[B, h, L, L]`, row by row: `[B, L]`.

    D(a, b)_i = mean_h sum_j a_ij (ln(a_ij + 1e-4) - ln(b_ij + 1e-4)). Detach one argument to move
    only the other.
    """
    with full_precision(first):
        first, second = widen(first), widen(second)
        ratio = (first + FLOOR).log() - (second + FLOOR).log()  # [B, h, L, L]
        return ((first - second) * ratio).sum(dim=-1).mean(dim=1)
