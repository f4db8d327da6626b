"""TimesNet: a series folded into images, one for each of its periods.

Differs from the publication's code: periods are chosen per window, never from the mean spectrum of
the batch, so that a window's output does not depend on its neighbours; reconstruction and
classification work on the window as it is, without a Linear along time.

Dropout sites: tokens `[B, L, d]`; in classification also the features `[B, L, d]`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ClassifierNetwork, ForecastNetwork, ReconstructionDetector
from sacm.backbones.blocks.embedding import CalendarSizes, Tokens
from sacm.backbones.blocks.normalisation import RevIN, full_precision, widen
from sacm.backbones.registry import register
from sacm.core.no_compile import not_compiled
from sacm.errors import ArgumentError

REFERENCE = "Wu et al., ICLR 2023, arXiv:2210.02186"


@dataclass(frozen=True)
class TimesNetConfig:
    """Sizes of the paper's forecasting runs."""

    width: int = 256
    hidden: int = 1024
    blocks: int = 1
    kernels: tuple[int, ...] = (1, 3, 5)
    periods: int = 5
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if not self.kernels or any(kernel < 1 or kernel % 2 == 0 for kernel in self.kernels):
            raise ArgumentError(f"TimesNet: kernels must be odd numbers, got {self.kernels}.")


PAPER = TimesNetConfig()
PAPER_WINDOW = TimesNetConfig(width=128, hidden=256, blocks=2)  # classification and anomaly
SMALL = TimesNetConfig(width=16, hidden=32)


