"""How values, positions, calendar facts and patches become tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError


class TokenConv(nn.Conv1d):
    """Circular convolution over time, kernel 3: `[B, L, C]` to `[B, L, d]`."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__(channels, width, 3, padding=1, padding_mode="circular", bias=False)
        nn.init.kaiming_normal_(self.weight, mode="fan_in", nonlinearity="leaky_relu")

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)  # [B, L, d]


def sinusoid(length: int, width: int, *, exponent: float = 1.0) -> Tensor:
    """Fixed positions `[T, d]`: columns i, i+1 hold sin and cos of t * 10000^(-exponent * i/d)."""
    if width % 2:
        raise ArgumentError(f"fixed sinusoid positions need an even width, got {width}.")
    time = torch.arange(length, dtype=torch.float32)[:, None]  # [T, 1]
    index = torch.arange(0, width, 2, dtype=torch.float32)
    frequency = 10000.0 ** (-exponent * index / width)  # [d/2]
    angle = time * frequency  # [T, d/2]
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)  # [T, d]


class Positions(nn.Module):
    """Adds the fixed sinusoid to tokens `[..., T, d]`."""

    table: Tensor

    def __init__(self, length: int, width: int, *, exponent: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("table", sinusoid(length, width, exponent=exponent), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[-2]]


class Calendar(nn.Module):
    """One learned table per calendar column; their rows add up to a token."""

    def __init__(self, sizes: tuple[int, ...], width: int) -> None:
        super().__init__()
        if min(sizes) < 1:
            raise ArgumentError(f"calendar_sizes must all be at least 1, got {tuple(sizes)}.")
        self.sizes = sizes
        self.tables = nn.ModuleList(nn.Embedding(size, width) for size in sizes)

    def forward(self, stamps: Tensor) -> Tensor:
        """Stamps `[B, T, 4]` in [0, 1) to `[B, T, d]`."""
        columns = [
            table(bin_index(values, size))
            for table, size, values in zip(self.tables, self.sizes, stamps.unbind(-1), strict=True)
        ]
        return torch.stack(columns).sum(dim=0)  # [B, T, d]


def bin_index(values: Tensor, size: int) -> Tensor:
    """Which of `size` equal parts of [0, 1) each value falls in; outside values go to the ends."""
    # k/size times size can round to just below k; a thousandth of a part puts it back.
    return (values * size + 1e-3).floor().clamp(0, size - 1).long()


class Tokens(nn.Module):
    """Values plus positions plus calendar (if built with sizes), then dropout: one token a step."""

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        length: int,
        dropout: float,
        calendar_sizes: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.values = TokenConv(channels, width)
        self.positions = Positions(length, width)
        self.calendar = None if calendar_sizes is None else Calendar(calendar_sizes, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        """`[B, T, C]` and stamps `[B, T, 4]` to `[B, T, d]`."""
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
