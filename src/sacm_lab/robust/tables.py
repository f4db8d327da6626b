"""The tables of a protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.grid_points import Key
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import compare_metric, own_gains, pairs, value_of
from sacm.experiments.statistics import (
    ConfidenceInterval,
    bootstrap_mean,
    holm,
    mean_and_deviation,
)
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named.diagram import rank_caption
from sacm.reports.named.tables import coverage_table, failure_table, key_text, rank_table
from sacm.reports.number_format import UNDEFINED
from sacm_lab.paper.published.sensor_faults import DATA, sensor_fault_rows
from sacm_lab.robust.faults import TESTED
from sacm_lab.robust.findings import RobustFindings
from sacm_lab.robust.recovered import CLEAR_LOSS, WIDEST, Recovered

MEANS_LEGEND = (
    "Mean ± deviation over n seeds. The first strategy is the baseline; rows in words are "
    "references: they know what no strategy knows."
)
FAULT_LEGEND = (
    "Gain against raw in percent over seeds, positive is better: in the mean error over the eight "
    "faults, in the largest degradation D_w, on clean inputs. Interval: bootstrap over seeds, from "
    "five on. p: paired t-test of relative gains, corrected by Holm over all lines of a figure."
)
PUBLISHED_LEGEND = (
    "Printed by arXiv:2605.10822 for networks of its own sizes and training; degradations are "
    "ratios and can be compared, errors only roughly."
)
_FAULT_FIGURES = ("mean_fault_mse", "worst_degradation", "clean_mse")
RECOVERED_LEGEND = (
    "Lost: how much larger the error of raw is after training on broken rows than on clean ones. "
    "Recovered: (raw - strategy) / (raw - raw on clean), of means over n seeds; 100 % is as good "
    "as clean data, negative is worse than doing nothing; left out where raw lost at most "
    f"{CLEAR_LOSS:.0%} or the interval is wider than {WIDEST:.0%}. The last lines are for all "
    "places: what is won in all of them over what is lost in all of them, in shares of the error "
    "on clean rows. Interval: 95 %, bootstrapped over seeds; in the last lines over places. p: "
    "paired t-test of raw against the strategy over seeds; Holm: corrected for all lines of the "
    "metric."
)


def report_tables(found: RobustFindings) -> list[tuple[TextTable, tuple[str, ...]]]:
    """Every table with the sentences that explain it, the most important first."""
    findings = found.findings
    tables: list[tuple[TextTable, tuple[str, ...]]] = []
    if found.recovered:
        tables.append((recovered_table(findings, found.recovered), (RECOVERED_LEGEND,)))
    tables.append((means_table(findings), (MEANS_LEGEND,)))
    if any(name.startswith("degradation_") for name in findings.metrics):
        tables.append((fault_table(findings), (FAULT_LEGEND,)))
        if any(group.keys.get("data") == DATA for group in findings.groups):
            tables.append((published_table(findings), (PUBLISHED_LEGEND,)))
    if findings.ranks is not None:
        tables.append((rank_table(findings.ranks), (rank_caption(findings.ranks),)))
    tables.append((coverage_table(findings), ()))
    if findings.coverage.failed:
        tables.append((failure_table(findings), ()))
    return tables


def fault_table(findings: Findings) -> TextTable:
    """Mean fault error, the largest degradation and the clean error against raw, by place."""
    names = [name for name in _FAULT_FIGURES if name in findings.metrics]
    lines = [
        (keys, number == 0, strategy, [_against_raw(findings, groups, strategy, n) for n in names])
        for keys, groups in places_of(findings)
        for number, strategy in enumerate(findings.strategies[1:])
    ]
    adjusted = [
        holm([cells[at].p_value for *_, cells in lines]).p_values for at in range(len(names))
    ]
    rows = []
    for line, (keys, first, strategy, cells) in enumerate(lines):
        words = (*(key_text(keys[key]) for key in findings.row_keys), strategy)
        figures = (
            text
            for at, cell in enumerate(cells)
            for text in (
                number_format.percent(cell.gain),
                number_format.interval(cell.interval),
                number_format.probability(adjusted[at][line]),
            )
        )
        rows.append(TableRow((*words, *figures), group=first))
    heads = [
        heading
        for name in names
        for heading in (f"{metric(name).label}, gain", "95 % interval", "p (t, Holm)")
    ]
    headings = (*findings.row_keys, "strategy", *heads)
    caption = "Faults at test, against raw"
    return TextTable(headings, tuple(rows), caption, len(findings.row_keys) + 1)


class _Gain(NamedTuple):
    """One figure of a strategy against raw, over seeds."""

    gain: float | None
    interval: ConfidenceInterval | None
    p_value: float | None


def _against_raw(findings: Findings, groups: list[Group], strategy: str, name: str) -> _Gain:
    both = pairs(groups, findings.baseline, strategy, name)
    gains = own_gains(name, both)
    if not gains:
        return _Gain(None, None, None)
    test = compare_metric(name, both) if len(gains) > 1 else None
    p_value = None if test is None else test.t_test.p_value
    return _Gain(sum(gains) / len(gains), bootstrap_mean(gains), p_value)


def published_table(findings: Findings) -> TextTable:
    """The published rows of ETTh1; models that were also run here come first."""
    own = {str(group.keys["backbone"]).lower() for group in findings.groups}
    rows = sorted(sensor_fault_rows(), key=lambda row: row.model.lower() not in own)
    lines = [
        TableRow(
            (
                row.model,
                row.method,
                number_format.number(row.clean_mse),
                number_format.number(row.mean_fault_mse),
                number_format.number(row.degradation),
                *(number_format.number(row.by_fault.get(fault), digits=3) for fault in TESTED),
            ),
            quiet=row.model.lower() not in own,
        )
        for row in rows
    ]
    headings = ("model", "method", "clean MSE", "mean fault MSE", "D_w", *TESTED)
    return TextTable(headings, tuple(lines), "Published for ETTh1 (SensorFault-Bench)", 2)


def means_table(findings: Findings, *, most: int | None = None) -> TextTable:
    """Every strategy in every place it was run in: its metrics, or the first `most` of them."""
    names = findings.metrics[:most]
    lines: list[TableRow] = []
    for keys, groups in places_of(findings):
        first = True
        for strategy in findings.strategies:
            values = [defined_values(groups, strategy, name) for name in names]
            n = max(map(len, values), default=0)
            if not n:
                continue
            cells = [
                number_format.mean_and_spread(mean_and_deviation(own)) if own else UNDEFINED
                for own in values
            ]
            words = (*(key_text(keys[key]) for key in findings.row_keys), strategy)
            lines.append(TableRow((*words, str(n), *cells), group=first))
            first = False
    labels = [metric(name).label for name in names]
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
            number_format.percent(None if one.clear_share is None else 100 * one.clear_share),
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


def defined_values(groups: Sequence[Group], strategy: str, name: str) -> list[float]:
    """What a strategy has of a metric, over groups."""
    values = (value_of(group, strategy, name) for group in groups)
    return [value for value in values if value is not None]


def mean_text(groups: Sequence[Group], strategy: str, name: str) -> str:
    """The mean of what a strategy has of a metric, over groups."""
    values = defined_values(groups, strategy, name)
    return number_format.number(mean_and_deviation(values).mean) if values else UNDEFINED


def _interval(one: Recovered) -> str:
    if one.clear_share is None or one.low is None or one.high is None:
        return UNDEFINED
    return f"{100 * one.low:.1f} to {100 * one.high:.1f}"
