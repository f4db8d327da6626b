"""MiniROCKET: a fixed set of small convolutions and a linear classifier.

The 84 kernels of length 9 with three taps of weight 2 and six of -1 run over the series at many
dilations; each output is reduced to the share of time it exceeds a bias taken from the training
data. A Linear on these 9,996 shares is all that is trained.

Differs from the publication: dropout in front of the classifier, on standardised features
`[B, 9996]`. No gradient reaches the input.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ClassifierNetwork, require_fitted
from sacm.backbones.blocks.normalisation import full_precision
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

KERNEL_LENGTH = 9
KERNEL_COUNT = 84
MAX_DILATIONS = 32
GOLDEN_RATIO = (1 + math.sqrt(5)) / 2
CHUNK_VALUES = 50_000_000  # comparisons held at once while the training set is transformed
REFERENCE = "Dempster et al., KDD 2021, arXiv:2012.08791"


@dataclass(frozen=True)
class MiniRocketConfig:
    """Sizes of the paper's runs; `seed` draws channels and bias samples."""

    features: int = 10_000
    dropout: float = 0.1
    seed: int = 0


SMALL = MiniRocketConfig(features=1_000)


def kernel_table() -> Tensor:
    """The 84 kernels `[84, 9]`, by the positions of their heavy taps in lexicographic order."""
    kernels = torch.full((KERNEL_COUNT, KERNEL_LENGTH), -1.0)
    for row, heavy in zip(kernels, itertools.combinations(range(KERNEL_LENGTH), 3), strict=True):
        row[list(heavy)] = 2.0
    return kernels


def dilation_plan(length: int, features_per_kernel: int) -> dict[int, int]:
    """Dilations for series of `length` and how many features each kernel takes from them."""
    candidates = min(features_per_kernel, MAX_DILATIONS)
    largest = (length - 1) / (KERNEL_LENGTH - 1)
    spaced = np.logspace(0, np.log2(largest), candidates, base=2)
    dilations, counts = np.unique(spaced.astype(int), return_counts=True)
    shares = (counts * (features_per_kernel / candidates)).astype(int).tolist()
    for place in range(features_per_kernel - sum(shares)):
        shares[place % len(shares)] += 1
    return dict(zip(dilations.tolist(), shares, strict=True))


