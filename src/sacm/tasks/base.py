"""What a task is: how data become windows, what is minimised, what is selected and reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.backbones.registry import entry
from sacm.data.loader import WindowBatches
from sacm.data.scaling import ChannelScaler
from sacm.data.windows import SplitWindows
from sacm.errors import ArgumentError
from sacm.metrics.catalogue import registered_metrics
from sacm.settings import ResolvedSettings, RunSettings, Selection
from sacm.strategies.base import Concluded, Strategy, StrategyRun
from sacm.strategies.committee import acting_in_evaluation
from sacm.strategies.registry import canonical, parse
from sacm.tasks.shape import NetworkShape
from sacm.types import TaskName

DataKind = TypeVar("DataKind")
EVALUATION_BATCH = 256


@dataclass(frozen=True)
class Result:
    """What a test set said: one flat row of numbers, the full report, and how much was seen.

    `yardsticks` holds what needs no network, measured on the same data: see `tasks.yardsticks`.
    """

    row: dict[str, float | None]
    report: dict[str, Any]
    evaluated: int
    yardsticks: dict[str, Any] = field(default_factory=dict)


class Calibration(NamedTuple):
    """What predictions need to know of a run's errors, as `calibration.safetensors` holds it."""

    tensors: dict[str, Tensor]
    text: dict[str, str]


@dataclass(frozen=True, eq=False)
class NetworkStep:
    """One training step: the network, the batch, and how the task asks and judges the network.

    Attributes:
        model: The network that is trained.
        batch: The batch, on its device.
        ask: Gives the answer of a network for a batch and windows `[B, L, C]`.
        judge: Gives the task's own loss, a scalar, of an answer for a batch.
    """

    model: Any
    batch: Any
    ask: Callable[[Any, Any, Tensor], Tensor]
    judge: Callable[[Tensor, Any], Tensor]

    def answer(self, x: Tensor, network: Any = None) -> Tensor:
        """The answer of a network, or of the trained one, for windows `[B, L, C]`."""
        return self.ask(self.model if network is None else network, self.batch, x)

    def loss(self, x: Tensor) -> Tensor:
        """The task's own loss of the trained network for windows `[B, L, C]`."""
        return self.judge(self.answer(x), self.batch)

    def network_in_evaluation(self) -> AbstractContextManager[None]:
        """Evaluation mode of the trained network; gradients stay as they are."""
        return acting_in_evaluation(self.model)


