"""A named experiment: a grid of runs, and which rows of a frame belong to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from sacm.data.load import find, is_synthetic
from sacm.errors import ArgumentError
from sacm.experiments.gains import CELL
from sacm.tasks import get_task
from sacm_lab.grid import Job, merge_jobs
from sacm_lab.results import BEST_FIXED, add_best_fixed, add_race
from sacm_lab.runs import setting_defaults

if TYPE_CHECKING:
    from sacm.types import TaskName

_USUAL_HORIZONS: tuple[int, ...] = (96, 192, 336, 720)  # as published for long series
RACE = "race(raw,sacm)"
Settings = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A declaration; the first strategy is what the others are measured by.

    Attributes:
        name: How it is called on the command line.
        title: What it shows.
        where: Where it comes from.
        task: The task of all runs.
        datasets: Names of data sets.
        backbones: Names of networks.
        strategies: What is run in every cell.
        horizons: Which of each data set's own; empty means all, none that it has the first.
        seeds: What is run of every strategy.
        vary: Other settings, with their values.
        fixed: Settings that hold for all runs.
        by_data: Settings of single data sets.
        targets: Data sets that the model trained on each data set is tested on.
        metrics: What is reported, the most important first.
        rows: The columns that make a row of the table; a row averages over all others.
        shown: The strategies that get rows, if not all.
        derived: Rows chosen from runs: "best_fixed", the fixed rate with the best validation, and
            "race(raw,sacm)", the arm that a race would have gone on with.
        references: Rows that are no strategies, such as a run on clean data, with their settings.
        checks: What every finished run is also tested by; `own_checks`: the same for one row.
        notes: What a reader of the table must know.
    """

    name: str
    title: str
    where: str
    task: TaskName
    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    strategies: tuple[str, ...] = ("raw", "sacm")
    horizons: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (42,)
    vary: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fixed: Settings = field(default_factory=dict)
    by_data: Mapping[str, Settings] = field(default_factory=dict)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: tuple[str, ...]
    rows: tuple[str, ...] = ("data", "backbone")
    shown: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    references: Mapping[str, Settings] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    own_checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def baseline(self) -> str:
        """What the other strategies are measured by."""
        return self.strategies[0]

    @property
    def shown_strategies(self) -> tuple[str, ...]:
        """What gets rows, in order."""
        return (*(self.shown or (*self.strategies, *self.derived)), *self.references)

    @property
    def cell(self) -> tuple[str, ...]:
        """The columns that the runs of a pair share."""
        varied = tuple(name for name in self.vary if name not in CELL)
        return (*CELL, *varied, *(("target",) if self.targets else ()))

    def horizons_of(self, data: str) -> tuple[int | None, ...]:
        """The forecasting horizons of one data set; one None for the other tasks."""
        if self.task != "forecasting":
            return (None,)
        known = _USUAL_HORIZONS
        if not is_synthetic(data):
            # A data set of a plug-in may state no horizons: the experiment may name any.
            known = find(data).horizons or self.horizons or known
        return tuple(each for each in known if each in (self.horizons or known)) or known[:1]

    def settings_of(self, data: str, row: str, varied: Settings, part: Part) -> dict[str, Any]:
        """The settings of a row beyond backbone, size, horizon and seed."""
        shared = {**self.fixed, **self.by_data.get(data, {}), **part.settings, **varied}
        return {"task": self.task, "data": data, **shared, "strategy": row} | dict(
            self.references.get(row, {})
        )

    def varied(self) -> Iterator[dict[str, Any]]:
        """Every combination of the varied settings."""
        for values in product(*self.vary.values()):
            yield dict(zip(self.vary, values, strict=True))


@dataclass(frozen=True)
class Part:
    """The part of an experiment to run or to report; empty means: as declared.

    Attributes:
        datasets: Names of data sets.
        backbones: Names of networks.
        horizons: Forecasting horizons.
        seeds: Seeds.
        size: "paper" or "small"; a report without shows both, apart.
        settings: Settings of all runs, in place of those that are declared.
    """

    datasets: tuple[str, ...] = ()
    backbones: tuple[str, ...] = ()
    horizons: tuple[int, ...] = ()
    seeds: tuple[int, ...] = ()
    size: str = ""
    settings: Settings = field(default_factory=dict)


