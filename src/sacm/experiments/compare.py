"""Strategies × seeds on one data set and backbone, in pairs that share everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from sacm.data import resolve
from sacm.data.datasets import AnyData
from sacm.errors import ArgumentError, DataError
from sacm.experiments.gains import CELL, format_gain, pair, summarise
from sacm.files import read_json
from sacm.metrics.catalogue import metric, order_metrics
from sacm.reports.page import details, page, paragraph
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

SIGNIFICANT = 0.05
FEW = 5  # pairs, below which a t-test rests on hardly any spread
LEGEND = (
    "Mean ± sample deviation over seeds; MSE and MAE are z-scored where no unit is named. Gain "
    "against the first strategy, positive is better; 95 %: t interval of the mean gain over seeds; "
    "W/T/L: pairs that got better, stayed equal, got worse; p: paired t-test, Holm-corrected "
    "over the strategies."
)
ANOMALY_LEGEND = (
    " PA: point-adjusted, which random scores pass easily; the random row has what they reach. "
    "Compare VUS-PR."
)


@dataclass(frozen=True)
class Comparison:
    """What a comparison found; the first strategy is what the others are measured by."""

    settings: dict[str, Any]  # of all runs, without strategy and seed
    runs: dict[tuple[str, int], Run]  # by strategy and seed

    @property
    def strategies(self) -> tuple[str, ...]:
        """In the order that was asked for."""
        return tuple(dict.fromkeys(strategy for strategy, _ in self.runs))

    @property
    def seeds(self) -> tuple[int, ...]:
        """In the order that was asked for."""
        return tuple(dict.fromkeys(seed for _, seed in self.runs))

    @property
    def first_run(self) -> Run:
        """The first run of the baseline."""
        return next(iter(self.runs.values()))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row a run: what was run, and `run_results`."""
        cell = {name: self.settings[name] for name in CELL}
        return pd.DataFrame(
            {"run": run.folder.name, **cell, "strategy": strategy, "seed": seed, **run_results(run)}
            for (strategy, seed), run in self.runs.items()
        )

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the test results, in the order they are shown in."""
        return [name for name in order_metrics(set(self.first_run.row)) if name in self.frame]

    @property
    def leading_metrics(self) -> list[str]:
        """Those by which strategies are judged."""
        leading = get_task(self.settings["task"]).leading_metrics
        return [name for name in leading if name in self.metrics]

    @cached_property
    def gains(self) -> pd.DataFrame:
        """One row a metric and strategy: see `sacm.experiments.gains.summarise`."""
        baseline = self.strategies[0]
        return summarise(pair(self.frame, self.metrics, baseline=baseline, shared=["seed"]))

    def values(self, strategy: str, name: str) -> pd.Series:
        """One column of a strategy's runs, as far as it is defined."""
        rows = self.frame[self.frame["strategy"] == strategy]
        return rows[name].dropna() if name in rows else pd.Series(dtype=float)

    def mean(self, strategy: str, name: str, *, digits: int = 4) -> str | None:
        """Mean and deviation of such a column as text; None where it is not defined."""
        each = self.values(strategy, name)
        return mean_and_deviation(each.mean(), each.std(), digits=digits) if len(each) else None

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
            "headline": headline(self),
            "environment": read_json(self.first_run.folder / "environment.json"),
        }


