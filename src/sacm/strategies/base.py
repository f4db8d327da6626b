"""What a strategy is: one way of making one training run robust.

A strategy has eight hooks, each with a default that changes nothing: `prepare`, `inputs`, `build`
and `begin` of the `Strategy`, a frozen dataclass of its options; `begin_epoch`, `weights`, `loss`
and `after_step` of the `StrategyRun`, which is the strategy at work in one training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.data.scaling import fill_data
from sacm.errors import ArgumentError
from sacm.types import TaskName

ALL_TASKS: tuple[TaskName, ...] = ("forecasting", "classification", "anomaly")
# Roles: what only one strategy of a run may do. They are the ends of the sentence that says so.
CHANGES_NETWORK = "change the network"
REPLACES_LOSS = "replace the loss"
SETS_RATES = "set the dropout rates"


@dataclass(frozen=True)
class TrainingContext:
    """What is known when a run begins."""

    task: str
    channels: int
    rows: int  # of the series that batch positions point into; 0 where there is none
    train: Iterable[Any]  # batches for a strategy's own use; every iteration is a pass over them
    val: Iterable[Any]
    seed: int
    # The training batches of an epoch in an order of their own, by a number from 1 on and the
    # epoch: for strategies that train further networks.
    batches: Callable[[int, int], Iterator[Any]] | None = None


class Strategy:
    """Base of all strategies."""

    name: ClassVar[str]
    tasks: ClassVar[tuple[TaskName, ...]] = ALL_TASKS
    roles: ClassVar[tuple[str, ...]] = ()
    combines: ClassVar[bool] = True  # whether it can be joined with others by `+`

    def check_task(self, task: str) -> None:
        """Raise an `ArgumentError` for a task that the strategy has no meaning for."""
        if task not in self.tasks:
            raise ArgumentError(f"{self.name} is for {' and '.join(self.tasks)}, not for {task}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Change a data set before windows of `window` steps are cut, and learn from its training.

        The default interpolates gaps, which are NaN. The strategy that is returned here or by
        `load` does not learn again: it changes further data by what it knows.
        """
        filled, note = fill_data(data)
        return Prepared(filled, self, (note,) if note else ())

    def inputs(self, x: Tensor, *, training: bool = False) -> Tensor:
        """What the network sees instead of windows `[B, L, C]`, of the same shape."""
        return x

    def build(self, make: Callable[[], Backbone]) -> Backbone:
        """The network to train, save and predict with; `make` makes one from torch's seed."""
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
    """A strategy at work in one run."""

    # Parameters of the strategy's own, trained without weight decay; a run sets its own list.
    scalars: list[nn.Parameter] = []  # noqa: RUF012
    rates: Tensor | None = None  # [B], of the last step, where windows have rates of their own

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch; called before epoch 1, 2, … ."""

    def weights(self, batch: Any, prediction: Tensor) -> Tensor | None:
        """How much each target `[B, H, C]` (or case `[B]`) counts, in [0, 1]; None: in full."""
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


@dataclass(frozen=True, eq=False)
class Step:
    """One training step, for strategies that compute its loss themselves."""

    task: Any
    model: Any
    batch: Any  # as it was cut, on the device of the network
    strategy: Strategy
    run: StrategyRun  # the strategy at work

    @cached_property
    def inputs(self) -> Tensor:
        """The windows `[B, L, C]` as the network sees them."""
        return self.strategy.inputs(self.batch.x, training=True)

    def answer(self, x: Tensor | None = None) -> Any:
        """Forecasts `[B, H, C]` or logits `[B, K]` for `inputs`, or for other windows."""
        return self.task.answer(self.model, self.batch, self.inputs if x is None else x)

    def loss(self, x: Tensor | None = None) -> Any:
        """The task's own loss, a scalar, for `inputs`, or for other windows."""
        return self.task.loss(self, self.inputs if x is None else x)

    def losses(self, answer: Tensor) -> Any:
        """The task's own loss of each target, `[B, H, C]`, or of each case, `[B]`."""
        return self.task.losses(answer, self.batch)

    def weights(self, answer: Tensor) -> Tensor | None:
        """How much each target counts: by the strategy, and by how well it was measured."""
        weights = self.run.weights(self.batch, answer.detach())
        return multiply(weights, getattr(self.batch, "observed", None))

    def mean(self, losses: Tensor, answer: Tensor) -> Tensor:
        """Weighted mean of losses that have the shape of the targets."""
        weights = self.weights(answer)
        if weights is None:
            return losses.mean()
        return (losses * weights).sum() / weights.sum().clamp_min(1)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Context in which the network is in evaluation mode; gradients stay on."""
        self.model.eval()
        try:
            yield
        finally:
            self.model.train()


def multiply(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """The product of two weights, of which None counts everything in full."""
    if first is None or second is None:
        return second if first is None else first
    return first * second
