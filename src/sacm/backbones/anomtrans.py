"""AnomTrans (Anomaly Transformer): two views of how a step relates to the others.

Each layer holds learned attention (the series view) and a Gaussian of learned width around each
step (the prior view). Abnormal steps can hardly build wide relations, so the views are close there;
a minimax training widens the gap elsewhere.

Differs from the publication's code: both phases of the minimax are one loss of equal gradients;
distances use the attention before dropout, since a dropped map is no distribution.

Dropout sites: tokens `[B, L, d]`; per layer the attention weights `[B, h, L, L]` and the MLP
hidden layer `[B, L, ff]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.backbones.base import DetectorNetwork, ScoreKind
from sacm.backbones.blocks.embedding import Tokens
from sacm.backbones.blocks.normalisation import full_precision, symmetric_distance, widen
from sacm.backbones.blocks.transformer import EncoderLayer, check_heads, merge_heads, split_heads
from sacm.backbones.registry import register

REFERENCE = "Xu et al., ICLR 2022, arXiv:2110.02642"


@dataclass(frozen=True)
class AnomTransConfig:
    """Sizes of the paper's runs; `temperature` sharpens the score within a window."""

    width: int = 128
    heads: int = 4
    hidden: int = 256
    layers: int = 2
    discrepancy_weight: float = 3.0
    temperature: float = 50.0
    dropout: float = 0.1


SMALL = AnomTransConfig(width=32, heads=2, hidden=64)


Views = tuple[Tensor, list[Tensor], list[Tensor]]  # reconstruction, series and prior of each layer


class AnomalyAttention(nn.Module):
    """Attention `[B, L, d]` to the same, with its weights and a Gaussian prior `[B, h, L, L]`."""

    squared_gaps: Tensor

    def __init__(self, config: AnomTransConfig, *, length: int) -> None:
        super().__init__()
        check_heads(config.width, config.heads)
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.sigma = nn.Linear(config.width, config.heads)
        self.output = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        step = torch.arange(length, dtype=torch.float32)
        squared_gaps = (step[:, None] - step).square()  # [L, L]
        self.register_buffer("squared_gaps", squared_gaps, persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = split_heads(self.query(x), self.heads)  # [B, h, L, d/h]
        k = split_heads(self.key(x), self.heads)
        v = split_heads(self.value(x), self.heads)
        series = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        attended = self.output(merge_heads(self.dropout(series) @ v))
        return attended, series, self.prior(self.sigma(x))

    def prior(self, sigma: Tensor) -> Tensor:
        """Rows exp(-(i-j)^2 / (2 sigma_i^2)), normalised: raw `[B, L, h]` to `[B, h, L, L]`."""
        with full_precision(sigma):
            exponent = (5 * widen(sigma)).sigmoid() + 1e-5
            spread = (3.0**exponent - 1).transpose(1, 2)[..., None]  # [B, h, L, 1]
            return (-self.squared_gaps / (2 * spread.square())).softmax(dim=-1)


class AnomalyLayer(EncoderLayer):
    """A layer around anomaly attention that also returns series and prior."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        attended, series, prior = self.attention(x)
        x = self.attention_norm(x + attended)
        return self.mlp_norm(x + self.mlp(x)), series, prior


@register("AnomTrans", paper=AnomTransConfig(), small=SMALL, reference=REFERENCE)
class AnomTrans(DetectorNetwork):
    """Reconstruction and association discrepancy, trained against each other."""

    def __init__(self, config: AnomTransConfig, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.discrepancy_weight = config.discrepancy_weight
        self.temperature = config.temperature
        self.tokens = Tokens(channels, config, length=input_len)
        self.layers = nn.ModuleList(
            AnomalyLayer(config, AnomalyAttention(config, length=input_len))
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, channels)
        self.state_layouts()

    def forward(self, x: Tensor) -> Views:
        self.check_window(x)
        z = self.tokens(x)  # [B, L, d]
        all_series, priors = [], []
        for layer in self.layers:
            z, series, prior = layer(z)
            all_series.append(series)
            priors.append(prior)
        return self.output(self.norm(z)), all_series, priors

    def training_loss(self, x: Tensor) -> Tensor:
        # As a number twice the error: both terms of the gap are equal, only their gradients differ.
        # Priors move to series, series away from priors.
        reconstruction, series, priors = self(x)
        error = (reconstruction - x).square().mean()
        gap = mean_distance(priors, series) - mean_distance(series, priors)
        return 2 * error + self.discrepancy_weight * gap

    def validation_loss(self, x: Tensor) -> Tensor:
        return (self(x)[0] - x).square().mean()

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        """Squared error weighted by how close the views are within the window, `[B, L]`."""
        self.check_score(score)
        reconstruction, series, priors = self(x)
        if score == "reconstruction":
            return (reconstruction - x).abs().mean(dim=-1)
        pairs = zip(series, priors, strict=True)
        distance = torch.stack([symmetric_distance(s, p) for s, p in pairs]).sum(dim=0)  # [B, L]
        closeness = (-self.temperature * distance).softmax(dim=-1)
        return closeness * (reconstruction - x).square().mean(dim=-1)


def mean_distance(moving: list[Tensor], still: list[Tensor]) -> Tensor:
    """Mean distance of two views, whose gradient moves only the first."""
    pairs = zip(moving, still, strict=True)
    return torch.stack([symmetric_distance(m, s.detach()) for m, s in pairs]).mean()