class Task(ABC, Generic[DataKind]):
    """One task with its facts and its paper preset; holds no state of a run.

    Attributes:
        name: The task's name.
        default_backbone: The network of a user who names none.
        default_strategy: The strategy of a user who names none, by what `sacm robust` found.
        selections: What may choose the epoch; the first is the paper's.
        unused: Settings without effect. Accepted, they would tell two equal runs apart.
        leading_metrics: The measures that speak for the task in sentences and small figures, the
            most important first; a point-adjusted one is never among them alone.
        minimum_steps: Optimizer steps an epoch must have: small data sets take several passes.
    """

    name: ClassVar[TaskName]
    default_backbone: ClassVar[str]
    default_strategy: ClassVar[str]
    selections: ClassVar[tuple[Selection, ...]]
    unused: ClassVar[tuple[str, ...]]
    leading_metrics: ClassVar[tuple[str, ...]]
    minimum_steps: ClassVar[int] = 1

    def check(self, settings: RunSettings) -> None:
        """Refuse settings that this task has no use for.

        Raises:
            ArgumentError: The way of choosing the epoch, or a setting, is of another task.
        """
        if settings.select is not None and settings.select not in self.selections:
            names = " or ".join(self.selections)
            raise ArgumentError(f"select = {settings.select!r}: {self.name} chooses by {names}.")
        for name in self.unused:
            value = getattr(settings, name)
            if value and value != RunSettings.model_fields[name].default:
                raise ArgumentError(f"{name} = {value!r}: {self.name} has no use for it.")
        if self.name != "forecasting" and settings.target is not None:
            raise ArgumentError(f"target = {settings.target!r}: only forecasting has targets.")
        if self.name != "forecasting" and settings.scaling == "series":
            raise ArgumentError("scaling = 'series': only forecasting has several series.")

    def resolve(self, settings: RunSettings, data: DataKind) -> ResolvedSettings:
        """Complete settings for given data: what is None becomes the preset's value."""
        self.check(settings)
        strategy = settings.strategy or self.default_strategy
        parse(strategy).check_task(self.name)
        preset = {"select": self.selections[0], "horizon": 0, **self.preset(settings, data)}
        asked = {name: value for name, value in settings.model_dump().items() if value is not None}
        names = {
            "backbone": entry(settings.backbone or self.default_backbone, self.name).name,
            "strategy": canonical(strategy),
        }
        own = getattr(data, "name", settings.data)
        if own.lower() == settings.data.lower():  # etth1 and ETTh1 are one run
            names["data"] = own
        return ResolvedSettings(**{**preset, **asked, **names})

    @abstractmethod
    def preset(self, settings: RunSettings, data: DataKind) -> dict[str, Any]:
        """Input length, batch size and horizon for given data, where the user names none."""

    def explain_lengths(self, settings: RunSettings, data: DataKind) -> str:
        """Why windows are shorter than usual for given data; empty if they are not."""
        return ""

    @abstractmethod
    def windows(
        self, settings: ResolvedSettings, data: DataKind, *, scaler: ChannelScaler | None = None
    ) -> SplitWindows[Any]:
        """Training, validation and test windows; scaled by the training part, or by `scaler`."""

    @abstractmethod
    def shape(self, settings: ResolvedSettings, data: DataKind) -> NetworkShape:
        """What a network for these data takes and gives."""

    @abstractmethod
    def build(self, settings: ResolvedSettings, shape: NetworkShape) -> Backbone:
        """The network, freshly initialised from torch's current seed."""

    @abstractmethod
    def training_loss(self, model: Any, batch: Any, strategy: Strategy, run: StrategyRun) -> Tensor:
        """The scalar that one training step minimises, before what the network itself adds."""

    @abstractmethod
    def validate(
        self, model: Backbone, batches: WindowBatches[Any], strategy: Strategy, select: str
    ) -> float:
        """The number that chooses the checkpoint; lower is better for all but accuracy."""

    def conclude(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        came: Callable[[], SplitWindows[Any]],
        strategy: Strategy,
        select: str,
    ) -> Concluded:
        """Let a strategy take back, by validation windows, what does harm.

        Args:
            model: The trained network.
            windows: What it was trained and chosen on.
            came: Makes the same windows of the data as they came to the strategy.
            strategy: As it was in training.
            select: What chose the epoch.
        """
        return Concluded(strategy)

    def calibrate(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        settings: ResolvedSettings,
        strategy: Strategy,
    ) -> Calibration | None:
        """Measure, once, what intervals and thresholds of predictions are made from."""
        return None

    @abstractmethod
    def evaluate(
        self,
        model: Backbone,
        windows: SplitWindows[Any],
        data: DataKind,
        settings: ResolvedSettings,
        strategy: Strategy,
        *,
        batch_size: int = EVALUATION_BATCH,
    ) -> Result:
        """Test once, with the chosen checkpoint."""

    @abstractmethod
    def tabulate(self, metrics: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
        """The test results of a run for people: headings, and rows that begin with a name."""

    def better(self, value: float, best: float | None, select: str) -> bool:
        """Whether a validation result beats the best so far."""
        if best is None:
            return True
        return value > best if select == "accuracy" else value < best


def mean_loss(losses: Tensor, weights: Tensor | None) -> Tensor:
    """The mean of losses, weighted where there are weights of the same shape."""
    if weights is None:
        return losses.mean()
    return (losses * weights).sum() / weights.sum().clamp_min(1)


def add_extra(loss: Tensor, extra: Tensor | None) -> Tensor:
    """A loss with what a strategy adds to it, if it does."""
    return loss if extra is None else loss + extra


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


def registered_values(metrics: Mapping[str, Any], task: TaskName) -> list[tuple[str, Any]]:
    """Label and value of the metrics that plug-ins have added to a run's row."""
    row = metrics["test"]
    return [
        (known.label, row[known.name]) for known in registered_metrics(task) if known.name in row
    ]
