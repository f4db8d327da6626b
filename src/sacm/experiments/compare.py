"""Strategies × seeds on one data set and backbone, in pairs that share everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sacm.data.datasets import AnyData
from sacm.data.load import resolve
from sacm.errors import ArgumentError, DataError, SACMError
from sacm.experiments.statistics import PairedComparison, Summary, compare_pairs, mean_and_deviation
from sacm.files import read_json
from sacm.metrics.catalogue import metric, order_metrics
from sacm.metrics.intervals import Record
from sacm.settings import RunSettings
from sacm.strategies.registry import canonical
from sacm.tasks import make_settings
from sacm.training.hardware import Hardware
from sacm.training.run import DEFAULT_FOLDER, Run
from sacm.training.trainer import train
from sacm_lab.paper.published import PaperRow, differences, paper_row

OnStart = Callable[[RunSettings, int, int], object]


@dataclass(frozen=True)
class RunResult(Record):
    """One strategy with one seed.

    `rate_mean` and `rate_spread` (population deviation) are over the windows of the last epoch;
    None where windows have no rates of their own.
    """

    strategy: str
    seed: int
    folder: str
    row: dict[str, float | None]
    evaluated_windows: int
    parameters: int
    epochs: int
    best_epoch: int
    seconds: float
    rate_mean: float | None
    rate_spread: float | None


@dataclass(frozen=True)
class StrategySummary(Record):
    """One strategy over n seeds; `metrics` holds what is defined for at least one of them."""

    n: int
    strategy: str
    metrics: dict[str, Summary]
    epochs: Summary
    seconds: Summary
    seconds_per_epoch: Summary
    rate_mean: Summary | None
    rate_spread: Summary | None


@dataclass(frozen=True)
class MetricPair(Record):
    """A strategy against the first one in one metric, over the n seeds where both have it."""

    n: int
    strategy: str
    metric: str
    result: PairedComparison | None
    reason: str | None = None


@dataclass(frozen=True)
class Comparison(Record):
    """Everything a comparison found; the first strategy is what the others are measured by.

    `settings` are those of all runs, without strategy and seed. `paper` is the published row of the
    same setting, `paper_differences` how these runs depart from it.
    """

    settings: dict[str, Any]
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    fingerprint: str
    runs: tuple[RunResult, ...]
    summaries: tuple[StrategySummary, ...]
    pairs: tuple[MetricPair, ...]
    paper: PaperRow | None
    paper_differences: tuple[str, ...]
    environment: dict[str, Any]

    @property
    def task(self) -> str:
        """The task of all runs."""
        return str(self.settings["task"])

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics, in the order they are shown in."""
        return order_metrics({name for run in self.runs for name in run.row})

    def summary(self, strategy: str) -> StrategySummary:
        """One strategy over the seeds."""
        return next(each for each in self.summaries if each.strategy == strategy)

    def pair(self, strategy: str, name: str) -> MetricPair:
        """One strategy against the first in one metric."""
        return next(p for p in self.pairs if (p.strategy, p.metric) == (strategy, name))

    def run(self, strategy: str, seed: int) -> RunResult:
        """One run."""
        return next(r for r in self.runs if (r.strategy, r.seed) == (strategy, seed))

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Comparison:
        """What `to_dict` wrote."""
        try:
            return TypeAdapter(cls).validate_python(record)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise DataError(f"not a comparison: {place}: {first['msg'].lower()}.") from None


def compare(
    base: RunSettings,
    strategies: Sequence[str],
    seeds: Sequence[int],
    *,
    folder: str | Path = DEFAULT_FOLDER,
    hardware: Hardware | None = None,
    data: AnyData | None = None,
    on_start: OnStart | None = None,
) -> Comparison:
    """Train every strategy with every seed (finished runs are reused) and compare in pairs.

    Strategy and seed of `base` do not matter; `data` replaces what `base.data` names. `on_start`
    gets the settings of a run, its number from 1 on, and the number of runs.
    """
    names = _distinct([canonical(name) for name in strategies], what="strategy")
    numbers = _distinct(list(seeds), what="seed")
    if len(names) < 2:
        raise ArgumentError("a comparison needs at least two strategies, such as raw and sacm.")
    if not numbers:
        raise ArgumentError("a comparison needs at least one seed.")
    wanted = [
        make_settings(**{**base.model_dump(), "strategy": name, "seed": seed})
        for seed in numbers
        for name in names
    ]
    if data is None:
        data = resolve(base.data, task=base.task, reading=base.reading())
    runs = []
    for number, settings in enumerate(wanted, 1):
        if on_start is not None:
            on_start(settings, number, len(wanted))
        runs.append(train(settings, folder=folder, hardware=hardware, data=data))
    return compare_runs(runs)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Compare finished runs that differ in strategy and seed only; the first run's comes first."""
    strategies = tuple(dict.fromkeys(run.settings.strategy for run in runs))
    seeds = tuple(dict.fromkeys(run.settings.seed for run in runs))
    environments = [read_json(run.folder / "environment.json") for run in runs]
    settings = _shared_settings(runs, environments)
    by_key = {(run.settings.strategy, run.settings.seed): _result(run) for run in runs}
    for key in ((strategy, seed) for strategy in strategies for seed in seeds):
        if key not in by_key:
            raise ArgumentError(f"pairs are needed, but {key[0]} has no run with seed {key[1]}.")
    results = [by_key[strategy, seed] for strategy in strategies for seed in seeds]
    groups = [[r for r in results if r.strategy == strategy] for strategy in strategies]
    names = order_metrics({name for result in results for name in result.row})
    paper = _paper(settings, strategies)
    return Comparison(
        settings=settings,
        strategies=strategies,
        seeds=seeds,
        fingerprint=environments[0]["fingerprint"],
        runs=tuple(results),
        summaries=tuple(_summary(group) for group in groups),
        pairs=tuple(_pair(groups[0], group, name) for group in groups[1:] for name in names),
        paper=paper,
        paper_differences=() if paper is None else differences(settings, seeds),
        environment=environments[0],
    )


