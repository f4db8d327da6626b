"""NSFormer (Non-stationary Transformer): level and spread given back to attention.

Differs from the publication: an encoder alone, with heads for classification and reconstruction,
one hidden layer in the projectors, and nothing dropped on the residual branches.

Dropout sites: tokens `[B, L, d]`; per layer the attention weights `[B, h, L, L]` and the MLP
hidden layer `[B, L, ff]`; in classification also the features `[B, L, d]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ClassifierNetwork, ReconstructionDetector
from sacm.backbones.blocks.embedding import Tokens
from sacm.backbones.blocks.normalisation import RevIN, Statistics, widen
from sacm.backbones.blocks.transformer import EncoderLayer
from sacm.backbones.registry import register

REFERENCE = "Liu et al., NeurIPS 2022, arXiv:2205.14415"
LARGEST_LOG_SCALE = 80.0  # exp of it still is a float32
LONG_WINDOW = 1024  # steps from which a classifier is at most of `LONG_SIZES`
LONG_SIZES = {"width": 64, "heads": 1, "hidden": 256, "layers": 1, "projector": 64}


@dataclass(frozen=True)
class NSFormerConfig:
    """Sizes of the paper's runs."""

    width: int = 512
    heads: int = 8
    hidden: int = 2048
    layers: int = 2
    projector: int = 256
    dropout: float = 0.1


SMALL = NSFormerConfig(width=32, heads=2, hidden=64, projector=32)


class Projector(nn.Module):
    """What window `[B, L, C]` and statistic `[B, 1, C]` say about the logits: `[B, outputs]`.

    The convolution takes time steps as its channels and runs along the channels of the window.
    """

    def __init__(self, input_len: int, channels: int, *, hidden: int, outputs: int) -> None:
        super().__init__()
        self.summary = nn.Conv1d(input_len, 1, 3, padding=1, padding_mode="circular", bias=False)
        self.expand = nn.Linear(2 * channels, hidden)
        self.contract = nn.Linear(hidden, outputs, bias=False)

    def forward(self, x: Tensor, statistic: Tensor) -> Tensor:
        seen = torch.cat((self.summary(x), statistic), dim=1).flatten(1)  # [B, 2C]
        return self.contract(F.relu(self.expand(seen)))


class Encoder(nn.Module):
    """Tokens of the normalised window through layers that share one scale and one shift."""

    def __init__(self, config: NSFormerConfig, *, input_len: int, channels: int) -> None:
        super().__init__()
        self.revin = RevIN()
        self.scale = Projector(input_len, channels, hidden=config.projector, outputs=1)
        self.shift = Projector(input_len, channels, hidden=config.projector, outputs=input_len)
        self.tokens = Tokens(channels, config, length=input_len)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor) -> tuple[Tensor, Statistics]:
        """`[B, L, C]` to features `[B, L, d]` and the statistics that were removed."""
        normalised, (mean, std) = self.revin.normalise(x)
        log_scale = widen(self.scale(x, std))  # [B, 1]
        scale = log_scale.clamp(max=LARGEST_LOG_SCALE).exp().to(x.dtype)[..., None, None]
        shift = self.shift(x, mean)[:, None, None]  # [B, 1, 1, L]
        z = self.tokens(normalised)  # [B, L, d]
        for layer in self.layers:
            z = layer(z, scale=scale, shift=shift)
        return self.norm(z), (mean, std)


@register("NSFormer", paper=NSFormerConfig(), small=SMALL, cost="heavy", reference=REFERENCE)
class NSFormerClassifier(ClassifierNetwork):
    """Features of all steps, one Linear."""

    def __init__(self, config: NSFormerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        if self.input_len >= LONG_WINDOW:
            capped = {name: min(getattr(config, name), size) for name, size in LONG_SIZES.items()}
            config = replace(config, **capped)
        self.encoder = Encoder(config, input_len=self.input_len, channels=self.channels)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(self.input_len * config.width, self.classes)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        features, _ = self.encoder(x)
        return self.output(self.dropout(F.gelu(features)).flatten(1))


@register("NSFormer", paper=NSFormerConfig(), small=SMALL, cost="heavy", reference=REFERENCE)
class NSFormerDetector(ReconstructionDetector):
    """Features projected back to channels, in the units of the window."""

    def __init__(self, config: NSFormerConfig, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.encoder = Encoder(config, input_len=input_len, channels=channels)
        self.output = nn.Linear(config.width, channels)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        features, statistics = self.encoder(x)
        return self.encoder.revin.restore(self.output(features), statistics)
