"""TimeMixer: seasons mixed from fine to coarse, trends from coarse to fine.

Differs from the publication's code: no calendar, which it repeats channel by channel over rows
that run window by window, and no unused LayerNorm.

Dropout sites: embedding `[B*C, T_i, d]`; at rate 0 hidden layers of seasons `[B*C, d, T_{i+1}]`,
trends `[B*C, d, T_i]` and features `[B*C, T_i, ff]`. Embedding and features run once a scale.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.embedding import TokenConv
from sacm.backbones.blocks.normalisation import MovingAverage, RevIN
from sacm.backbones.blocks.transformer import MLP
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

REFERENCE = "Wang et al., ICLR 2024, arXiv:2405.14616"


@dataclass(frozen=True)
class TimeMixerConfig:
    """Sizes of the paper's runs."""

    width: int = 256
    hidden: int = 1024
    blocks: int = 1
    scales: int = 4
    moving_average: int = 25
    dropout: float = 0.1
    mixer_dropout: float = 0.0


SMALL = TimeMixerConfig(width=16, hidden=32)


class TimeMLP(nn.Module):
    """Linear, GELU, dropout, Linear along time: `[..., source]` to `[..., target]`."""

    def __init__(self, source: int, target: int, dropout: float) -> None:
        super().__init__()
        self.resample = nn.Linear(source, target)
        self.dropout = nn.Dropout(dropout)
        self.refine = nn.Linear(target, target)

    def forward(self, x: Tensor) -> Tensor:
        return self.refine(self.dropout(F.gelu(self.resample(x))))


class MixingBlock(nn.Module):
    """Scales `[B*C, T_i, d]`, finest first: mix seasons downwards, trends upwards, features."""

    def __init__(self, config: TimeMixerConfig, *, lengths: list[int]) -> None:
        super().__init__()
        steps = list(itertools.pairwise(lengths))
        self.trend = MovingAverage(config.moving_average)
        self.seasons = nn.ModuleList(
            TimeMLP(fine, coarse, config.mixer_dropout) for fine, coarse in steps
        )
        self.trends = nn.ModuleList(
            TimeMLP(coarse, fine, config.mixer_dropout) for fine, coarse in steps
        )
        self.features = MLP(config.width, config.hidden, config.mixer_dropout)

    def forward(self, scales: list[Tensor]) -> list[Tensor]:
        columns = [z.transpose(1, 2) for z in scales]  # [B*C, d, T_i]
        trends = [self.trend(z) for z in columns]
        seasons = [z - trend for z, trend in zip(columns, trends, strict=True)]
        for i, mix in enumerate(self.seasons):
            seasons[i + 1] = seasons[i + 1] + mix(seasons[i])
        for i, mix in reversed(list(enumerate(self.trends))):
            trends[i] = trends[i] + mix(trends[i + 1])
        mixed = [s + t for s, t in zip(seasons, trends, strict=True)]
        return [
            z + self.features(m.transpose(1, 2)) for z, m in zip(scales, mixed, strict=True)
        ]  # [B*C, T_i, d]


def pyramid(x: Tensor, scales: int) -> list[Tensor]:
    """`[B, T, C]` and the means of its pairs, of theirs, and so on, finest first."""
    levels = [x]
    while len(levels) < scales:
        levels.append(F.avg_pool1d(levels[-1].transpose(1, 2), 2).transpose(1, 2))
    return levels


@register("TimeMixer", paper=TimeMixerConfig(), small=SMALL, cost="heavy", reference=REFERENCE)
class TimeMixer(ForecastNetwork):
    """Four resolutions of each channel, mixed, each forecasting; the forecasts add up."""

    def __init__(self, config: TimeMixerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        lengths = [self.input_len // 2**scale for scale in range(config.scales)]
        if lengths[-1] < 1:
            raise ArgumentError(
                f"TimeMixer: {config.scales} scales need windows of at least "
                f"{2 ** (config.scales - 1)} steps, got input_len={self.input_len}."
            )
        self.revins = nn.ModuleList(RevIN(self.channels) for _ in lengths)
        self.tokens = TokenConv(1, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            MixingBlock(config, lengths=lengths) for _ in range(config.blocks)
        )
        self.forecasts = nn.ModuleList(nn.Linear(length, self.horizon) for length in lengths)
        self.output = nn.Linear(config.width, 1)
        self.state_layouts({"dropout": self.channels, "blocks": self.channels})

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        revins = cast(list[RevIN], list(self.revins))
        levels = pyramid(x, len(revins))  # [B, T_i, C] each
        normalised = [revin.normalise(level) for revin, level in zip(revins, levels, strict=True)]
        series = [level.transpose(1, 2).flatten(0, 1) for level, _ in normalised]  # [B*C, T_i]
        scales = [self.dropout(self.tokens(each[..., None])) for each in series]  # [B*C, T_i, d]
        for block in self.blocks:
            scales = block(scales)
        forecasts = [
            self.output(forecast(z.transpose(1, 2)).transpose(1, 2))  # [B*C, H, 1]
            for forecast, z in zip(self.forecasts, scales, strict=True)
        ]
        y = torch.stack(forecasts).sum(dim=0).reshape(-1, self.channels, self.horizon)
        return revins[0].restore(y.transpose(1, 2), normalised[0][1])