class Transform(nn.Module):
    """Shares of positive values `[B, features]` of fixed dilated convolutions.

    `channel_mask` `[dilations, 84, C]` says which channels each convolution sums over; `biases`
    `[features]` run over dilation, kernel and feature. Both are fitted to training windows.
    """

    kernels: Tensor
    channel_mask: Tensor
    biases: Tensor

    def __init__(self, config: MiniRocketConfig, *, input_len: int, channels: int) -> None:
        super().__init__()
        per_kernel = config.features // KERNEL_COUNT
        if per_kernel < 1:
            raise ArgumentError(
                f"MiniROCKET needs at least {KERNEL_COUNT} features, got {config.features}."
            )
        self.length = max(input_len, KERNEL_LENGTH)
        self.plan = dilation_plan(self.length, per_kernel)
        self.parts = [KERNEL_COUNT * share for share in self.plan.values()]  # of all features
        self.features = per_kernel * KERNEL_COUNT
        self.register_buffer("kernels", kernel_table(), persistent=False)
        mask = torch.full((len(self.plan), KERNEL_COUNT, channels), torch.nan)
        self.register_buffer("channel_mask", mask)
        self.register_buffer("biases", torch.full((self.features,), torch.nan))

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        with full_precision(x):
            series = self.as_series(x)
            biases = self.biases.split(self.parts)
            shares = [
                self.positive_shares(series, index, dilation, bias.unflatten(0, (KERNEL_COUNT, -1)))
                for index, (dilation, bias) in enumerate(zip(self.plan, biases, strict=True))
            ]
        return torch.cat(shares, dim=1)

    @torch.no_grad()
    def fit(self, x: Tensor, generator: torch.Generator) -> None:
        """Draw channels, and take biases from random windows of `x` `[N, L, C]`."""
        self.channel_mask.copy_(draw_channel_mask(self.channel_mask.shape, generator))
        place = torch.arange(1, self.features + 1, dtype=torch.float64)
        levels = (place * GOLDEN_RATIO).frac().split(self.parts)
        biases = []
        for index, (dilation, rows) in enumerate(zip(self.plan, levels, strict=True)):
            chosen = torch.randint(len(x), (KERNEL_COUNT,), generator=generator)
            series = self.as_series(x[chosen.to(x.device)])  # [84, C, L]
            outputs = F.conv1d(
                series.flatten(0, 1)[None],
                self.weights(index),
                padding=4 * dilation,
                dilation=dilation,
                groups=KERNEL_COUNT,
            )[0]  # [84, L]
            rows = rows.unflatten(0, (KERNEL_COUNT, -1))  # [84, f]
            biases.append(quantiles(outputs.cpu(), rows).flatten())
        self.biases.copy_(torch.cat(biases))

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """`x` in parts small enough to transform at once."""
        return x.split(max(1, CHUNK_VALUES // (max(self.parts) * self.length)))

    def as_series(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, C, L]`, with zeros after windows shorter than a kernel."""
        series = x.to(self.kernels).transpose(1, 2)
        return F.pad(series, (0, self.length - series.shape[2]))

    def weights(self, index: int) -> Tensor:
        return self.channel_mask[index, :, :, None] * self.kernels[:, None]  # [84, C, 9]

    def positive_shares(self, series: Tensor, index: int, dilation: int, biases: Tensor) -> Tensor:
        """Shares of one dilation: series `[B, C, L]` and biases `[84, f]` to `[B, 84 * f]`.

        Kernels alternate between the padded output and its valid part.
        """
        margin = 4 * dilation
        outputs = F.conv1d(series, self.weights(index), padding=margin, dilation=dilation)
        above = outputs[:, :, None] > biases[:, :, None]  # [B, 84, f, L]
        shares = above.new_zeros(above.shape[:3], dtype=series.dtype)
        first = index % 2  # the first kernel that sees the padded output
        whole, valid = above[:, first::2], above[:, 1 - first :: 2, :, margin:-margin]
        shares[:, first::2] = whole.sum(dim=-1).to(series.dtype) / whole.shape[-1]
        shares[:, 1 - first :: 2] = valid.sum(dim=-1).to(series.dtype) / valid.shape[-1]
        return shares.flatten(1)


def draw_channel_mask(shape: torch.Size, generator: torch.Generator) -> Tensor:
    """A 0/1 mask `[dilations, 84, C]`: floor(2^u) channels a row, u below log2(min(C, 9) + 1)."""
    channels = shape[-1]
    most = math.log2(min(channels, KERNEL_LENGTH) + 1)
    exponents = torch.rand(shape[:2], generator=generator, dtype=torch.float64) * most
    counts = torch.pow(2.0, exponents).long().clamp(max=min(channels, KERNEL_LENGTH))
    ranks = torch.rand(shape, generator=generator).argsort(dim=-1).argsort(dim=-1)
    return (ranks < counts[..., None]).float()


def quantiles(values: Tensor, levels: Tensor) -> Tensor:
    """Row-wise quantiles with linear interpolation: `[n, L]` at `[n, f]` to `[n, f]`."""
    ordered = values.double().sort(dim=1).values
    place = levels * (values.shape[1] - 1)
    below = place.floor().long()
    low = ordered.gather(1, below)
    high = ordered.gather(1, (below + 1).clamp(max=values.shape[1] - 1))
    return (low + (place - below) * (high - low)).to(values.dtype)


@register("MiniROCKET", paper=MiniRocketConfig(), small=SMALL, reference=REFERENCE)
class MiniRocket(ClassifierNetwork):
    """Fixed features, standardised on the training part, dropout, one Linear."""

    mean: Tensor
    std: Tensor

    def __init__(self, config: MiniRocketConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.seed = config.seed
        self.transform = Transform(config, input_len=self.input_len, channels=self.channels)
        features = self.transform.features
        self.register_buffer("mean", torch.full((features,), torch.nan))
        self.register_buffer("std", torch.full((features,), torch.nan))
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(features, self.classes)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.state_layouts()

    @torch.no_grad()
    def prepare(self, train_x: Tensor) -> None:
        self.check_window(train_x)
        self.transform.fit(train_x, torch.Generator().manual_seed(self.seed))
        sums = torch.zeros(2, self.transform.features, dtype=torch.float64)
        for part in self.transform.split(train_x):
            features = self.transform(part).cpu().double()
            sums += torch.stack((features.sum(dim=0), features.square().sum(dim=0)))
        mean, square = sums / len(train_x)
        self.mean.copy_(mean)
        self.std.copy_((square - mean.square()).clamp(min=0).sqrt() + 1e-8)

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        require_fitted(self, self.std)
        features = (self.transform(x) - self.mean) / self.std  # [B, features]
        return self.output(self.dropout(features))
