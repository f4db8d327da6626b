"""The tables of a protocol."""

from __future__ import annotations

from collections.abc import Sequence

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.grid_points import Key
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import value_of
from sacm.experiments.statistics import mean_and_deviation
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named.tables import key_text
from sacm.reports.number_format import UNDEFINED
from sacm.robust.recovered import Recovered

MEANS_LEGEND = (
    "Mean ± deviation over n seeds. The first strategy is the baseline; rows in words are "
    "references: they know what no strategy knows."
)
RECOVERED_LEGEND = (
    "Lost: how much larger the error of raw is after training on broken rows than on clean ones. "
    "Recovered: (raw - strategy) / (raw - raw on clean), of means over n seeds; 100 % is as good "
    "as clean data, negative is worse than doing nothing. Interval: 95 %, bootstrapped over seeds; "
    "in the last lines, which average over all places, over places. p: paired t-test of raw "
    "against the strategy over seeds; Holm: corrected for all lines of the metric."
)


def means_table(findings: Findings) -> TextTable:
    """Every strategy in every place: its metrics over seeds."""
    lines: list[TableRow] = []
    for keys, groups in places_of(findings):
        for number, strategy in enumerate(findings.strategies):
            values = [_defined(groups, strategy, name) for name in findings.metrics]
            n = max(map(len, values), default=0)
            cells = [
                number_format.mean_and_spread(mean_and_deviation(own)) if own else UNDEFINED
                for own in values
            ]
            words = (*(key_text(keys[key]) for key in findings.row_keys), strategy)
            lines.append(TableRow((*words, str(n), *cells), group=number == 0))
    labels = [metric(name).label for name in findings.metrics]
    headings = (*findings.row_keys, "strategy", "n", *labels)
    return TextTable(headings, tuple(lines), findings.title, len(findings.row_keys) + 1)


def recovered_table(findings: Findings, recovered: Sequence[Recovered]) -> TextTable:
    """The recovered share of every strategy, by place and over all places."""
    lines: list[TableRow] = []
    last: tuple[str, ...] = ()
    for one in recovered:
        where = tuple(key_text(one.keys[key]) if one.keys else "all" for key in findings.row_keys)
        start = (*where, metric(one.metric).label)
        cells = (
            *start,
            one.strategy,
            str(one.n),
            number_format.percent(None if one.lost is None else 100 * one.lost),
            number_format.percent(None if one.share is None else 100 * one.share),
            _interval(one),
            number_format.probability(one.p_value),
            number_format.probability(one.adjusted_p_value),
        )
        lines.append(TableRow(cells, group=start != last))
        last = start
    headings = (
        *findings.row_keys,
        "metric",
        "strategy",
        "n",
        "lost",
        "recovered",
        "95 % interval",
        "p (t)",
        "p (t, Holm)",
    )
    return TextTable(headings, tuple(lines), "Recovered share", len(findings.row_keys) + 2)


def places_of(findings: Findings) -> list[tuple[dict[str, Key], list[Group]]]:
    """The places that rows differ in, each with its groups."""
    found: dict[tuple[Key, ...], list[Group]] = {}
    for group in findings.groups:
        found.setdefault(tuple(group.keys[key] for key in findings.row_keys), []).append(group)
    return [(dict(zip(findings.row_keys, at, strict=True)), own) for at, own in found.items()]


def _defined(groups: Sequence[Group], strategy: str, name: str) -> list[float]:
    values = (value_of(group, strategy, name) for group in groups)
    return [value for value in values if value is not None]


def _interval(one: Recovered) -> str:
    if one.low is None or one.high is None:
        return UNDEFINED
    return f"{100 * one.low:.1f} to {100 * one.high:.1f}"
