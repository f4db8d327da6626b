"""What a strategy is: one way of regularising one training run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.errors import ArgumentError
from sacm.types import TaskName

ALL_TASKS: tuple[TaskName, ...] = ("forecasting", "classification", "anomaly")
# What two strategies of one run must not do both; the ends of the sentence that says so.
CHANGES_NETWORK = "change the network"
REPLACES_LOSS = "replace the loss"
SETS_RATES = "set the dropout rates"
CHOOSES_WINDOWS = "choose the windows that a detector learns from"


class ForecastBatchLike(Protocol):
    """What a strategy may read of a forecasting batch."""

    @property
    def x(self) -> Tensor:
        """Inputs `[B, L, C]`."""

    @property
    def y(self) -> Tensor:
        """Targets `[B, H, C]`."""

    @property
    def positions(self) -> Tensor:
        """Row of the first input step of each window, `[B]`."""


class Loader(Protocol):
    """Batches of one split; every iteration is a pass over it."""

    def __iter__(self) -> Iterator[Any]: ...


class TrainingStep(Protocol):
    """One training step, for strategies that must ask a network themselves."""

    @property
    def batch(self) -> Any:
        """The batch as it was cut, on the device of the network."""

    def answer(self, x: Tensor, network: Any = None) -> Tensor:
        """Forecasts `[B, H, C]` or logits `[B, K]` for windows, of `network` or the trained one."""

    def loss(self, x: Tensor) -> Tensor:
        """The task's own loss for windows: a scalar, without any weights."""

    def network_in_evaluation(self) -> AbstractContextManager[None]:
        """Evaluation mode of the trained network, for a while."""


@dataclass(frozen=True)
class TrainingContext:
    """What is known when a run begins."""

    task: str
    channels: int
    rows: int  # length of the series that batch positions point into; 0 where there is none
    train: Loader
    val: Loader
    seed: int


class Strategy:
    """Base of all strategies: every hook has a harmless default.

    Subclasses are frozen dataclasses of their options; what a run makes of them lives in the
    `StrategyRun` that `begin` returns.
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[TaskName, ...]] = ALL_TASKS
    roles: ClassVar[tuple[str, ...]] = ()  # what no other strategy of the same run may do

    def check_task(self, task: str) -> None:
        """Refuse a task that the strategy has no meaning for.

        Raises:
            ArgumentError: The strategy is for other tasks.
        """
        if task not in self.tasks:
            raise ArgumentError(f"{self.name} is for {' and '.join(self.tasks)}, not for {task}.")

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The network to train, save and predict with, made of fresh networks of the task.

        Args:
            make: Makes one network, initialised from torch's current seed.
        """
        return make()

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Change the model, before its optimizer exists, and return what acts during the run."""
        return StrategyRun()

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Change a data set before windows are cut from it, and learn from its training part.

        Args:
            data: One of the three data sets.
            window: Steps of an input window.

        Returns:
            The data to train on, and the strategy with what it learnt.
        """
        return Prepared(data, self)

    def apply(self, data: Any) -> Any:
        """Change a data set to evaluate on or predict from, by what `prepare` has learnt."""
        return data

    def inputs(self, x: Tensor) -> Tensor:
        """What the model sees instead of windows `[B, L, C]`, in evaluation and prediction."""
        return x

    def conclude(self, errors: Callable[[Strategy], Tensor]) -> Concluded:
        """Take back what does harm, once training is over.

        Args:
            errors: Gives the error in each channel `[C]` of the trained network on validation
                windows as they came, if a strategy changes its inputs.

        Returns:
            The strategy to save and to predict with, and notes for the user.
        """
        return Concluded(self)

    def count_repairs(self, x: Tensor) -> Tensor | None:
        """Flags `[B, L, C]` of what `inputs` repairs in windows; None if it repairs nothing."""
        return None

    def without_repair(self) -> Strategy:
        """The same strategy for a user who wants predictions from the data as they are."""
        return self

    def training_inputs(self, x: Tensor) -> Tensor:
        """What the model sees instead of windows `[B, L, C]` in training; default `inputs`."""
        return self.inputs(x)

    def save(self, folder: Path) -> None:
        """Write what `prepare` learnt into the folder of a run."""

    def load(self, folder: Path) -> Strategy:
        """The strategy with what a run's `prepare` learnt."""
        return self


