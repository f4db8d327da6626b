"""Gains of an experiment: their units, and what is known about them beyond the mean."""

from __future__ import annotations

from collections.abc import Iterable

from sacm.experiments.measures import metric
from sacm.experiments.paper.findings import Findings, Group, Row
from sacm.experiments.paper.tabulate import gain as gain_of
from sacm.experiments.paper.tabulate import value_of
from sacm.experiments.statistics import ConfidenceInterval, bootstrap_mean, win_tie_loss
from sacm.reports import wording
from sacm.reports.wording import UNDEFINED


def unit(name: str) -> str:
    """Percent of the baseline, or percentage points where values are shares."""
    return "pp" if metric(name).share else "%"


def gain(value: float | None, name: str) -> str:
    """A signed gain with its unit; what is neither good nor bad has none."""
    if metric(name).descriptive:
        return UNDEFINED
    return wording.percent(value).replace("%", unit(name))


def difference(ours: float | None, theirs: float | None) -> str:
    """How far two gains are apart, in percentage points."""
    if ours is None or theirs is None:
        return UNDEFINED
    return wording.percent(ours - theirs).replace("%", "pp")


def pairs(
    findings: Findings, name: str, strategy: str, *, groups: Iterable[Group]
) -> tuple[list[float], list[float]]:
    """Values of the baseline and of a strategy, in the groups where both have one."""
    found = [
        (value_of(group, findings.baseline, name), value_of(group, strategy, name))
        for group in groups
    ]
    both = [(raw, treated) for raw, treated in found if raw is not None and treated is not None]
    return [raw for raw, _ in both], [treated for _, treated in both]


def gain_interval(
    findings: Findings, name: str, strategy: str, *, groups: Iterable[Group]
) -> ConfidenceInterval | None:
    """Bootstrap interval of the pairs' own gains, in the metric's unit."""
    both = zip(*pairs(findings, name, strategy, groups=groups), strict=True)
    found = [gain_of(name, raw, treated) for raw, treated in both]
    defined = [one for one in found if one is not None]
    return bootstrap_mean(defined) if defined else None


def record(findings: Findings, row: Row) -> str:
    """Wins, ties and losses among the pairs of a row."""
    if row.strategy == findings.baseline:
        return ""
    groups = [findings.groups[place] for place in row.groups]
    raw, treated = pairs(findings, row.metric, row.strategy, groups=groups)
    if not raw or metric(row.metric).descriptive:
        return UNDEFINED
    better = metric(row.metric).higher_is_better
    return wording.record(win_tie_loss(raw, treated, higher_is_better=better))
