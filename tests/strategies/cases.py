"""A small model, batches and what a run knows when it begins."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sacm.strategies import Step, TrainingContext, parse
from sacm.tasks import get_task


class Batch(NamedTuple):
    x: Tensor
    y: Tensor
    positions: Tensor
    stamps: Tensor | None = None
    observed: Tensor | None = None


class Net(nn.Module):
    """Two dropouts of different rates."""

    def __init__(self, length: int = 16, horizon: int = 10, channels: int = 2) -> None:
        super().__init__()
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(length, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, horizon)

    def forward(self, x: Tensor) -> Tensor:
        z = self.hidden(self.first(x.transpose(1, 2)))
        return self.head(self.second(z)).transpose(1, 2)


def batches(count: int = 6) -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    return [
        Batch(
            torch.randn(8, 16, 2, generator=generator),
            torch.randn(8, 10, 2, generator=generator),
            torch.arange(8) + 8 * number,
        )
        for number in range(count)
    ]


def step(model: nn.Module, batch: Any, strategy: str, task: str = "forecasting") -> Step:
    """One training step of a strategy that needs no data to prepare."""
    chosen = parse(strategy)
    run = chosen.begin(model, context(task))
    return Step(get_task(task), model, batch, chosen, run)


def context(task: str = "forecasting") -> TrainingContext:
    return TrainingContext(task, channels=2, rows=100, train=batches(), val=batches(1), seed=0)