def _distinct(values: list[Any], *, what: str) -> list[Any]:
    repeated = [value for value in values if values.count(value) > 1]
    if repeated:
        raise ArgumentError(f"{what} {repeated[0]} is named twice.")
    return values


def _shared_settings(runs: Sequence[Run], environments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The settings all runs have in common; runs that differ elsewhere are not pairs."""
    if not runs:
        raise ArgumentError("there are no runs to compare.")
    everything = [run.settings.model_dump(exclude={"strategy", "seed"}) for run in runs]
    for run, one, environment in zip(runs, everything, environments, strict=True):
        for name, value in one.items():
            if value != everything[0][name]:
                raise ArgumentError(
                    f"{run.folder} has {name} = {value!r} where {runs[0].folder} has "
                    f"{everything[0][name]!r}: these runs are not pairs."
                )
        if environment["fingerprint"] != environments[0]["fingerprint"]:
            raise ArgumentError(f"{run.folder} saw other data than {runs[0].folder}.")
    return everything[0]


def _result(run: Run) -> RunResult:
    metrics = run.metrics
    if "test" not in metrics:
        raise DataError(f"{run.settings.data} has no test windows to compare on.")
    if not run.history:
        raise SACMError(f"{run.folder / 'history.csv'} is empty: delete the folder and run again.")
    last = run.history[-1]
    return RunResult(
        strategy=run.settings.strategy,
        seed=run.settings.seed,
        folder=str(run.folder),
        row=run.row,
        evaluated_windows=metrics["evaluated_windows"],
        parameters=metrics["parameters"],
        epochs=metrics["epochs"],
        best_epoch=metrics["best_epoch"],
        seconds=metrics["train_seconds"],
        rate_mean=float(last["rate_mean"]) if "rate_mean" in last else None,
        rate_spread=float(last["rate_std"]) if "rate_std" in last else None,
    )


def _summary(group: list[RunResult]) -> StrategySummary:
    names = dict.fromkeys(name for result in group for name in result.row)
    columns = {name: _defined(result.row.get(name) for result in group) for name in names}
    rate_means = _defined(result.rate_mean for result in group)
    rate_spreads = _defined(result.rate_spread for result in group)
    return StrategySummary(
        n=len(group),
        strategy=group[0].strategy,
        metrics={name: mean_and_deviation(values) for name, values in columns.items() if values},
        epochs=mean_and_deviation([result.epochs for result in group]),
        seconds=mean_and_deviation([result.seconds for result in group]),
        seconds_per_epoch=mean_and_deviation([result.seconds / result.epochs for result in group]),
        rate_mean=mean_and_deviation(rate_means) if rate_means else None,
        rate_spread=mean_and_deviation(rate_spreads) if rate_spreads else None,
    )


def _defined(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _pair(first: list[RunResult], other: list[RunResult], name: str) -> MetricPair:
    values = [(a.row.get(name), b.row.get(name)) for a, b in zip(first, other, strict=True)]
    both = [(a, b) for a, b in values if a is not None and b is not None]
    strategy = other[0].strategy
    if not both:
        return MetricPair(0, strategy, name, None, "undefined for every pair of runs")
    result = compare_pairs(
        [a for a, _ in both],
        [b for _, b in both],
        higher_is_better=metric(name).higher_is_better,
    )
    missing = len(values) - len(both)
    reason = f"undefined for {missing} of {len(values)} pairs" if missing else None
    return MetricPair(len(both), strategy, name, result, reason)


def _paper(settings: dict[str, Any], strategies: tuple[str, ...]) -> PaperRow | None:
    if settings["task"] != "forecasting" or not {"raw", "sacm"} <= set(strategies):
        return None
    row = paper_row(settings["data"], settings["backbone"], settings["horizon"])
    return row if row is not None and row.input_len == settings["input_len"] else None
