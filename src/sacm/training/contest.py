"""Candidates for a user's own series: each is fitted in its share of the time, validation decides.

Seasonal naive, exponential smoothing, Theta and linear regression are fitted first, which takes
seconds, once on repaired rows and once on the rows as they came; the better of these two strategies
goes on. Then small networks race: all begin, and the one with the best validation goes on until the
time is over. The run becomes the weighted mean of candidates that validation prefers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from sacm.backbones.base import Backbone
from sacm.backbones.statistical import (
    STATISTICAL,
    LinearForecaster,
    Logarithms,
    LowerLimit,
    MeanForecaster,
    StatisticalForecaster,
)
from sacm.data.batches import WindowBatches, beside_windows
from sacm.data.datasets import ForecastingData
from sacm.files import read_weights, write_csv, write_weights
from sacm.inject.attach import strip_state_dict
from sacm.settings import ResolvedSettings
from sacm.strategies.race import Race, RaceResult, decide
from sacm.strategies.registry import parse
from sacm.tasks import get_task
from sacm.tasks.base import EVALUATION_BATCH, scaler_of, to_device
from sacm.tasks.lengths import find_season
from sacm.training.preparation import cut_windows, prepare_data
from sacm.training.progress import say
from sacm.training.trainer import Training

MEMBERS = "members"  # in the overrides of a run: the candidates that it is the mean of
_SHARE = 0.75  # of the time limit for candidates; the rest is for preparing and testing
_FIRST_ROUND = 0.3  # of the time left for networks, divided among them, before one goes on
_VALIDATION = 256  # windows that decide, at most
_FITTED = 4096  # windows of single channels that linear regression learns from, at most
_PENALTIES = tuple(10.0**power for power in range(-3, 5))  # of linear regression, a share of a row
_STEPS = (25, 100)  # fewest and most optimizer steps between two validations
_LEARNING_RATE = 1e-3  # small networks and short training
_NETWORK_ROWS = 96  # that networks and regression see, or more seasons where there are many rows
_ROUNDS, _TOLERANCE, _LEAST_WEIGHT = 20, 0.2, 0.05  # of the mean: see `choose_weights`
_LEAD, _MANY_HORIZONS = 0.4, 8.0


@dataclass
class Candidate:
    """One way to forecast, and what came of it.

    Attributes:
        name: For people.
        member: What `Forecasting.build` makes it from.
        state: Its weights.
        forecasts: Of the validation windows `[N, H, C]`.
        error: Their mean absolute error in scaled units.
        seconds: What it took.
        steps: Optimizer steps; 0 for what is fitted at once.
    """

    name: str
    member: dict[str, Any]
    state: dict[str, Tensor] = field(default_factory=dict)
    forecasts: Tensor = field(default_factory=lambda: torch.zeros(0))
    error: float = float("inf")
    seconds: float = 0.0
    steps: int = 0

    @property
    def learnt(self) -> bool:
        """Whether it has many fitted weights."""
        return self.member["name"] not in STATISTICAL or "linear" in self.name


def hold_contest(
    folder: Path,
    settings: ResolvedSettings,
    data: ForecastingData,
    fabric: Fabric,
    *,
    show: bool,
) -> RaceResult:
    """Fit all candidates and choose; the run's weights are written.

    Args:
        folder: The folder of the run.
        settings: Complete settings of the run; if the strategy is a race, its members compete too.
        data: The data as they came.
        fabric: The devices.
        show: Whether plan and progress are shown.
    """
    strategy = parse(settings.strategy)
    names = strategy.members if isinstance(strategy, Race) else (settings.strategy,)
    started = time.monotonic()
    with one_thread(fabric):
        sides: list[Contest] = []
        for name in names:
            own = settings.model_copy(update={"strategy": name})
            side = Contest(folder, own, data, fabric, started=started, show=show)
            if not sides:
                side.say_plan(names)
            side.fit_statistical()
            sides.append(side)
        measured = sides[-1].measured()  # by the last member: rows as they came
        errors = {side.settings.strategy: side.best_error(*measured) for side in sides}
        side = min(sides, key=lambda one: errors[one.settings.strategy])
        side.race_networks()
    weights = choose_weights(
        torch.stack([each.forecasts for each in side.candidates]),
        *side.targets(),
        torch.tensor([each.learnt for each in side.candidates]),
        horizons=max(map(len, data.ranges("val"))) / settings.horizon,
    )
    return side.keep(weights, errors)


class Contest:
    """The candidates of one run under one strategy.

    Args:
        folder: The folder of the run; networks have folders of their own inside until it is over.
        settings: Complete settings of the run.
        data: The data as they came.
        fabric: The devices.
        started: When the contest began, by the monotonic clock.
        show: Whether plan and progress are shown.
    """

    def __init__(
        self,
        folder: Path,
        settings: ResolvedSettings,
        data: ForecastingData,
        fabric: Fabric,
        *,
        started: float,
        show: bool,
    ) -> None:
        self.started = started
        self.folder, self.fabric, self.show, self.data = folder, fabric, show, data
        self.task = get_task("forecasting")
        self.season = find_season(data)
        prepared = prepare_data(settings, data)
        self.strategy = prepared.strategy
        windows = cut_windows(self.task, settings, data, prepared.data)
        changes: dict[str, Any] = {
            "validation_stride": -(-len(windows.val) // _VALIDATION),
            "learning_rate": _LEARNING_RATE,
            "time_limit": None,
        }
        self.limit = settings.time_limit
        self.settings = settings.model_copy(update=changes)
        self.windows = cut_windows(self.task, self.settings, data, prepared.data)
        # Repaired once and not at every epoch.
        self.validation = [
            batch._replace(x=self.strategy.inputs(batch.x))
            for batch in WindowBatches(self.windows.val, EVALUATION_BATCH)
        ]
        rows = max(map(len, data.ranges("train")))
        self.rows = _rows_seen(rows, settings.input_len, settings.horizon, self.season)
        shorter = self.settings.model_copy(update={"input_len": self.rows})
        self.learnt = cut_windows(self.task, shorter, data, prepared.data).train
        self.shape = self.task.shape(self.settings, data, scaler_of(self.windows))
        self.candidates: list[Candidate] = []

    @property
    def left(self) -> float:
        """Seconds left for candidates."""
        if self.limit is None:
            return float("inf")
        return _SHARE * self.limit - (time.monotonic() - self.started)

    @cached_property
    def networks(self) -> list[Candidate]:
        """The networks, the large one last."""
        sizes = [("PatchTST", "small"), ("PatchTST", "paper")]
        if self.data.channels > 1:
            sizes.insert(1, ("iTransformer", "small"))
        return [
            Candidate(
                f"{name} ({size})",
                {"name": name, "size": size, "input_len": self.rows, "weight": 1.0},
            )
            for name, size in sizes
        ]

    def say_plan(self, strategies: Sequence[str]) -> None:
        """Say what is going to happen."""
        *small, large = (each.name for each in self.networks)
        limit = "no time limit" if self.limit is None else f"{self.limit:g} s (--time)"
        self._say(
            f"Plan, {limit}: {', '.join([*STATISTICAL, *small])} compete on "
            f"{len(self.windows.val)} validation windows; {large} follows if there is time. "
            f"Strategies: {', '.join(strategies)} (--strategy). Networks learn from "
            f"{len(self.learnt):,} windows, {_STEPS[0]} to {_STEPS[1]} steps between two looks at "
            "validation, on one thread."
        )

    def measured(self) -> tuple[Tensor, Tensor]:
        """What followed the validation windows `[N, H, C]` in units of the data, and its weight."""
        return self._in_units([batch.y for batch in self.validation]), self.targets()[1]

    def best_error(self, truth: Tensor, counts: Tensor) -> float:
        """The least error of a candidate in deviations of the data as they came."""
        unit = torch.from_numpy(scaler_of(self.windows).units)
        if unit.dim() == 2:
            unit = unit[torch.cat([batch.series for batch in self.validation])][:, None]
        sizes = [len(batch.x) for batch in self.validation]
        errors = [
            ((self._in_units(each.forecasts.split(sizes)) - truth).abs() / unit * counts).sum()
            for each in self.candidates
        ]
        return float(torch.stack(errors).min() / counts.sum().clamp_min(1))

    def _in_units(self, parts: Sequence[Tensor]) -> Tensor:
        """Scaled values `[B, H, C]` of every validation batch in units of the data."""
        scaler, found = scaler_of(self.windows), []
        for values, batch in zip(parts, self.validation, strict=True):
            own = scaler if batch.series is None else scaler.of_places(batch.series.numpy())
            found.append(own.inverse(values))
        return torch.cat(found)

    # Candidates without gradient

    def fit_statistical(self) -> None:
        """Fit what needs no gradient."""
        positive = self._logarithms()
        for name in STATISTICAL:
            for log in (False, True):
                if log and (positive is None or name == "seasonal naive"):
                    continue
                started = time.monotonic()
                regression = name == "linear regression"
                rows = self.rows if regression else self.settings.input_len
                member = {"name": name, "log": log, "season": self.season, "input_len": rows}
                candidate = Candidate(
                    name + (", logarithms" if log else ""), {**member, "weight": 1.0}
                )
                model = self._build([candidate.member])
                network = networks_of(model)[0]
                assert isinstance(network, StatisticalForecaster)
                if log and positive is not None:
                    network.use_logarithms(positive)
                if isinstance(network, LinearForecaster):
                    self._fit_regression(network)
                self._judge(candidate, model)
                candidate.seconds = time.monotonic() - started

    def _logarithms(self) -> Logarithms | None:
        """How to take logarithms; None if a value was not positive or series have own scales."""
        scaler = scaler_of(self.windows)
        train = self.data.splits.train
        values = self.data.values[train.start : train.stop]
        lowest = np.nanmin(values, axis=0)
        if scaler.series or not (lowest > 0).all():
            return None
        parts = (scaler.mean, lowest, np.nanmax(values, axis=0))
        return Logarithms(*(torch.from_numpy(part / scaler.std).float() for part in parts))

    def _fit_regression(self, network: LinearForecaster) -> None:
        """Ridge regression of the steps ahead on the window, both around its last value.

        Targets that are not reliable count by their weight.
        """
        windows, most = self.learnt, max(1, _FITTED // self.data.channels)
        chosen = np.unique(np.linspace(0, len(windows) - 1, min(len(windows), most)).astype(int))
        batch = windows.batch(chosen)
        x, y = network.transform(batch.x), network.transform(batch.y)
        last = x[:, -1:]
        spread = x.std(dim=(0, 1), keepdim=True).clamp_min(1e-6)
        inputs = ((x - last) / spread).transpose(1, 2).flatten(0, 1).double()  # [N C, L]
        targets = ((y - last) / spread).transpose(1, 2).flatten(0, 1).double()  # [N C, H]
        weight = None
        if batch.observed is not None:
            weight = batch.observed.transpose(1, 2).flatten(0, 1).double()
        # The last third of the windows chooses the penalty; then all of them count.
        border = self.data.channels * (2 * len(chosen) // 3)
        parts = (inputs, targets, weight)
        first = (inputs[:border], targets[:border], None if weight is None else weight[:border])
        penalty, best = _PENALTIES[-1], float("inf")
        for tried in _PENALTIES if border else ():
            off = (inputs[border:] @ solve_ridge(*first, tried) - targets[border:]).abs()
            error = float(off.mean() if weight is None else (off * weight[border:]).mean())
            if error < best:
                penalty, best = tried, error
        network.weight = solve_ridge(*parts, penalty).T.float().to(network.weight.device)

    # Networks

    def race_networks(self) -> None:
        """Let small networks begin, the best go on, and a large one follow if there is time."""
        *small, large = self.networks
        trainings: dict[str, Training] = {}
        share = _FIRST_ROUND * self.left / len(small)
        for candidate in small:
            if self.left > 1:
                self._train(candidate, trainings, share if len(small) > 1 else self.left)
        if len(trainings) > 1:
            winner = decide(
                {name: own.progress.validation for name, own in trainings.items()},
                {name: own.progress.seconds for name, own in trainings.items()},
                select="mae",
            ).winner
            chosen = next(each for each in small if each.name == winner)
            if self.left > 1:
                self._train(chosen, trainings, self.left)
        if self.left > self.limit_of_large():
            self._train(large, trainings, self.left)
        for candidate in self.networks:
            if candidate.name in trainings:
                self._take(candidate, trainings[candidate.name])

    def limit_of_large(self) -> float:
        """Seconds that must be left for a network of the paper's size to be worth its beginning."""
        return 0.25 * (self.limit or 0.0)

    def _train(self, candidate: Candidate, trainings: dict[str, Training], seconds: float) -> None:
        """Train a network for some time, or on from where it was."""
        started = time.monotonic()
        training = trainings.get(candidate.name)
        if training is None:
            own = self.settings.model_copy(update={"overrides": {MEMBERS: [candidate.member]}})
            folder = self.folder / "race" / candidate.name.replace(" ", "-")
            training = Training(folder, own, self.data, self.fabric, show=self.show)
            training.title, training.logs, training.steps = candidate.name, False, _STEPS
            training.val_batches = self.validation
            training.val_strategy = parse("raw")  # they are repaired already
            trainings[candidate.name] = training
        training.deadline = None if seconds == float("inf") else started + seconds
        training.train_until(self.settings.epochs)
        candidate.seconds += time.monotonic() - started

    def _take(self, candidate: Candidate, training: Training) -> None:
        """The weights of a network's best epoch, judged like the others."""
        model = self._build([candidate.member])
        model.load_state_dict(strip_state_dict(read_weights(training.folder / "best.safetensors")))
        candidate.steps = training.progress.steps
        self._judge(candidate, model)

    # What is common to all

    def _build(self, members: Sequence[dict[str, Any]]) -> Backbone:
        """The mean of candidates, freshly built."""
        settings = self.settings.model_copy(update={"overrides": {MEMBERS: list(members)}})
        return self.task.build(settings, self.shape).to(self.fabric.device).eval()

    def _judge(self, candidate: Candidate, model: Backbone) -> None:
        """Measure a candidate on validation windows, and say so."""
        candidate.state = networks_of(model)[0].state_dict()
        candidate.forecasts = self._forecast(model)
        candidate.error = self._error(candidate.forecasts)
        if not np.isfinite(candidate.error):
            return
        self.candidates.append(candidate)
        left = "" if self.limit is None else f", {max(0.0, self.left):.0f} s left"
        strategy = self.settings.strategy
        self._say(f"{candidate.name}, {strategy}: validation MAE {candidate.error:.4g}{left}")

    @torch.inference_mode()
    def _forecast(self, model: Backbone) -> Tensor:
        """Forecasts of the validation windows `[N, H, C]`."""
        device = self.fabric.device
        parts = []
        for given in self.validation:
            batch = to_device(given, device)
            parts.append(model(batch.x, *beside_windows(batch)).float().cpu())
        return torch.cat(parts)

    def targets(self) -> tuple[Tensor, Tensor]:
        """Targets `[N, H, C]` of the validation windows, and how much each counts."""
        truth = torch.cat([batch.y for batch in self.validation])
        seen = [batch.observed for batch in self.validation]
        if seen[0] is None:
            return truth, torch.ones_like(truth)
        return truth, torch.cat(seen).float()

    def _error(self, forecasts: Tensor) -> float:
        truth, weight = self.targets()
        return float(((forecasts - truth).abs() * weight).sum() / weight.sum().clamp_min(1))

    def keep(self, weights: Tensor, strategies: dict[str, float]) -> RaceResult:
        """Write the mean, and what was found."""
        pairs = list(zip(self.candidates, weights.tolist(), strict=True))
        members = [{**each.member, "weight": weight} for each, weight in pairs if weight > 0]
        model, chosen = self._build(members), [each for each, weight in pairs if weight > 0]
        for network, candidate in zip(networks_of(model), chosen, strict=True):
            network.load_state_dict(candidate.state)
        error = self._error(self._forecast(model))
        order = sorted(pairs, key=lambda pair: pair[0].error)
        table = [
            {
                "candidate": each.name,
                "validation_mae": each.error,
                "weight": round(weight, 4),
                "steps": each.steps,
                "seconds": round(each.seconds, 2),
            }
            for each, weight in order
        ]
        parts = ", ".join(f"{weight:.0%} {each.name}" for each, weight in order if weight > 0)
        sentence = f"The run is {parts}: validation MAE {error:.4g}, z-scored."
        winner = self.settings.strategy
        others = {name: value for name, value in strategies.items() if name != winner}
        margin = 0.0
        if others:
            margin = 1 - strategies[winner] / max(min(others.values()), 1e-12)
            said = ", ".join(f"{name} {value:.4g}" for name, value in others.items())
            sentence += f" Strategy {winner}: {strategies[winner]:.4g} against {said}."
        result = RaceResult(
            winner=winner,
            scores=strategies,
            margin=margin,
            extra_seconds=round(time.monotonic() - self.started, 3),
            sentence=sentence,
            members=members,
            table=table,
            error=error,
        )
        write_weights(self.folder / "best.safetensors", model.state_dict())
        history = [
            {"epoch": number, "val_mae": row["validation_mae"], "train_seconds": row["seconds"]}
            for number, row in enumerate(table, 1)
        ]
        write_csv(self.folder / "history.csv", history)
        result.save(self.folder)  # last: from here on the contest is over
        return result

    def _say(self, text: str) -> None:
        say(text, show=self.show and self.fabric.is_global_zero)