class Prepared(NamedTuple):
    """Data to train on, the strategy with what it learnt, and notes for the user."""

    data: Any
    strategy: Strategy
    notes: tuple[str, ...] = ()


class Concluded(NamedTuple):
    """The strategy as it is after training, and notes for the user."""

    strategy: Strategy
    notes: tuple[str, ...] = ()


class StrategyRun:
    """A strategy at work in one run; part of what a resumed run must find again."""

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch; called before epoch 1, 2, … ."""

    def keep(self, batch: ForecastBatchLike, prediction: Tensor) -> Tensor | None:
        """What each target `[B, H, C]` counts in the training loss: True or a weight in [0, 1].

        One value a case, `[B]`, in classification. None if all of them count in full.
        """
        return None

    def change_inputs(self, x: Tensor, step: TrainingStep) -> Tensor:
        """What the model sees instead of windows `[B, L, C]`, for changes that ask the network."""
        return x

    def losses(self, answer: Tensor, target: Tensor) -> Tensor | None:
        """The loss of each target, `[B, H, C]`, or of each case, `[B]`; None for the task's own."""
        return None

    def detector_loss(self, model: Any, x: Tensor) -> Tensor | None:
        """The loss of a detector on windows `[B, L, C]`; None for its own."""
        return None

    def extra_loss(self, step: TrainingStep, answer: Tensor | None) -> Tensor | None:
        """A scalar to add to the loss; `answer` is None for detectors."""
        return None

    def after_step(self) -> None:
        """Act after a step of the optimizer."""

    def scalars(self) -> list[nn.Parameter]:
        """Parameters of the strategy's own, trained without weight decay."""
        return []

    def rates(self) -> Tensor | None:
        """Dropout rates `[B]` of the last training step, where windows have rates of their own."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """What is not in the model and must survive a restart."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""


class CombinedRun(StrategyRun):
    """Several strategies in one run; they do not know of each other."""

    def __init__(self, parts: Iterable[StrategyRun]) -> None:
        self.parts = list(parts)

    def begin_epoch(self, epoch: int) -> None:
        for part in self.parts:
            part.begin_epoch(epoch)

    def keep(self, batch: ForecastBatchLike, prediction: Tensor) -> Tensor | None:
        kept: Tensor | None = None
        for part in self.parts:
            mask = part.keep(batch, prediction)
            if mask is not None:
                kept = mask if kept is None else kept * mask
        return kept

    def change_inputs(self, x: Tensor, step: TrainingStep) -> Tensor:
        for part in self.parts:
            x = part.change_inputs(x, step)
        return x

    def losses(self, answer: Tensor, target: Tensor) -> Tensor | None:
        found = (part.losses(answer, target) for part in self.parts)
        return next((losses for losses in found if losses is not None), None)

    def detector_loss(self, model: Any, x: Tensor) -> Tensor | None:
        found = (part.detector_loss(model, x) for part in self.parts)
        return next((loss for loss in found if loss is not None), None)

    def extra_loss(self, step: TrainingStep, answer: Tensor | None) -> Tensor | None:
        terms = [term for p in self.parts if (term := p.extra_loss(step, answer)) is not None]
        return sum(terms[1:], terms[0]) if terms else None

    def after_step(self) -> None:
        for part in self.parts:
            part.after_step()

    def scalars(self) -> list[nn.Parameter]:
        return [scalar for part in self.parts for scalar in part.scalars()]

    def rates(self) -> Tensor | None:
        return next((r for part in self.parts if (r := part.rates()) is not None), None)

    def state_dict(self) -> dict[str, Any]:
        return {str(i): part.state_dict() for i, part in enumerate(self.parts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for i, part in enumerate(self.parts):
            part.load_state_dict(state[str(i)])
