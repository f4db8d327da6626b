"""Gains of an experiment as text, with their units."""

from __future__ import annotations

from sacm.experiments.measures import metric
from sacm.experiments.paper.findings import Findings, Row
from sacm.experiments.paper.pairs import pairs
from sacm.experiments.statistics import win_tie_loss
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


def record(findings: Findings, row: Row) -> str:
    """Wins, ties and losses among the pairs of a row."""
    if row.strategy == findings.baseline:
        return ""
    groups = [findings.groups[place] for place in row.groups]
    both = pairs(groups, findings.baseline, row.strategy, row.metric)
    if not both[0] or metric(row.metric).descriptive:
        return UNDEFINED
    better = metric(row.metric).higher_is_better
    return wording.record(win_tie_loss(*both, higher_is_better=better))
