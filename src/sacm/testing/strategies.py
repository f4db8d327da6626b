"""`check_strategy` and `check_scorer`: what strategies and scorers must hold."""

from __future__ import annotations

import copy
import itertools

import torch
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.backbones.registry import entry
from sacm.core.config import SACMConfig
from sacm.data.batches import ForecastBatch
from sacm.data.forecasting import forecasting_data
from sacm.inject.attach import attach
from sacm.strategies.base import ALL_TASKS, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import parse, parts_of
from sacm.strategies.sacm import ScorerFactory, scorers
from sacm.tasks import get_task
from sacm.testing.backbones import are_finite, checking, make, require, windows
from sacm.types import TaskName

LENGTH, HORIZON, CHANNELS, ROWS = 16, 10, 2, 600


def check_strategy(text: str, *, task: TaskName | None = None) -> None:
    """Check that a strategy keeps shapes, trains, and goes on alike after a restart.

    An AssertionError says in a sentence what does not hold.

    Args:
        text: A registered strategy with or without options, such as "sacm(p_max=0.3)"; also
            several joined by `+`.
        task: The task it is begun for; None for the first that it is meant for.

    Example:
        >>> from sacm.testing import check_strategy
        >>> check_strategy("fixed(p=0.2)")
    """
    strategy = parse(text)
    parts = parts_of(strategy)
    meant_for = [name for name in ALL_TASKS if all(name in part.tasks for part in parts)]
    chosen = task or (meant_for or ALL_TASKS)[0]
    strategy.check_task(chosen)
    with checking(f"strategy {text}"):
        batches = _make_batches(chosen)
        strategy = _check_inputs(strategy, chosen, batches[0].x)
        _check_resuming(strategy, chosen, batches)


def _make_batches(task: TaskName) -> list[ForecastBatch]:
    """Make six batches of eight windows; for classification the targets are labels `[B]`."""
    batches = []
    for number in range(6):
        x, y = windows(8, length=LENGTH + HORIZON, channels=CHANNELS, seed=number).split(LENGTH, 1)
        y = torch.arange(8) // 4 if task == "classification" else y
        batches.append(ForecastBatch(x, y, None, None, torch.arange(8) * 3 + 40 * number))
    return batches


def _check_inputs(strategy: Strategy, task: TaskName, x: Tensor) -> Strategy:
    """Windows keep shape and type, the same each time; return what learnt from a short series."""
    if task == "forecasting":
        data = forecasting_data(windows(1, length=ROWS, channels=CHANNELS)[0].double().numpy())
        prepared = strategy.prepare(data, window=LENGTH)
        same = type(prepared.data) is type(data) and prepared.data.values.shape == (ROWS, CHANNELS)
        require(same, "prepare must give data of the same kind and shape")
        strategy = prepared.strategy
    before = x.clone()
    for given in (x, x.double(), x[:1]):
        seen = strategy.inputs(given)
        kept = seen.shape == given.shape and seen.dtype == given.dtype and are_finite([seen])
        require(kept, f"inputs turns {list(given.shape)} into {list(seen.shape)}, or is not finite")
        require(torch.equal(strategy.inputs(given), seen), "inputs is not repeatable")
    require(torch.equal(x, before), "inputs changes its argument")
    return strategy


def _check_resuming(strategy: Strategy, task: TaskName, batches: list[ForecastBatch]) -> None:
    """Two epochs, then the same step from a state that was saved and loaded."""

    def begin() -> tuple[Backbone, StrategyRun]:
        torch.manual_seed(0)
        case, seeds, few = entry("iTransformer", task), itertools.count(), batches[:3]
        model = strategy.build(
            lambda: make(case, seed=next(seeds), length=LENGTH, horizon=HORIZON, channels=CHANNELS)
        )
        context = TrainingContext(  # some strategies train on a few batches beforehand
            task, CHANNELS, ROWS, few, few[:1], 0, lambda *_: itertools.cycle(few)
        )
        return model, strategy.begin(model, context)

    def train_step(model: Backbone, run: StrategyRun, batch: ForecastBatch) -> float:
        model.train()
        model.zero_grad()
        loss = get_task(task).training_loss(model, batch, strategy, run)
        require(loss.isfinite(), "the training loss is not finite")
        loss.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        require(gradients and are_finite(gradients), "gradients are missing or not finite")
        return float(loss.detach())

    model, run = begin()
    for epoch in (1, 2):
        run.begin_epoch(epoch)
        for batch in batches:
            train_step(model, run, batch)
    known = {id(s) for s in run.scalars} <= {id(p) for p in model.parameters()}
    require(known, "a scalar is not among the parameters of the model")
    twin, resumed = begin()
    resumed.begin_epoch(1)
    train_step(twin, resumed, batches[0])  # what waits for a batch is there now
    twin.load_state_dict(model.state_dict())
    resumed.load_state_dict(copy.deepcopy(run.state_dict()))
    losses = []
    for each, its_run in ((model, run), (twin, resumed)):
        its_run.begin_epoch(3)
        torch.manual_seed(1)
        losses.append(train_step(each, its_run, batches[0]))
    require(losses[0] == losses[1], "a resumed run goes on differently")


def check_scorer(scorer: str | ScorerFactory) -> None:
    """Check that a scorer gives one finite, repeatable score a window and can be trained with.

    An AssertionError says in a sentence what does not hold.

    Args:
        scorer: A registered name, or a factory `(channels, config) -> module` from windows
            `[B, L, C]` to scores `[B]`.

    Example:
        >>> from sacm.testing import check_scorer
        >>> check_scorer("spectral")
    """
    factory = scorers.get(scorer) if isinstance(scorer, str) else scorer
    name = scorer if isinstance(scorer, str) else getattr(scorer, "__name__", "scorer")
    with checking(f"scorer {name}"):
        _check_scores(factory)
        # Attached, it gives rates in bounds and finite gradients, under autocast too.
        model, x = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1)), windows(8)
        modulator = attach(model, channels=3, scorer=factory(3, SACMConfig()), example_inputs=x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(x).square().mean().backward()
        require(are_finite([modulator.rates]), "rates must be finite")
        gradients = [p.grad for p in modulator.parameters()]
        require(are_finite(gradients), "a gradient of the modulator is not finite")


@torch.no_grad()
def _check_scores(factory: ScorerFactory) -> None:
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


def _scores(module: nn.Module, x: Tensor) -> Tensor:
    result = module(x)
    scores: Tensor = getattr(result, "scores", result)
    return scores
