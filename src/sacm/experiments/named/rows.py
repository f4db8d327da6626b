"""Rows of an experiment's table: averages of groups, beside what the paper prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sacm.experiments.grid_points import Key
from sacm.experiments.named.experiment import Experiment
from sacm.experiments.named.findings import FindingRow, Group, PaperValue
from sacm.experiments.named.pairs import metric_gain, pairs, seed_p_value
from sacm.experiments.statistics import holm, mean_and_deviation
from sacm_lab.paper.published.tables import Published, read_published


def make_rows(
    experiment: Experiment, groups: Sequence[Group], declared: Sequence[Mapping[str, Key]]
) -> list[FindingRow]:
    """A row for each metric and strategy of every place that `experiment.rows` tells apart."""

    def place(keys: Mapping[str, Key]) -> tuple[Key, ...]:
        return tuple(keys[key] for key in experiment.rows)

    places: dict[tuple[Key, ...], list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(place(group.keys), []).append(index)
    expected = Counter(place(keys) for keys in declared)
    others = experiment.shown_strategies
    if len(others) > 1:
        others = tuple(name for name in others if name != experiment.strategies[0])
    rows = [
        _row(experiment, groups, on, name, other, expected=expected[at])
        for at, on in places.items()
        for name in experiment.metrics
        for other in others
    ]
    return _tested(experiment, groups, rows)


def in_both(rows: Iterable[FindingRow]) -> list[tuple[float, float]]:
    """Our gain and the paper's, for every row that has both."""
    return [
        (row.gain, row.paper.gain)
        for row in rows
        if row.gain is not None and row.paper is not None and row.paper.gain is not None
    ]


def _row(
    experiment: Experiment,
    groups: Sequence[Group],
    places: Sequence[int],
    name: str,
    strategy: str,
    *,
    expected: int,
) -> FindingRow:
    baseline = experiment.strategies[0]
    keys = {key: groups[places[0]].keys[key] for key in experiment.rows}
    raw, treated = pairs([groups[i] for i in places], baseline, strategy, name)
    before = mean_and_deviation(raw) if raw and strategy != baseline else None
    after = mean_and_deviation(treated) if treated else None
    return FindingRow(
        keys=keys,
        metric=name,
        strategy=strategy,
        n=len(raw),
        expected=expected,
        baseline=before,
        value=after,
        gain=None
        if before is None or after is None
        else metric_gain(name, before.mean, after.mean),
        paper=_paper(experiment, keys, name, strategy),
        groups=tuple(places),
    )


def _tested(
    experiment: Experiment, groups: Sequence[Group], rows: list[FindingRow]
) -> list[FindingRow]:
    """Rows that average over seeds alone get a t-test, corrected for the rows of their metric."""
    keys = groups[0].keys if groups else {}
    if [key for key in keys if key not in experiment.rows] != ["seed"]:
        return rows
    baseline = experiment.strategies[0]
    tests: dict[str, list[float | None]] = {name: [] for name in experiment.metrics}
    for row in rows:
        both = pairs([groups[i] for i in row.groups], baseline, row.strategy, row.metric)
        alone = row.strategy == baseline
        tests[row.metric].append(None if alone else seed_p_value(row.metric, both))
    found = {
        name: iter(zip(values, holm(values).p_values, strict=True))
        for name, values in tests.items()
    }
    results = [next(found[row.metric]) for row in rows]
    return [
        replace(row, p_value=p_value, adjusted_p_value=adjusted)
        for row, (p_value, adjusted) in zip(rows, results, strict=True)
    ]


def _paper(
    experiment: Experiment, keys: dict[str, Key], name: str, strategy: str
) -> PaperValue | None:
    values = read_published(experiment.name)
    printed = _printed(values, keys, name, strategy)
    if printed is None:
        return None
    baseline = None
    if strategy != experiment.strategies[0]:
        baseline = _printed(values, keys, name, experiment.strategies[0])
    gained = printed.gain
    if gained is None and baseline is not None:
        gained = metric_gain(name, baseline.value, printed.value)
    before = None if baseline is None else baseline.value
    return PaperValue(before, printed.value, gained, printed.p_value, printed.chosen)


def _printed(
    values: Sequence[Published], keys: dict[str, Key], name: str, strategy: str
) -> Published | None:
    return next((one for one in values if one.fits(keys, name, strategy)), None)
