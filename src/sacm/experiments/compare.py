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
from sacm.experiments.gains import pair_runs, summarise_gains
from sacm.experiments.results import read_runs
from sacm.experiments.statistics import wilcoxon_test
from sacm.files import read_json
from sacm.metrics.catalogue import metric, order_metrics
from sacm.reports.table import (
    UNDEFINED,
    Table,
    interval,
    is_undefined,
    mean_and_deviation,
    number,
    percent,
    probability,
    signed,
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
    "Mean ± sample deviation over seeds. Δ and gain against the first strategy, positive is "
    "better; 95 %: t interval of the mean gain over seeds; W/T/L: pairs that got better, stayed "
    "equal, got worse; p (t): paired t-test; p (W): Wilcoxon's signed-rank test, which cannot be "
    "below 0.0625 with five pairs."
)
ANOMALY_LEGEND = (
    "PA: point-adjusted, which random scores pass easily; the random row has what they reach. "
    "Compare VUS-PR and affiliation F1."
)
NARROW = ("metric", "strategy", "mean", "gain", "95 %", "W/T/L", "p (t)", "n")


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
        own = self.frame[self.frame["strategy"] == strategy]
        return own[name].dropna() if name in own else pd.Series(dtype=float)

    def gain(self, strategy: str, name: str) -> Any | None:
        """The row of `gains` of a strategy and metric; None where no pair has it."""
        table = self.gains
        found = table[(table["strategy"] == strategy) & (table["metric"] == name)]
        return None if found.empty else found.iloc[0]

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
    rows = []
    for name in comparison.metrics:
        for strategy in comparison.strategies:
            rows.append((metric(name).label, strategy, *_result_cells(comparison, strategy, name)))
            random = metric(name).random
            if random is not None and len(chance := comparison.values(strategy, random)):
                mean = mean_and_deviation(chance.mean(), chance.std())
                rows.append(("", f"random ({strategy})", mean, *(None,) * 6, len(chance)))
    headings = ("metric", "strategy", "mean", "Δ", "gain", "95 %", "W/T/L", "p (t)", "p (W)", "n")
    seeds = ", ".join(map(str, comparison.seeds))
    count = f"{len(comparison.seeds)} seed{'s' if len(comparison.seeds) > 1 else ''}"
    return Table(headings, tuple(rows), f"Test results over {count}: {seeds}", words=2)


def _result_cells(comparison: Comparison, strategy: str, name: str) -> tuple[Any, ...]:
    values = comparison.values(strategy, name)
    mean = mean_and_deviation(values.mean(), values.std()) if len(values) else None
    found = comparison.gain(strategy, name)
    if found is None:
        return (mean, *(None,) * 6, len(values))
    change = comparison.pairs
    own = change[(change["strategy"] == strategy) & (change["metric"] == name)]["improvement"]
    ranks = wilcoxon_test(own)
    return (
        mean,
        _difference(name, own.mean(), found["before"]),
        None if is_undefined(found["gain"]) else _gain(name, found["gain"]),
        interval(found["low"], found["high"]),
        f"{found['wins']}/{found['ties']}/{found['losses']}",
        None if is_undefined(found["p"]) else probability(found["p"]),
        None if ranks is None else probability(ranks),
        found["n"],
    )


def _difference(name: str, value: float, like: float) -> str:
    """A signed absolute change, to the decimals of a value `like`; points for shares."""
    if metric(name).share:
        return f"{signed(100 * value)} pp"
    text = number(float(like))
    places = 3 if "e" in text else len(text.partition(".")[2])
    kind = "e" if "e" in text else "f"
    return f"{value:+.{places}{kind}}".replace("-", "−")


def _gain(name: str, value: float) -> str:
    return f"{signed(value)} pp" if metric(name).share else percent(value)


