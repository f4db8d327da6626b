"""What a strategy is: one way of making one training run robust.

A strategy has nine hooks, and a harmless default for each of them. Five belong to the `Strategy`,
a frozen dataclass of its options:

    prepare(data, window)        change a data set before windows are cut, and learn from it
    obey(data)                   mark what breaks a user's rules in data to predict from
    inputs(x, training)          change the windows that the network sees
    build(make)                  make the network
    begin(model, context)        change the network, and return the `StrategyRun` of this training

and four to the `StrategyRun`:

    begin_epoch(epoch)           get ready for an epoch
    weights(batch, prediction)   say how much each target counts in the loss
    loss(step)                   compute the loss of a step in place of the task
    after_step()                 act after a step of the optimizer

What a strategy learnt is kept by `save` and `load`, what a run knows by `state_dict` and
`load_state_dict`. `scalars` and `rates` are plain attributes of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.data.gaps import fill_data
from sacm.errors import ArgumentError
from sacm.types import TaskName

ALL_TASKS: tuple[TaskName, ...] = ("forecasting", "classification", "anomaly")
# Roles: what only one strategy of a run may do. They are the ends of the sentence that says so.
CHANGES_NETWORK = "change the network"
REPLACES_LOSS = "replace the loss"
SETS_RATES = "set the dropout rates"


class Loader(Protocol):
    """Batches of one split; every iteration is a pass over it."""

    def __iter__(self) -> Iterator[Any]: ...


class Step(Protocol):
    """One training step, for strategies that compute its loss themselves."""

    @property
    def batch(self) -> Any:
        """The batch as it was cut, on the device of the network."""

    @property
    def inputs(self) -> Tensor:
        """Its windows `[B, L, C]` as the network sees them."""

    @property
    def model(self) -> Any:
        """The network that is trained."""

    def answer(self, x: Tensor | None = None) -> Tensor:
        """Forecasts `[B, H, C]` or logits `[B, K]` for `inputs`, or for other windows."""

    def loss(self, x: Tensor | None = None) -> Tensor:
        """The task's own loss, a scalar, for `inputs`, or for other windows."""

    def losses(self, answer: Tensor) -> Tensor:
        """The task's own loss of each target, `[B, H, C]`, or of each case, `[B]`."""

    def mean(self, losses: Tensor, answer: Tensor, *, keep: Tensor | None = None) -> Tensor:
        """The mean of losses of the targets' shape, each by the weight of its target.

        `keep` holds further weights of the same shape.
        """

    def other(self, *, model: Any = None, batch: Any = None) -> Self:
        """The same step with another network or another batch."""

    def evaluating(self) -> AbstractContextManager[None]:
        """Evaluation mode of the network for a while; gradients stay on."""


@dataclass(frozen=True)
class TrainingContext:
    """What is known when a run begins.

    Attributes:
        task: The task's name.
        channels: Number of channels C.
        rows: Length of the series that batch positions point into; 0 where there is none.
        train: Training batches for a strategy's own use.
        val: Validation batches.
        seed: The seed of the run.
        batches: Gives the training batches of an epoch in an order of their own, by a number from
            1 on and the epoch: for strategies that train further networks.
        processes: How many processes train together.
    """

    task: str
    channels: int
    rows: int
    train: Loader
    val: Loader
    seed: int
    batches: Callable[[int, int], Iterator[Any]] | None = None
    processes: int = 1


class Strategy:
    """Base of all strategies; see the module for its hooks."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[TaskName, ...]] = ALL_TASKS
    roles: ClassVar[tuple[str, ...]] = ()
    combines: ClassVar[bool] = True  # whether it can be joined with others by `+`

    def check_task(self, task: str) -> None:
        """Refuse a task that the strategy has no meaning for.

        Raises:
            ArgumentError: The strategy is for other tasks.
        """
        if task not in self.tasks:
            raise ArgumentError(f"{self.name} is for {' and '.join(self.tasks)}, not for {task}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Change a data set before windows are cut from it, and learn from its training part.

        The default fills gaps, so that every value is finite afterwards. A strategy that `prepare`
        returned or `load` read does not learn again: its own `prepare` changes data to evaluate on
        or to predict from by what it knows.

        Args:
            data: One of the three data sets; NaN where a value was not measured.
            window: Steps of an input window.

        Returns:
            The data to train on, the strategy with what it learnt, and notes for the user.
        """
        filled, notes = fill_missing(data)
        return Prepared(filled, self, notes)

    def obey(self, data: Any) -> Any:
        """Data to predict from, with what breaks a user's rules as missing."""
        return data

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """What the network sees instead of windows `[B, L, C]`."""
        return x

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The network to train, save and predict with.

        Args:
            make: Makes one network, initialised from torch's current seed.
        """
        return make()

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Change the network, before its optimizer exists, and return what acts during the run."""
        return StrategyRun()

    def flags(self, x: Tensor) -> Tensor | None:
        """Kinds `[B, L, C]` of the faults that `inputs` repairs; None if it repairs nothing."""
        return None

    def save(self, folder: Path) -> None:
        """Write what `prepare` learnt into the folder of a run."""

    def load(self, folder: Path) -> Strategy:
        """The strategy with what a run's `prepare` learnt."""
        return self


class Prepared(NamedTuple):
    """Data to train on, the strategy with what it learnt, notes for the user, and the cost."""

    data: Any
    strategy: Strategy
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


class StrategyRun:
    """A strategy at work in one run.

    Attributes:
        scalars: Parameters of the strategy's own, trained without weight decay.
        rates: Dropout rates `[B]` of the last training step, where windows have rates of their
            own; None elsewhere.
    """

    scalars: list[nn.Parameter] = []  # noqa: RUF012  (read-only default; a run sets its own)
    rates: Tensor | None = None

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch; called before epoch 1, 2, … ."""

    def weights(self, batch: Any, prediction: Tensor) -> Tensor | None:
        """How much each target `[B, H, C]` counts in the loss: True or a weight in [0, 1].

        One value a case, `[B]`, in classification. None if all of them count in full.
        """
        return None

    def loss(self, step: Step) -> Tensor | None:
        """The loss of a step, a scalar; None for the task's own."""
        return None

    def after_step(self) -> None:
        """Act after a step of the optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """What is not in the model and must survive a restart."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""


def fill_missing(data: Any) -> tuple[Any, tuple[str, ...]]:
    """Interpolate the gaps of a data set and mark them as not observed.

    Returns:
        The data with finite values, and a note with the number and the share of gaps; data
        without gaps as they are.
    """
    filled, note = fill_data(data)
    return filled, (note,) if note else ()
