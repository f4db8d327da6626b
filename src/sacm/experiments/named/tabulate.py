"""From groups of runs to rows beside the paper's, and to what all of them say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sacm.errors import DataError
from sacm.experiments.critical_difference import CriticalDifference, critical_difference
from sacm.experiments.grid_points import Key, Selection
from sacm.experiments.named.experiment import Experiment, points
from sacm.experiments.named.findings import Coverage, FindingRow, Findings, Group, Overall
from sacm.experiments.named.pairs import compare_metric, own_gains, pairs, value_of
from sacm.experiments.named.rows import in_both, make_rows
from sacm.experiments.statistics import bootstrap_mean, holm, mean_and_deviation
from sacm.files import read_json
from sacm.metrics.catalogue import metric as known_metric

_ENOUGH_FOR_RANKS = 3  # strategies, and groups


def tabulate(
    experiment: Experiment,
    groups: Sequence[Group],
    *,
    declared: Sequence[Mapping[str, Key]] | None = None,
    settings: Mapping[str, Key] | None = None,
    notes: Sequence[str] = (),
) -> Findings:
    """Everything a report shows about one experiment.

    declared: keys of every group that the rows are declared to average; those of `groups` if None.
    """
    whole = [group.keys for group in groups] if declared is None else declared
    rows = make_rows(experiment, groups, whole)
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
        notes=(*experiment.notes, *notes, *runs_unlike(groups)),
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


def _coverage(experiment: Experiment, groups: Sequence[Group]) -> Coverage:
    states = [
        run.state for group in groups for run in group.runs if run.strategy in experiment.run_rows
    ]
    done, failed = states.count("done"), states.count("failed")
    declared = len(points(experiment, Selection())) * len(experiment.run_rows)
    return Coverage(len(states), done, failed, len(states) - done - failed, declared)


def runs_unlike(groups: Sequence[Group]) -> list[str]:
    """A sentence if runs that are compared were not made alike."""
    made = [{run.made_with for run in group.runs if run.made_with} for group in groups]
    number = sum(len(ways) > 1 for ways in made)
    if not number:
        return []
    return [
        f"In {number} of {len(groups)} groups the runs were made by different code, torch or "
        "numbers of threads."
    ]


def _overall(
    experiment: Experiment, groups: Sequence[Group], rows: Sequence[FindingRow]
) -> list[Overall]:
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
    rows: Sequence[FindingRow],
    name: str,
    strategy: str,
) -> Overall:
    both = pairs(groups, experiment.strategies[0], strategy, name)
    gains = own_gains(name, both)
    shared = in_both(row for row in rows if (row.metric, row.strategy) == (name, strategy))
    ours, papers = [one for one, _ in shared], [other for _, other in shared]
    return Overall(
        metric=name,
        strategy=strategy,
        n=len(both[0]),
        gain=mean_and_deviation(gains).mean if gains else None,
        interval=bootstrap_mean(gains) if gains else None,
        comparison=compare_metric(name, both),
        adjusted_p_value=None,
        row_gain=mean_and_deviation(ours).mean if shared else None,
        paper_gain=mean_and_deviation(papers).mean if shared else None,
        paper_rows=len(shared),
    )


def _ranks(experiment: Experiment, groups: Sequence[Group]) -> CriticalDifference | None:
    """Strategies by average rank in the first metric, over the groups that have them all."""
    name = experiment.metrics[0]
    table: list[list[Any]] = [
        [value_of(group, strategy, name) for strategy in experiment.ranked_strategies]
        for group in groups
    ]
    whole = [line for line in table if None not in line]
    if min(len(whole), len(experiment.ranked_strategies)) < _ENOUGH_FOR_RANKS:
        return None
    return critical_difference(
        whole,
        list(experiment.ranked_strategies),
        higher_is_better=known_metric(name).higher_is_better,
    )