def cost_table(comparison: Comparison) -> Table:
    """Epochs, seconds, parameters and rates of every strategy."""

    def mean(strategy: str, name: str) -> str | None:
        values = comparison.values(strategy, name)
        return mean_and_deviation(values.mean(), values.std(), digits=3) if len(values) else None

    names = ("epochs", "seconds", "seconds_per_epoch", "rate_mean", "rate_std")
    rows = [
        (
            strategy,
            *(mean(strategy, name) for name in names),
            f"{int(comparison.values(strategy, 'parameters').iloc[0]):,}",
        )
        for strategy in comparison.strategies
    ]
    headings = (
        *("strategy", "epochs", "seconds", "s / epoch", "rate mean", "rate spread"),
        "parameters",
    )
    caption = "Cost of training, and dropout rates of the windows in the last epoch"
    return Table(headings, tuple(rows), caption)


def headline(comparison: Comparison) -> list[str]:
    """A few sentences for each strategy: what changed, by how much, and how sure that is.

    A point-adjusted score comes with what random scores reach and with unadjusted measures.
    """
    leading = get_task(comparison.settings["task"]).leading_metrics
    shown = [name for name in leading if name in comparison.metrics]
    sentences = []
    for strategy in comparison.strategies[1:]:
        first, *others = shown
        sentences.append(" ".join(_main_sentences(comparison, strategy, first)))
        rest = [_short(comparison, strategy, name) for name in others]
        if rest:
            sentences.append(f"Other measures: {'; '.join(rest)}.")
    return sentences


def _main_sentences(comparison: Comparison, strategy: str, name: str) -> list[str]:
    known, base = metric(name), comparison.strategies[0]
    place = f"{comparison.settings['backbone']} on {comparison.settings['data']}"
    row = comparison.gain(strategy, name)
    if row is None:
        return [f"The {known.phrase} of {place} is undefined for every pair of runs."]
    n, before, after = int(row["n"]), float(row["before"]), float(row["after"])
    seeds = f"{n} seed{'' if n == 1 else 's'}"
    ties = f", equal in {row['ties']}" if row["ties"] else ""
    record = f"better in {row['wins']} of {n}{ties}"
    if number(before) == number(after):
        change = f"leaves the {known.phrase} of {place} at {number(before)}, that of {base}"
    else:
        verb = "raises" if after > before else "lowers"
        change = f"{verb} the {known.phrase} of {place} from {number(before)} ({base}) to "
        change += f"{number(after)}{_gain_words(name, before, after)}"
    found = [f"Over {seeds}, {strategy} {change} ({record}).", _chance(row, n)]
    if known.random:
        reached = [comparison.values(each, known.random).mean() for each in (base, strategy)]
        found.append(
            f"Random scores that raise as many alarms reach {number(float(reached[0]))} ({base}) "
            f"and {number(float(reached[1]))} under the same adjustment."
        )
    return found


def _gain_words(name: str, before: float, after: float) -> str:
    """In percent of the baseline; in percentage points for shares."""
    better = after - before if metric(name).higher_is_better else before - after
    gain, unit = 100 * better / abs(before) if before else 0.0, "%"
    if metric(name).share:
        gain, unit = 100 * better, "percentage points"
    if abs(gain) < 0.05:
        return f", less than 0.1 {unit}"
    return f", a {'gain' if gain > 0 else 'loss'} of {abs(gain):.1f} {unit}"


def _chance(row: Any, n: int) -> str:
    if n == 1:
        return "One seed cannot tell a difference from chance."
    if is_undefined(row["p"]):
        return "There is no t-test: all differences are equal."
    said = f"paired t-test, p = {probability(row['p'])}, n = {n}".replace("= <", "< ")
    if row["p"] >= SIGNIFICANT:
        return f"The difference is not significant ({said})."
    better = row["gain"] > 0
    verdict = "The difference is significant" if better else "It is significantly worse"
    few = f", but {n} seeds are few to conclude from" if n < FEW else ""
    return f"{verdict} ({said}){few}."


def _short(comparison: Comparison, strategy: str, name: str) -> str:
    row, phrase = comparison.gain(strategy, name), metric(name).phrase
    if row is None:
        return f"{phrase} undefined"
    gain = UNDEFINED if is_undefined(row["gain"]) else _gain(name, row["gain"])
    chance = "" if is_undefined(row["p"]) else f", p = {probability(row['p'])}"
    numbers = f"{number(float(row['before']))} → {number(float(row['after']))}"
    return f"{phrase} {numbers} ({gain}{chance.replace('= <', '< ')})"
