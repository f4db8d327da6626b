"""Strategies × seeds on one data set and backbone, in pairs that share everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from sacm.data import resolve
from sacm.data.datasets import AnyData
from sacm.errors import ArgumentError, DataError
from sacm.experiments.gains import format_gain, pair_runs, summarise_gains
from sacm.experiments.results import read_runs
from sacm.files import read_json
from sacm.metrics.catalogue import metric, order_metrics
from sacm.reports.table import (
    Table,
    interval,
    is_undefined,
    mean_and_deviation,
    number,
    probability,
)
from sacm.settings import RunSettings
from sacm.strategies.registry import canonical
from sacm.tasks import get_task, make_settings
from sacm.training.hardware import Hardware
from sacm.training.run import DEFAULT_FOLDER, Run
from sacm.training.trainer import train

OnStart = Callable[[RunSettings, int, int], object]
SIGNIFICANT = 0.05
FEW = 5  # pairs, below which a t-test rests on hardly any spread
LEGEND = (
    "Mean ± sample deviation over seeds. Gain against the first strategy, positive is better; "
    "95 %: t interval of the mean gain over seeds; W/T/L: pairs that got better, stayed equal, got "
    "worse; p: paired t-test."
)
ANOMALY_LEGEND = (
    "PA: point-adjusted, which random scores pass easily; the random row has what they reach. "
    "Compare VUS-PR and affiliation F1."
)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found; the first strategy is what the others are measured by.

    Attributes:
        settings: Those of all runs, without strategy and seed.
        strategies: In the order that was asked for.
        seeds: Likewise.
        frame: One row a run, as `read_runs` gives them.
        folders: The run folders, by strategy and seed.
        environment: Where the first of the runs was made.
    """

    settings: dict[str, Any]
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    frame: pd.DataFrame
    folders: dict[tuple[str, int], Path]
    environment: dict[str, Any]

    @property
    def task(self) -> str:
        """The task of all runs."""
        return str(self.settings["task"])

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the test results, in the order they are shown in."""
        row = Run(next(iter(self.folders.values()))).row
        return [name for name in order_metrics(set(row)) if name in self.frame]

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row a pair and metric."""
        return pair_runs(self.frame, self.metrics, baseline=self.strategies[0])

    @cached_property
    def gains(self) -> pd.DataFrame:
        """One row a metric and strategy."""
        return summarise_gains(self.pairs)

    def values(self, strategy: str, name: str) -> pd.Series:
        """One column of a strategy's runs, as far as it is defined."""
        rows = self.frame[self.frame["strategy"] == strategy]
        return rows[name].dropna() if name in rows else pd.Series(dtype=float)

    def mean(self, strategy: str, name: str, *, digits: int = 4) -> str | None:
        """Mean and deviation of such a column as text; None where it is not defined."""
        values = self.values(strategy, name)
        if values.empty:
            return None
        return mean_and_deviation(values.mean(), values.std(), digits=digits)

    def gain(self, strategy: str, name: str) -> Any | None:
        """The row of `gains` of a strategy and metric; None where no pair has it."""
        table = self.gains
        rows = table[(table["strategy"] == strategy) & (table["metric"] == name)]
        return None if rows.empty else rows.iloc[0]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as values that JSON takes."""
        return {
            "settings": self.settings,
            "strategies": list(self.strategies),
            "seeds": list(self.seeds),
            "runs": Table.from_frame(self.frame).records(),
            "gains": Table.from_frame(self.gains).records(),
            "environment": self.environment,
        }


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

    Args:
        base: The settings; its strategy and seed do not matter.
        strategies: Two or more; the first is the baseline.
        seeds: One or more.
        folder: Where runs are kept.
        hardware: Where to train.
        data: Replaces what `base.data` names.
        on_start: Gets the settings of a run, its number from 1 on, and the number of runs.

    Raises:
        ArgumentError: Too few strategies or seeds, or one is named twice.
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
    for position, settings in enumerate(wanted, 1):
        if on_start is not None:
            on_start(settings, position, len(wanted))
        runs.append(train(settings, folder=folder, hardware=hardware, data=data))
    return compare_runs(runs)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Compare finished runs that differ in strategy and seed only; the first run's comes first.

    Raises:
        ArgumentError: The runs are not pairs.
        DataError: There was nothing to test on.
    """
    if not runs:
        raise ArgumentError("there are no runs to compare.")
    strategies = tuple(dict.fromkeys(run.settings.strategy for run in runs))
    seeds = tuple(dict.fromkeys(run.settings.seed for run in runs))
    folders = {(run.settings.strategy, run.settings.seed): run.folder for run in runs}
    for strategy in strategies:
        for seed in seeds:
            if (strategy, seed) not in folders:
                raise ArgumentError(f"pairs are needed, but {strategy} has no run of seed {seed}.")
    if "test" not in runs[0].metrics:
        raise DataError(f"{runs[0].settings.data} has no test windows to compare on.")
    environment = read_json(runs[0].folder / "environment.json")
    settings = _shared_settings(runs, environment)
    return Comparison(
        settings, strategies, seeds, read_runs(folders.values()), folders, environment
    )


