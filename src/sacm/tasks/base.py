"""What a task is: how data become windows, what is minimised, what is selected and reported."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import pydantic.dataclasses
import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.backbones.registry import build, entry
from sacm.data.batches import WindowBatches, beside_windows
from sacm.data.scaling import ChannelScaler
from sacm.data.windows import SplitWindows
from sacm.errors import ArgumentError, DataError
from sacm.metrics.catalogue import METRICS
from sacm.settings import AUTO, COVARIATES, ResolvedSettings, RunSettings, Selection
from sacm.strategies.base import Step, Strategy, StrategyRun
from sacm.strategies.registry import canonical, parse
from sacm.types import TaskName

DataKind = TypeVar("DataKind")
Scaler = ChannelScaler | None
Windows = SplitWindows[Any]
HeadingsAndRows = tuple[tuple[str, ...], list[Sequence[Any]]]
EVALUATION_BATCH = 256
FORECASTING_ONLY = (
    *("horizon", "validation_stride", "train_fraction", "minimum", "target", "scaling"),
    *COVARIATES,
)


@dataclass(frozen=True)
class Result:
    """Results of a test set: a flat row of numbers, the full report, and the number of windows."""

    row: dict[str, float | None]
    report: dict[str, Any]
    evaluated: int
    baselines: dict[str, Any] = field(default_factory=dict)  # see `tasks.baselines`

    def record(self) -> dict[str, Any]:
        """What `metrics.json` holds of it."""
        record = {"test": self.row, "report": self.report, "baselines": self.baselines}
        return {**record, "evaluated_windows": self.evaluated}


@pydantic.dataclasses.dataclass(frozen=True)
class NetworkShape:
    """What a network takes and gives; `model.json` of a run folder, whose lists become tuples."""

    channels: int
    input_len: int
    horizon: int = 0  # steps of a forecast; 0 for other tasks
    classes: tuple[Any, ...] = ()  # labels in the order of the network's outputs
    calendar_sizes: tuple[int, int, int, int] | None = None
    columns: tuple[str, ...] | None = None  # None if the training data had no names
    frequency: str | None = None  # time step of the training data as a pandas alias
    # Means and deviations of the covariates in the training rows, `[K]` each.
    covariates: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    # The least value of a forecast of each channel, None where there is no limit; `lowest` is the
    # same in scaled units, None if every series has its own scale.
    minimum: tuple[float | None, ...] | None = None
    lowest: tuple[float | None, ...] | None = None


def check_trained_columns(name: str, found: Sequence[str], trained: Sequence[str] | None) -> None:
    """Raise a `DataError` for columns other than those trained on, if these have names."""
    if trained is not None and tuple(found) != tuple(trained):
        raise DataError(
            f"{name} has the columns {', '.join(found)} but {', '.join(trained)} were trained on."
        )


def column_names(columns: Sequence[str]) -> tuple[str, ...] | None:
    """Names of columns; None if they are only the positions that columns of an array have."""
    names = tuple(map(str, columns))
    return None if names == tuple(map(str, range(len(names)))) else names


class Trained(NamedTuple):
    """A network with what it was trained with."""

    model: Backbone
    settings: ResolvedSettings
    strategy: Strategy


class Calibration(NamedTuple):
    """What predictions need to know of a run's errors, as `calibration.safetensors` holds it."""

    tensors: dict[str, Tensor]
    text: dict[str, str]


