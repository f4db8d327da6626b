"""NSFormer (Non-stationary Transformer): level and spread given back to attention.

Liu et al., "Non-stationary Transformers: Exploring the Stationarity in Time Series Forecasting",
NeurIPS 2022.

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
from sacm.backbones.blocks.normalisation import InstanceStatistics, RevIN, widen
from sacm.backbones.blocks.transformer import EncoderLayer
from sacm.backbones.registry import register

REFERENCE = "Liu et al., NeurIPS 2022, arXiv:2205.14415"
LARGEST_LOG_SCALE = 80.0  # exp of it still is a float32


@dataclass(frozen=True)
class NSFormerConfig:
    """Sizes of the paper's runs."""

    width: int = 512
    heads: int = 8
    hidden: int = 2048
    layers: int = 2
    projector: int = 256
    dropout: float = 0.1


@dataclass(frozen=True)
class NSFormerClassifierConfig(NSFormerConfig):
    """The same; windows of `long_input` steps or more take the `long_…` sizes."""

    long_input: int = 1024
    long_width: int = 64
    long_heads: int = 1
    long_hidden: int = 256
    long_layers: int = 1
    long_projector: int = 64

    def at_length(self, input_len: int) -> NSFormerConfig:
        """The sizes settled for windows of `input_len`."""
        if input_len < self.long_input:
            return self
        names = ("width", "heads", "hidden", "layers", "projector")
        return replace(self, **{name: getattr(self, f"long_{name}") for name in names})


SMALL = NSFormerConfig(width=32, heads=2, hidden=64, projector=32)
SMALL_CLASSIFIER = NSFormerClassifierConfig(
    width=32, heads=2, hidden=64, projector=32, long_width=32, long_hidden=64, long_projector=32
)


class Projector(nn.Module):
    """What the raw window and one of its statistics say about the attention logits.

    The convolution takes time steps as its channels and runs along the channels of the window.
    """

    def __init__(self, input_len: int, channels: int, *, hidden: int, outputs: int) -> None:
        super().__init__()
        self.summary = nn.Conv1d(input_len, 1, 3, padding=1, padding_mode="circular", bias=False)
        self.expand = nn.Linear(2 * channels, hidden)
        self.contract = nn.Linear(hidden, outputs, bias=False)

    def forward(self, x: Tensor, statistic: Tensor) -> Tensor:
        """`[B, L, C]` and `[B, 1, C]` to `[B, outputs]`."""
        seen = torch.cat((self.summary(x), statistic), dim=1).flatten(1)  # [B, 2C]
        return self.contract(F.relu(self.expand(seen)))


class Encoder(nn.Module):
    """Tokens of the normalised window through layers that share one scale and one shift."""

    def __init__(self, config: NSFormerConfig, *, input_len: int, channels: int) -> None:
        super().__init__()
        self.revin = RevIN(channels)
        self.scale = Projector(input_len, channels, hidden=config.projector, outputs=1)
        self.shift = Projector(input_len, channels, hidden=config.projector, outputs=input_len)
        self.tokens = Tokens(channels, config.width, length=input_len, dropout=config.dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(config.width, config.heads, config.hidden, config.dropout)
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor) -> tuple[Tensor, InstanceStatistics]:
        """`[B, L, C]` to features `[B, L, d]` and the statistics that were removed."""
        normalised, statistics = self.revin.normalise(x)
        log_scale = widen(self.scale(x, statistics.std))  # [B, 1]
        scale = log_scale.clamp(max=LARGEST_LOG_SCALE).exp().to(x.dtype)[..., None, None]
        shift = self.shift(x, statistics.mean)[:, None, None]  # [B, 1, 1, L]
        z = self.tokens(normalised)  # [B, L, d]
        for layer in self.layers:
            z = layer(z, scale=scale, shift=shift)
        return self.norm(z), statistics


@register(
    "NSFormer",
    paper=NSFormerClassifierConfig(),
    small=SMALL_CLASSIFIER,
    cost="heavy",
    reference=REFERENCE,
)
class NSFormerClassifier(ClassifierNetwork):
    """Features of all steps, one Linear."""

    def __init__(
        self, config: NSFormerClassifierConfig, *, input_len: int, channels: int, classes: int
    ) -> None:
        super().__init__(input_len=input_len, channels=channels, classes=classes)
        settled = config.at_length(input_len)
        self.encoder = Encoder(settled, input_len=input_len, channels=channels)
        self.dropout = nn.Dropout(settled.dropout)
        self.output = nn.Linear(input_len * settled.width, classes)
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
