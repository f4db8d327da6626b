"""Small networks over windows `[B, L, C]`, one for each way of holding a batch."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm

CHANNELS, LENGTH = 3, 16


def windows(
    batch: int = 6, length: int = LENGTH, channels: int = CHANNELS, seed: int = 0
) -> Tensor:
    """Windows of growing noise, so that their scores differ."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(length)[:, None] / torch.tensor([3.0, 5.0, 7.0, 4.0])[:channels]
    noise = torch.randn(batch, length, channels, generator=generator)
    return torch.sin(time) + noise * torch.linspace(0.1, 1.5, batch)[:, None, None]


def attached(model: nn.Module, x: Tensor | None = None, **options: Any) -> sacm.CapacityModulator:
    """Attach and probe on `x`, or on the usual windows."""
    example = windows() if x is None else x
    return sacm.attach(model, **{"channels": CHANNELS, "example_inputs": example, **options})


class MLP(nn.Module):
    def __init__(self, channels: int = CHANNELS, length: int = LENGTH) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(channels * length, 32), nn.ReLU(), nn.Dropout(0.1))
        self.second = nn.Sequential(nn.Linear(32, 24), nn.Dropout(0.0))
        self.head = nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.second(self.hidden(x.flatten(1))))


def sequential() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(CHANNELS * LENGTH, 32), nn.Dropout(0.1), nn.Linear(32, 4)
    )


class BatchMajor(nn.Module):
    """Channels folded in after the batch: `[B*C, L]`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(LENGTH, 20)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(20, 4)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        h = x.transpose(1, 2).reshape(batch * channels, length)
        return self.head(self.drop(self.embed(h))).view(batch, channels, -1).transpose(1, 2)


class BatchMinor(BatchMajor):
    """Channels folded in before the batch: `[C*B, L]`."""

    def forward(self, x: Tensor) -> Tensor:
        batch, length, channels = x.shape
        h = x.permute(2, 0, 1).reshape(channels * batch, length)
        return self.head(self.drop(self.embed(h))).view(channels, batch, -1).permute(1, 2, 0)


class Encoder(nn.Module):
    """`nn.TransformerEncoder`, time first or batch first."""

    def __init__(self, *, batch_first: bool, width: int = 8, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Linear(CHANNELS, width)
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, dropout=dropout, batch_first=batch_first
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)
        self.batch_first = batch_first

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        h = self.encoder(h if self.batch_first else h.transpose(0, 1))
        return self.head(h if self.batch_first else h.transpose(0, 1))


class ConvNet(nn.Module):
    """Feature maps that drop together, with batch normalisation between."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(CHANNELS, 24, 3, padding=1)
        self.norm = nn.BatchNorm1d(24)
        self.drop1 = nn.Dropout1d(0.1)
        self.second = nn.Conv2d(1, 16, 3, padding=1)
        self.drop2 = nn.Dropout2d(0.1)
        self.third = nn.Conv3d(1, 12, 3, padding=1)
        self.drop3 = nn.Dropout3d(0.1)
        self.head = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop1(self.norm(self.first(x.transpose(1, 2))))  # [B, 24, L]
        h = self.drop2(self.second(h.unsqueeze(1)))  # [B, 16, 24, L]
        h = self.drop3(self.third(h[:, :, ::8, ::4].unsqueeze(1)))  # [B, 12, 16, 3, L / 4]
        return self.head(h.flatten(2).mean(dim=2))


class Attention(nn.Module):
    """`nn.MultiheadAttention`: self-attention, then cross-attention with keys of another width."""

    def __init__(self, *, need_weights: bool = False, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Linear(CHANNELS, 8)
        self.own = nn.MultiheadAttention(8, 2, dropout=dropout, batch_first=True)
        self.cross = nn.MultiheadAttention(
            8, 2, dropout=dropout, batch_first=False, kdim=CHANNELS, vdim=CHANNELS
        )
        self.head = nn.Linear(8, 2)
        self.need_weights = need_weights

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        h = h + self.own(h, h, h, need_weights=self.need_weights)[0]
        query, key = h.transpose(0, 1), x.transpose(0, 1)
        h = query + self.cross(query, key, key, need_weights=self.need_weights)[0]
        return self.head(h.transpose(0, 1))


class ScaledDotProduct(nn.Module):
    """`scaled_dot_product_attention` called by hand, heads as a dimension or folded, and masks."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(CHANNELS, 24)
        self.head = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        rate = 0.1 if self.training else 0.0
        q, k, v = self.project(x).view(batch, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        q, k, v = (t.reshape(batch * 2, length, 4) for t in (h, k, v))
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril(2)
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=rate)
        return self.head(h.view(batch, 2, length, 4).transpose(1, 2).flatten(2))


class Functional(nn.Module):
    """Dropout called as a function: in a block that is used twice, and in the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(CHANNELS, 12)
        self.block = FunctionalBlock(12)
        self.head = nn.Linear(12, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        h = F.dropout(self.embed(x), 0.1, training=self.training)
        h = self.block(self.block(h))
        maps = F.dropout1d(h.transpose(1, 2), 0.1, training=self.training)
        folded = maps.transpose(1, 2).reshape(batch * length, -1)
        folded = F.dropout(folded, p=0.1, training=self.training)
        return self.head(folded.view(batch, length, -1))


class FunctionalBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, h: Tensor) -> Tensor:
        return h + F.dropout(torch.relu(self.linear(h)), 0.1, self.training)
