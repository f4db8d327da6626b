"""Pairs of runs within groups: their values, their gains, and what tests say about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sacm.experiments.named.findings import Group, RunFinding
from sacm.experiments.statistics import PairedComparison, compare_pairs, relative_gain
from sacm.metrics.catalogue import metric

BothValues = tuple[list[float], list[float]]  # of the baseline, and of a strategy


def run_of(group: Group, strategy: str) -> RunFinding | None:
    """The run of one strategy."""
    return next((run for run in group.runs if run.strategy == strategy), None)


def value_of(group: Group, strategy: str, name: str) -> float | None:
    """One metric of one strategy in a group, where it is there."""
    run = run_of(group, strategy)
    return None if run is None or run.values is None else run.values.get(name)


def pairs(groups: Iterable[Group], baseline: str, strategy: str, name: str) -> BothValues:
    """Values of the baseline and of a strategy, in the groups where both have one."""
    raw, treated = [], []
    for group in groups:
        before, after = value_of(group, baseline, name), value_of(group, strategy, name)
        if before is not None and after is not None:
            raw.append(before)
            treated.append(after)
    return raw, treated


def metric_gain(name: str, baseline: float, value: float) -> float | None:
    """In percent of the baseline; in percentage points for shares; None for what only describes."""
    kind = metric(name)
    if kind.descriptive:
        return None
    if kind.share:
        return 100 * (value - baseline)
    return relative_gain(baseline, value, higher_is_better=kind.higher_is_better)


def own_gains(name: str, values: BothValues) -> list[float]:
    """The gains of the pairs themselves, where they are defined."""
    found = [metric_gain(name, raw, treated) for raw, treated in zip(*values, strict=True)]
    return [one for one in found if one is not None]


def compare_metric(name: str, values: BothValues) -> PairedComparison | None:
    """Pairs from several places: shares are tested by differences, errors by relative gains."""
    kind = metric(name)
    if not values[0] or kind.descriptive:
        return None
    return compare_pairs(*values, higher_is_better=kind.higher_is_better, relative=not kind.share)


def seed_p_value(name: str, values: Sequence[list[float]]) -> float | None:
    """Of the paired t-test over the seeds of one setting, as the paper has it."""
    kind = metric(name)
    if len(values[0]) < 2 or kind.descriptive:
        return None
    return compare_pairs(*values, higher_is_better=kind.higher_is_better).t_test.p_value
