"""The default strategies beside others: where they were chosen, and where that is confirmed."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import own_gains, pairs
from sacm.experiments.statistics import bootstrap_mean
from sacm.reports import number_format
from sacm.reports.named.gains import format_gain
from sacm.reports.number_format import UNDEFINED
from sacm.tasks import get_task
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.halves import split_halves
from sacm_lab.robust.protocols import GUARD_ON_CLEAN, ON_CLEAN, REFERENCES

HEADINGS = (
    "protocol",
    "",
    "data",
    "default",
    "n",
    "gain",
    "95 % interval",
    "on clean data",
    "others, the best first",
)
DEFAULT_LEGEND = (
    "Default: the strategy of a user who names none. Gain: against raw of the same data, network "
    "and seed, mean over n pairs; on clean data: the same where nothing was broken."
)


def default_table(found: Sequence[RobustFindings]) -> TextTable:
    """Two lines a protocol: the data sets that its default was chosen on, and the others."""
    lines: list[TableRow] = []
    for findings in (one.findings for one in found):
        halves = split_halves(findings.name, findings.groups)
        for words, groups in zip(("chosen on", "confirmed on"), halves, strict=True):
            if groups:
                lines.append(TableRow((findings.name, words, *_cells(findings, groups))))
    return TextTable(HEADINGS, tuple(lines), text_columns=4)


def _cells(findings: Findings, groups: Sequence[Group]) -> tuple[str, ...]:
    name = findings.metrics[0]
    default = get_task(findings.task).default_strategy
    gains = {
        strategy: own_gains(name, pairs(groups, findings.baseline, strategy, name))
        for strategy in findings.strategies
        if strategy not in (findings.baseline, *REFERENCES)
    }
    own = gains.pop(default, [])
    means = {strategy: sum(each) / len(each) for strategy, each in gains.items() if each}
    ranked = sorted(means, key=lambda strategy: -means[strategy])
    return (
        ", ".join(dict.fromkeys(str(group.keys["data"]) for group in groups)),
        default,
        str(len(own)) if own else UNDEFINED,
        format_gain(sum(own) / len(own), name) if own else UNDEFINED,
        number_format.interval(bootstrap_mean(own)) if own else UNDEFINED,
        _on_clean(groups, default, name),
        ", ".join(f"{one} {format_gain(means[one], name)}" for one in ranked) or UNDEFINED,
    )


def _on_clean(groups: Sequence[Group], default: str, name: str) -> str:
    """What the default does to clean data; only guard was run there."""
    if default != "guard":
        return UNDEFINED
    gains = own_gains(name, pairs(groups, ON_CLEAN, GUARD_ON_CLEAN, name))
    return format_gain(sum(gains) / len(gains), name) if gains else UNDEFINED
