"""From groups of runs to rows beside the paper's, and to what all of them say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sacm.errors import DataError
from sacm.experiments.critical_difference import CriticalDifference, critical_difference
from sacm.experiments.measures import metric as known_metric
from sacm.experiments.paper.experiment import Experiment
from sacm.experiments.paper.findings import (
    Coverage,
    Findings,
    Group,
    Overall,
    PaperValue,
    Row,
    RunFinding,
)
from sacm.experiments.points import Key
from sacm.experiments.published.tables import Published, published
from sacm.experiments.statistics import (
    bootstrap_mean,
    compare_pairs,
    holm,
    relative_gain,
    summarise,
)
from sacm.training.files import read_json

_ENOUGH_FOR_RANKS = 3  # strategies, and groups


def tabulate(
    experiment: Experiment,
    groups: Sequence[Group],
    *,
    settings: Mapping[str, Key] | None = None,
    notes: Sequence[str] = (),
) -> Findings:
    """Everything a report shows about one experiment."""
    rows = _rows(experiment, groups)
    keys = [key for key in groups[0].keys if key not in experiment.rows] if groups else []
    return Findings(
        name=experiment.name,
        title=experiment.title,
        where=experiment.where,
        task=experiment.task,
        settings=dict(settings or {}),
        baseline=experiment.strategies[0],
        strategies=experiment.shown_strategies,
        metrics=experiment.metrics,
        row_keys=experiment.rows,
        averaged=tuple(keys),
        notes=(*experiment.notes, *notes),
        coverage=_coverage(experiment, groups),
        rows=tuple(rows),
        overall=tuple(_overall(experiment, groups, rows)),
        groups=tuple(groups),
        ranks=_ranks(experiment, groups),
    )


def read_findings(path: Path) -> Findings:
    """Findings that were written as JSON."""
    try:
        return TypeAdapter(Findings).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        wrong = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"].lower())))
        raise DataError(f"{path} holds no findings: {wrong}.") from None


def gain(name: str, baseline: float, value: float) -> float | None:
    """In percent of the baseline; in percentage points for shares; None for what only describes."""
    kind = known_metric(name)
    if kind.descriptive:
        return None
    if kind.share:
        return 100 * (value - baseline)
    return relative_gain(baseline, value, higher_is_better=kind.higher_is_better)


def _coverage(experiment: Experiment, groups: Sequence[Group]) -> Coverage:
    states = [
        run.state for group in groups for run in group.runs if run.strategy in experiment.strategies
    ]
    done, failed = states.count("done"), states.count("failed")
    return Coverage(len(states), done, failed, len(states) - done - failed)


def _rows(experiment: Experiment, groups: Sequence[Group]) -> list[Row]:
    places: dict[tuple[Key, ...], list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(tuple(group.keys[key] for key in experiment.rows), []).append(index)
    others = experiment.shown_strategies
    if len(others) > 1:
        others = tuple(name for name in others if name != experiment.strategies[0])
    return [
        _row(experiment, groups, dict(zip(experiment.rows, values, strict=True)), at, name, other)
        for values, at in places.items()
        for name in experiment.metrics
        for other in others
    ]


def _row(
    experiment: Experiment,
    groups: Sequence[Group],
    keys: dict[str, Key],
    places: Sequence[int],
    name: str,
    strategy: str,
) -> Row:
    baseline = experiment.strategies[0]
    alone = strategy == baseline
    pairs = [
        (before, after)
        for before, after in (
            (value_of(groups[i], baseline, name), value_of(groups[i], strategy, name))
            for i in places
        )
        if before is not None and after is not None
    ]
    before = summarise([pair[0] for pair in pairs]) if pairs and not alone else None
    after = summarise([pair[1] for pair in pairs]) if pairs else None
    return Row(
        keys=keys,
        metric=name,
        strategy=strategy,
        n=len(pairs),
        expected=len(places),
        baseline=before,
        value=after,
        gain=None if before is None or after is None else gain(name, before.mean, after.mean),
        paper=_paper(experiment, keys, name, strategy),
        groups=tuple(places),
    )


def value_of(group: Group, strategy: str, name: str) -> float | None:
    """One metric of one strategy in a group, where it is there."""
    run = run_of(group, strategy)
    return None if run is None or run.values is None else run.values.get(name)


def run_of(group: Group, strategy: str) -> RunFinding | None:
    """The run of one strategy."""
    return next((run for run in group.runs if run.strategy == strategy), None)


def _paper(
    experiment: Experiment, keys: dict[str, Key], name: str, strategy: str
) -> PaperValue | None:
    values = published(experiment.name)
    value = _printed(values, keys, name, strategy)
    if value is None:
        return None
    baseline = None
    if strategy != experiment.strategies[0]:
        baseline = _printed(values, keys, name, experiment.strategies[0])
    gained = None if baseline is None else gain(name, baseline, value)
    return PaperValue(baseline, value, gained)


def _printed(
    values: Sequence[Published], keys: dict[str, Key], name: str, strategy: str
) -> float | None:
    return next((one.value for one in values if one.fits(keys, name, strategy)), None)


def _overall(experiment: Experiment, groups: Sequence[Group], rows: Sequence[Row]) -> list[Overall]:
    others = dict.fromkeys(row.strategy for row in rows if row.baseline is not None)
    found = [
        _one_overall(experiment, groups, rows, name, strategy)
        for name in experiment.metrics
        if not known_metric(name).descriptive
        for strategy in others
    ]
    tests = [None if one.comparison is None else one.comparison.wilcoxon.p_value for one in found]
    adjusted = holm(tests).p_values
    return [
        replace(one, adjusted_p_value=p_value) for one, p_value in zip(found, adjusted, strict=True)
    ]


def _one_overall(
    experiment: Experiment,
    groups: Sequence[Group],
    rows: Sequence[Row],
    name: str,
    strategy: str,
) -> Overall:
    both = [
        (before, after)
        for before, after in (
            (value_of(group, experiment.strategies[0], name), value_of(group, strategy, name))
            for group in groups
        )
        if before is not None and after is not None
    ]
    comparison = None
    if both:
        comparison = compare_pairs(
            [before for before, _ in both],
            [after for _, after in both],
            higher_is_better=known_metric(name).higher_is_better,
        )
    moved = [gain(name, before, after) for before, after in both]
    defined = [one for one in moved if one is not None]
    shared = in_both(row for row in rows if (row.metric, row.strategy) == (name, strategy))
    return Overall(
        metric=name,
        strategy=strategy,
        n=len(both),
        gain=summarise(defined).mean if defined else None,
        interval=bootstrap_mean(defined) if defined else None,
        comparison=comparison,
        adjusted_p_value=None,
        row_gain=summarise([ours for ours, _ in shared]).mean if shared else None,
        paper_gain=summarise([theirs for _, theirs in shared]).mean if shared else None,
        paper_rows=len(shared),
    )


def in_both(rows: Iterable[Row]) -> list[tuple[float, float]]:
    """Our gain and the paper's, for every row that has both."""
    return [
        (row.gain, row.paper.gain)
        for row in rows
        if row.gain is not None and row.paper is not None and row.paper.gain is not None
    ]


def _ranks(experiment: Experiment, groups: Sequence[Group]) -> CriticalDifference | None:
    """Strategies by average rank in the first metric, over the groups that have them all."""
    name = experiment.metrics[0]
    table: list[list[Any]] = [
        [value_of(group, strategy, name) for strategy in experiment.shown_strategies]
        for group in groups
    ]
    whole = [line for line in table if None not in line]
    if min(len(whole), len(experiment.shown_strategies)) < _ENOUGH_FOR_RANKS:
        return None
    return critical_difference(
        whole,
        list(experiment.shown_strategies),
        higher_is_better=known_metric(name).higher_is_better,
    )
