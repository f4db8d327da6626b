"""Multi-head attention with its dropout in the open, and the Transformer layer around it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.errors import ArgumentError


def check_heads(width: int, heads: int) -> None:
    """Refuse a width that its heads cannot share."""
    if width < 1 or heads < 1 or width % heads:
        raise ArgumentError(f"width {width} cannot be divided into {heads} heads.")


def split_heads(x: Tensor, heads: int) -> Tensor:
    """`[b, T, d]` to `[b, h, T, d/h]`."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """`[b, h, T, d/h]` to `[b, T, d]`, heads in order."""
    return x.transpose(1, 2).flatten(2)


class Attention(nn.Module):
    """softmax((q k^T * scale + shift) / sqrt(d/h)), dropout on the weights, times v.

    Queries `[b, Tq, d]` attend to memory `[b, Tk, d]` (themselves by default). `mask` is boolean,
    True where a key is hidden; `mask`, `scale` and `shift` broadcast to `[b, h, Tq, Tk]`. Explicit
    rather than fused: the dropout is a module of its own that can be replaced.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        check_heads(width, heads)
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        queries: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        scale: Tensor | None = None,
        shift: Tensor | None = None,
    ) -> Tensor:
        memory = queries if memory is None else memory
        q = split_heads(self.query(queries), self.heads)  # [b, h, Tq, d/h]
        k = split_heads(self.key(memory), self.heads)  # [b, h, Tk, d/h]
        v = split_heads(self.value(memory), self.heads)  # [b, h, Tk, d/h]
        logits = q @ k.transpose(-1, -2)  # [b, h, Tq, Tk]
        if scale is not None:
            logits = logits * scale
        if shift is not None:
            logits = logits + shift
        logits = logits / math.sqrt(q.shape[-1])
        if mask is not None:
            logits = logits.masked_fill(mask, -torch.inf)
        weights = self.dropout(logits.softmax(dim=-1))  # [b, h, Tq, Tk]
        return self.output(merge_heads(weights @ v))  # [b, Tq, d]


class MLP(nn.Module):
    """Linear, exact GELU, dropout on the hidden layer, Linear: `[..., d]` to `[..., d]`."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(F.gelu(self.expand(x))))


class EncoderLayer(nn.Module):
    """x = LN(x + attention(x)), then x = LN(x + MLP(x)); nothing is dropped on the residuals.

    `config` has `width`, `heads`, `hidden` and `dropout`. What `forward` takes beside `[b, T, d]`
    (memory, mask, scale, shift) goes to the attention.
    """

    def __init__(self, config: Any, attention: nn.Module | None = None) -> None:
        super().__init__()
        width, dropout = config.width, config.dropout
        self.attention = attention or Attention(width, config.heads, dropout)
        self.attention_norm = nn.LayerNorm(width)
        self.mlp = MLP(width, config.hidden, dropout)
        self.mlp_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, **options: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x, **options))
        return self.mlp_norm(x + self.mlp(x))
