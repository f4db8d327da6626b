"""GatedLinear: a linear forecast of each channel, with a gate that a second layer opens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.backbones import ForecastNetwork, register


@dataclass(frozen=True)
class GatedLinearConfig:
    """The settings that `--set width=32` and the like replace."""

    width: int = 64
    dropout: float = 0.1


@register("GatedLinear", paper=GatedLinearConfig(), small=GatedLinearConfig(width=16))
class GatedLinear(ForecastNetwork):
    """Linear features over time, gated by others, to the horizon; channels do not mix."""

    def __init__(
        self, config: GatedLinearConfig, *, input_len: int, horizon: int, channels: int
    ) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        self.features = nn.Linear(input_len, config.width)
        self.gate = nn.Linear(input_len, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.width, horizon)
        self.state_layouts()  # at every dropout, dimension 0 is the batch

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        """`[B, L, C]` to `[B, H, C]`."""
        self.check_window(x, stamps)
        series = x.transpose(1, 2)  # [B, C, L]
        hidden = self.features(series) * torch.sigmoid(self.gate(series))  # [B, C, width]
        forecast: Tensor = self.head(self.dropout(hidden)).transpose(1, 2)
        return forecast
