"""`check_strategy` and `check_scorer`: what strategies and scorers must hold."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.core.config import SACMConfig
from sacm.data.batches import ForecastBatch
from sacm.data.forecasting import forecasting_data
from sacm.inject.attach import attach
from sacm.strategies.base import ALL_TASKS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import parse, parts_of
from sacm.strategies.sacm import ScorerFactory, scorers
from sacm.tasks import get_task
from sacm.testing.backbones import BackboneCase, are_finite, make, require, run_checks, windows
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS = 16, 10, 2, 600


def make_batches(task: TaskName) -> list[ForecastBatch]:
    """Make six batches of eight windows; for classification the targets are labels `[B]`."""
    batches = []
    for number in range(6):
        x, y = windows(8, length=LENGTH + HORIZON, channels=CHANNELS, seed=number).split(LENGTH, 1)
        y = torch.arange(8) // 4 if task == "classification" else y
        batches.append(ForecastBatch(x, y, None, None, torch.arange(8) * 3 + 40 * number))
    return batches


@dataclass
class StrategyCase:
    """A strategy that is checked for one task."""

    strategy: Strategy
    task: TaskName

    def begin(self) -> tuple[Backbone, StrategyRun]:
        """Return a new network and the `StrategyRun` that trains it."""
        torch.manual_seed(0)
        case, seeds = BackboneCase("iTransformer", self.task), itertools.count()
        sizes: dict[str, Any] = {"length": LENGTH, "horizon": HORIZON, "channels": CHANNELS}
        model = self.strategy.build(lambda: make(case, seed=next(seeds), **sizes))
        few = make_batches(self.task)[:3]  # some strategies train on them beforehand
        context = TrainingContext(
            self.task, CHANNELS, ROWS, few, few[:1], 0, lambda *_: itertools.cycle(few)
        )
        return model, self.strategy.begin(model, context)

    def train_step(self, model: Backbone, run: StrategyRun, batch: ForecastBatch) -> float:
        """Find the gradients of one batch as a training run does, and return the loss."""
        model.train()
        model.zero_grad()
        loss = get_task(self.task).training_loss(model, batch, self.strategy, run)
        require(loss.isfinite(), "the training loss is not finite")
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        require(gradients and are_finite(gradients), "gradients are missing or not finite")
        return float(loss.detach())


def data_and_inputs_keep_their_shape(case: StrategyCase) -> None:
    """The strategy learns from a short series; windows keep shape and type, the same each time."""
    if case.task == "forecasting":
        data = forecasting_data(windows(1, length=ROWS, channels=CHANNELS)[0].double().numpy())
        prepared = case.strategy.prepare(data, window=LENGTH)
        same = type(prepared.data) is type(data) and prepared.data.values.shape == (ROWS, CHANNELS)
        require(same, "prepare must give data of the same kind and shape")
        case.strategy = prepared.strategy
    x = make_batches(case.task)[0].x
    before = x.clone()
    for given in (x, x.double(), x[:1]):
        seen = case.strategy.inputs(given)
        kept = seen.shape == given.shape and seen.dtype == given.dtype and are_finite([seen])
        require(kept, f"inputs turns {list(given.shape)} into {list(seen.shape)}, or is not finite")
        require(torch.equal(case.strategy.inputs(given), seen), "inputs is not repeatable")
    require(torch.equal(x, before), "inputs changes its argument")


def a_resumed_run_goes_on_alike(case: StrategyCase) -> None:
    """Two epochs, then the same step from a state that was saved and loaded."""
    model, run = case.begin()
    data = make_batches(case.task)
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in data:
            case.train_step(model, run, batch)
    known = {id(s) for s in run.scalars} <= {id(p) for p in model.parameters()}
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


def check_strategy(text: str, *, task: TaskName | None = None) -> None:
    """Check that a strategy keeps shapes, trains, and goes on alike after a restart.

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
    checks = (data_and_inputs_keep_their_shape, a_resumed_run_goes_on_alike)
    run_checks(f"strategy {text}", checks, StrategyCase(strategy, chosen))


def check_scorer(scorer: str | ScorerFactory) -> None:
    """Check that a scorer gives one finite, repeatable score a window and can be trained with.

    Args:
        scorer: A registered name, or a factory `(channels, config) -> module` from windows
            `[B, L, C]` to scores `[B]`.

    Raises:
        AssertionError: If something does not hold; one sentence that says what.
        ArgumentError: If no scorer of that name is registered.

    Example:
        >>> from sacm.testing import check_scorer
        >>> check_scorer("spectral")
    """
    factory = scorers.get(scorer) if isinstance(scorer, str) else scorer
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "scorer")
    run_checks(f"scorer {name}", (windows_are_scored_alone, attached_training_works), factory)


def windows_are_scored_alone(factory: ScorerFactory) -> None:
    """One score a window, the same each time, whatever else is in the batch."""
    for channels, length in ((3, 96), (1, 25)):
        module, x = factory(channels, SACMConfig()), windows(6, length=length, channels=channels)
        before, scores, what = x.clone(), _scores(module, x), f"for windows {list(x.shape)}"
        require(scores.shape == x.shape[:1], f"scores must be [{len(x)}] {what}")
        require(scores.is_floating_point(), f"scores must be floats, not {scores.dtype}")
        require(are_finite([scores]), f"scores must be finite {what}")
        require(torch.equal(x, before), "the windows must be left alone")
        require(torch.equal(_scores(module, x), scores), "two calls give different scores")
        alone = torch.cat([_scores(module, window) for window in x.split(1)])
        close = torch.allclose(alone, scores, atol=1e-5, rtol=1e-5)
        require(close, "the score of a window must not depend on the others of its batch")
        constant = _scores(module, torch.zeros_like(x))
        require(are_finite([constant]), "scores of constant windows must be finite")


def attached_training_works(factory: ScorerFactory) -> None:
    """Attached, it gives rates in bounds and finite gradients, under autocast too."""
    model, x = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1)), windows(8)
    modulator = attach(model, channels=3, scorer=factory(3, SACMConfig()), example_inputs=x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(x).square().mean().backward()
    require(are_finite([modulator.rates]), "rates must be finite")
    gradients = [p.grad for p in modulator.parameters()]
    require(are_finite(gradients), "a gradient of the modulator is not finite")


@torch.no_grad()
def _scores(module: nn.Module, x: Tensor) -> Tensor:
    result = module(x)
    scores: Tensor = getattr(result, "scores", result)
    return scores
