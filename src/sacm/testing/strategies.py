"""`check_strategy`: what a strategy must hold to be trained, resumed and compared with."""

from __future__ import annotations

import copy
import dataclasses
import itertools
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
from sacm.errors import ArgumentError
from sacm.strategies.base import ALL_TASKS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.combined import CombinedRun
from sacm.strategies.registry import canonical, parse, parts_of
from sacm.tasks import get_task
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS, CLASSES = 16, 10, 2, 600, 2
_BATCH, _BATCHES = 8, 6


class CaseBatch(NamedTuple):
    """Windows with targets `[B, H, C]`, or labels `[B]` for classification."""

    x: Tensor
    y: Tensor
    positions: Tensor
    stamps: Tensor | None = None
    observed: Tensor | None = None

    @property
    def beside(self) -> tuple[Tensor | None, ...]:
        """Nothing goes with the windows."""
        return ()


class _Forecaster(ForecastNetwork):
    """Each channel through two Linears, with two dropouts of different rates."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, horizon=HORIZON, channels=CHANNELS)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, HORIZON)

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        """`[B, L, C]` to `[B, H, C]`."""
        hidden = self.hidden(self.first(x.transpose(1, 2)))
        forecast: Tensor = self.head(self.second(hidden)).transpose(1, 2)
        return forecast


class _Classifier(ClassifierNetwork):
    """The whole window through two Linears."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, channels=CHANNELS, classes=CLASSES)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH * CHANNELS, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, K]`."""
        hidden = torch.relu(self.hidden(self.first(x.flatten(1))))
        logits: Tensor = self.head(self.second(hidden))
        return logits


