"""Gains over a baseline by cell and over cells, with intervals and tests.

A *cell* is everything that two runs of a pair share but the seed: data, backbone, size, horizon and
whatever else an experiment varies. Sizes are never mixed in one mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from sacm.errors import ArgumentError
from sacm.experiments.gains import CELL, holm, pair, paired_t_test, t_interval

EXACT_UP_TO = 50  # non-zero differences; above, the signed-rank test uses the normal approximation
FEWEST_RESAMPLED = 5  # the bootstrap of fewer is little more than their range


def pair_runs(
    frame: pd.DataFrame,
    metrics: Sequence[str],
    *,
    baseline: str = "raw",
    cell: Sequence[str] = CELL,
) -> pd.DataFrame:
    """Pair every finished run with that of the baseline of the same cell and seed.

    Args:
        frame: Runs, as `collect_runs` gives them.
        metrics: The results to compare.
        baseline: The strategy that the others are measured by.
        cell: Columns that the runs of a pair share, besides the seed.

    Returns:
        What `sacm.experiments.gains.pair` returns.

    Raises:
        ArgumentError: Two runs have the same cell, strategy and seed.
    """
    done = frame[frame["state"] == "done"]
    shared = [*(name for name in cell if name in done), "seed"]
    check_unique(done, [*shared, "strategy"])
    return pair(done, metrics, baseline=baseline, shared=shared)


def check_unique(frame: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse two runs in one place, and say by which setting to choose between them."""
    twice = frame[frame.duplicated(list(keys), keep=False)]
    if twice.empty:
        return
    first, second = (row for _, row in twice.sort_values(list(keys)).head(2).iterrows())
    place = ", ".join(f"{key} {first[key]}" for key in keys if key != "task")
    results = {"run", "reason", "commit", "threads", *frame.select_dtypes("float")}
    differing = [
        name
        for name in map(str, frame)
        if name not in results and pd.notna(first[name]) and first[name] != second[name]
    ]
    name = differing[0] if differing else "run"
    raise ArgumentError(
        f"{place}: there are two runs, {first['run']} and {second['run']}; choose with "
        f"--where {name}={first[name]}."
    )


def summarise_gains(pairs: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """One row for every metric, group of cells, size and strategy.

    Args:
        pairs: What `pair_runs` returned.
        by: Columns that make a group; all other columns of the cell are averaged over. The size is
            always among them.

    Returns:
        `n` pairs in `cells` cells; mean `before` and `after`; `gain`, the mean over cells of the
        cells' mean gains; `low` and `high`, its 95 % t interval over seeds (one value a seed: the
        mean, over cells with several seeds, of its distance from the cell's mean); `cells_low` and
        `cells_high`, its 95 % bootstrap interval over cells, of five or more; `in_deviations`, the
        mean improvement of a cell in units of the seed deviation of the baseline; `wins`, `ties`
        and `losses` over pairs; `p` of a two-sided test (paired t over the seeds of one cell,
        Wilcoxon's signed ranks over the pairs of several) and `p_holm`, corrected over the rows of
        one metric and size.
    """
    cell = list(pairs.columns[: list(pairs.columns).index("seed")])
    keys = ["metric", *(name for name in cell if name in by or name == "size"), "strategy"]
    numbered = pairs.assign(cell=pairs.groupby(cell, sort=False, dropna=False).ngroup())
    rows = [
        {**dict(zip(keys, values, strict=True)), **_summary(part)}
        for values, part in numbered.groupby(keys, sort=False, dropna=False)
    ]
    table = pd.DataFrame(rows, columns=[*keys, *_SUMMARY])
    families = [name for name in ("metric", "size") if name in table]
    for _, part in table.groupby(families, sort=False):
        adjusted = holm([None if pd.isna(p) else float(p) for p in part["p"]])
        table.loc[part.index, "p_holm"] = pd.Series(adjusted, index=part.index, dtype=float)
    return table


_SUMMARY = (
    *("n", "cells", "seeds", "before", "after", "gain", "low", "high", "cells_low", "cells_high"),
    *("in_deviations", "wins", "ties", "losses", "p", "p_holm"),
)


def _summary(part: pd.DataFrame) -> dict[str, Any]:
    """The row of one group; the column `cell` numbers its cells."""
    cells = part.groupby("cell", sort=False)
    means = cells[["gain", "improvement", "before", "after"]].mean()
    improvement, gain = part["improvement"], float(means["gain"].mean())
    seeds: tuple[float | None, float | None] = (None, None)
    over_cells: tuple[float | None, float | None] = (None, None)
    known = bool(part["gain"].notna().all())
    if known:
        over_cells = bootstrap_interval(means["gain"])
        several = cells["gain"].transform("size") > 1
        distance = (part["gain"] - cells["gain"].transform("mean"))[several]
        low, high = t_interval(distance.groupby(part["seed"]).mean())
        if low is not None and high is not None:
            seeds = gain - (high - low) / 2, gain + (high - low) / 2
    spread = cells["before"].std()
    units = (means["improvement"] / spread)[spread > 0]
    test = paired_t_test if len(means) == 1 else wilcoxon_test
    return {
        "n": len(part),
        "cells": len(means),
        "seeds": part["seed"].nunique(),
        "before": means["before"].mean(),
        "after": means["after"].mean(),
        "gain": gain if known else np.nan,
        "low": seeds[0],
        "high": seeds[1],
        "cells_low": over_cells[0],
        "cells_high": over_cells[1],
        "in_deviations": units.mean() if len(units) else None,
        "wins": int((improvement > 0).sum()),
        "ties": int((improvement == 0).sum()),
        "losses": int((improvement < 0).sum()),
        "p": test(improvement if len(means) == 1 or not known else part["gain"]),
        "p_holm": None,
    }


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of the mean of five or more values, in whatever order."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n < FEWEST_RESAMPLED:
        return None, None
    picks = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(ordered[picks].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def wilcoxon_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of the signed-rank test; zeros are dropped (Wilcoxon's rule).

    Exact, also with tied ranks, up to 50 non-zero differences. With five pairs the smallest
    possible p-value is 0.0625.
    """
    gained = np.asarray(improvement, dtype=np.float64)
    moved = gained[gained != 0]
    if len(moved) < 2:
        return None
    # Rounding makes 0.3 - 0.2 tie with 0.2 - 0.1.
    ranks = stats.rankdata(np.round(np.abs(moved) / np.abs(moved).max(), 12))
    if len(moved) > EXACT_UP_TO:
        return float(stats.wilcoxon(np.sign(moved) * ranks, zero_method="wilcox").pvalue)
    # SciPy is exact without ties only. The distribution of the positive rank sum over all 2^n sign
    # patterns; tied ranks are multiples of one half, so ranks are doubled.
    smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    doubled = np.rint(2 * ranks).astype(int)
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        chance[rank:] += chance[:-rank].copy()  # the rank counts, or it does not
        chance /= 2
    return float(min(1.0, 2 * chance[: round(2 * smaller) + 1].sum()))
