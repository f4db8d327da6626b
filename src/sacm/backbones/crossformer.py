"""Crossformer: attention over segments, then over channels through a few routers.

Differs from the publication: dropout in the MLPs rather than on the residual branches, and a
decoder MLP as wide as the encoder's.

Dropout sites: the embedding `[B*C, N, d]`; per two-stage block the segment weights
`[B*C, h, N, N]`, hidden layer `[B*C, N, ff]`, sender `[B*N, h, routers, C]`, receiver
`[B*N, h, C, routers]` and hidden layer `[B*N, C, ff]`; per decoder layer also the cross weights
`[B*C, h, M, N]` and hidden layer `[B*C, M, ff]`. The first decoder block sees only its learned
table, the same for every window, so its layouts cannot be found by perturbing windows.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.transformer import Attention, EncoderLayer
from sacm.backbones.registry import register

REFERENCE = "Zhang and Yan, ICLR 2023, openreview:vSVLM2j9eie"


@dataclass(frozen=True)
class CrossformerConfig:
    """Sizes of the paper's runs. The decoder has one layer more than the encoder."""

    segment: int = 16
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    routers: int = 10
    merge: int = 2
    encoder_layers: int = 2
    dropout: float = 0.05


PAPER = CrossformerConfig()
SMALL = CrossformerConfig(width=32, heads=4, hidden=64)


class SegmentEmbedding(nn.Module):
    """Segments of each channel as tokens on a learned grid: `[B, L, C]` to `[B, C, N, d]`."""

    def __init__(self, config: CrossformerConfig, *, input_len: int, channels: int) -> None:
        super().__init__()
        self.segment = config.segment
        segments = math.ceil(input_len / config.segment)
        self.embed = nn.Linear(config.segment, config.width)
        self.positions = nn.Parameter(torch.randn(1, channels, segments, config.width))
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        front = x[:, :1].expand(-1, -length % self.segment, -1)  # fills up the first segment
        series = torch.cat((front, x), dim=1).transpose(1, 2)  # [B, C, N*segment]
        segments = series.unflatten(-1, (-1, self.segment))  # [B, C, N, segment]
        tokens = (self.embed(segments) + self.positions).flatten(0, 1)  # [B*C, N, d]
        return self.norm(self.dropout(tokens)).unflatten(0, (batch, channels))


class TwoStageBlock(nn.Module):
    """Attention over segments of a channel, then channels of a segment: `[B, C, N, d]` to same."""

    def __init__(self, config: CrossformerConfig, *, segments: int) -> None:
        super().__init__()
        self.segments = segments
        self.time = EncoderLayer(config)
        self.routers = nn.Parameter(torch.randn(segments, config.routers, config.width))
        self.sender = Attention(config.width, config.heads, config.dropout)
        self.receiver = EncoderLayer(config)

    def forward(self, grid: Tensor) -> Tensor:
        batch, channels, segments, _ = grid.shape
        rows = self.time(grid.flatten(0, 1))  # [B*C, N, d]
        columns = rows.unflatten(0, (batch, channels)).transpose(1, 2).flatten(0, 1)  # [B*N, C, d]
        routers = self.routers.expand(batch, -1, -1, -1).flatten(0, 1)  # [B*N, routers, d]
        messages = self.sender(routers, columns)  # [B*N, routers, d]
        columns = self.receiver(columns, memory=messages)  # [B*N, C, d]
        return columns.unflatten(0, (batch, segments)).transpose(1, 2)  # [B, C, N, d]


class Merge(nn.Module):
    """Join neighbours, the last repeated if it has none: `[B, C, N, d]` to `[B, C, N2, d]`."""

    def __init__(self, width: int, merge: int) -> None:
        super().__init__()
        self.merge = merge
        self.norm = nn.LayerNorm(merge * width)
        self.project = nn.Linear(merge * width, width)

    def forward(self, grid: Tensor) -> Tensor:
        missing = -grid.shape[2] % self.merge
        grid = torch.cat((grid, grid[:, :, -1:].expand(-1, -1, missing, -1)), dim=2)
        pairs = grid.unflatten(2, (-1, self.merge)).flatten(3)  # [B, C, N2, merge*d]
        return self.project(self.norm(pairs))


class DecoderLayer(nn.Module):
    """Refine the grid `[B, C, M, d]`, read one encoder scale `[B, C, N, d]`, and forecast."""

    def __init__(self, config: CrossformerConfig, *, segments: int) -> None:
        super().__init__()
        self.block = TwoStageBlock(config, segments=segments)
        self.cross = EncoderLayer(config)
        self.head = nn.Linear(config.width, config.segment)

    def forward(self, grid: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        batch, channels = grid.shape[:2]
        rows = self.cross(self.block(grid).flatten(0, 1), memory=memory.flatten(0, 1))
        grid = rows.unflatten(0, (batch, channels))  # [B, C, M, d]
        return grid, self.head(grid)


@register("Crossformer", paper=PAPER, small=SMALL, cost="very heavy", reference=REFERENCE)
class Crossformer(ForecastNetwork):
    """Forecast `[B, H, C]` as the sum of the forecasts from all scales."""

    def __init__(self, config: CrossformerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        channels = self.channels
        segments = math.ceil(self.input_len / config.segment)
        scales = [math.ceil(segments / config.merge**i) for i in range(config.encoder_layers)]
        targets = math.ceil(self.horizon / config.segment)
        self.embedding = SegmentEmbedding(config, input_len=self.input_len, channels=channels)
        self.encoder = nn.ModuleList()  # all scales but the finest begin with a merge
        for count in scales:
            merge = Merge(config.width, config.merge) if self.encoder else nn.Identity()
            block = TwoStageBlock(config, segments=count)
            self.encoder.append(nn.Sequential(OrderedDict(merge=merge, block=block)))
        self.targets = nn.Parameter(torch.randn(1, channels, targets, config.width))
        self.decoder = nn.ModuleList(
            DecoderLayer(config, segments=targets) for _ in range(config.encoder_layers + 1)
        )
        # Rows of dimension 0 that belong to a window: channels, or segments in the routers.
        folds = dict.fromkeys(("embedding", "encoder", "decoder"), channels)
        for name, module in self.named_modules():
            if isinstance(module, TwoStageBlock):
                folds[f"{name}.sender"] = folds[f"{name}.receiver"] = module.segments
        self.state_layouts(folds)

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        scales = [self.embedding(x)]  # each [B, C, N_i, d]
        for scale in self.encoder:
            scales.append(scale(scales[-1]))
        grid = self.targets.expand(x.shape[0], -1, -1, -1)  # [B, C, M, d]
        forecasts = []
        for layer, memory in zip(self.decoder, scales, strict=True):
            grid, forecast = layer(grid, memory)
            forecasts.append(forecast)
        total = torch.stack(forecasts).sum(dim=0).flatten(2)  # [B, C, M*segment]
        return total[..., : self.horizon].transpose(1, 2)