class _Detector(ReconstructionDetector):
    """Each channel through a narrow layer."""

    def __init__(self) -> None:
        super().__init__(input_len=LENGTH, channels=CHANNELS)
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(LENGTH, 12)
        self.second = nn.Dropout(0.1)
        self.head = nn.Linear(12, LENGTH)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, L, C]`."""
        hidden = self.hidden(self.first(x.transpose(1, 2)))
        rebuilt: Tensor = self.head(self.second(hidden)).transpose(1, 2)
        return rebuilt


def network(task: TaskName) -> Backbone:
    """A small network from torch's current seed."""
    return {"forecasting": _Forecaster, "classification": _Classifier, "anomaly": _Detector}[task]()


def series() -> ForecastingData:
    """Two waves with a little noise, `[600, 2]`."""
    time = np.arange(float(ROWS))
    noise = 0.1 * np.random.default_rng(0).standard_normal((ROWS, CHANNELS))
    return forecasting_data(np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1) + noise)


def batches(task: TaskName = "forecasting", *, size: int = _BATCH) -> list[CaseBatch]:
    """Batches of windows of the series, whose positions are their first rows."""
    values = torch.from_numpy(series().values).float()
    found = []
    for number in range(_BATCHES):
        positions = torch.arange(size) * 3 + 40 * number
        rows = positions[:, None] + torch.arange(LENGTH + HORIZON)
        windows = values[rows]  # [B, L + H, C]
        y = windows[:, LENGTH:]
        if task == "classification":
            y = torch.arange(size) * CLASSES // size
        found.append(CaseBatch(windows[:, :LENGTH], y, positions))
    return found


_STEPS, _LEARNING_RATE = 80, 0.02  # of learning four windows by heart


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
    _check_spelling(text)
    chosen = parse(text)
    task = task or _first_task(chosen)
    chosen.check_task(task)
    with torch.random.fork_rng(devices=[]):
        strategy = _prepare(text) if task == "forecasting" else chosen
        _check_inputs(text, strategy)
        _check_training(text, strategy, task)
        _check_learning(text, strategy, task)


def _first_task(strategy: Strategy) -> TaskName:
    """The first task that a strategy is for."""
    for task in ALL_TASKS:
        try:
            strategy.check_task(task)
        except ArgumentError:
            continue
        return task
    return ALL_TASKS[0]  # it is for none: the check of this one says so


def _prepare(text: str) -> Strategy:
    """Let the strategy learn from a short series; what it gives must be of the same kind."""
    data = series()
    prepared = parse(text).prepare(data, window=LENGTH)
    same = isinstance(prepared.data, type(data)) and prepared.data.values.shape == (ROWS, CHANNELS)
    _require(same, text, "prepare must give data of the same kind and shape")
    _require(isinstance(prepared.strategy, Strategy), text, "prepare must give a Strategy")
    return prepared.strategy


def _check_spelling(text: str) -> None:
    """One spelling for one meaning; equal options make equal strategies."""
    chosen, spelling = parse(text), canonical(text)
    _require(canonical(spelling) == spelling, text, f"{spelling} is not its own spelling")
    for part, same in zip(parts_of(chosen), parts_of(parse(spelling)), strict=True):
        frozen = dataclasses.is_dataclass(part) and part.__dataclass_params__.frozen
        _require(frozen, text, "the class must be a frozen dataclass")
        _require(part == same, text, f"{spelling} stands for other options")


def _check_inputs(text: str, strategy: Strategy) -> None:
    """What the model sees has the windows' shape and type, and is the same each time."""
    x = batches()[0].x
    before = x.clone()
    for windows in (x, x.double(), x[:1]):
        seen = strategy.inputs(windows)
        kept = seen.shape == windows.shape and seen.dtype == windows.dtype
        _require(kept, text, f"inputs turns {list(windows.shape)} into {list(seen.shape)}")
        _require(bool(seen.isfinite().all()), text, "inputs gives values that are not finite")
        same = torch.equal(strategy.inputs(windows), seen)
        _require(same, text, "inputs gives other values the second time")
    _require(torch.equal(x, before), text, "inputs changes its argument")


def _check_training(text: str, strategy: Strategy, task: TaskName) -> None:
    """Two epochs, then the same step from a state that was saved and loaded."""
    model, run = _begin(text, strategy, task)
    data = batches(task)
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in data:
            _train_step(text, model, strategy, run, batch, task)
    _check_scalars(text, model, run)

    twin, resumed = _begin(text, strategy, task)
    resumed.begin_epoch(1)
    _train_step(text, twin, strategy, resumed, data[0], task)  # what waits for a batch is there now
    twin.load_state_dict(model.state_dict())
    resumed.load_state_dict(copy.deepcopy(run.state_dict()))
    losses = []
    for each, its_run in ((model, run), (twin, resumed)):
        its_run.begin_epoch(3)
        torch.manual_seed(1)
        losses.append(_train_step(text, each, strategy, its_run, data[0], task))
    _require(losses[0] == losses[1], text, "a resumed run goes on differently")


def _check_learning(text: str, strategy: Strategy, task: TaskName) -> None:
    """Four windows are learnt by heart: the error in evaluation falls to less than half."""
    model, run = _begin(text, strategy, task)
    four = batches(task, size=4)[0]
    before = _evaluate(model, strategy, four, task)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=_LEARNING_RATE)
    run.begin_epoch(1)
    for _ in range(_STEPS):
        _train_step(text, model, strategy, run, four, task)
        optimizer.step()
        run.after_step()
    after = _evaluate(model, strategy, four, task)
    sentence = f"four windows are not learnt: their error goes from {before:.3g} to {after:.3g}"
    _require(after < 0.5 * before, text, sentence)


def _begin(text: str, strategy: Strategy, task: TaskName) -> tuple[nn.Module, StrategyRun]:
    """A fresh network and the strategy at work on it."""
    torch.manual_seed(0)
    model = strategy.build(lambda: network(task))
    few = batches(task)[:3]  # some strategies train on them beforehand
    context = TrainingContext(
        task,
        channels=CHANNELS,
        rows=ROWS,
        train=few,
        val=few[:1],
        seed=0,
        batches=lambda number, epoch: itertools.cycle(batches(task)),
    )
    run = strategy.begin(model, context)
    _require(isinstance(run, StrategyRun), text, "begin must return a StrategyRun")
    return model, _CheckedRun(text, run)


class _CheckedRun(CombinedRun):
    """A run whose weights are looked at."""

    def __init__(self, text: str, run: StrategyRun) -> None:
        super().__init__([run])
        self.text = text

    def weights(self, batch: Any, prediction: Tensor) -> Tensor | None:
        weights = super().weights(batch, prediction)
        if weights is not None:
            fits = weights.shape == batch.y.shape
            _require(fits, self.text, "weights must have the shape of the targets")
            within = bool(((weights >= 0) & (weights <= 1)).all())
            _require(within, self.text, "weights must be booleans, or lie in [0, 1]")
        return weights


def _train_step(
    text: str, model: Any, strategy: Strategy, run: StrategyRun, batch: CaseBatch, task: TaskName
) -> float:
    """Find the gradients of one batch as a training run does, and give the loss."""
    model.train()
    model.zero_grad()
    loss = get_task(task).training_loss(model, batch, strategy, run)
    _require(bool(loss.isfinite()), text, "the training loss is not finite")
    loss.backward()
    rates = run.rates
    if rates is not None:
        shape = rates.shape == (len(batch.x),) and not rates.requires_grad
        _require(shape, text, "rates must be one detached value a window, [B]")
        _require(bool(((rates >= 0) & (rates < 1)).all()), text, "a rate is not in [0, 1)")
    return float(loss.detach())


def _evaluate(model: Any, strategy: Strategy, batch: CaseBatch, task: TaskName) -> float:
    """The task's own loss in evaluation mode."""
    model.eval()
    with torch.no_grad():
        x = strategy.inputs(batch.x)
        if task == "anomaly":
            return float(model.validation_loss(x))
        if task == "classification":
            return float(nn.functional.cross_entropy(model(x), batch.y))
        return float((model(x) - batch.y).abs().mean())


def _check_scalars(text: str, model: nn.Module, run: StrategyRun) -> None:
    """Parameters of the strategy are the model's too, or no optimizer would see them."""
    known = {id(parameter) for parameter in model.parameters()}
    for scalar in run.scalars:
        _require(id(scalar) in known, text, "a scalar is not among the parameters of the model")


def _require(condition: bool, text: str, sentence: str) -> None:
    if not condition:
        raise AssertionError(f"strategy {text}: {sentence}.")
