"""`check_strategy`: what a strategy must hold to be trained, resumed and compared with."""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sacm.data.own.series import forecasting_data
from sacm.strategies.base import Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import Combined, canonical, parse
from sacm.types import TaskName

_LENGTH, _HORIZON, _CHANNELS, _BATCH = 16, 10, 2, 8


class _Batch(NamedTuple):
    x: Tensor
    y: Tensor
    positions: Tensor


class _Network(nn.Module):
    """A forecaster with two dropouts of different rates."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dropout(0.1)
        self.hidden = nn.Linear(_LENGTH, 32)
        self.second = nn.Dropout(0.3)
        self.head = nn.Linear(32, _HORIZON)

    def forward(self, x: Tensor) -> Tensor:
        """`[B, L, C]` to `[B, H, C]`."""
        hidden = self.hidden(self.first(x.transpose(1, 2)))
        forecast: Tensor = self.head(self.second(hidden)).transpose(1, 2)
        return forecast


def check_strategy(text: str, *, task: TaskName = "forecasting") -> None:
    """Check that a strategy has one spelling, can be trained with, and survives a restart.

    Args:
        text: A registered strategy with or without options, such as "sacm(p_max=0.3)"; also
            several joined by `+`.
        task: The task it is begun for.

    Raises:
        AssertionError: If something does not hold; one sentence that says what.
        ArgumentError: If there is no such strategy or option.

    Example:
        >>> from sacm.testing import check_strategy
        >>> check_strategy("fixed(p=0.2)")
    """
    _check_spelling(text)
    with torch.random.fork_rng(devices=[]):
        strategy = _prepare(text) if task == "forecasting" else parse(text)
        _check_inputs(text, strategy)
        _check_training(text, strategy, task)


def _prepare(text: str) -> Strategy:
    """Let the strategy learn from a short series; what it gives must be of the same kind."""
    time = np.arange(600.0)
    noise = 0.1 * np.random.default_rng(0).standard_normal((len(time), _CHANNELS))
    data = forecasting_data(np.stack([np.sin(time / 5), np.cos(time / 9)], axis=1) + noise)
    prepared = parse(text).prepare(data, window=_LENGTH)
    same = isinstance(prepared.data, type(data)) and prepared.data.values.shape == (600, _CHANNELS)
    _require(same, text, "prepare must give data of the same kind and shape")
    _require(isinstance(prepared.strategy, Strategy), text, "prepare must give a Strategy")
    return prepared.strategy


def _check_spelling(text: str) -> None:
    """One spelling for one meaning; equal options make equal strategies."""
    chosen, spelling = parse(text), canonical(text)
    _require(canonical(spelling) == spelling, text, f"{spelling} is not its own spelling")
    parts = chosen.parts if isinstance(chosen, Combined) else (chosen,)
    again = parse(spelling)
    again_parts = again.parts if isinstance(again, Combined) else (again,)
    for part, same in zip(parts, again_parts, strict=True):
        frozen = dataclasses.is_dataclass(part) and part.__dataclass_params__.frozen
        _require(frozen, text, "the class must be a frozen dataclass")
        _require(part == same, text, f"{spelling} stands for other options")


def _check_inputs(text: str, strategy: Strategy) -> None:
    """What the model sees has the windows' shape and type, and is the same each time."""
    x = _batches()[0].x
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
    model = _network()
    run = strategy.begin(model, _context(task))
    _require(isinstance(run, StrategyRun), text, "begin must return a StrategyRun")
    batches = _batches()
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in batches:
            _train_step(text, model, strategy, run, batch)
    _check_scalars(text, model, run)

    twin = _network()
    resumed = strategy.begin(twin, _context(task))
    _train_step(text, twin, strategy, resumed, batches[0])  # what waits for a batch is there now
    twin.load_state_dict(model.state_dict())
    resumed.load_state_dict(copy.deepcopy(run.state_dict()))
    losses = []
    for network, each in ((model, run), (twin, resumed)):
        each.begin_epoch(3)
        torch.manual_seed(1)
        losses.append(_train_step(text, network, strategy, each, batches[0]))
    _require(losses[0] == losses[1], text, "a resumed run goes on differently")


def _train_step(
    text: str, model: nn.Module, strategy: Strategy, run: StrategyRun, batch: _Batch
) -> float:
    """Train on one batch as the forecasting task does, and give the loss."""
    model.train()
    prediction = model(strategy.training_inputs(batch.x))
    kept = run.keep(batch, prediction.detach())
    if kept is not None:
        _require(kept.shape == batch.y.shape, text, "keep must give the shape of the targets")
        within = bool(((kept >= 0) & (kept <= 1)).all())
        _require(within, text, "keep must give booleans, or weights in [0, 1]")
    error = (prediction - batch.y).abs()
    loss = error.mean() if kept is None else (error * kept).sum() / kept.sum().clamp_min(1)
    _require(bool(loss.isfinite()), text, "the training loss is not finite")
    model.zero_grad()
    loss.backward()
    rates = run.rates()
    if rates is not None:
        shape = rates.shape == (len(batch.x),) and not rates.requires_grad
        _require(shape, text, "rates must be one detached value a window, [B]")
        _require(bool(((rates >= 0) & (rates < 1)).all()), text, "a rate is not in [0, 1)")
    return float(loss.detach())


def _check_scalars(text: str, model: nn.Module, run: StrategyRun) -> None:
    """Parameters of the strategy are the model's too, or no optimizer would see them."""
    known = {id(parameter) for parameter in model.parameters()}
    for scalar in run.scalars():
        _require(id(scalar) in known, text, "a scalar is not among the parameters of the model")


def _network() -> _Network:
    torch.manual_seed(0)
    return _Network()


def _batches(count: int = 6) -> list[_Batch]:
    generator = torch.Generator().manual_seed(0)
    return [
        _Batch(
            torch.randn(_BATCH, _LENGTH, _CHANNELS, generator=generator),
            torch.randn(_BATCH, _HORIZON, _CHANNELS, generator=generator),
            torch.arange(_BATCH) + _BATCH * number,
        )
        for number in range(count)
    ]


def _context(task: TaskName) -> TrainingContext:
    return TrainingContext(
        task, channels=_CHANNELS, rows=100, train=_batches(), val=_batches(1), seed=0
    )


def _require(condition: bool, text: str, sentence: str) -> None:
    if not condition:
        raise AssertionError(f"strategy {text}: {sentence}.")
