"""The tables of an experiment."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.critical_difference import CriticalDifference
from sacm.experiments.grid_points import Key
from sacm.experiments.named.experiment import BEST_FIXED
from sacm.experiments.named.findings import FindingRow as Found
from sacm.experiments.named.findings import Findings, Overall, PaperValue
from sacm.experiments.named.pairs import run_of, value_of
from sacm.experiments.statistics import mean_and_deviation
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.named import gains
from sacm.reports.number_format import UNDEFINED

OVERALL_HEADINGS = (
    "metric",
    "strategy",
    "n",
    "means",
    "gain of means",
    "gain",
    "95 % interval",
    "W/T/L",
    "p (t)",
    "p (W)",
    "p (W, Holm)",
    "effect",
    "gain by row",
    "paper gain",
    "rows in both",
)
P_VALUES = ("p (t)", "p (t, Holm)")  # of a row that averages over seeds
_TERMINAL = 80  # columns
# What fits into them.
_OVERALL_NARROW = ("metric", "strategy", "n", "gain", "95 % interval", "W/T/L", "p (W, Holm)")

OVERALL_LEGEND = (
    "n: pairs with a value on both sides. Means: of the baseline and of the strategy over all "
    "pairs, and the relative gain between them. Gain: mean of the pairs' own gains, positive is "
    "better; interval: bootstrap of that mean, from five pairs on. W/T/L: pairs won, tied, lost. "
    "p: two-sided paired t-test and Wilcoxon's signed-rank test of the pairs' gains, which count "
    "as independent although horizons and seeds of one cell are not; Holm: corrected for "
    "everything tested in this experiment. Effect: rank-biserial correlation. Gain by row and "
    "paper gain: means over the rows that both have, as the paper averages."
)


def result_table(findings: Findings) -> TextTable:
    """One line for each of `shown_rows`; without a column for the strategy where there are two.

    Ours stands before the paper's; `Δ gain` is ours minus the paper's.
    """
    rows = shown_rows(findings)
    several = any(row.expected > 1 for row in rows)
    strategy = () if _is_pair(findings) else ("strategy",)
    words = (*findings.row_keys, "metric", *strategy)
    pair = findings.strategies if _is_pair(findings) else ("baseline", "value")
    tested = any(row.p_value is not None for row in rows)
    ours = (*pair, "gain", *(("W/T/L",) if several else ()), *(P_VALUES if tested else ()), "n")
    paper = (*(f"paper {name}" for name in pair), "paper gain", "Δ gain")
    paper += ("paper p",) if tested else ()
    lines: list[TableRow] = []
    last = None
    for row in rows:
        cells = [*key_texts(findings, row), metric(row.metric).label]
        cells += [_strategy(findings, row)] if strategy else []
        cells += [*_ours(findings, row, several=several, tested=tested), *_paper(row)]
        paper_p = None if row.paper is None else row.paper.p_value
        cells += [number_format.probability(paper_p)] if tested else []
        lines.append(TableRow(tuple(cells), group=cells[0] != last))
        last = cells[0]
    table = TextTable((*words, *ours, *paper), tuple(lines), _caption(findings), len(words))
    if len(findings.strategies) > 1:
        return table
    return table.only((*words, "value", "n", "paper value"))  # there is nothing to gain upon


def narrow_result_table(findings: Findings) -> TextTable:
    """The columns of `result_table` that fit into a terminal; what never changes moves up."""
    table = result_table(findings)
    if len(findings.strategies) == 1:
        return table
    columns = list(zip(*(row.cells for row in table.rows), strict=True))
    words = range(min(table.text_columns, len(columns)))
    same = [i for i in words if len(table.rows) > 1 and len(set(columns[i])) == 1]
    kept = [heading for i, heading in enumerate(table.headings) if i not in same]
    start = kept[: table.text_columns - len(same) + 2]
    facts = "".join(f", {table.headings[i]} {columns[i][0]}" for i in same)
    # Where every pair is there the sentence about coverage says so.
    counts = ("n",) if any(row.n < row.expected for row in findings.rows) else ()
    narrow = table.only((*start, "gain", *counts, "paper gain"))
    narrow = replace(
        narrow, headings=(*narrow.headings[:-1], "paper's"), caption=narrow.caption + facts
    )
    return narrow if _width(narrow) <= _TERMINAL else _without_spreads(narrow)


def _width(table: TextTable) -> int:
    """Characters of a line in which no cell is broken, with two between columns."""
    columns = zip(table.headings, *(row.cells for row in table.rows), strict=True)
    return sum(max(map(len, column)) + 2 for column in columns)


def _without_spreads(table: TextTable) -> TextTable:
    rows = (
        replace(row, cells=tuple(cell.partition(" ± ")[0] for cell in row.cells))
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


def shown_rows(findings: Findings) -> list[Found]:
    """The rows that get a line: of a pair the baseline's stands beside the other strategy's."""
    if not _is_pair(findings):
        return list(findings.rows)
    return [row for row in findings.rows if row.strategy != findings.baseline]


def key_texts(findings: Findings, row: Found) -> list[str]:
    """What tells one row from the others."""
    return [key_text(row.keys.get(key)) for key in findings.row_keys]


def key_text(value: Key | None) -> str:
    """A key as it is shown."""
    if value is None:
        return UNDEFINED
    return f"{value:g}" if isinstance(value, float) else str(value)


def overall_table(findings: Findings) -> TextTable:
    """Every strategy against the baseline in every metric, over everything that was run.

    A point-adjusted score is followed by what random scores reach.
    """
    lines: list[TableRow] = []
    last = ""
    for overall in findings.overall:
        label = metric(overall.metric).label
        cells = (label, overall.strategy, str(overall.n), *_tested(overall))
        lines.append(TableRow(cells, group=label != last))
        lines += _random(findings, overall)
        last = label
    against = f" against {findings.baseline}" if findings.baseline else ""
    caption = f"{findings.title}: all pairs{against}"
    return TextTable(OVERALL_HEADINGS, tuple(lines), caption, text_columns=2)


def narrow_overall_table(findings: Findings) -> TextTable:
    """The columns of `overall_table` that fit into a terminal."""
    return overall_table(findings).only(_OVERALL_NARROW)


def coverage_table(findings: Findings) -> TextTable:
    """How much of the grid was run, by strategy."""
    states = Counter(
        (run.strategy, run.state)
        for group in findings.groups
        for run in group.runs
        if run.strategy != BEST_FIXED  # one of the others, chosen by validation
    )
    strategies = dict.fromkeys(strategy for strategy, _ in states)
    lines = []
    for strategy in strategies:
        counts = [states[strategy, state] for state in ("done", "failed", "missing")]
        lines.append(TableRow((strategy, *map(str, counts), str(sum(counts)))))
    total = findings.coverage
    counts = [total.done, total.failed, total.missing, total.total]
    lines.append(TableRow(("all", *map(str, counts)), group=True))
    headings = ("strategy", "done", "failed", "not run", "runs")
    return TextTable(headings, tuple(lines), f"{findings.title}: runs")


def rank_table(ranks: CriticalDifference) -> TextTable:
    """Strategies by average rank, and which cannot be told apart."""
    at = dict(zip(ranks.names, ranks.average_ranks, strict=True))
    lines = []
    for name in ranks.names:
        alike = [clique for clique in ranks.cliques if name in clique]
        others = dict.fromkeys(other for clique in alike for other in clique if other != name)
        lines.append(TableRow((name, f"{at[name]:.2f}", ", ".join(others) or UNDEFINED)))
    headings = ("strategy", "average rank", "not told apart from")
    return TextTable(
        headings, tuple(lines), f"Ranks over {number_format.count(ranks.n, 'problem')}"
    )


def failure_table(findings: Findings) -> TextTable:
    """Every run that failed, and why."""
    keys = tuple(dict.fromkeys(key for group in findings.groups for key in group.keys))
    lines = tuple(
        TableRow(
            (
                *(key_text(group.keys.get(key)) for key in keys),
                group.size,
                run.strategy,
                run.reason or "no reason recorded",
            )
        )
        for group in findings.groups
        for run in group.runs
        if run.state == "failed" and run.strategy != BEST_FIXED
    )
    headings = (*keys, "size", "strategy", "reason")
    return TextTable(headings, lines, f"{findings.title}: failed runs", len(headings))


def result_legend(findings: Findings) -> str:
    """What the columns of the result table mean."""
    over = " and ".join(findings.averaged)
    mean = f"Mean ± sample deviation over {over}. " if over else ""
    shares = {metric(name).share for name in findings.metrics}
    tested = ""
    if any(row.p_value is not None for row in findings.rows):
        tested = " p: paired t-test over seeds; Holm: corrected for the rows of the metric."
    unit = "in percentage points" if shares == {True} else "in percent of the baseline"
    if len(shares) > 1:
        unit += ", for shares in percentage points"
    return (
        f"{mean}Gain: {unit}, positive is better. n: pairs that have a value on both sides, of "
        f"those the paper averages; its numbers are over all of them. Δ gain: ours minus the "
        f"paper's.{tested} {UNDEFINED}: not there."
    )


def _is_pair(findings: Findings) -> bool:
    return len(findings.strategies) == 2 and findings.baseline == findings.strategies[0]


def _caption(findings: Findings) -> str:
    return f"{findings.title}: ours and the paper's ({findings.where})"


def _strategy(findings: Findings, row: Found) -> str:
    """The strategy; for the best fixed rate also which it was, here and in the paper."""
    found = [run_of(findings.groups[place], row.strategy) for place in row.groups]
    chosen = dict.fromkeys(run.chosen for run in found if run is not None and run.chosen)
    papers = row.paper.chosen if row.paper is not None else None
    said = [", ".join(chosen)] if chosen else []
    said += [f"paper {papers}"] if papers else []
    return f"{row.strategy}: {'; '.join(said)}" if said else row.strategy


def _ours(findings: Findings, row: Found, *, several: bool, tested: bool) -> list[str]:
    counted = f"{row.n}/{row.expected}"
    value = number_format.mean_and_spread(row.value)
    if row.strategy == findings.baseline:
        blanks = [""] * (several + len(P_VALUES) * tested)
        return ["", value, "", *blanks, counted]
    won = [gains.count_wins(findings, row)] if several else []
    chance = [number_format.probability(p) for p in (row.p_value, row.adjusted_p_value) if tested]
    base = number_format.mean_and_spread(row.baseline)
    return [base, value, gains.format_gain(row.gain, row.metric), *won, *chance, counted]


def _paper(row: Found) -> list[str]:
    paper: PaperValue | None = row.paper
    if paper is None:
        return [UNDEFINED] * 4
    return [
        number_format.number(paper.baseline),
        number_format.number(paper.value),
        gains.format_gain(paper.gain, row.metric),
        gains.gain_difference(row.gain, paper.gain),
    ]


def _tested(overall: Overall) -> list[str]:
    mean = gains.format_gain(overall.gain, overall.metric)
    by_row = [
        gains.format_gain(one, overall.metric) for one in (overall.row_gain, overall.paper_gain)
    ]
    paper = [*by_row, str(overall.paper_rows)]
    found = overall.comparison
    if found is None:
        return [UNDEFINED, UNDEFINED, mean, *[UNDEFINED] * 6, *paper]
    return [
        f"{number_format.number(found.raw.mean)} → {number_format.number(found.treated.mean)}",
        number_format.percent(found.gain_of_means),
        mean,
        number_format.interval(overall.interval),
        number_format.format_record(found.win_tie_loss),
        number_format.p_value(found.t_test),
        number_format.p_value(found.wilcoxon),
        number_format.probability(overall.adjusted_p_value),
        number_format.number(found.effect_size.value, digits=2),
        *paper,
    ]


def _random(findings: Findings, overall: Overall) -> list[TableRow]:
    name = metric(overall.metric).random
    if name is None:
        return []
    found = [value_of(group, overall.strategy, name) for group in findings.groups]
    reached = [value for value in found if value is not None]
    if not reached:
        return []
    said = f"random ({overall.strategy}): {number_format.number(mean_and_deviation(reached).mean)}"
    blanks = ("",) * (len(OVERALL_HEADINGS) - 3)
    return [TableRow(("", said, str(len(reached)), *blanks), quiet=True)]
