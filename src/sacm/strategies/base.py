"""What a strategy is: one way of regularising one training run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from torch import Tensor, nn


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


class StrategyRun:
    """A strategy at work in one run; part of what a resumed run must find again."""

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch; called before epoch 1, 2, … ."""

    def keep(self, batch: ForecastBatchLike, prediction: Tensor) -> Tensor | None:
        """What each target `[B, H, C]` counts in the training loss: True or a weight in [0, 1].

        None if all of them count in full.
        """
        return None

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

    def scalars(self) -> list[nn.Parameter]:
        return [scalar for part in self.parts for scalar in part.scalars()]

    def rates(self) -> Tensor | None:
        return next((r for part in self.parts if (r := part.rates()) is not None), None)

    def state_dict(self) -> dict[str, Any]:
        return {str(i): part.state_dict() for i, part in enumerate(self.parts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for i, part in enumerate(self.parts):
            part.load_state_dict(state[str(i)])
