"""`check_strategy`: what a strategy must hold to be trained, resumed and compared with."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from sacm.data.forecasting import forecasting_data
from sacm.strategies.base import ALL_TASKS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import canonical, parse, parts_of
from sacm.tasks import get_task
from sacm.testing.shared import are_finite, require, run_checks
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS, CLASSES = 16, 10, 2, 600, 2
_BATCH, _BATCHES = 8, 6
_STEPS, _LEARNING_RATE = 80, 0.02  # of learning four windows by heart


class CaseBatch(NamedTuple):
    """Windows with targets `[B, H, C]`, or labels `[B]` for classification."""

    x: Tensor
    y: Tensor
    positions: Tensor
    stamps: Tensor | None = None
    observed: Tensor | None = None
    beside: tuple[Tensor | None, ...] = ()  # nothing goes with the windows


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


def series() -> ForecastingData:
    """Make two waves with a little noise, `[600, 2]`."""
    time = np.arange(float(ROWS))
    noise = 0.1 * np.random.default_rng(0).standard_normal((ROWS, CHANNELS))
    return forecasting_data(np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1) + noise)


def batches(task: TaskName = "forecasting", *, size: int = _BATCH) -> list[CaseBatch]:
    """Cut batches of windows from the series; their positions are their first rows."""
    values = torch.from_numpy(series().values).float()
    result = []
    for number in range(_BATCHES):
        positions = torch.arange(size) * 3 + 40 * number
        windows = values[positions[:, None] + torch.arange(LENGTH + HORIZON)]  # [B, L + H, C]
        y = windows[:, LENGTH:]
        if task == "classification":
            y = torch.arange(size) * CLASSES // size
        result.append(CaseBatch(windows[:, :LENGTH], y, positions))
    return result


@dataclass
class StrategyCase:
    """A strategy that is checked for one task."""

    text: str
    strategy: Strategy
    task: TaskName

    def begin(self) -> tuple[Backbone, StrategyRun]:
        """Return a new network and the `StrategyRun` that trains it."""
        torch.manual_seed(0)
        model = self.strategy.build(lambda: network(self.task))
        few = batches(self.task)[:3]  # some strategies train on them beforehand
        context = TrainingContext(
            self.task,
            channels=CHANNELS,
            rows=ROWS,
            train=few,
            val=few[:1],
            seed=0,
            batches=lambda number, epoch: itertools.cycle(batches(self.task)),
        )
        run = self.strategy.begin(model, context)
        require(isinstance(run, StrategyRun), "begin must return a StrategyRun")
        return model, run

    def train_step(self, model: Backbone, run: StrategyRun, batch: CaseBatch) -> float:
        """Find the gradients of one batch as a training run does, and return the loss."""
        model.train()
        model.zero_grad()
        loss = get_task(self.task).training_loss(model, batch, self.strategy, run)
        require(loss.isfinite(), "the training loss is not finite")
        loss.backward()
        if (rates := run.rates) is not None:
            shape = rates.shape == (len(batch.x),) and not rates.requires_grad
            require(shape, "rates must be one detached value a window, [B]")
            require(((rates >= 0) & (rates < 1)).all(), "a rate is not in [0, 1)")
        return float(loss.detach())

    def evaluate(self, model: Any, batch: CaseBatch) -> float:
        """Return the task's own loss in evaluation mode."""
        model.eval()
        with torch.no_grad():
            x = self.strategy.inputs(batch.x)
            if self.task == "anomaly":
                return float(model.validation_loss(x))
            if self.task == "classification":
                return float(nn.functional.cross_entropy(model(x), batch.y))
            return float((model(x) - batch.y).abs().mean())


def a_meaning_has_one_spelling(case: StrategyCase) -> None:
    """Equal options make equal strategies."""
    spelling = canonical(case.text)
    require(canonical(spelling) == spelling, f"{spelling} is not its own spelling")
    for part, same in zip(parts_of(case.strategy), parts_of(parse(spelling)), strict=True):
        frozen = dataclasses.is_dataclass(part) and part.__dataclass_params__.frozen
        require(frozen, "the class must be a frozen dataclass")
        require(part == same, f"{spelling} stands for other options")


