"""Candidates for a user's own series: each is fitted in its share of the time, validation decides.

Seasonal naive, exponential smoothing, Theta and linear regression are fitted first, which takes
seconds, once on repaired rows and once on the rows as they came; the better of these two strategies
goes on. Where there are many training windows, small networks race: all begin, and the one with the
best validation goes on until the time is over. The run becomes the mean of the candidates, weighted
by their validation errors.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from sacm.backbones.adapters import LowerLimit
from sacm.backbones.base import Backbone
from sacm.backbones.statistical import (
    STATISTICAL,
    LinearForecaster,
    MeanForecaster,
    SmoothingForecaster,
)
from sacm.data.batches import ForecastBatch, ForecastWindows, WindowBatches, beside_windows
from sacm.data.datasets import ForecastingData
from sacm.files import read_weights, write_csv, write_weights
from sacm.inject.attach import strip_state_dict
from sacm.settings import ResolvedSettings
from sacm.strategies.race import Race, RaceResult
from sacm.strategies.registry import parse
from sacm.tasks import get_task
from sacm.tasks.base import EVALUATION_BATCH, to_device
from sacm.tasks.lengths import find_season
from sacm.training.preparation import cut_windows, prepare_data
from sacm.training.progress import say
from sacm.training.trainer import Training

_SHARE = 0.6  # of the time limit for candidates; the rest is for preparing and testing
_TEST_SHARE = 0.7  # of the time left after the contest, in which all test windows are answered
_FIRST_ROUND = 0.3  # of the time left for networks, divided among them, before one goes on
_LEAD = 0.98  # of the error on rows as they came, which another strategy must reach
_LARGE = 0.25  # of the time limit must be left for a network of the paper's size to begin
_VALIDATION = 256  # windows that decide, at most
_CHANNEL_WINDOWS = 4096  # windows of single channels that decide or are learnt from, at most
_FORMS_FROM = 64  # windows that choose the forms of smoothing, at most
_ENOUGH = 1000  # training windows from which networks take part
_NETWORKS = (("PatchTST", "small"), ("iTransformer", "small"), ("PatchTST", "paper"))  # large: last
_STEPS = (25, 100)  # fewest and most optimizer steps between two validations
_LEARNING_RATE = 1e-3  # small networks and short training
_POWER = 6.0  # of a candidate's validation error, by which its weight falls; few rows decide badly:
_FEW = 6.0  # horizons in the validation rows that halve the power
_FAVOURED, _FAVOUR = "exponential smoothing", 20.0  # times 1 + this over the horizons
_BASELINE, _BASELINE_SHARE = "seasonal naive", 0.25  # of its weight: smoothing can do the same
_LEAST_WEIGHT = 0.05  # candidates with less are left out


@dataclass
class Candidate:
    """What `Forecasting.build` makes a member of a mean from, and what came of it."""

    name: str
    member: dict[str, Any]
    state: dict[str, Tensor] = field(default_factory=dict)
    error: float = math.inf  # mean absolute validation error, in deviations of the given data
    weight: float = 1.0  # in the mean
    seconds: float = 0.0
    answering: float = 0.0  # of these, the seconds for answers to the validation windows
    steps: int = 0


def hold_contest(
    folder: Path, settings: ResolvedSettings, data: ForecastingData, fabric: Fabric, *, show: bool
) -> RaceResult:
    """Fit all candidates, choose, and write the weights of the run.

    If the strategy is a race, its members compete too. `data` are as they came.
    """
    strategy = parse(settings.strategy)
    names = strategy.members if isinstance(strategy, Race) else (settings.strategy,)
    sides, threads = list[Contest](), torch.get_num_threads()
    if fabric.device.type == "cpu":
        torch.set_num_threads(1)  # small networks are slower with more
    try:
        for name in reversed(names):  # the last member sees the rows as they came: it has the truth
            changed = settings.model_copy(update={"strategy": name})
            side = Contest(folder, changed, data, fabric, show, first=(*sides, None)[0])
            if not sides:
                side.say_plan(names)
            side.fit_statistical()
            sides.append(side)
        errors = [min(each.error for each in side.candidates) for side in sides]
        # Rows are changed only where that clearly helps: real growth may look broken later on.
        best = errors.index(min(errors))
        side = sides[best if errors[best] <= _LEAD * errors[0] else 0]
        side.race_networks()
    finally:
        torch.set_num_threads(threads)
    return side.keep(dict(zip(names, reversed(errors), strict=True)))


@dataclass(eq=False)
class Contest:
    """The candidates of one run under one strategy.

    Networks have folders of their own inside that of the run until the contest is over.
    """

    folder: Path
    settings: ResolvedSettings
    data: ForecastingData
    fabric: Fabric
    show: bool
    first: Contest | None  # of the strategy that began before: it has the true values

    def __post_init__(self) -> None:
        settings, data, first = self.settings, self.data, self.first
        self.started: float = first.started if first else time.monotonic()
        self.say = partial(say, show=self.show)
        self.task = get_task("forecasting")
        self.season = find_season(data)
        prepared = prepare_data(settings, data)
        self.strategy = prepared.strategy
        windows = cut_windows(self.task, settings, data, prepared.data)
        most = max(1, min(_VALIDATION, _CHANNEL_WINDOWS // data.channels))
        stride = -(-len(windows.val) // most)
        changes = {"validation_stride": stride, "learning_rate": _LEARNING_RATE, "time_limit": None}
        self.limit = settings.time_limit or math.inf
        self.settings = settings.model_copy(update=changes)
        self.windows = cut_windows(self.task, self.settings, data, prepared.data)
        # Repaired once and not at every epoch.
        self.validation = [
            batch._replace(x=self.strategy.inputs(batch.x))
            for batch in WindowBatches(self.windows.val, EVALUATION_BATCH)
        ]
        self.learnt: ForecastWindows = self.windows.train
        self.rows = self.learnt.input_len
        self.shape = self.task.shape(self.settings, data, self.windows.scaler)
        # What followed the validation windows, and how much each value counts, `[N, H, C]` both.
        targets = [batch.y for batch in self.validation]
        self.truth: Tensor = first.truth if first else self._in_deviations(targets)
        self.counts: Tensor = first.counts if first else torch.cat([*map(_counts, self.validation)])
        self.candidates: list[Candidate] = []
        self.networks = [
            Candidate(f"{name} ({size})", {"name": name, "size": size, "input_len": self.rows})
            for name, size in _NETWORKS
            # With a single channel iTransformer has nothing to mix.
            if len(self.learnt) >= _ENOUGH and (name != "iTransformer" or data.channels > 1)
        ]

    @property
    def left(self) -> float:
        """Seconds left for candidates."""
        return _SHARE * self.limit - (time.monotonic() - self.started)

    def say_plan(self, strategies: Sequence[str]) -> None:
        """Say what is going to happen."""
        limit = f"{self.limit:g} s (--time)" if math.isfinite(self.limit) else "no time limit"
        names = [*STATISTICAL, *(network.name for network in self.networks[:-1])]
        large = f"{self.networks[-1].name} follows if there is time" if self.networks else ""
        few = f"there are too few training windows for networks ({len(self.learnt):,})"
        self.say(
            f"Plan, {limit}: {', '.join(names)} compete on {len(self.windows.val)} validation "
            f"windows; strategies {', '.join(strategies)} (--strategy); {large or few}."
        )

    def fit_statistical(self) -> None:
        """Fit what needs no gradient."""
        scaler, train = self.windows.scaler, self.data.splits.train
        zero = torch.full((self.data.channels,), torch.inf)  # scaled; infinite: not positive
        if not scaler.series:  # else each has a scale of its own, and they have no common zero
            lowest = np.nanmin(self.data.values[train.start : train.stop], axis=0)
            zero[lowest > 0] = torch.from_numpy(-scaler.mean / scaler.std).float()[lowest > 0]
        season = self.season if self.windows.val.input_len >= 2 * self.season + 2 else 1
        for name in STATISTICAL:
            started = time.monotonic()
            rows = self.rows if name == "linear regression" else self.settings.input_len
            candidate = Candidate(name, {"name": name, "season": season, "input_len": rows})
            model = self._build([candidate])
            network = networks_of(model)[0]
            network.zero = zero.to(self.fabric.device)
            if isinstance(network, LinearForecaster):
                count = min(len(self.learnt), max(1, _CHANNEL_WINDOWS // self.data.channels))
                places = np.unique(np.linspace(0, len(self.learnt) - 1, count).astype(int))
                batch = to_device(self.learnt.batch(places), self.fabric.device)
                network.fit(batch.x, batch.y, _counts(batch))
            elif isinstance(network, SmoothingForecaster):
                count = min(len(self.data.last_rows(1)), _FORMS_FROM)  # one for each series
                places = np.linspace(len(self.windows.val) - 1, 0, count).astype(int)
                last = to_device(self.windows.val.batch(places), self.fabric.device)
                network.fit(self.strategy.inputs(last.x))
            self._judge(candidate, model)
            candidate.seconds = time.monotonic() - started

    def race_networks(self) -> None:
        """Let small networks begin, the best go on, and a large one follow if there is time."""
        if not self.networks:
            return
        *small, large = self.networks
        trainings: dict[str, Training] = {}
        share = _FIRST_ROUND * self.left / len(small) if len(small) > 1 else self.left
        for candidate in small:
            if self.left > 1:
                self._train(candidate, trainings, share)
        if len(trainings) > 1 and self.left > 1:
            chosen = min(small, key=lambda each: min(trainings[each.name].progress.validation))
            self._train(chosen, trainings, self.left)
        if self.left >= _LARGE * self.limit:
            self._train(large, trainings, self.left)
        for candidate in self.networks:
            if training := trainings.get(candidate.name):
                best = read_weights(training.folder / "best.safetensors")
                model = self._build([candidate])
                model.load_state_dict(strip_state_dict(best))
                candidate.steps = training.progress.steps
                self._judge(candidate, model)

    def _train(self, candidate: Candidate, trainings: dict[str, Training], seconds: float) -> None:
        """Train a network for some seconds, or continue its training."""
        started = time.monotonic()
        training = trainings.get(candidate.name)
        if training is None:
            alone = self._with([candidate])
            folder = self.folder / "race" / candidate.name.replace(" ", "-")
            training = Training(folder, alone, self.data, self.fabric, show=self.show)
            training.title, training.steps = candidate.name, _STEPS
            trainings[candidate.name] = training
        training.deadline = started + seconds
        training.train_until(self.settings.epochs)
        candidate.seconds += time.monotonic() - started

    def _with(self, candidates: Sequence[Candidate]) -> ResolvedSettings:
        """The settings of a mean of candidates."""
        members = [{**each.member, "weight": each.weight} for each in candidates]
        return self.settings.model_copy(update={"overrides": {"members": members}})

    def _build(self, candidates: Sequence[Candidate]) -> Backbone:
        """The mean of candidates, freshly built."""
        return self.task.build(self._with(candidates), self.shape).to(self.fabric.device).eval()

    def _judge(self, candidate: Candidate, model: Backbone) -> None:
        """Measure a candidate on validation windows, and say so."""
        candidate.state = networks_of(model)[0].state_dict()
        started = time.monotonic()
        candidate.error = self._error(model)
        candidate.answering = time.monotonic() - started
        if np.isfinite(candidate.error):
            self.candidates.append(candidate)
            left = f", {max(0.0, self.left):.0f} s left" if math.isfinite(self.limit) else ""
            name = f"{candidate.name}, {self.settings.strategy}"
            self.say(f"{name}: validation MAE {candidate.error:.4g}{left}")

    @torch.inference_mode()
    def _error(self, model: Backbone) -> float:
        """The mean absolute error on validation windows."""
        forecasts = []
        for batch in self.validation:
            moved = to_device(batch, self.fabric.device)
            forecasts.append(model(moved.x, *beside_windows(moved)).float().cpu())
        off = (self._in_deviations(forecasts) - self.truth).abs() * self.counts
        return float(off.sum() / self.counts.sum().clamp_min(1))

    def _in_deviations(self, parts: Sequence[Tensor]) -> Tensor:
        """Scaled values `[B, H, C]` of every validation batch in deviations of the data."""
        scaler, values = self.windows.scaler, []
        units = torch.from_numpy(scaler.units)
        for part, batch in zip(parts, self.validation, strict=True):
            unit = units if batch.series is None else units[batch.series][:, None]
            values.append(scaler.of_places(batch.series).inverse(part) / unit)
        return torch.cat(values)

    def _in_time(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates without the slowest ones, which could not answer all test windows in time."""
        kept = list(candidates)
        seconds = _TEST_SHARE * (self.limit - (time.monotonic() - self.started))
        windows = len(self.windows.test) / max(len(self.windows.val), 1)
        while len(kept) > 1 and windows * sum(each.answering for each in kept) > seconds:
            kept.remove(max(kept, key=lambda each: each.answering))
        return kept

    def keep(self, strategies: dict[str, float]) -> RaceResult:
        """Write the mean, and what came of the contest; `strategies` are the errors of each."""
        order = sorted(self.candidates, key=lambda candidate: candidate.error)
        in_time = self._in_time(order)
        errors = {candidate.name: candidate.error for candidate in in_time}
        rows = self.data.splits.val
        measured = np.isfinite(self.data.values[rows.start : rows.stop]).sum()
        weights = choose_weights(errors, float(measured / self.settings.horizon))
        for candidate in order:
            candidate.weight = weights.get(candidate.name, 0.0)
        chosen = [candidate for candidate in order if candidate.weight > 0]
        model = self._build(chosen)
        for network, candidate in zip(networks_of(model), chosen, strict=True):
            network.load_state_dict(candidate.state)
        error = self._error(model)
        table = [
            {
                "candidate": each.name,
                "validation_mae": each.error,
                "weight": round(each.weight, 4),
                "steps": each.steps,
                "seconds": round(each.seconds, 2),
            }
            for each in order
        ]
        parts = ", ".join(f"{each.weight:.0%} {each.name}" for each in chosen)
        sentence = f"The run is {parts}: validation MAE {error:.4g}, z-scored."
        if slow := [each.name for each in order if each not in in_time]:
            sentence += f" Too slow for {len(self.windows.test):,} test windows: {', '.join(slow)}."
        winner, margin = self.settings.strategy, 0.0
        others = {name: value for name, value in strategies.items() if name != winner}
        if others:
            said = ", ".join(f"{name} {value:.4g}" for name, value in others.items())
            sentence += f" Strategy {winner}: {strategies[winner]:.4g} against {said}."
            margin = 1 - strategies[winner] / max(min(others.values()), 1e-12)
        result = RaceResult(
            winner,
            strategies,
            margin,
            extra_seconds=round(time.monotonic() - self.started, 3),
            sentence=sentence,
            members=self._with(chosen).overrides["members"],
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


def _counts(batch: ForecastBatch) -> Tensor:
    """How much each target counts `[B, H, C]`."""
    return torch.ones_like(batch.y) if batch.observed is None else batch.observed.to(batch.y)


def networks_of(model: Backbone) -> nn.ModuleList:
    """The networks that a mean is made of, with or without a lower limit around it."""
    mean = model.network if isinstance(model, LowerLimit) else model
    assert isinstance(mean, MeanForecaster)
    return mean.networks


def choose_weights(errors: Mapping[str, float], horizons: float) -> dict[str, float]:
    """Weights of candidates for their mean, by their validation errors.

    They fall by a high power of the error, so that a candidate that is twice as bad is left out.
    Where the validation rows hold few `horizons`, the power is lower and smoothing counts more.
    Weights below a twentieth are 0.

    Example:
        >>> errors = {"Theta": 1.0, "linear regression": 1.0, "PatchTST (small)": 2.0}
        >>> choose_weights(errors, 10)
        {'Theta': 0.5, 'linear regression': 0.5, 'PatchTST (small)': 0.0}
    """
    best, horizons = max(min(errors.values()), 1e-12), max(horizons, 1.0)
    factors = {_FAVOURED: 1 + _FAVOUR / horizons, _BASELINE: _BASELINE_SHARE}
    power = _POWER * horizons / (horizons + _FEW)
    weights = {
        name: factors.get(name, 1.0) * (best / max(error, 1e-12)) ** power
        for name, error in errors.items()
    }
    least = _LEAST_WEIGHT * sum(weights.values())
    weights = {name: weight if weight >= least else 0.0 for name, weight in weights.items()}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}
