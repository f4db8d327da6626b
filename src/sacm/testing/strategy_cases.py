"""A short series, its windows, and small networks for the checks of strategies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sacm.backbones.base import (
    Backbone,
    ClassifierNetwork,
    ForecastNetwork,
    ReconstructionDetector,
)
from sacm.data.datasets import ForecastingData
from sacm.data.own.series import forecasting_data
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS, CLASSES = 16, 10, 2, 600, 2
_BATCH, _BATCHES = 8, 6


class CaseBatch(NamedTuple):
    """Windows with targets `[B, H, C]`, or labels `[B]` for classification."""

    x: Tensor
    y: Tensor
    positions: Tensor
    stamps: Tensor | None = None
    observed: Tensor | None = None

    @property
    def beside(self) -> tuple[Tensor | None, ...]:
        """Nothing goes with the windows."""
        return ()


class _Forecaster(ForecastNetwork):
    """Each channel through two Linears, with two dropouts of different rates."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, horizon=HORIZON, channels=CHANNELS)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, HORIZON)

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        """`[B, L, C]` to `[B, H, C]`."""
        hidden = self.hidden(self.first(x.transpose(1, 2)))
        forecast: Tensor = self.head(self.second(hidden)).transpose(1, 2)
        return forecast


class _Classifier(ClassifierNetwork):
    """The whole window through two Linears."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, channels=CHANNELS, classes=CLASSES)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH * CHANNELS, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, K]`."""
        hidden = torch.relu(self.hidden(self.first(x.flatten(1))))
        logits: Tensor = self.head(self.second(hidden))
        return logits


class _Detector(ReconstructionDetector):
    """Each channel through a narrow layer."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, channels=CHANNELS)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH, 12)
        self.second = nn.Dropout(0.1)
        self.head = nn.Linear(12, LENGTH)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, L, C]`."""
        hidden = self.hidden(self.first(x.transpose(1, 2)))
        rebuilt: Tensor = self.head(self.second(hidden)).transpose(1, 2)
        return rebuilt


def network(task: TaskName) -> Backbone:
    """A small network from torch's current seed."""
    return {"forecasting": _Forecaster, "classification": _Classifier, "anomaly": _Detector}[task]()


def series() -> ForecastingData:
    """Two waves with a little noise, `[600, 2]`."""
    time = np.arange(float(ROWS))
    noise = 0.1 * np.random.default_rng(0).standard_normal((ROWS, CHANNELS))
    return forecasting_data(np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1) + noise)


def batches(task: TaskName = "forecasting", *, size: int = _BATCH) -> list[CaseBatch]:
    """Batches of windows of the series, whose positions are their first rows."""
    values = torch.from_numpy(series().values).float()
    found = []
    for number in range(_BATCHES):
        positions = torch.arange(size) * 3 + 40 * number
        rows = positions[:, None] + torch.arange(LENGTH + HORIZON)
        windows = values[rows]  # [B, L + H, C]
        y = windows[:, LENGTH:]
        if task == "classification":
            y = torch.arange(size) * CLASSES // size
        found.append(CaseBatch(windows[:, :LENGTH], y, positions))
    return found