def compare(
    base: RunSettings,
    strategies: Sequence[str],
    seeds: Sequence[int],
    *,
    folder: str | Path = DEFAULT_FOLDER,
    hardware: Hardware | None = None,
    data: AnyData | None = None,
    on_start: Callable[[RunSettings, int, int], object] | None = None,
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
    """
    names = [canonical(name) for name in strategies]
    named = [*(f"strategy {name}" for name in names), *(f"seed {seed}" for seed in seeds)]
    for name in named:
        if named.count(name) > 1:
            raise ArgumentError(f"{name} is named twice.")
    if len(names) < 2 or not seeds:
        raise ArgumentError("a comparison needs at least two strategies and at least one seed.")
    changes = [{"strategy": name, "seed": seed} for seed, name in product(seeds, names)]
    wanted = [make_settings(**base.model_dump() | change) for change in changes]
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

    An `ArgumentError` says which runs are not pairs, a `DataError` that nothing was tested.
    """

    def common(run: Run) -> dict[str, Any]:
        mark = read_json(run.folder / "environment.json")["fingerprint"]
        return run.settings.model_dump(exclude={"strategy", "seed"}) | {"fingerprint": mark}

    first = runs[0]
    shared = common(first)
    for run in runs[1:]:
        for name, value in common(run).items():
            if value != shared[name]:
                raise ArgumentError(
                    f"{run.folder} has {name} = {value!r} where {first.folder} has "
                    f"{shared[name]!r}: these runs are not pairs."
                )
    if "test" not in first.metrics:
        raise DataError(f"{first.settings.data} has no test windows to compare on.")
    del shared["fingerprint"]
    found = Comparison(shared, {(run.settings.strategy, run.settings.seed): run for run in runs})
    for strategy, seed in product(found.strategies, found.seeds):
        if (strategy, seed) not in found.runs:
            raise ArgumentError(f"pairs are needed, but {strategy} has no run of seed {seed}.")
    return found


def run_results(run: Run) -> dict[str, Any]:
    """Test results of a finished run by name, what they cost, and the dropout rates."""
    metrics = run.metrics
    epochs, seconds = metrics["epochs"], metrics["train_seconds"]
    last = run.history[-1] if run.history else {}
    return {
        **{name: value for name, value in metrics.get("test", {}).items() if value is not None},
        "epochs": epochs,
        "best_epoch": metrics.get("best_epoch"),
        "seconds": seconds,
        "seconds_per_epoch": round(seconds / max(epochs, 1), 4),
        "parameters": metrics.get("parameters"),
        "windows": metrics.get("evaluated_windows"),
        **{name: float(last[name]) for name in ("rate_mean", "rate_std") if last.get(name)},
    }


def result_table(comparison: Comparison) -> Table:
    """Every metric and strategy, with its gain over the first."""
    rows: list[tuple[Any, ...]] = []
    # No mean over channels of different units; those of a single one come first.
    own = [name for name in comparison.metrics if name.endswith("_raw")]
    names = [name for name in comparison.metrics if name not in own]
    if own and comparison.first_run.shape.channels == 1:
        names = own + names
    for name, strategy in product(names, comparison.strategies):
        kind, gain = metric(name), comparison.gain(strategy, name)
        count = len(comparison.values(strategy, name))
        cells: list[Any] = [None] * 4
        if gain is not None:
            cells = [format_gain(gain["gain"], name), interval(gain["low"], gain["high"])]
            cells += [f"{gain['wins']}/{gain['ties']}/{gain['losses']}"]
            cells += [None if is_undefined(gain["p_holm"]) else probability(gain["p_holm"])]
        rows.append((kind.label, strategy, comparison.mean(strategy, name), *cells, count))
        if kind.random and (reached := comparison.mean(strategy, kind.random)):
            rows.append(("", f"random ({strategy})", reached, *(None,) * 4, count))
    headings = ("metric", "strategy", "mean", "gain", "95 %", "W/T/L", "p", "n")
    seeds = ", ".join(map(str, comparison.seeds))
    return Table(headings, tuple(rows), f"Test results over seeds {seeds}", words=2)


def cost_table(comparison: Comparison) -> Table:
    """Epochs, seconds, parameters and rates of every strategy."""
    columns = ("epochs", "seconds", "seconds_per_epoch", "rate_mean", "rate_std")
    headings = ("strategy", "epochs", "seconds", "s / epoch", "rate mean", "rate spread")
    rows = []
    for strategy in comparison.strategies:
        means = [comparison.mean(strategy, name, digits=3) for name in columns]
        parameters = int(comparison.values(strategy, "parameters").iloc[0])
        rows.append((strategy, *means, f"{parameters:,}"))
    caption = "Cost of training, and dropout rates of the windows in the last epoch"
    return Table((*headings, "parameters"), tuple(rows), caption)


def headline(comparison: Comparison) -> list[str]:
    """A sentence for each strategy and leading metric: what changed, and how sure that is."""
    base, settings = comparison.strategies[0], comparison.settings
    sentences = []
    for strategy, name in product(comparison.strategies[1:], comparison.leading_metrics):
        what = f"{metric(name).phrase} of {settings['backbone']} on {settings['data']}"
        row = comparison.gain(strategy, name)
        if row is None:
            sentences.append(f"{strategy}: the {what} is undefined for every pair of runs.")
            continue
        before, after, n = number(float(row["before"])), number(float(row["after"])), int(row["n"])
        gain = format_gain(row["gain"], name) or "undefined"
        ties = f", equal in {row['ties']}" if row["ties"] else ""
        sentences.append(
            f"{strategy}: {what} {before} ({base}) → {after}, gain {gain} (better in "
            f"{row['wins']} of {n} seed{'' if n == 1 else 's'}{ties}). {_chance(row, n)}"
        )
    return sentences


def _chance(row: Any, n: int) -> str:
    """What a t-test says of a gain."""
    if n == 1:
        return "One seed cannot tell a difference from chance."
    if is_undefined(row["p"]):
        return "There is no t-test: all differences are equal."
    p, corrected = row["p_holm"], "Holm-corrected " if row["p_holm"] != row["p"] else ""
    test = f"paired t-test, {corrected}p = {probability(p)}, n = {n}".replace("= <", "< ")
    if p >= SIGNIFICANT:
        return f"The difference is not significant ({test})."
    verdict = "The difference is significant" if row["gain"] > 0 else "It is significantly worse"
    few = f", but {n} seeds are few to conclude from" if n < FEW else ""
    return f"{verdict} ({test}){few}."


def comparison_page(comparison: Comparison) -> str:
    """The tables, every pair, the settings and the environment as one HTML page."""
    settings, record = comparison.settings, comparison.to_dict()
    results = [result_table(comparison).html(), paragraph(LEGEND, note=True)]
    if settings["task"] == "anomaly":
        results.append(paragraph(ANOMALY_LEGEND, note=True))
    name = comparison.leading_metrics[0] if comparison.leading_metrics else comparison.metrics[0]
    pairs = comparison.frame.pivot_table(name, "seed", "strategy", dropna=False)
    pairs = pairs.reindex(columns=list(comparison.strategies)).reset_index()
    caption = f"{metric(name).label} of every run, one row a seed."
    sections = {
        "Results": [*results, cost_table(comparison).html()],
        "Every pair": [Table.from_frame(pairs, caption=caption).html(kind="sortable")],
        "Details": details(settings=settings, environment=record["environment"]),
    }
    title = f"{' against '.join(comparison.strategies)}: {settings['backbone']} on "
    return page(title + Path(settings["data"]).name, record["headline"], sections)