def choose(experiment: Experiment, part: Part) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The data sets and backbones of a part, checked against what the experiment has."""
    datasets = _names(experiment, experiment.datasets, part.datasets, "data set")
    backbones = _names(experiment, experiment.backbones, part.backbones, "backbone")
    known = dict.fromkeys(each for data in datasets for each in experiment.horizons_of(data))
    for horizon in part.horizons:
        if experiment.task != "forecasting":
            raise ArgumentError(f"{experiment.name} has no horizons: it is {experiment.task}.")
        if horizon not in known:
            has = ", ".join(map(str, known))
            raise ArgumentError(f"{experiment.name} has no horizon {horizon}: it has {has}.")
    return datasets, backbones


def _names(
    experiment: Experiment, declared: tuple[str, ...], asked: tuple[str, ...], what: str
) -> tuple[str, ...]:
    """The declared names that were asked for, in any letter case."""
    known = {_plain(name): name for name in declared}
    for name in asked:
        if _plain(name) not in known:
            has = ", ".join(declared)
            raise ArgumentError(f"{experiment.name} has no {what} {name!r}: it has {has}.")
    return tuple(dict.fromkeys(known[_plain(name)] for name in asked)) or declared


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "@.")


def _is_present(name: str) -> bool:
    """Whether a data set can be loaded without a download."""
    return is_synthetic(name) or find(name.partition("@")[0]).present


def make_jobs(experiment: Experiment, part: Part) -> tuple[list[Job], list[str]]:
    """The runs of a part, those of a pair beside each other; and data sets that are not here."""
    datasets, backbones = choose(experiment, part)
    jobs, absent = [], {}
    for data, backbone in product(datasets, backbones):
        targets = experiment.targets.get(data, ())
        missing = [name for name in (data, *targets) if not _is_present(name)]
        absent.update(dict.fromkeys(missing))
        horizons = [h for h in experiment.horizons_of(data) if h in (part.horizons or (h,))]
        seeds = part.seeds or experiment.seeds
        places = product(horizons, seeds, experiment.varied()) if not missing else ()
        for horizon, seed, varied in places:
            for row in (*experiment.strategies, *experiment.references):
                settings = experiment.settings_of(data, row, varied, part)
                place = {"backbone": backbone, "horizon": horizon, "seed": seed}
                checks = experiment.own_checks.get(row, experiment.checks)
                size = part.size or "paper"
                jobs.append(
                    Job.make({**settings, **place, "size": size}, targets=targets, checks=checks)
                )
    return merge_jobs(jobs), list(absent)


def select_rows(
    experiment: Experiment, frame: pd.DataFrame, part: Part, *, settings: bool = True
) -> pd.DataFrame:
    """The rows of a frame that belong to a part of an experiment.

    Args:
        experiment: The declaration.
        frame: Runs, as `collect_runs` gives them.
        part: The part that is asked for.
        settings: Whether runs must also have the settings that the experiment declares; files of
            results were selected when they were written.

    Returns:
        One row a run and row of the experiment: `strategy` is the name of the row, results of
        checks and targets stand under the names of the metrics, and derived rows are added.
    """
    datasets, backbones = choose(experiment, part)
    if "seconds" in frame:
        frame = frame.assign(train_seconds=frame["seconds"])  # the name of the metric
    wanted = {
        "task": (experiment.task,),
        "data": datasets,
        "backbone": backbones,
        "horizon": part.horizons,
        "seed": part.seeds or (experiment.seeds if settings else ()),
        "size": (part.size,) if part.size else (),
    }
    for name, values in wanted.items():
        if values:
            frame = frame[frame[name].isin(values)]
    parts = []
    for data in datasets:
        of_data = frame[frame["data"] == data]
        horizons = [horizon for horizon in experiment.horizons_of(data) if horizon is not None]
        if horizons and settings:
            of_data = of_data[of_data["horizon"].isin(horizons)]
        for varied in experiment.varied():
            for row in (*experiment.strategies, *experiment.references):
                asked = experiment.settings_of(data, row, varied, part)
                rows = of_data[_matches(of_data, asked, experiment, complete=settings)]
                parts += list(_with_results(experiment, rows.assign(**varied), row, data))
    found = pd.concat([each for each in parts if len(each)] or parts[:1], ignore_index=True)
    if BEST_FIXED in experiment.derived:
        found = add_best_fixed(found, cell=experiment.cell)
    if RACE in experiment.derived:
        found = add_race(found, cell=experiment.cell)
    return found


def _matches(
    frame: pd.DataFrame, asked: Settings, experiment: Experiment, *, complete: bool
) -> pd.Series:
    """Which rows have the settings that are asked for; what is not named has its default."""
    defaults = setting_defaults()
    needed = {name: value for name, value in asked.items() if name not in ("task", "data")}
    if "epochs" in needed:
        needed["epoch_limit"] = needed.pop("epochs")
    if complete:
        usual = {name: value for name, value in defaults.items() if name not in ("batch_size",)}
        choice = get_task(experiment.task).selections[0]
        needed = {**usual, "select": choice, **needed}
    else:  # only what tells the rows of one cell apart
        apart = {
            "strategy",
            *experiment.vary,
            *(n for r in experiment.references.values() for n in r),
        }
        needed = {name: value for name, value in needed.items() if name in apart}
    mask = pd.Series(True, index=frame.index)
    for name, value in needed.items():
        default = defaults.get(name)
        if name not in frame:
            mask &= _same(value, default)
        else:
            column = frame[name]
            given = _same_values(column, value)
            mask &= given | (column.isna() if _same(value, default) else False)
    return mask


def _same_values(column: pd.Series, value: Any) -> pd.Series:
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if isinstance(value, dict):
        value = json.dumps(value, sort_keys=True)
    return column == value


def _same(value: Any, default: Any) -> bool:
    return value == default or (value in (None, "", {}) and default in (None, "", "{}"))


def _with_results(
    experiment: Experiment, rows: pd.DataFrame, row: str, data: str
) -> Iterator[pd.DataFrame]:
    """Rows under the name of a row, with the results that count for it; one part a target."""
    named = rows.assign(strategy=row)
    if row in experiment.references:
        named["run"] = named["run"] + f"#{row}"
    own = experiment.own_checks.get(row)
    for target in experiment.targets.get(data, (None,)):
        part = named if target is None else named.assign(target=target)
        for metric in experiment.metrics:
            places = experiment.checks if own is None else own
            if target is not None:
                places = (target.replace(" ", "_"),)
            columns = [f"{metric}@{place}" for place in places if f"{metric}@{place}" in part]
            if columns:
                part = part.assign(**{metric: part[columns[0]]})
            elif (
                own is not None or target is not None
            ):  # what the run itself reached is another row
                part = part.drop(columns=[metric], errors="ignore")
        yield part


def count_declared(experiment: Experiment) -> int:
    """How many runs the whole experiment has."""
    cells = sum(len(experiment.horizons_of(data)) for data in experiment.datasets)
    varied = 1
    for values in experiment.vary.values():
        varied *= len(values)
    rows = len(experiment.strategies) + len(experiment.references)
    return cells * len(experiment.backbones) * len(experiment.seeds) * varied * rows
