"""iTransformer: a whole channel is one token; attention mixes channels.

Differs from the publication: nothing is dropped on the residual branches, and there are no
calendar tokens. With one channel attention is a constant.

Dropout sites: tokens `[B, C, d]`; per layer the attention weights `[B, h, C, C]` and the MLP hidden
layer `[B, C, ff]`; classification adds the features `[B, C, d]`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ClassifierNetwork, ForecastNetwork, ReconstructionDetector
from sacm.backbones.blocks.normalisation import RevIN
from sacm.backbones.blocks.transformer import EncoderLayer
from sacm.backbones.registry import register

REFERENCE = "Liu et al., ICLR 2024, arXiv:2310.06625"


@dataclass(frozen=True)
class ITransformerConfig:
    """Sizes of the paper's runs."""

    width: int = 256
    heads: int = 1
    hidden: int = 1024
    layers: int = 1
    dropout: float = 0.1


SMALL = ITransformerConfig(width=64, hidden=128)


class Encoder(nn.Module):
    """Channels as tokens: `[B, L, C]` to `[B, C, d]`."""

    def __init__(self, config: ITransformerConfig, *, input_len: int) -> None:
        super().__init__()
        self.embed = nn.Linear(input_len, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.Sequential(*(EncoderLayer(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.dropout(self.embed(x.transpose(1, 2)))  # [B, C, d]
        return self.norm(self.layers(tokens))  # [B, C, d]


class Network(nn.Module):
    """`past` steps to `future` ones in the window's own units: `[B, L, C]` to `[B, T, C]`."""

    def __init__(self, config: ITransformerConfig, past: int, future: int) -> None:
        super().__init__()
        self.revin = RevIN()
        self.encoder = Encoder(config, input_len=past)
        self.head = nn.Linear(config.width, future)

    def forward(self, x: Tensor) -> Tensor:
        normal, statistics = self.revin.normalise(x)
        y = self.head(self.encoder(normal)).transpose(1, 2)  # [B, T, C]
        return self.revin.restore(y, statistics)


@register("iTransformer", paper=ITransformerConfig(), small=SMALL, reference=REFERENCE)
class ITransformerForecaster(ForecastNetwork):
    """Forecast `[B, H, C]`."""

    def __init__(self, config: ITransformerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.network = Network(config, self.input_len, self.horizon)
        self.state_layouts()


@register("iTransformer", paper=ITransformerConfig(), small=SMALL, reference=REFERENCE)
class ITransformerDetector(ReconstructionDetector):
    """Reconstruction `[B, L, C]`."""

    def __init__(self, config: ITransformerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.network = Network(config, self.input_len, self.input_len)
        self.state_layouts()


@register("iTransformer", paper=ITransformerConfig(), small=SMALL, reference=REFERENCE)
class ITransformerClassifier(ClassifierNetwork):
    """Logits `[B, K]` from the encoded channels, without normalising the window."""

    def __init__(self, config: ITransformerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.encoder = Encoder(config, input_len=self.input_len)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(self.channels * config.width, self.classes)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        features = self.dropout(F.gelu(self.encoder(x)))  # [B, C, d]
        return self.head(features.flatten(1))
