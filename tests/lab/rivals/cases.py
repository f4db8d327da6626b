"""A network of two layers and batches for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sacm.backbones.base import (
    Backbone,
    ClassifierNetwork,
    ForecastNetwork,
    ReconstructionDetector,
)
from sacm.data.batches import ForecastBatch
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS, CLASSES = 16, 10, 2, 600, 2


def network(task: TaskName) -> Backbone:
    """Make two Linears with two dropouts of different rates, from torch's current seed."""
    kinds: dict[TaskName, tuple[Any, dict[str, int], tuple[int, int, int]]] = {
        "forecasting": (ForecastNetwork, {"horizon": HORIZON}, (LENGTH, 32, HORIZON)),
        "classification": (ClassifierNetwork, {"classes": CLASSES}, (LENGTH * 2, 32, CLASSES)),
        "anomaly": (ReconstructionDetector, {}, (LENGTH, 12, LENGTH)),
    }
    base, sizes, (inputs, hidden, outputs) = kinds[task]

    class TwoLayers(base):  # type: ignore[misc,valid-type]  # the class of a task's networks
        def __init__(self) -> None:
            super().__init__(input_len=LENGTH, channels=CHANNELS, **sizes)
            self.first = nn.Dropout(0.1)
            self.hidden = nn.Linear(inputs, hidden)
            self.second = nn.Dropout(0.3)
            self.head = nn.Linear(hidden, outputs)

        def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
            series = x.flatten(1) if task == "classification" else x.transpose(1, 2)
            out: Tensor = self.head(self.second(self.hidden(self.first(series))))
            return out if task == "classification" else out.transpose(1, 2)

    model: Backbone = TwoLayers()
    return model


def series() -> np.ndarray:
    """Make two waves with a little noise, `[600, 2]`."""
    time = np.arange(float(ROWS))
    noise = 0.1 * np.random.default_rng(0).standard_normal((ROWS, CHANNELS))
    return np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1) + noise


def batches(task: TaskName = "forecasting", *, size: int = 8) -> list[ForecastBatch]:
    """Cut six batches of windows from the series; their positions are their first rows.

    For classification the targets are labels `[B]`.
    """
    values = torch.from_numpy(series()).float()
    result = []
    for number in range(6):
        positions = torch.arange(size) * 3 + 40 * number
        windows = values[positions[:, None] + torch.arange(LENGTH + HORIZON)]  # [B, L + H, C]
        y = windows[:, LENGTH:]
        if task == "classification":
            y = torch.arange(size) * CLASSES // size
        result.append(ForecastBatch(windows[:, :LENGTH], y, None, None, positions))
    return result
