"""A named experiment: a grid, and how its runs become the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from sacm.data.load import find, is_synthetic
from sacm.errors import ArgumentError
from sacm.experiments.grid_points import Key, Point, Selection

if TYPE_CHECKING:
    from sacm.types import TaskName

BEST_FIXED = "best_fixed"
_USUAL_HORIZONS = (96, 192, 336, 720)  # of published results on long series


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A declaration; the first strategy is what the others are measured by.

    horizons: which of each data set's own; empty means all of them, none that it has the first.
    vary: another field of a run's
    settings, with its values. fixed: settings that hold for all runs. targets: data sets that the
    model trained on each data set is tested on, unseen. rows: the keys that make a row; a row
    averages over all others. shown: the strategies that get rows, if not all; "best_fixed" stands
    for the fixed rate with the lowest validation error. references: rows that are no strategies of
    their own, such as a run on clean data, with the settings that make them; they are not ranked.
    by_data: settings of single data sets. checks: what every finished run is also tested by;
    own_checks: the same for one row.
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
    fixed: Mapping[str, Any] = field(default_factory=dict)
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metrics: tuple[str, ...]
    rows: tuple[str, ...] = ("data", "backbone")
    shown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    references: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    own_checks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def run_rows(self) -> tuple[str, ...]:
        """Everything that is run in a group: strategies, then references."""
        return (*self.strategies, *self.references)

    @property
    def ranked_strategies(self) -> tuple[str, ...]:
        """The strategies that are compared with one another, in order."""
        return self.shown or self.strategies

    @property
    def shown_strategies(self) -> tuple[str, ...]:
        """What gets rows, in order: strategies, then references."""
        return (*self.ranked_strategies, *self.references)

    def horizons_of(self, data: str) -> tuple[int | None, ...]:
        """The forecasting horizons of one data set; one None for the other tasks."""
        if self.task != "forecasting":
            return (None,)
        own = _USUAL_HORIZONS
        if not is_synthetic(data):
            # A data set of a plug-in may state no horizons: the experiment may name any.
            own = find(data).horizons or self.horizons or own
        return tuple(horizon for horizon in own if horizon in (self.horizons or own)) or own[:1]


def points(experiment: Experiment, selection: Selection) -> list[Point]:
    """The grid, in the order it is declared in."""
    datasets = choose_names(experiment.datasets, selection.datasets, "data set", experiment)
    backbones = choose_names(experiment.backbones, selection.backbones, "backbone", experiment)
    _check_horizons(experiment, selection, datasets)
    seeds = dict.fromkeys(selection.seeds or experiment.seeds)
    return [
        point
        for data, backbone in product(datasets, backbones)
        for horizon in _horizons(experiment, selection, data)
        for seed in seeds
        for point in _varied(experiment, selection, data, backbone, horizon, seed)
    ]


def choose_names(
    declared: tuple[str, ...], asked: tuple[str, ...], what: str, experiment: Experiment
) -> tuple[str, ...]:
    """The declared names that were asked for, in any letter case."""
    known = {_plain(name): name for name in declared}
    for name in asked:
        if _plain(name) not in known:
            raise ArgumentError(
                f"{experiment.name} has no {what} {name!r}: it has {', '.join(declared)}."
            )
    return tuple(dict.fromkeys(known[_plain(name)] for name in asked)) or declared


def _check_horizons(
    experiment: Experiment, selection: Selection, datasets: tuple[str, ...]
) -> None:
    """Every horizon that is asked for must be one of a chosen data set."""
    known = dict.fromkeys(horizon for data in datasets for horizon in experiment.horizons_of(data))
    for horizon in selection.horizons:
        if experiment.task != "forecasting":
            raise ArgumentError(f"{experiment.name} has no horizons: it is {experiment.task}.")
        if horizon not in known:
            has = ", ".join(map(str, known))
            raise ArgumentError(f"{experiment.name} has no horizon {horizon}: it has {has}.")
    for data in datasets if selection.datasets and selection.horizons else ():
        if not _horizons(experiment, selection, data):
            has = ", ".join(map(str, experiment.horizons_of(data)))
            raise ArgumentError(f"{data} has none of these horizons: it has {has}.")


def _horizons(experiment: Experiment, selection: Selection, data: str) -> tuple[int | None, ...]:
    declared = experiment.horizons_of(data)
    return tuple(one for one in declared if one in selection.horizons or not selection.horizons)


def _varied(
    experiment: Experiment,
    selection: Selection,
    data: str,
    backbone: str,
    horizon: int | None,
    seed: int,
) -> Iterator[Point]:
    keys: dict[str, Key] = {"data": data, "backbone": backbone}
    if horizon is not None:
        keys["horizon"] = horizon
    keys["seed"] = seed
    shared = {
        "task": experiment.task,
        "data": data,
        "backbone": backbone,
        "horizon": horizon,
        "seed": seed,
        **experiment.fixed,
        **experiment.by_data.get(data, {}),
        **selection.settings,
    }
    checks = dict.fromkeys(experiment.run_rows, experiment.checks) | dict(experiment.own_checks)
    targets: tuple[str | None, ...] = experiment.targets.get(data, (None,))
    for values in product(*experiment.vary.values()):
        varied = dict(zip(experiment.vary, values, strict=True))
        for target in targets:
            aim = {} if target is None else {"target": target}
            yield Point(
                {**keys, **varied, **aim},
                {**shared, **varied},
                experiment.run_rows,
                target,
                experiment.references,
                checks,
            )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "@.")
