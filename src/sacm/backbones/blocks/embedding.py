"""How values, positions, calendar facts and patches become tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError

CalendarSizes = tuple[int, int, int, int] | None  # steps a day, 7, 31, 366


class TokenConv(nn.Conv1d):
    """Circular convolution over time, kernel 3: `[B, L, C]` to `[B, L, d]`."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__(channels, width, 3, padding=1, padding_mode="circular", bias=False)
        nn.init.kaiming_normal_(self.weight, mode="fan_in", nonlinearity="leaky_relu")

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)  # [B, L, d]


class Positions(nn.Module):
    """Adds sin, cos of t * 10000^(-exponent * i / d) to columns i, i + 1 of `[..., T, d]`."""

    table: Tensor

    def __init__(self, length: int, width: int, *, exponent: float = 1.0) -> None:
        super().__init__()
        if width % 2:
            raise ArgumentError(f"fixed sinusoid positions need an even width, got {width}.")
        index = torch.arange(0, width, 2, dtype=torch.float32)
        frequency = 10000.0 ** (-exponent * index / width)  # [d/2]
        angle = torch.arange(length, dtype=torch.float32)[:, None] * frequency  # [T, d/2]
        table = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # [T, d]
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[-2]]


class Calendar(nn.Module):
    """A learned table for each column of stamps `[B, T, 4]` in [0, 1); the sum of their rows."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        if min(sizes) < 1:
            raise ArgumentError(f"calendar_sizes must all be at least 1, got {tuple(sizes)}.")
        self.sizes = sizes
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)

    def forward(self, stamps: Tensor) -> Tensor:
        columns = [
            # k/size times size can round to just below k; a thousandth of a part puts it back.
            table((values * size + 1e-3).floor().clamp(0, size - 1).long())
            for table, size, values in zip(self.tables, self.sizes, stamps.unbind(-1), strict=True)
        ]
        return torch.stack(columns).sum(dim=0)  # [B, T, d]


class Tokens(nn.Module):
    """Values plus positions plus calendar, if any, then dropout: `[B, T, C]` to `[B, T, d]`."""

    def __init__(
        self, channels: int, config: Any, *, length: int, calendar: CalendarSizes = None
    ) -> None:
        super().__init__()
        self.values = TokenConv(channels, config.width)
        self.positions = Positions(length, config.width)
        self.calendar = None if calendar is None else Calendar(calendar, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        tokens = self.positions(self.values(x))
        if self.calendar is not None and stamps is not None:
            tokens = tokens + self.calendar(stamps)
        return self.dropout(tokens)


def count_patches(length: int, *, patch: int, stride: int) -> int:
    """How many patches `cut_patches` makes of `length` steps."""
    return (length + stride - patch) // stride + 1


def repeat_last(x: Tensor, steps: int) -> Tensor:
    """`[..., T]` with its last value repeated `steps` more times, any number of them."""
    return torch.cat((x, x[..., -1:].expand(*x.shape[:-1], steps)), dim=-1)


def cut_patches(x: Tensor, *, patch: int, stride: int) -> Tensor:
    """`[..., T]` to `[..., N, patch]`."""
    return repeat_last(x, stride).unfold(-1, patch, stride)
