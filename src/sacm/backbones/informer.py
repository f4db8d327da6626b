"""Informer: only the most selective queries attend; the encoder halves the length between layers.

Zhou et al., "Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting",
AAAI 2021.

Differs from the publication: dropout on attention weights and in MLPs, not on the residual
branches; factor 3. Differs from other code: heads are merged in order, cross-attention is full, and
evaluation samples its keys from a table fixed at construction, so that it is repeatable.

Dropout sites: encoder and decoder tokens `[B, T, d]`; sparse weights `[B, h, n, T]`; cross weights
`[B, h, T, T']`; MLP hidden layers `[B, T, ff]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.embedding import Tokens
from sacm.backbones.blocks.transformer import Attention, EncoderLayer, merge_heads, split_heads
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

REFERENCE = "Zhou et al., AAAI 2021, arXiv:2012.07436"


@dataclass(frozen=True)
class InformerConfig:
    """Sizes of the paper's runs; the decoder is shown `label_len` known steps, L // 2 if None."""

    width: int = 512
    heads: int = 8
    hidden: int = 2048
    factor: int = 3
    encoder_layers: int = 2
    decoder_layers: int = 1
    label_len: int | None = None
    dropout: float = 0.05


SMALL = InformerConfig(width=64, heads=4, hidden=128)


class SparseAttention(Attention):
    """Self-attention in which only the queries with the most uneven scores attend.

    A query's measure is the largest of its scores against a few sampled keys minus their sum over
    T. The others take the mean of the values (causal: their running sum).
    """

    keys: Tensor

    def __init__(
        self, config: InformerConfig, *, length: int, seed: int, causal: bool = False
    ) -> None:
        super().__init__(config.width, config.heads, config.dropout)
        self.causal = causal
        self.length = length
        self.active = active_queries(length, config.factor)
        generator = torch.Generator().manual_seed(seed)
        table = torch.randint(length, (length, self.active), generator=generator)
        self.register_buffer("keys", table, persistent=False)  # [T, n], for evaluation

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # self-attention only
        """`[B, T, d]` to `[B, T, d]`."""
        q = split_heads(self.query(x), self.heads)  # [B, h, T, e]
        k = split_heads(self.key(x), self.heads)  # [B, h, T, e]
        v = split_heads(self.value(x), self.heads)  # [B, h, T, e]
        chosen = self.choose(q, k)  # [B, h, n]
        rows = chosen[..., None].expand(-1, -1, -1, q.shape[-1])  # [B, h, n, e]
        logits = q.gather(2, rows) @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # [B, h, n, T]
        if self.causal:
            later = torch.arange(self.length, device=x.device) > chosen[..., None]
            logits = logits.masked_fill(later, -torch.inf)
        attended = self.dropout(logits.softmax(dim=-1)) @ v  # [B, h, n, e]
        idle = v.cumsum(dim=2) if self.causal else v.mean(dim=2, keepdim=True).expand_as(v)
        return self.output(merge_heads(idle.scatter(2, rows, attended.to(idle.dtype))))

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor) -> Tensor:
        """Indices `[B, h, n]` of the queries that attend."""
        scores = q @ k.transpose(-1, -2)  # [B, h, T, T]
        keys = torch.randint_like(self.keys, self.length) if self.training else self.keys
        sampled = scores.gather(-1, keys.expand(*scores.shape[:2], -1, -1))  # [B, h, T, n]
        measure = sampled.amax(dim=-1) - sampled.sum(dim=-1) / self.length  # [B, h, T]
        return measure.topk(self.active, dim=-1).indices


def active_queries(length: int, factor: int) -> int:
    """How many of `length` queries attend, and how many keys each is measured on."""
    return min(length, max(1, factor * math.ceil(math.log(length))))


class Distil(nn.Module):
    """Convolve and pool: `[B, T, d]` to `[B, ceil(T/2), d]`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, padding=1, padding_mode="circular")
        self.norm = nn.BatchNorm1d(width)
        self.pool = nn.MaxPool1d(3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.elu(self.norm(self.convolution(x.transpose(1, 2))))  # [B, d, T]
        return self.pool(x).transpose(1, 2)


class Encoder(nn.Module):
    """Layers of sparse attention with a distilling step between them."""

    def __init__(self, config: InformerConfig, *, length: int) -> None:
        super().__init__()
        width = config.width
        self.layers = nn.ModuleList()
        for number in range(config.encoder_layers):
            attention = SparseAttention(config, length=length, seed=number)
            layer = EncoderLayer(width, config.heads, config.hidden, config.dropout, attention)
            self.layers.append(layer)
            length = math.ceil(length / 2)
        self.distil = nn.ModuleList(Distil(width) for _ in range(config.encoder_layers - 1))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, d]` to the memory `[B, L', d]`."""
        x = self.layers[0](x)
        for distil, layer in zip(self.distil, self.layers[1:], strict=True):
            x = layer(distil(x))
        return self.norm(x)


class DecoderLayer(nn.Module):
    """Causal sparse attention, then a layer that attends to the memory: `[B, T, d]` to the same."""

    def __init__(self, config: InformerConfig, *, length: int, number: int) -> None:
        super().__init__()
        self.attention = SparseAttention(config, length=length, seed=number, causal=True)
        self.norm = nn.LayerNorm(config.width)
        self.cross = EncoderLayer(config.width, config.heads, config.hidden, config.dropout)

    def forward(self, y: Tensor, memory: Tensor) -> Tensor:
        return self.cross(self.norm(y + self.attention(y)), memory=memory)


@register("Informer", paper=InformerConfig(), small=SMALL, cost="heavy", reference=REFERENCE)
class Informer(ForecastNetwork):
    """Forecast `[B, H, C]`, with calendar tables if built with `calendar_sizes`."""

    def __init__(
        self,
        config: InformerConfig,
        *,
        input_len: int,
        horizon: int,
        channels: int,
        calendar_sizes: tuple[int, int, int, int] | None = None,
    ) -> None:
        super().__init__(input_len=input_len, horizon=horizon, channels=channels)
        self.calendar_sizes = calendar_sizes
        self.label_len = input_len // 2 if config.label_len is None else config.label_len
        if not 0 <= self.label_len <= input_len:
            raise ArgumentError(
                f"Informer: label_len must be in 0…{input_len}, got {self.label_len}."
            )
        decoder_len = self.label_len + horizon
        tokens = partial(
            Tokens, channels, config.width, dropout=config.dropout, calendar_sizes=calendar_sizes
        )
        self.encoder_tokens = tokens(length=input_len)
        self.encoder = Encoder(config, length=input_len)
        self.decoder_tokens = tokens(length=decoder_len)
        self.decoder = nn.ModuleList(
            DecoderLayer(config, length=decoder_len, number=config.encoder_layers + i)
            for i in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, channels)
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        start = self.input_len - self.label_len
        past = None if stamps is None else stamps[:, : self.input_len]
        later = None if stamps is None else stamps[:, start:]
        memory = self.encoder(self.encoder_tokens(x, past))  # [B, L', d]
        known = F.pad(x[:, start:], (0, 0, 0, self.horizon))  # [B, label + H, C], zeros behind
        y = self.decoder_tokens(known, later)  # [B, label + H, d]
        for layer in self.decoder:
            y = layer(y, memory)
        return self.head(self.norm(y[:, -self.horizon :]))
