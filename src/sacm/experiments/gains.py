"""What strategies gain over a baseline in pairs of runs; what values cannot tell is None or NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from sacm.metrics.catalogue import metric as find_metric
from sacm.reports.table import is_undefined, signed

CELL = ("task", "data", "backbone", "size", "horizon")  # what the runs of a pair share
TIE_TOLERANCE = 1e-9  # of the larger magnitude: closer values are one value


def pair(
    frame: pd.DataFrame, metrics: Sequence[str], *, baseline: str, shared: Sequence[str]
) -> pd.DataFrame:
    """Put every run beside that of the baseline strategy.

    Args:
        frame: One row a run: the columns `shared`, `strategy`, and the metrics.
        metrics: The results to compare.
        baseline: The strategy that the others are measured by.
        shared: Columns that the runs of a pair share, such as `seed`.

    Returns:
        One row a pair and metric. `improvement` is positive where `after` is better, `gain` is in
        percent of `before`, or in percentage points for metrics that are shares.
    """
    measured = [name for name in metrics if name in frame]
    long = frame.melt([*shared, "strategy"], measured, "metric", "after").dropna(subset="after")
    long["after"] = long["after"].astype(float)
    is_baseline = long["strategy"] == baseline
    before = long[is_baseline].drop(columns="strategy").rename(columns={"after": "before"})
    pairs = long[~is_baseline].merge(before, on=[*shared, "metric"])
    kinds = [find_metric(name.partition("@")[0]) for name in pairs["metric"]]
    change = pairs["after"] - pairs["before"]
    change *= [1.0 if kind.higher_is_better else -1.0 for kind in kinds]
    larger = pairs[["before", "after"]].abs().max(axis=1)
    pairs["improvement"] = change.where(change.abs() > TIE_TOLERANCE * larger, 0.0)
    size = pairs["before"].abs().replace(0.0, np.nan)
    relative = (100 * change / size).where(pairs["improvement"] != 0, 0.0)
    is_share = pd.Series([kind.share for kind in kinds], index=pairs.index, dtype=bool)
    pairs["gain"] = relative.where(~is_share, 100 * pairs["improvement"])
    return pairs[[*shared, "strategy", "metric", "before", "after", "improvement", "gain"]]


def summarise(pairs: pd.DataFrame) -> pd.DataFrame:
    """Summarise what `pair` returned: one row a metric and strategy.

    `gain` is the mean over `n` pairs, `low` and `high` its 95 % t interval, `p` that of a paired
    t-test, and `p_holm` the same corrected over the strategies.
    """
    rows: list[dict[str, Any]] = []
    for (name, strategy), part in pairs.groupby(["metric", "strategy"], sort=False):
        row = {"metric": name, "strategy": strategy, "n": len(part)}
        row |= part[["before", "after", "gain"]].mean(skipna=False)
        row["low"], row["high"] = t_interval(part["gain"])
        signs = np.sign(part["improvement"]).value_counts()
        row |= {word: int(signs.get(sign, 0)) for word, sign in _OUTCOMES.items()}
        rows.append({**row, "p": paired_t_test(part["improvement"])})
    for row in rows:
        family = [each for each in rows if each["metric"] == row["metric"]]
        row["p_holm"] = holm([each["p"] for each in family])[family.index(row)]
    return pd.DataFrame(rows, columns=_SUMMARY)


_OUTCOMES = {"wins": 1.0, "ties": 0.0, "losses": -1.0}
_SUMMARY = ["metric", "strategy", "n", "before", "after", "gain", "low", "high"]
_SUMMARY += [*_OUTCOMES, "p", "p_holm"]


def t_interval(values: ArrayLike) -> tuple[float, float] | tuple[None, None]:
    """Student's 95 % interval of the mean of few values, such as seeds; None of a single one."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return None, None
    half = stats.t.ppf(0.975, len(array) - 1) * stats.sem(array)
    return float(array.mean() - half), float(array.mean() + half)


def paired_t_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of a mean improvement of 0; None of one value, or of equal ones."""
    gained = np.asarray(improvement, dtype=np.float64)
    if len(gained) < 2 or gained.std(ddof=1) <= 1e-12 * abs(gained.mean()):
        return None
    return float(stats.ttest_1samp(gained, 0).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Step-down correction over all defined p-values, in the given order; None stays None."""
    defined = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, at) in enumerate(defined):
        running = max(running, min(1.0, (len(defined) - rank) * p))
        adjusted[at] = running
    return adjusted


def format_gain(value: float | None, metric: str) -> str | None:
    """A gain in percent, or in percentage points for a share; None where it is not defined."""
    if value is None or is_undefined(value):
        return None
    return f"{signed(value)} {'pp' if find_metric(metric).share else '%'}"