def networks_of(model: Backbone) -> nn.ModuleList:
    """The networks that a mean is made of, with or without a lower limit around it."""
    mean = model.network if isinstance(model, LowerLimit) else model
    assert isinstance(mean, MeanForecaster)
    return mean.networks


def solve_ridge(inputs: Tensor, targets: Tensor, weight: Tensor | None, penalty: float) -> Tensor:
    """Coefficients `[L, H]` of ridge regression.

    Args:
        inputs: Rows `[N, L]`.
        targets: What follows them `[N, H]`.
        weight: How much each target counts, in [0, 1]; the rest of it is what the regression itself
            says, in a few rounds. None if all count.
        penalty: As a share of the mean square of an input of size 1.
    """
    size = inputs.shape[1]
    gram = inputs.T @ inputs + penalty * len(inputs) / size * torch.eye(size, dtype=inputs.dtype)
    factor = torch.linalg.cholesky(gram + 1e-9 * len(inputs) * torch.eye(size, dtype=inputs.dtype))
    coefficients = torch.cholesky_solve(inputs.T @ targets, factor)
    for _ in range(0 if weight is None else 3):
        assert weight is not None
        known = weight * targets + (1 - weight) * (inputs @ coefficients)
        coefficients = torch.cholesky_solve(inputs.T @ known, factor)
    return coefficients