def data_keep_their_kind(case: StrategyCase) -> None:
    """The strategy learns from a short series; the data stay of the same kind."""
    if case.task != "forecasting":
        return
    data = series()
    prepared = case.strategy.prepare(data, window=LENGTH)
    shape = getattr(getattr(prepared.data, "values", None), "shape", None)
    same = isinstance(prepared.data, type(data)) and shape == (ROWS, CHANNELS)
    require(same, "prepare must give data of the same kind and shape")
    require(isinstance(prepared.strategy, Strategy), "prepare must give a Strategy")
    case.strategy = prepared.strategy


def inputs_keep_their_shape(case: StrategyCase) -> None:
    """What the model sees has the windows' shape and type, and is the same each time."""
    x = batches()[0].x
    before = x.clone()
    for windows in (x, x.double(), x[:1]):
        seen = case.strategy.inputs(windows)
        kept = seen.shape == windows.shape and seen.dtype == windows.dtype
        require(kept, f"inputs turns {list(windows.shape)} into {list(seen.shape)}")
        require(are_finite([seen]), "inputs gives values that are not finite")
        same = torch.equal(case.strategy.inputs(windows), seen)
        require(same, "inputs gives other values the second time")
    require(torch.equal(x, before), "inputs changes its argument")


def a_resumed_run_goes_on_alike(case: StrategyCase) -> None:
    """Two epochs, then the same step from a state that was saved and loaded."""
    model, run = case.begin()
    data = batches(case.task)
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in data:
            case.train_step(model, run, batch)
    parameters = {id(parameter) for parameter in model.parameters()}
    known = all(id(scalar) in parameters for scalar in run.scalars)
    require(known, "a scalar is not among the parameters of the model")

    twin, resumed = case.begin()
    resumed.begin_epoch(1)
    case.train_step(twin, resumed, data[0])  # what waits for a batch is there now
    twin.load_state_dict(model.state_dict())
    resumed.load_state_dict(copy.deepcopy(run.state_dict()))
    losses = []
    for each, its_run in ((model, run), (twin, resumed)):
        its_run.begin_epoch(3)
        torch.manual_seed(1)
        losses.append(case.train_step(each, its_run, data[0]))
    require(losses[0] == losses[1], "a resumed run goes on differently")


def windows_are_learnt_by_heart(case: StrategyCase) -> None:
    """The error of four windows in evaluation falls to less than half."""
    model, run = case.begin()
    four = batches(case.task, size=4)[0]
    before = case.evaluate(model, four)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE)
    run.begin_epoch(1)
    for _ in range(_STEPS):
        case.train_step(model, run, four)
        optimizer.step()
        run.after_step()
    after = case.evaluate(model, four)
    sentence = f"four windows are not learnt: their error goes from {before:.3g} to {after:.3g}"
    require(after < 0.5 * before, sentence)


CHECKS = (
    a_meaning_has_one_spelling,
    data_keep_their_kind,
    inputs_keep_their_shape,
    a_resumed_run_goes_on_alike,
    windows_are_learnt_by_heart,
)


def check_strategy(text: str, *, task: TaskName | None = None) -> None:
    """Check that a strategy has one spelling, learns, and survives a restart.

    Args:
        text: A registered strategy with or without options, such as "sacm(p_max=0.3)"; also
            several joined by `+`.
        task: The task it is begun for; None for the first that it is meant for.

    Raises:
        AssertionError: If something does not hold; one sentence that says what.
        ArgumentError: If there is no such strategy or option, or it is for other tasks.

    Example:
        >>> from sacm.testing import check_strategy
        >>> check_strategy("fixed(p=0.2)")
    """
    strategy = parse(text)
    parts = parts_of(strategy)
    meant_for = [name for name in ALL_TASKS if all(name in part.tasks for part in parts)]
    chosen = task or (meant_for or ALL_TASKS)[0]
    strategy.check_task(chosen)
    run_checks(f"strategy {text}", CHECKS, StrategyCase(text, strategy, chosen))
