"""All experiments in one table, and its place in a markdown file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sacm.display.text_table import TableRow, TextTable
from sacm.errors import DataError
from sacm.experiments.grid_points import Key
from sacm.experiments.named.experiment import BEST_FIXED
from sacm.experiments.named.findings import FindingRow as Found
from sacm.experiments.named.findings import Findings, Group
from sacm.experiments.named.pairs import compare_metric, own_gains, pairs, value_of
from sacm.experiments.named.rows import in_both
from sacm.experiments.statistics import PairedComparison, bootstrap_mean, holm
from sacm.files import write_atomically
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named import gains
from sacm.reports.named.tables import key_text
from sacm.reports.number_format import UNDEFINED
from sacm.tasks import get_task

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
HEADINGS = (
    "experiment",
    "data",
    "strategy",
    "metric",
    "size",
    "runs",
    "n",
    "gain",
    "95 % interval",
    "W/T/L",
    "p",
    "gain by row",
    "paper gain",
)
# What fits into 80 columns of a terminal.
NARROW = ("experiment", "metric", "data", "runs", "n", "gain", "W/T/L", "p", "paper gain")
LEGEND = (
    "Each experiment's first metric, its last strategy against its first; after its name what "
    "every run had instead of the paper's settings. Runs: done, of those asked for, of those in "
    "the paper's grid; data sets without a run are left out. n: pairs with a value on both sides, "
    "or values where there is nothing to compare with. Gain: mean of the pairs' gains, positive is "
    "better; interval: bootstrap of that mean, from five pairs on. W/T/L: pairs won, tied, lost. "
    "p: Wilcoxon's signed-rank test of the pairs' gains, by Holm's method corrected for everything "
    "tested in the experiment, or for its data sets. Gain by row and paper gain: means over the "
    "rows that both have, as the paper averages them."
)


def summary_table(found: Sequence[Findings]) -> TextTable:
    """One line for each experiment, and below it one for each of several data sets.

    A point-adjusted score is followed by one that is not adjusted.
    """
    lines: list[TableRow] = []
    for findings in found:
        start = _label(findings)
        for name in _metrics(findings):
            whole = _part(findings, name, None)
            p_value = _overall_p(findings, name)
            lines.append(TableRow((start, *_cells(findings, whole, p_value)), group=bool(start)))
            parts = _datasets(findings, name) if whole.pair else []
            tests = [None if part.pair is None else part.pair.wilcoxon.p_value for part in parts]
            for part, adjusted in zip(parts, holm(tests).p_values, strict=True):
                lines.append(TableRow(("", *_cells(findings, part, adjusted))))
            start = ""
    return TextTable(HEADINGS, tuple(lines), text_columns=5)


def _label(findings: Findings) -> str:
    """The experiment, and what its runs had that tells it from others of the same name."""
    settings = [f"{name} {key_text(value)}" for name, value in findings.settings.items()]
    return ", ".join((findings.name, *settings))


def write_summary(found: Sequence[Findings], path: str | Path) -> None:
    """Put the table between `BEGIN` and `END` of a markdown file; the rest stays as it is."""
    path = Path(path)
    new = f"{summary_table(found).markdown()}\n\n{LEGEND}"
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from None
    try:
        changed = replace_between(text, BEGIN, END, new)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    write_atomically(path, lambda file: file.write_bytes(changed.encode("utf-8")))


def replace_between(text: str, begin: str, end: str, new: str) -> str:
    """The text with `new`, on lines of its own, between two marks that occur once each."""
    for mark in (begin, end):
        if text.count(mark) != 1:
            times = text.count(mark)
            raise DataError(f"the mark {mark!r} must occur once, it occurs {times} times.")
    before, _, rest = text.partition(begin)
    if end not in rest:
        raise DataError(f"the mark {end!r} must stand after {begin!r}.")
    return f"{before}{begin}\n{new}\n{end}{rest.partition(end)[2]}"


@dataclass(frozen=True)
class _Part:
    """An experiment in one metric, or what it says about one data set."""

    metric: str
    data: str
    groups: tuple[Group, ...]
    rows: tuple[Found, ...]
    pair: PairedComparison | None


def _metrics(findings: Findings) -> list[str]:
    first = findings.metrics[0]
    if metric(first).random is None:
        return [first]
    plain = [
        name for name in get_task(findings.task).leading_metrics if metric(name).random is None
    ]
    return [first, *[name for name in plain if name in findings.metrics][:1]]


def _datasets(findings: Findings, name: str) -> list[_Part]:
    names = dict.fromkeys(group.keys.get("data") for group in findings.groups)
    if len(names) < 2:
        return []
    tried = {
        group.keys.get("data")
        for group in findings.groups
        if any(run.state != "missing" for run in group.runs)
    }
    return [_part(findings, name, data) for data in names if data in tried and data is not None]


def _part(findings: Findings, name: str, data: Key | None) -> _Part:
    strategy = findings.strategies[-1]
    groups = tuple(g for g in findings.groups if data is None or g.keys.get("data") == data)
    rows = tuple(
        row
        for row in findings.rows
        if (row.metric, row.strategy) == (name, strategy)
        and (data is None or row.keys.get("data") == data)
    )
    both = pairs(groups, findings.baseline, strategy, name)
    pair = None if strategy == findings.baseline else compare_metric(name, both)
    names = list(dict.fromkeys(key_text(g.keys.get("data")) for g in groups))
    shown = f"{len(names)} data sets" if len(names) > 1 else "".join(names) or UNDEFINED
    return _Part(name, shown, groups, rows, pair)


def _overall_p(findings: Findings, name: str) -> float | None:
    wanted = (name, findings.strategies[-1])
    found = [one for one in findings.overall if (one.metric, one.strategy) == wanted]
    return found[0].adjusted_p_value if found else None


def _cells(findings: Findings, part: _Part, p_value: float | None) -> list[str]:
    name, strategy = part.metric, findings.strategies[-1]
    runs = [run for g in part.groups for run in g.runs if run.strategy != BEST_FIXED]
    done = sum(run.state == "done" for run in runs)
    made = [g for g in part.groups if any(run.state != "missing" for run in g.runs)]
    return [
        part.data,
        strategy,
        metric(name).label,
        ", ".join(sorted({group.size for group in made})) or UNDEFINED,
        f"{done}/{len(runs)}{_of_grid(findings, len(runs))}",
        *_gains(findings, part),
        number_format.probability(p_value),
        *(gains.format_gain(_mean(side), name) for side in _sides(in_both(part.rows))),
    ]


def _of_grid(findings: Findings, asked: int) -> str:
    """What the whole grid has, where all that was asked for is only a part of it."""
    cover = findings.coverage
    return f" of {cover.declared}" if asked == cover.total < cover.declared else ""


def _gains(findings: Findings, part: _Part) -> list[str]:
    """n, mean, interval and record."""
    if part.pair is None:
        defined = [value_of(group, findings.strategies[-1], part.metric) for group in part.groups]
        return [str(sum(value is not None for value in defined)), *[UNDEFINED] * 3]
    both = pairs(part.groups, findings.baseline, findings.strategies[-1], part.metric)
    own = own_gains(part.metric, both)
    return [
        str(part.pair.n),
        gains.format_gain(_mean(own), part.metric),
        number_format.interval(bootstrap_mean(own) if own else None),
        number_format.format_record(part.pair.win_tie_loss),
    ]


def _sides(gains_of_both: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [ours for ours, _ in gains_of_both], [theirs for _, theirs in gains_of_both]


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return math.fsum(found) / len(found) if found else None
