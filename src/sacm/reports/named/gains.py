"""Gains of an experiment as text, with their units."""

from __future__ import annotations

from sacm.experiments.named.findings import FindingRow, Findings
from sacm.experiments.named.pairs import pairs
from sacm.experiments.statistics import win_tie_loss
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.number_format import UNDEFINED


def unit(name: str) -> str:
    """Percent of the baseline, or percentage points where values are shares."""
    return "pp" if metric(name).share else "%"


def format_gain(value: float | None, name: str) -> str:
    """A signed gain with its unit; what is neither good nor bad has none."""
    if metric(name).descriptive:
        return UNDEFINED
    return number_format.percent(value).replace("%", unit(name))


def gain_difference(ours: float | None, theirs: float | None) -> str:
    """How far two gains are apart, in percentage points."""
    if ours is None or theirs is None:
        return UNDEFINED
    return number_format.percent(ours - theirs).replace("%", "pp")


def count_wins(findings: Findings, row: FindingRow) -> str:
    """Wins, ties and losses among the pairs of a row."""
    if row.strategy == findings.baseline:
        return ""
    groups = [findings.groups[place] for place in row.groups]
    both = pairs(groups, findings.baseline, row.strategy, row.metric)
    if not both[0] or metric(row.metric).descriptive:
        return UNDEFINED
    better = metric(row.metric).higher_is_better
    return number_format.format_record(win_tie_loss(*both, higher_is_better=better))
