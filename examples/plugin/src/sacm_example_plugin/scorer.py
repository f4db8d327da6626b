"""`roughness`: windows that jump from step to step count as unreliable."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.strategies import scorers


@scorers.register("roughness")
class Roughness(nn.Module):
    """Mean absolute step of each channel, weighted by a learnable positive number."""

    def __init__(self, channels: int, config: SACMConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to scores `[B]`."""
        steps = x.float().diff(dim=1).abs().mean(dim=1)  # [B, C]
        return (steps * nn.functional.softplus(self.weight)).mean(dim=1)
