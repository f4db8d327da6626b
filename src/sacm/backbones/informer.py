"""Informer: only the most selective queries attend; the encoder halves the length between layers.

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
from sacm.backbones.blocks.embedding import CalendarSizes, Tokens
from sacm.backbones.blocks.transformer import Attention, EncoderLayer, merge_heads, split_heads
from sacm.backbones.registry import register

REFERENCE = "Zhou et al., AAAI 2021, arXiv:2012.07436"


@dataclass(frozen=True)
class InformerConfig:
    """Sizes of the paper's runs."""

    width: int = 512
    heads: int = 8
    hidden: int = 2048
    factor: int = 3
    encoder_layers: int = 2
    decoder_layers: int = 1
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
        # How many queries attend, and how many keys each is measured on.
        self.active = min(length, max(1, config.factor * math.ceil(math.log(length))))
        generator = torch.Generator().manual_seed(seed)
        table = torch.randint(length, (length, self.active), generator=generator)
        self.register_buffer("keys", table, persistent=False)  # [T, n], for evaluation

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]  # self-attention only
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
    """Layers of sparse attention, a distilling step between them: `[B, L, d]` to `[B, L', d]`."""

    def __init__(self, config: InformerConfig, *, length: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for number in range(config.encoder_layers):
            attention = SparseAttention(config, length=length, seed=number)
            self.layers.append(EncoderLayer(config, attention))
            length = math.ceil(length / 2)
        self.distil = nn.ModuleList(Distil(config.width) for _ in range(config.encoder_layers - 1))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Tensor) -> Tensor:
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
        self.cross = EncoderLayer(config)

    def forward(self, y: Tensor, memory: Tensor) -> Tensor:
        return self.cross(self.norm(y + self.attention(y)), memory=memory)


@register("Informer", paper=InformerConfig(), small=SMALL, cost="heavy", reference=REFERENCE)
class Informer(ForecastNetwork):
    """Forecast `[B, H, C]`; the decoder sees the last half of the window, then zeros."""

    def __init__(
        self, config: InformerConfig, *, calendar_sizes: CalendarSizes = None, **sizes: int
    ) -> None:
        super().__init__(**sizes)
        self.calendar_sizes = calendar_sizes
        self.label_len = self.input_len // 2
        decoder_len = self.label_len + self.horizon
        tokens = partial(Tokens, self.channels, config, calendar=calendar_sizes)
        self.encoder_tokens = tokens(length=self.input_len)
        self.encoder = Encoder(config, length=self.input_len)
        self.decoder_tokens = tokens(length=decoder_len)
        self.decoder = nn.ModuleList(
            DecoderLayer(config, length=decoder_len, number=config.encoder_layers + i)
            for i in range(config.decoder_layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, self.channels)
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
