"""TranAD: two passes, the second looking where the first went wrong.

One encoder, two decoders. Pass 1 reconstructs; its squared error is the focus joined to the input
of pass 2, where decoder 2 is trained against decoder 1 so that errors on unusual windows grow.

Differs from the publication's repository: the whole window is target and scored, both errors enter
the score, LayerNorms and the adversarial term are there. The two losses would cancel when added;
instead decoder 2 runs pass 2 on parameters of equal value and reversed gradient.

Dropout sites, dim 0 = B: tokens `[B, L, d]`, attention weights `[B, h, L, L]`, residual branches
`[B, L, d]`, MLP hidden `[B, L, ff]`; the encoder and decoder 2 are called twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sacm.backbones.base import DetectorNetwork, ScoreKind, require_fitted
from sacm.backbones.blocks.embedding import Positions
from sacm.backbones.blocks.transformer import MLP, Attention
from sacm.backbones.registry import register

RANGE_FLOOR = 1e-4
REFERENCE = "Tuli et al., VLDB 2022, arXiv:2201.07284"


@dataclass(frozen=True)
class TranADConfig:
    """Sizes of the paper's runs; pass 1 weighs decay^epoch, at least `decay_floor`."""

    width: int = 128
    heads: int = 4
    hidden: int = 256
    encoder_layers: int = 2
    decay: float = 0.9
    decay_floor: float = 0.5
    dropout: float = 0.1


SMALL = TranADConfig(width=32, heads=1, hidden=64)


class Passes(NamedTuple):
    """The window in [0, 1] and its three reconstructions, each `[B, L, C]`."""

    scaled: Tensor
    first: Tensor  # decoder 1, pass 1
    second: Tensor  # decoder 2, pass 1
    refined: Tensor  # decoder 2, pass 2


class Residual(nn.Module):
    """LN(x + dropout(branch)): `[B, L, d]` twice to `[B, L, d]`."""

    def __init__(self, config: TranADConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor, branch: Tensor) -> Tensor:
        return self.norm(x + self.dropout(branch))


class PositionedSteps(nn.Module):
    """A Linear on each step, plus positions, dropped: `[B, L, features]` to `[B, L, d]`."""

    def __init__(self, features: int, config: TranADConfig, *, length: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, config.width)
        self.positions = Positions(length, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.positions(self.linear(x)))


class TranADEncoderLayer(nn.Module):
    """Self-attention and MLP, both branches dropped: `[B, L, d]` to `[B, L, d]`."""

    def __init__(self, config: TranADConfig) -> None:
        super().__init__()
        self.attention = Attention(config.width, config.heads, config.dropout)
        self.attention_residual = Residual(config)
        self.mlp = MLP(config.width, config.hidden, config.dropout)
        self.mlp_residual = Residual(config)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention_residual(x, self.attention(x))
        return self.mlp_residual(x, self.mlp(x))


class Decoder(nn.Module):
    """Tokens and memory `[B, L, d]` to `[B, L, C]` in (0, 1); no step sees later tokens."""

    hidden_future: Tensor

    def __init__(self, config: TranADConfig, *, length: int, channels: int) -> None:
        super().__init__()
        self.self_attention = Attention(config.width, config.heads, config.dropout)
        self.self_residual = Residual(config)
        self.cross_attention = Attention(config.width, config.heads, config.dropout)
        self.cross_residual = Residual(config)
        self.mlp = MLP(config.width, config.hidden, config.dropout)
        self.mlp_residual = Residual(config)
        self.output = nn.Linear(config.width, channels)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("hidden_future", future, persistent=False)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = self.self_residual(x, self.self_attention(x, mask=self.hidden_future))
        x = self.cross_residual(x, self.cross_attention(x, memory))
        x = self.mlp_residual(x, self.mlp(x))
        return self.output(x).sigmoid()


@register("TranAD", paper=TranADConfig(), small=SMALL, cost="medium", reference=REFERENCE)
class TranAD(DetectorNetwork):
    """Self-conditioned reconstruction by two decoders, the second adversarial in pass 2."""

    low: Tensor
    high: Tensor
    epoch: Tensor

    def __init__(self, config: TranADConfig, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.decay, self.decay_floor = config.decay, config.decay_floor
        self.register_buffer("low", torch.full((channels,), torch.nan))
        self.register_buffer("high", torch.full((channels,), torch.nan))
        self.register_buffer("epoch", torch.ones((), dtype=torch.long))
        self.encoder_tokens = PositionedSteps(2 * channels, config, length=input_len)
        self.encoder = nn.Sequential(
            *(TranADEncoderLayer(config) for _ in range(config.encoder_layers))
        )
        self.decoder_tokens = PositionedSteps(channels, config, length=input_len)
        self.first_decoder = Decoder(config, length=input_len, channels=channels)
        self.second_decoder = Decoder(config, length=input_len, channels=channels)
        self.state_layouts()

    @torch.no_grad()
    def prepare(self, train_x: Tensor) -> None:
        self.check_window(train_x)
        self.low.copy_(train_x.amin(dim=(0, 1)))
        self.high.copy_(train_x.amax(dim=(0, 1)))

    def set_epoch(self, epoch: int) -> None:
        """Shift weight from pass 1 to pass 2; kept in the state, so that it survives a resume."""
        self.epoch.fill_(epoch)

    def forward(self, x: Tensor) -> Passes:
        self.check_window(x)
        require_fitted(self, self.high)
        scaled = (x - self.low) / self.range()  # [B, L, C]
        memory = self.encode(scaled, torch.zeros_like(scaled))
        first = self.first_decoder(self.decoder_tokens(scaled), memory)
        second = self.second_decoder(self.decoder_tokens(scaled), memory)
        focus = (first - scaled).square()  # not detached: decoder 1 learns from pass 2
        refined = self.refine(self.decoder_tokens(scaled), self.encode(scaled, focus))
        return Passes(scaled, first, second, refined)

    def encode(self, scaled: Tensor, focus: Tensor) -> Tensor:
        """Window and focus `[B, L, C]` to a memory `[B, L, d]`."""
        return self.encoder(self.encoder_tokens(torch.cat((scaled, focus), dim=-1)))

    def refine(self, tokens: Tensor, memory: Tensor) -> Tensor:
        """Decoder 2 in pass 2. In training the gradients of its parameters are reversed."""
        if not self.training:
            return self.second_decoder(tokens, memory)
        parameters = self.second_decoder.named_parameters()
        opposed = {name: 2 * p.detach() - p for name, p in parameters}  # of equal value
        return functional_call(self.second_decoder, opposed, (tokens, memory))

    def range(self) -> Tensor:
        """The width `[C]` of each channel's training range, never 0."""
        return self.high - self.low + RANGE_FLOOR

    def training_loss(self, x: Tensor) -> Tensor:
        """Loss w (|O1 - v|^2 + |O2 - v|^2) + (1 - w) |O2' - v|^2 with w = max(0.9^epoch, 0.5)."""
        passes = self(x)
        weight = (self.decay**self.epoch).clamp(min=self.decay_floor)
        first, second, refined = ((y - passes.scaled).square().mean() for y in passes[1:])
        return weight * (first + second) + (1 - weight) * refined

    def validation_loss(self, x: Tensor) -> Tensor:
        return self.anomaly_scores(x).mean()

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        self.check_score(score)
        passes = self(x)
        if score == "reconstruction":
            return (self.low + passes.first * self.range() - x).abs().mean(dim=-1)
        first = (passes.first - passes.scaled).square()
        refined = (passes.refined - passes.scaled).square()
        return (0.5 * first + 0.5 * refined).mean(dim=-1)