class Inception(nn.Module):
    """Mean of same-padded 2-D convolutions of odd kernel sizes, added into the largest of them."""

    def __init__(self, inputs: int, outputs: int, *, kernels: tuple[int, ...]) -> None:
        super().__init__()
        self.largest = max(kernels)
        self.weights = nn.ParameterList(torch.empty(outputs, inputs, k, k) for k in kernels)
        self.biases = nn.ParameterList(torch.zeros(outputs) for _ in kernels)
        for weight in self.weights:
            nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        padded = [F.pad(w, ((self.largest - w.shape[-1]) // 2,) * 4) for w in self.weights]
        weight = torch.stack(padded).mean(dim=0)  # [outputs, inputs, k, k]
        bias = torch.stack(list(self.biases)).mean(dim=0)
        return F.conv2d(images, weight, bias, padding=self.largest // 2)


def strongest_periods(z: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Periods and amplitudes `[B, k]` of the strongest Fourier bins of `[B, T, d]` above 0."""
    length = z.shape[1]
    with full_precision(z):
        amplitude = torch.fft.rfft(widen(z), dim=1).abs().mean(dim=2)[:, 1:]  # [B, T // 2]
    strongest, bins = amplitude.topk(min(count, length // 2), dim=1)  # [B, k]
    return length // (bins + 1), strongest


class PeriodBlock(nn.Module):
    """z `[B, T, d]` plus the amplitude-weighted sum of the images of its strongest periods."""

    def __init__(self, config: TimesNetConfig) -> None:
        super().__init__()
        self.periods = config.periods
        self.expand = Inception(config.width, config.hidden, kernels=config.kernels)
        self.contract = Inception(config.hidden, config.width, kernels=config.kernels)

    def forward(self, z: Tensor) -> Tensor:
        periods, amplitudes = strongest_periods(z, self.periods)  # [B, k]
        images = self.convolve(z, periods)  # [B, k, T, d]
        weights = amplitudes.softmax(dim=1).to(images.dtype)  # [B, k]
        return z + (images * weights[:, :, None, None]).sum(dim=1)

    @not_compiled  # image sizes follow the data: compiled, every batch would be new code
    def convolve(self, z: Tensor, periods: Tensor) -> Tensor:
        """Every window at each of its periods `[B, k]`, one convolution per distinct period."""
        pairs = periods.flatten()  # [B * k]
        order = pairs.argsort()  # pairs of equal period become neighbours
        groups = sorted(Counter(pairs.tolist()).items())  # the only copy to the host
        owners = order // periods.shape[1]  # the window of each pair
        counts = [count for _, count in groups]
        convolved = [
            self.convolve_images(z[windows], period)
            for (period, _), windows in zip(groups, owners.split(counts), strict=True)
        ]
        restored = torch.cat(convolved)[order.argsort()]  # [B * k, T, d]
        return restored.unflatten(0, periods.shape)

    def convolve_images(self, z: Tensor, period: int) -> Tensor:
        """`[n, T, d]` folded into images of `period` columns, convolved, unfolded again."""
        length = z.shape[1]
        folded = F.pad(z, (0, 0, 0, -length % period)).unflatten(1, (-1, period))
        images = folded.permute(0, 3, 1, 2)  # [n, d, cycles, phases]
        images = self.contract(F.gelu(self.expand(images)))
        return images.permute(0, 2, 3, 1).flatten(1, 2)[:, :length]  # [n, T, d]


class PeriodBlocks(nn.Module):
    """Blocks in a row, each followed by one LayerNorm that all share: `[B, T, d]` to the same."""

    def __init__(self, config: TimesNetConfig, *, length: int) -> None:
        super().__init__()
        if length < 2:
            raise ArgumentError(f"TimesNet: a period needs at least 2 steps, got {length}.")
        self.blocks = nn.ModuleList(PeriodBlock(config) for _ in range(config.blocks))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, z: Tensor) -> Tensor:
        for block in self.blocks:
            z = self.norm(block(z))
        return z


@register("TimesNet", paper=PAPER, small=SMALL, cost="very heavy", reference=REFERENCE)
class TimesNetForecaster(ForecastNetwork):
    """Stretch the embedded window over the horizon, then let the blocks fill it in."""

    def __init__(
        self, config: TimesNetConfig, *, calendar_sizes: CalendarSizes = None, **sizes: int
    ) -> None:
        super().__init__(**sizes)
        self.calendar_sizes = calendar_sizes
        steps = self.input_len + self.horizon
        self.revin = RevIN()
        self.tokens = Tokens(self.channels, config, length=self.input_len, calendar=calendar_sizes)
        self.stretch = nn.Linear(self.input_len, steps)
        self.blocks = PeriodBlocks(config, length=steps)
        self.output = nn.Linear(config.width, self.channels)
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        past = None if stamps is None else stamps[:, : self.input_len]
        x, statistics = self.revin.normalise(x)
        z = self.tokens(x, past)  # [B, L, d]
        z = self.stretch(z.transpose(1, 2)).transpose(1, 2)  # [B, L + H, d]
        y = self.output(self.blocks(z)[:, -self.horizon :])  # [B, H, C]
        return self.revin.restore(y, statistics)


@register("TimesNet", paper=PAPER_WINDOW, small=SMALL, cost="very heavy", reference=REFERENCE)
class TimesNetClassifier(ClassifierNetwork):
    """Blocks over the embedded window, then one Linear on all of its steps."""

    def __init__(self, config: TimesNetConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.tokens = Tokens(self.channels, config, length=self.input_len)
        self.blocks = PeriodBlocks(config, length=self.input_len)
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(self.input_len * config.width, self.classes)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        features = self.dropout(F.gelu(self.blocks(self.tokens(x))))  # [B, L, d]
        return self.output(features.flatten(1))


@register("TimesNet", paper=PAPER_WINDOW, small=SMALL, cost="very heavy", reference=REFERENCE)
class TimesNetDetector(ReconstructionDetector):
    """Blocks over the embedded window, projected back to its channels."""

    def __init__(self, config: TimesNetConfig, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.revin = RevIN()
        self.tokens = Tokens(channels, config, length=input_len)
        self.blocks = PeriodBlocks(config, length=input_len)
        self.output = nn.Linear(config.width, channels)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        x, statistics = self.revin.normalise(x)
        return self.revin.restore(self.output(self.blocks(self.tokens(x))), statistics)