class Task(ABC, Generic[DataKind]):
    """One task with its facts and its paper preset; holds no state of a run."""

    name: ClassVar[TaskName]
    default_backbone: ClassVar[str]
    default_strategy: ClassVar[str]
    # What may choose the epoch; the first is the paper's.
    selections: ClassVar[tuple[Selection, ...]]
    # Settings without effect. Accepted, they would tell two equal runs apart.
    unused: ClassVar[tuple[str, ...]]
    # The measures of sentences and small figures; a point-adjusted one is never there alone.
    leading_metrics: ClassVar[tuple[str, ...]]
    # Optimizer steps an epoch must have: small data sets take several passes.
    minimum_steps: ClassVar[int] = 1

    def check(self, settings: RunSettings) -> None:
        """Raise an `ArgumentError` for settings that this task has no use for."""
        if settings.select is not None and settings.select not in self.selections:
            names = " or ".join(self.selections)
            raise ArgumentError(f"select = {settings.select!r}: {self.name} chooses by {names}.")
        for name in self.unused:
            value = getattr(settings, name)
            if value and value not in (RunSettings.model_fields[name].default, "shared"):
                raise ArgumentError(f"{name} = {value!r}: {self.name} has no use for it.")

    def resolve(self, settings: RunSettings, data: DataKind) -> ResolvedSettings:
        """Complete settings for given data: what is None becomes the preset's value."""
        self.check(settings)
        strategy = settings.strategy or self.default_strategy
        parse(strategy).check_task(self.name)
        values = {"select": self.selections[0], "horizon": 0, **self.preset(settings, data)}
        values |= {name: v for name, v in settings.model_dump().items() if v is not None}
        values |= {"backbone": self.find_backbone(settings), "strategy": canonical(strategy)}
        name = getattr(data, "name", settings.data)
        if name.lower() == settings.data.lower():  # etth1 and ETTh1 are one run
            values["data"] = name
        return ResolvedSettings(**values)

    def find_backbone(self, settings: RunSettings) -> str:
        """The network by its usual spelling; the task's own if none is named."""
        if self.name == "forecasting" and settings.backbone == AUTO:
            return AUTO
        return entry(settings.backbone or self.default_backbone, self.name).name

    @abstractmethod
    def preset(self, settings: RunSettings, data: DataKind) -> dict[str, Any]:
        """Input length, batch size and horizon for given data, where the user names none."""

    def explain_lengths(self, settings: RunSettings, data: DataKind) -> str:
        """Why windows have their length; empty if there is nothing to say."""
        return ""

    def divide(self, settings: ResolvedSettings, data: DataKind) -> DataKind:
        """The data, divided anew where these settings need other splits than the default."""
        return data

    @abstractmethod
    def windows(
        self, settings: ResolvedSettings, data: DataKind, *, scaler: Scaler = None
    ) -> Windows:
        """Training, validation and test windows; scaled by the training part, or by `scaler`."""

    @abstractmethod
    def shape(
        self, settings: ResolvedSettings, data: DataKind, scaler: Scaler = None
    ) -> NetworkShape:
        """What a network for these data takes and gives; limits of forecasts need the scaler."""

    def build(self, settings: ResolvedSettings, shape: NetworkShape) -> Backbone:
        """The network, freshly initialised from torch's current seed."""
        sizes: dict[str, Any] = {"classes": len(shape.classes)} if shape.classes else {}
        if shape.horizon:
            sizes = {"horizon": shape.horizon, "calendar_sizes": shape.calendar_sizes}
        sizes |= {"input_len": shape.input_len, "channels": shape.channels, "size": settings.size}
        return build(settings.backbone, self.name, **sizes, **settings.overrides)

    def training_loss(self, model: Any, batch: Any, strategy: Strategy, run: StrategyRun) -> Tensor:
        """The scalar that one training step minimises, before what the network itself adds."""
        step = Step(self, model, batch, strategy, run)
        loss = run.loss(step)
        return step.loss() if loss is None else loss

    def answer(self, model: Any, batch: Any, x: Tensor) -> Any:
        """What a network says of windows `x` `[B, L, C]`, with what the batch has beside them."""
        return model(x, *beside_windows(batch))

    def losses(self, answer: Tensor, batch: Any) -> Tensor:
        """The loss of each target, `[B, H, C]`, or of each case, `[B]`; detectors have none."""
        raise NotImplementedError(f"{self.name} has no loss of single targets.")

    def loss(self, step: Step, x: Tensor) -> Any:
        """The task's own loss of a step for windows `x` `[B, L, C]`."""
        answer = step.answer(x)
        return step.mean(step.losses(answer), answer)

    @abstractmethod
    def validate(self, trained: Trained, batches: WindowBatches[Any]) -> float:
        """The number that chooses the checkpoint; lower is better for all but accuracy."""

    def calibrate(self, trained: Trained, windows: Windows, data: DataKind) -> Calibration | None:
        """Measure, once, what intervals and thresholds of predictions are made from."""
        return None

    @abstractmethod
    def evaluate(self, trained: Trained, windows: Windows, data: DataKind) -> Result:
        """Test once, with the chosen checkpoint."""

    def tabulate(self, metrics: Mapping[str, Any]) -> HeadingsAndRows:
        """The test results of a run for people: headings, and rows that begin with a name."""
        known = [METRICS.get(name) for name in metrics["test"] if name in METRICS]
        labels = {each.name: each.label for each in known}
        labels |= {each.random: f"{each.label}, random scores" for each in known if each.random}
        rows = [item for item in metrics["test"].items() if not item[0].endswith("_random_std")]
        return ("measure", "value"), [(labels.get(k, k.replace("_", " ")), v) for k, v in rows]


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
            yield next(model.parameters()).device
    finally:
        model.train(training)


def answers(trained: Trained, batches: Iterable[Any]) -> Iterator[tuple[Any, Tensor]]:
    """Batches on the device of a network, each with what the network says of it."""
    model, _, strategy = trained
    for batch in batches:
        with evaluating(model) as device:
            batch = to_device(batch, device)
            answer = model(strategy.inputs(batch.x), *beside_windows(batch)).float()
        # Outside of the context: an error of the caller must not leave gradients off.
        yield batch, answer.clone()
