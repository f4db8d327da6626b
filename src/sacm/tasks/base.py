"""What a task is: how data become windows, what is minimised, what is selected and reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.data.scaling import ChannelScaler
from sacm.data.windows.loader import WindowBatches
from sacm.data.windows.split import SplitWindows
from sacm.strategies.base import Strategy, StrategyRun
from sacm.tasks.settings import RunSettings

DataKind = TypeVar("DataKind")
EVALUATION_BATCH = 256


@dataclass(frozen=True)
class Result:
    """What a test set said: one flat row of numbers, the full report, and how much was seen."""

    row: dict[str, float | None]
    report: dict[str, Any]
    evaluated: int


class Task(ABC, Generic[DataKind]):
    """One task with its paper preset; holds no state of a run."""

    name: str
    minimum_steps: int = (
        1  # optimizer steps an epoch must have: small data sets take several passes
    )

    @abstractmethod
    def complete(self, settings: RunSettings, data: DataKind) -> RunSettings:
        """The settings with every None filled in by the preset."""

    @abstractmethod
    def windows(
        self, settings: RunSettings, data: DataKind, *, scaler: ChannelScaler | None = None
    ) -> SplitWindows[Any]:
        """Training, validation and test windows; scaled by the training part, or by `scaler`."""

    @abstractmethod
    def build(self, settings: RunSettings, data: DataKind) -> Backbone:
        """The network, freshly initialised from torch's current seed."""

    @abstractmethod
    def training_loss(self, model: Any, batch: Any, strategy: Strategy, run: StrategyRun) -> Tensor:
        """The scalar that one training step minimises, before what the network itself adds."""

    @abstractmethod
    def validate(
        self, model: Backbone, batches: WindowBatches[Any], strategy: Strategy, select: str
    ) -> float:
        """The number that chooses the checkpoint; lower is better for all but accuracy."""

    @abstractmethod
    def evaluate(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        data: DataKind,
        settings: RunSettings,
        strategy: Strategy,
        *,
        batch_size: int = EVALUATION_BATCH,
    ) -> Result:
        """Test once, with the chosen checkpoint."""

    def better(self, value: float, best: float | None, select: str) -> bool:
        """Whether a validation result beats the best so far."""
        if best is None:
            return True
        return value > best if select == "accuracy" else value < best


def device_of(model: nn.Module) -> torch.device:
    """Where the model lives."""
    return next(model.parameters()).device


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch (a NamedTuple of tensors or None) on a device."""
    if device.type == "cpu":
        return batch
    return batch._make(
        None if field is None else field.to(device, non_blocking=True) for field in batch
    )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """Evaluation mode without gradients; gives the device, and the mode back afterwards."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield device_of(model)
    finally:
        model.train(training)


def scaler_of(windows: SplitWindows[Any]) -> ChannelScaler:
    """The scaler that was fitted on the training part."""
    scaler: ChannelScaler = windows.train.scaler
    return scaler