def _distinct(values: list[Any], *, what: str) -> list[Any]:
    repeated = [value for value in values if values.count(value) > 1]
    if repeated:
        raise ArgumentError(f"{what} {repeated[0]} is named twice.")
    return values


def _shared_settings(runs: Sequence[Run], environment: dict[str, Any]) -> dict[str, Any]:
    """The settings all runs have in common; runs that differ elsewhere are not pairs."""
    first = runs[0].settings.model_dump(exclude={"strategy", "seed"})
    for run in runs:
        for name, value in run.settings.model_dump(exclude={"strategy", "seed"}).items():
            if value != first[name]:
                raise ArgumentError(
                    f"{run.folder} has {name} = {value!r} where {runs[0].folder} has "
                    f"{first[name]!r}: these runs are not pairs."
                )
        if read_json(run.folder / "environment.json")["fingerprint"] != environment["fingerprint"]:
            raise ArgumentError(f"{run.folder} saw other data than {runs[0].folder}.")
    return first


def result_table(comparison: Comparison) -> Table:
    """Every metric and strategy, with its gain over the first."""
    rows: list[tuple[Any, ...]] = []
    for name in comparison.metrics:
        label, random = metric(name).label, metric(name).random
        for strategy in comparison.strategies:
            count, mean = len(comparison.values(strategy, name)), comparison.mean(strategy, name)
            gain = comparison.gain(strategy, name)
            cells: tuple[Any, ...] = (None,) * 4
            if gain is not None:
                cells = (
                    format_gain(gain["gain"], name),
                    interval(gain["low"], gain["high"]),
                    f"{gain['wins']}/{gain['ties']}/{gain['losses']}",
                    None if is_undefined(gain["p"]) else probability(gain["p"]),
                )
            rows.append((label, strategy, mean, *cells, count))
            if random is not None and (reached := comparison.mean(strategy, random)):
                rows.append(("", f"random ({strategy})", reached, *(None,) * 4, count))
    headings = ("metric", "strategy", "mean", "gain", "95 %", "W/T/L", "p", "n")
    seeds = ", ".join(map(str, comparison.seeds))
    plural = "s" if len(comparison.seeds) > 1 else ""
    caption = f"Test results over {len(comparison.seeds)} seed{plural}: {seeds}"
    return Table(headings, tuple(rows), caption, words=2)


def cost_table(comparison: Comparison) -> Table:
    """Epochs, seconds, parameters and rates of every strategy."""
    columns = {
        "epochs": "epochs",
        "seconds": "seconds",
        "s / epoch": "seconds_per_epoch",
        "rate mean": "rate_mean",
        "rate spread": "rate_std",
    }
    rows = tuple(
        (
            strategy,
            *(comparison.mean(strategy, name, digits=3) for name in columns.values()),
            f"{int(comparison.values(strategy, 'parameters').iloc[0]):,}",
        )
        for strategy in comparison.strategies
    )
    caption = "Cost of training, and dropout rates of the windows in the last epoch"
    return Table(("strategy", *columns, "parameters"), rows, caption)


def headline(comparison: Comparison) -> list[str]:
    """A sentence for each strategy and leading metric: what changed, and how sure that is."""
    leading = get_task(comparison.settings["task"]).leading_metrics
    return [
        _sentence(comparison, strategy, name)
        for strategy in comparison.strategies[1:]
        for name in leading
        if name in comparison.metrics
    ]


def _sentence(comparison: Comparison, strategy: str, name: str) -> str:
    phrase, base = metric(name).phrase, comparison.strategies[0]
    place = f"{comparison.settings['backbone']} on {comparison.settings['data']}"
    row = comparison.gain(strategy, name)
    if row is None:
        return f"{strategy}: the {phrase} of {place} is undefined for every pair of runs."
    before, after, n = number(float(row["before"])), number(float(row["after"])), int(row["n"])
    gain = format_gain(row["gain"], name) or "undefined"
    ties = f", equal in {row['ties']}" if row["ties"] else ""
    text = f"{strategy}: {phrase} of {place} {before} ({base}) → {after}, gain {gain} "
    text += f"(better in {row['wins']} of {n} seed{'' if n == 1 else 's'}{ties}). {_chance(row, n)}"
    random = metric(name).random
    if random is None:
        return text
    reached = ", ".join(
        f"{number(float(comparison.values(each, random).mean()))} ({each})"
        for each in (base, strategy)
    )
    return f"{text} Random scores that raise as many alarms reach {reached}."


def _chance(row: Any, n: int) -> str:
    if n == 1:
        return "One seed cannot tell a difference from chance."
    if is_undefined(row["p"]):
        return "There is no t-test: all differences are equal."
    test = f"paired t-test, p = {probability(row['p'])}, n = {n}".replace("= <", "< ")
    if row["p"] >= SIGNIFICANT:
        return f"The difference is not significant ({test})."
    verdict = "The difference is significant" if row["gain"] > 0 else "It is significantly worse"
    few = f", but {n} seeds are few to conclude from" if n < FEW else ""
    return f"{verdict} ({test}){few}."
