"""PatchTST: every channel alone, overlapping patches as tokens.

Differs from the publication: LayerNorm and fixed positions (the publication offers both, and
defaults to BatchNorm and a learned table), and nothing is dropped on the residual branches.

Dropout sites: tokens `[B*C, N, d]`; per layer the attention weights `[B*C, h, N, N]` and the MLP
hidden layer `[B*C, N, ff]`; at rate 0 the forecast itself `[B, C, H]` or the features of a
classifier `[B, C*N*d]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn

from sacm.backbones.base import ClassifierNetwork, ForecastNetwork, ReconstructionDetector
from sacm.backbones.blocks.embedding import Positions, count_patches, cut_patches
from sacm.backbones.blocks.normalisation import RevIN
from sacm.backbones.blocks.transformer import EncoderLayer
from sacm.backbones.registry import register

REFERENCE = "Nie et al., ICLR 2023, arXiv:2211.14730"
LONG_WINDOW = 1024  # steps from which patches to classify are four times as long


@dataclass(frozen=True)
class PatchTSTConfig:
    """Sizes of the paper's runs."""

    patch: int = 16
    stride: int = 8
    width: int = 256
    heads: int = 1
    hidden: int = 1024
    layers: int = 1
    dropout: float = 0.1
    head_dropout: float = 0.0


PAPER_CLASSIFIER = PatchTSTConfig(width=64, hidden=256)
SMALL = PatchTSTConfig(width=64, hidden=128)
SMALL_CLASSIFIER = PatchTSTConfig(width=32, hidden=64)


class Encoder(nn.Module):
    """Channels apart, patches as tokens: `[B, L, C]` to `[B, C, N*d]`."""

    def __init__(self, config: PatchTSTConfig, *, input_len: int) -> None:
        super().__init__()
        self.stride = config.stride
        self.patch = min(config.patch, input_len + config.stride)
        patches = count_patches(input_len, patch=self.patch, stride=self.stride)
        self.features = patches * config.width
        self.embed = nn.Linear(self.patch, config.width)
        self.positions = Positions(patches, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.Sequential(*(EncoderLayer(config) for _ in range(config.layers)))

    def forward(self, x: Tensor) -> Tensor:
        batch, _, channels = x.shape
        series = x.transpose(1, 2).flatten(0, 1)  # [B*C, L]
        patches = cut_patches(series, patch=self.patch, stride=self.stride)  # [B*C, N, patch]
        tokens = self.dropout(self.positions(self.embed(patches)))  # [B*C, N, d]
        return self.layers(tokens).reshape(batch, channels, self.features)


class Network(nn.Module):
    """`past` steps to `future` ones in the window's own units: `[B, L, C]` to `[B, T, C]`."""

    def __init__(self, config: PatchTSTConfig, past: int, future: int, *, channels: int) -> None:
        super().__init__()
        self.revin = RevIN(channels)
        self.encoder = Encoder(config, input_len=past)
        self.head = nn.Linear(self.encoder.features, future)
        self.head_dropout = nn.Dropout(config.head_dropout)

    def forward(self, x: Tensor) -> Tensor:
        normal, statistics = self.revin.normalise(x)
        y = self.head_dropout(self.head(self.encoder(normal)))  # [B, C, T]
        return self.revin.restore(y.transpose(1, 2), statistics)


@register("PatchTST", paper=PatchTSTConfig(), small=SMALL, reference=REFERENCE)
class PatchTSTForecaster(ForecastNetwork):
    """Forecast `[B, H, C]`."""

    def __init__(self, config: PatchTSTConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.network = Network(config, self.input_len, self.horizon, channels=self.channels)
        self.state_layouts({"network.encoder": self.channels})


@register("PatchTST", paper=PatchTSTConfig(), small=SMALL, reference=REFERENCE)
class PatchTSTDetector(ReconstructionDetector):
    """Reconstruction `[B, L, C]`."""

    def __init__(self, config: PatchTSTConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.network = Network(config, self.input_len, self.input_len, channels=self.channels)
        self.state_layouts({"network.encoder": self.channels})


@register("PatchTST", paper=PAPER_CLASSIFIER, small=SMALL_CLASSIFIER, reference=REFERENCE)
class PatchTSTClassifier(ClassifierNetwork):
    """Logits `[B, K]` from all tokens of all channels."""

    def __init__(self, config: PatchTSTConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        if self.input_len >= LONG_WINDOW:
            config = replace(config, patch=4 * config.patch, stride=4 * config.stride)
        self.revin = RevIN(self.channels)
        self.encoder = Encoder(config, input_len=self.input_len)
        self.head_dropout = nn.Dropout(config.head_dropout)
        self.head = nn.Linear(self.channels * self.encoder.features, self.classes)
        self.state_layouts({"encoder": self.channels})

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        normal, _ = self.revin.normalise(x)
        features = self.encoder(normal).flatten(1)  # [B, C*N*d]
        return self.head(self.head_dropout(features))
