"""Trend by moving average."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from sacm.errors import ArgumentError


class MovingAverage(nn.Module):
    """Centred mean of `kernel` steps, stride 1, the ends repeated outwards; length is kept."""

    def __init__(self, kernel: int = 25) -> None:
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ArgumentError(f"a centred moving average needs an odd kernel, got {kernel}.")
        self.kernel = kernel

    def forward(self, x: Tensor) -> Tensor:
        """Smooth `[..., T]` along the last axis."""
        rows = x.reshape(1, -1, x.shape[-1])  # [1, rows, T]
        half = self.kernel // 2
        padded = F.pad(rows, (half, half), mode="replicate")  # replicate may exceed T
        return F.avg_pool1d(padded, self.kernel, stride=1).reshape(x.shape)