def choose_weights(
    forecasts: Tensor, truth: Tensor, counts: Tensor, learnt: Tensor, *, horizons: float
) -> Tensor:
    """Weights of candidates for their mean.

    One part follows the error of each candidate alone, the other is a greedy search: again and
    again the candidate is added that makes the mean best. Few validation rows say little: then the
    first part is flatter and the second smaller, and candidates that were fitted with many weights
    need a lead. Weights below a twentieth are dropped.

    Args:
        forecasts: Of each candidate `[K, N, H, C]`.
        truth: What followed `[N, H, C]`.
        counts: How much each target counts `[N, H, C]`.
        learnt: True for candidates with many fitted weights `[K]`.
        horizons: Validation rows, in horizons.

    Returns:
        Weights `[K]` that add up to 1.

    Example:
        >>> truth = torch.zeros(4, 2, 1)
        >>> both, none = torch.stack([truth + 1, truth - 1]), torch.tensor([False, False])
        >>> choose_weights(both, truth, torch.ones_like(truth), none, horizons=2).tolist()
        [0.5, 0.5]
    """

    def error(mean: Tensor) -> Tensor:
        return ((mean - truth).abs() * counts).sum(dim=(-3, -2, -1)) / counts.sum().clamp_min(1)

    alone = error(forecasts) * (1 + _LEAD * learnt / horizons**0.5)  # [K]
    flatness = _TOLERANCE * max(1.0, _MANY_HORIZONS / horizons) ** 0.5
    soft = torch.softmax(-(alone / alone.min().clamp_min(1e-12)) / flatness, dim=0)
    chosen = torch.zeros(len(forecasts))
    total = torch.zeros_like(truth)
    for count in range(1, _ROUNDS + 1):
        best = int(error((total + forecasts) / count).argmin())
        total = total + forecasts[best]
        chosen[best] += 1
    share = 0.5 * min(1.0, horizons / _MANY_HORIZONS)
    weights = (1 - share) * soft + share * chosen / _ROUNDS
    weights = torch.where(weights < _LEAST_WEIGHT, 0, weights)
    return weights / weights.sum()


@contextmanager
def one_thread(fabric: Fabric) -> Iterator[None]:
    """A single thread on a CPU: small networks are slower with more."""
    before = torch.get_num_threads()
    if fabric.device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _rows_seen(train: int, input_len: int, horizon: int, season: int) -> int:
    """Rows that networks and regression see: a week of hours, two seasons, fewer of short series.

    They learn from many windows, so that theirs must be short where training rows are few.
    """
    wanted = max(2 * season, _NETWORK_ROWS, min(7 * season, input_len) if season >= 24 else 0)
    room = max((train - horizon) // 3, min(2 * season, train - horizon - 8))
    return max(1, min(wanted, room, input_len))
