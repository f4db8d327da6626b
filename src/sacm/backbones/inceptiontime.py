"""InceptionTime: convolutions of three lengths side by side, six modules deep.

Differs from the publication: odd kernels 39, 19 and 9, which can be padded evenly; one network
instead of the mean of five; a dropout after each module's activation, where it has none.

Dropout sites: `[B, 4 * filters, L]` after each module's activation, before the skip is added.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ClassifierNetwork
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

REFERENCE = "Ismail Fawaz et al., DMKD 2020, arXiv:1909.04939"


@dataclass(frozen=True)
class InceptionTimeConfig:
    """Sizes of the paper's runs."""

    groups: int = 2
    filters: int = 32
    kernels: tuple[int, ...] = (39, 19, 9)
    bottleneck: int = 32
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if any(kernel < 1 or kernel % 2 == 0 for kernel in self.kernels):
            raise ArgumentError(f"InceptionTime: kernels must be odd numbers, got {self.kernels}.")

    @property
    def outputs(self) -> int:
        """Channels that leave a module: one set of filters per kernel and one for the pool."""
        return self.filters * (len(self.kernels) + 1)


SMALL = InceptionTimeConfig(filters=8, bottleneck=8)


class InceptionModule(nn.Module):
    """Parallel paths, BatchNorm, ReLU, dropout: `[B, inputs, L]` to `[B, outputs, L]`."""

    def __init__(self, inputs: int, config: InceptionTimeConfig) -> None:
        super().__init__()
        width = config.bottleneck if inputs > 1 else inputs
        self.bottleneck = nn.Conv1d(inputs, width, 1, bias=False) if inputs > 1 else nn.Identity()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, config.filters, kernel, padding=kernel // 2, bias=False)
            for kernel in config.kernels
        )
        self.pool = nn.MaxPool1d(3, stride=1, padding=1)
        self.pooled = nn.Conv1d(inputs, config.filters, 1, bias=False)
        self.norm = nn.BatchNorm1d(config.outputs)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        narrow = self.bottleneck(x)
        paths = [convolution(narrow) for convolution in self.convolutions]
        paths.append(self.pooled(self.pool(x)))
        return self.dropout(F.relu(self.norm(torch.cat(paths, dim=1))))


class ResidualGroup(nn.Module):
    """Three modules in a row and a skip connection: `[B, inputs, L]` to `[B, outputs, L]`."""

    def __init__(self, inputs: int, config: InceptionTimeConfig) -> None:
        super().__init__()
        widths = [inputs] + [config.outputs] * 2
        self.inceptions = nn.Sequential(*(InceptionModule(width, config) for width in widths))
        self.skip = nn.Conv1d(inputs, config.outputs, 1, bias=False)
        self.skip_norm = nn.BatchNorm1d(config.outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.inceptions(x) + self.skip_norm(self.skip(x)))


@register("InceptionTime", paper=InceptionTimeConfig(), small=SMALL, reference=REFERENCE)
class InceptionTime(ClassifierNetwork):
    """Residual groups of inception modules, averaged over time."""

    def __init__(self, config: InceptionTimeConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        widths = [self.channels] + [config.outputs] * (config.groups - 1)
        self.groups = nn.Sequential(*(ResidualGroup(width, config) for width in widths))
        self.output = nn.Linear(config.outputs, self.classes)
        self.state_layouts()

    def forward(self, x: Tensor) -> Tensor:
        self.check_window(x)
        features = self.groups(x.transpose(1, 2))  # [B, 4 * filters, L]
        return self.output(features.mean(dim=2))
