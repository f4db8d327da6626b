"""The tables of a comparison."""

from __future__ import annotations

from collections.abc import Iterator

from sacm.display.text_table import TableRow, TextTable
from sacm.experiments.compare import Comparison, StrategySummary
from sacm.metrics.catalogue import metric
from sacm.reports import number_format
from sacm.reports.number_format import UNDEFINED
from sacm_lab.paper.published import PaperRow

HEADINGS = (
    "metric",
    "strategy",
    "mean ± std",
    "difference",
    "gain",
    "95 % interval",
    "W/T/L",
    "p (t)",
    "p (W)",
    "n",
)
# What fits into 80 columns of a terminal.
NARROW_COST = ("strategy", "epochs", "seconds", "rate mean", "rate spread", "n")
NARROW = ("metric", "strategy", "mean ± std", "gain", "W/T/L", "p (t)", "p (W)", "n")
_BASELINE = ("",) * 6  # of the first strategy, which is not measured by itself

_TESTS = (
    "W/T/L: seeds won, tied, lost. p: two-sided paired t-test and Wilcoxon's signed-rank test, not "
    "corrected for the number of metrics; with n pairs Wilcoxon's p cannot fall below 2^(1−n)."
)
ANOMALY_LEGEND = (
    "PA: point-adjusted, where a whole anomaly counts as found when a single point of it is. "
    "Random: what random scores that raise as many alarms as a strategy reach under the same "
    "adjustment. Best: with the threshold chosen by the labels, an upper bound."
)
LEGEND = (
    "Mean ± sample deviation over n seeds. Difference and gain: against the first strategy, "
    "positive is better; gain is that of the means, and its interval the bootstrap of the seeds' "
    f"own gains, in percent. {_TESTS}"
)
NARROW_LEGEND = (
    "Mean ± sample deviation over n seeds. Gain: of the means against the first strategy, positive "
    f"is better. {_TESTS}"
)


def paired_table(comparison: Comparison) -> TextTable:
    """Every metric of every strategy, with the published row below ours where there is one."""
    rows: list[TableRow] = []
    for name in comparison.metrics:
        rows += _metric_rows(comparison, name)
    seeds = ", ".join(map(str, comparison.seeds))
    caption = f"Test results over {number_format.count(len(comparison.seeds), 'seed')}: {seeds}"
    return TextTable(HEADINGS, tuple(rows), caption, text_columns=2)


def _metric_rows(comparison: Comparison, name: str) -> Iterator[TableRow]:
    known = metric(name)
    for number, summary in enumerate(comparison.summaries):
        values = summary.metrics.get(name)
        n = values.n if values else 0
        start = (known.label if number == 0 else "", summary.strategy)
        cells = (number_format.mean_and_spread(values), *_against_first(comparison, summary, name))
        yield TableRow((*start, *cells, str(n)), group=number == 0)
        if known.random is not None and known.random in summary.metrics:
            chance = summary.metrics[known.random]
            start = ("", f"random ({summary.strategy})")
            cells = (number_format.mean_and_spread(chance), *_BASELINE)
            yield TableRow((*start, *cells, str(chance.n)), quiet=True)
    if name == "mse" and comparison.paper is not None:
        yield from _paper_rows(comparison.paper)


def _against_first(comparison: Comparison, summary: StrategySummary, name: str) -> tuple[str, ...]:
    if summary.strategy == comparison.strategies[0]:
        return _BASELINE
    result = comparison.pair(summary.strategy, name).result
    if result is None:
        return (UNDEFINED,) * len(_BASELINE)
    share, like = metric(name).share, result.raw.mean
    return (
        number_format.format_difference(result.improvement.mean, share=share, like=like),
        number_format.percent(result.gain_of_means),
        number_format.interval(result.gain_interval),
        number_format.format_record(result.win_tie_loss),
        number_format.p_value(result.t_test),
        number_format.p_value(result.wilcoxon),
    )


def _paper_rows(paper: PaperRow) -> Iterator[TableRow]:
    def cell(mean: float, std: float) -> str:
        return f"{mean:.4f} ± {std:.4f}"

    n = str(paper.n)
    yield TableRow(
        ("", "raw (paper)", cell(paper.raw_mean, paper.raw_std), *_BASELINE, n), quiet=True
    )
    gained = paper.raw_mean - paper.sacm_mean
    found = (
        number_format.format_difference(gained, share=False, like=paper.raw_mean),
        number_format.percent(paper.gain),
        UNDEFINED,
        f"{paper.wins}/{paper.ties}/{paper.losses}",
        f"{paper.p_value:.3f}",
        UNDEFINED,
    )
    yield TableRow(
        ("", "sacm (paper)", cell(paper.sacm_mean, paper.sacm_std), *found, n), quiet=True
    )


def cost_table(comparison: Comparison) -> TextTable:
    """Epochs, seconds, parameters and rates of every strategy."""
    rows = []
    for summary in comparison.summaries:
        first = comparison.run(summary.strategy, comparison.seeds[0])
        rows.append(
            TableRow(
                (
                    summary.strategy,
                    number_format.mean_and_spread(summary.epochs, digits=3),
                    number_format.mean_and_spread(summary.seconds, digits=3),
                    number_format.mean_and_spread(summary.seconds_per_epoch, digits=3),
                    f"{first.parameters:,}",
                    number_format.mean_and_spread(summary.rate_mean, digits=3),
                    number_format.mean_and_spread(summary.rate_spread, digits=3),
                    str(summary.n),
                )
            )
        )
    headings = (
        "strategy",
        "epochs",
        "seconds",
        "s / epoch",
        "parameters",
        "rate mean",
        "rate spread",
        "n",
    )
    caption = "Cost of training, and dropout rates of the windows in the last epoch"
    return TextTable(headings, tuple(rows), caption)


def settings_table(comparison: Comparison) -> TextTable:
    """What all runs share."""
    rows = [
        TableRow((name.replace("_", " "), _plain(value)))
        for name, value in comparison.settings.items()
        if value not in (None, {})
    ]
    rows += [
        TableRow(("strategies", ", ".join(comparison.strategies))),
        TableRow(("seeds", ", ".join(map(str, comparison.seeds)))),
        TableRow(("test windows", f"{comparison.runs[0].evaluated_windows:,}")),
        TableRow(("data fingerprint", comparison.fingerprint)),
    ]
    return TextTable(("setting", "value"), tuple(rows), text_columns=2)


def environment_table(comparison: Comparison) -> TextTable:
    """Where the first of the runs was made."""
    record = {k: v for k, v in comparison.environment.items() if k != "fingerprint"}
    packages = record.pop("packages", {})
    if record.get("git") is None:  # not in a repository, so nothing in it has changed either
        record.pop("git_changed", None)
    rows = [
        TableRow((name.replace("_", " "), _plain(value)))
        for name, value in {**record, **packages}.items()
        if value is not None
    ]
    return TextTable(("environment", "value"), tuple(rows), text_columns=2)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
