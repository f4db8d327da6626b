"""MultiPatchFormer: four patch lengths at once; time, then channels; the horizon in pieces.

Differs from the publication: dropout also on the attention weights, and piece i reads exactly
i * (H // 8) earlier values, so any horizon works. The doubled exponent of the positions and the
unmasked channel attention are the original's.

Dropout sites, per temporal layer: weights `[B*C, h, N, N]` and two residual branches `[B*C, N, d]`;
in the channel layer: weights `[B, h, C, C]` and two residual branches `[B, C, d]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.embedding import Positions, repeat_last
from sacm.backbones.blocks.normalisation import RevIN
from sacm.backbones.blocks.transformer import Attention
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

REFERENCE = "Naghashi et al., Scientific Reports 2025, doi:10.1038/s41598-024-82417-4"


@dataclass(frozen=True)
class MultiPatchFormerConfig:
    """Sizes of the paper's runs; a token stands for `token_steps` steps at every scale."""

    patches: tuple[int, ...] = (8, 16, 24, 32)
    token_steps: int = 8
    width: int = 256
    heads: int = 8
    hidden: int = 1024
    layers: int = 3
    pieces: int = 8
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if not self.patches or self.width % len(self.patches):
            raise ArgumentError(
                f"MultiPatchFormer: width {self.width} cannot be shared by {len(self.patches)} "
                "patch lengths."
            )


PAPER = MultiPatchFormerConfig()
SMALL = MultiPatchFormerConfig(width=64, heads=4, hidden=128)


class PatchScale(nn.Module):
    """One patch length: `[b, 1, L]`, its end repeated as needed, to `[b, d', tokens]`."""

    def __init__(self, patch: int, width: int, *, input_len: int, tokens: int) -> None:
        super().__init__()
        patch = min(patch, input_len)
        stride = max(1, math.ceil((input_len - patch) / (tokens - 1))) if tokens > 1 else patch
        self.needed = (tokens - 1) * stride + patch
        self.embed = nn.Conv1d(1, width, patch, stride=stride)

    def forward(self, series: Tensor) -> Tensor:
        missing = max(0, self.needed - series.shape[-1])
        return self.embed(repeat_last(series, missing)[..., : self.needed])


class MultiPatchEmbedding(nn.Module):
    """All patch lengths side by side, with positions: `[b, L]` to `[b, N, d]`."""

    def __init__(self, config: MultiPatchFormerConfig, *, input_len: int) -> None:
        super().__init__()
        self.tokens = max(1, input_len // config.token_steps)
        share = config.width // len(config.patches)
        self.scales = nn.ModuleList(
            PatchScale(patch, share, input_len=input_len, tokens=self.tokens)
            for patch in config.patches
        )
        self.positions = Positions(self.tokens, config.width, exponent=2.0)

    def forward(self, series: Tensor) -> Tensor:
        scales = [scale(series[:, None]) for scale in self.scales]  # each [b, d', N]
        return self.positions(torch.cat(scales, dim=1).transpose(1, 2))


class Layer(nn.Module):
    """x = LN(x + drop(attention)), then x = LN(x + drop(MLP)): `[b, T, d]` to the same."""

    def __init__(self, config: MultiPatchFormerConfig) -> None:
        super().__init__()
        self.attention = Attention(config.width, config.heads, config.dropout)
        self.attention_dropout = nn.Dropout(config.dropout)
        self.attention_norm = nn.LayerNorm(config.width)
        width, hidden = config.width, config.hidden
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.mlp_dropout = nn.Dropout(config.dropout)
        self.mlp_norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor, **options: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention_dropout(self.attention(x, **options)))
        return self.mlp_norm(x + self.mlp_dropout(self.mlp(x)))


class PiecewiseHead(nn.Module):
    """Each piece from the encoding and all pieces before it: `[B, C, d]` to `[B, C, H]`."""

    def __init__(self, width: int, *, horizon: int, pieces: int) -> None:
        super().__init__()
        pieces = pieces if horizon >= pieces else 1
        step = horizon // pieces
        sizes = [step] * (pieces - 1) + [horizon - (pieces - 1) * step]
        self.steps = nn.ModuleList(
            nn.Linear(width + i * step, size) for i, size in enumerate(sizes)
        )

    def forward(self, encoding: Tensor) -> Tensor:
        width = encoding.shape[-1]
        for step in self.steps:
            encoding = torch.cat((encoding, step(encoding)), dim=-1)
        return encoding[..., width:]


@register("MultiPatchFormer", paper=PAPER, small=SMALL, cost="medium", reference=REFERENCE)
class MultiPatchFormer(ForecastNetwork):
    """Forecast `[B, H, C]`."""

    mask: Tensor

    def __init__(self, config: MultiPatchFormerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        width = config.width
        self.revin = RevIN(self.channels)
        self.embedding = MultiPatchEmbedding(config, input_len=self.input_len)
        tokens = self.embedding.tokens
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("mask", future, persistent=False)  # [N, N], True = hidden
        self.time = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.summary = nn.Linear(tokens * width, width)
        self.source = nn.Linear(width, width)
        self.mixing = Layer(config)
        self.head = PiecewiseHead(width, horizon=self.horizon, pieces=config.pieces)
        self.state_layouts({"time": self.channels})

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        normal, statistics = self.revin.normalise(x)
        tokens = self.embedding(normal.transpose(1, 2).flatten(0, 1))  # [B*C, N, d]
        for layer in self.time:
            tokens = layer(tokens, mask=self.mask)
        series = tokens.flatten(1).unflatten(0, (-1, self.channels))  # [B, C, N*d]
        encoding = self.summary(series)  # [B, C, d]
        encoding = self.mixing(encoding, memory=self.source(encoding))
        return self.revin.restore(self.head(encoding).transpose(1, 2), statistics)
