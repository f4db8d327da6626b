"""From a frame of runs to gains over a baseline: in pairs, by cell, and over cells.

A *cell* is everything that two runs of a pair share but the seed: data, backbone, size, horizon and
whatever else an experiment varies. Sizes are never mixed in one mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sacm.errors import ArgumentError
from sacm.experiments.statistics import (
    Interval,
    bootstrap_interval,
    holm,
    paired_t_test,
    t_interval,
    wilcoxon_test,
)
from sacm.metrics.catalogue import metric as find_metric
from sacm.reports.table import is_undefined, percent, signed

CELL = ("task", "data", "backbone", "size", "horizon")
TIE_TOLERANCE = 1e-9  # of the larger magnitude: closer values are one value


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
        One row a pair and metric: the columns of `cell`, `seed`, `strategy`, `metric`, `before`,
        `after`, `improvement` (positive is better) and `gain`: in percent of `before`, or in
        percentage points for metrics that are shares.

    Raises:
        ArgumentError: Two runs have the same cell, strategy and seed.
    """
    done = frame[frame["state"] == "done"]
    shared = [*(name for name in cell if name in done), "seed"]
    check_unique(done, [*shared, "strategy"])
    measured = [name for name in metrics if name in done]
    long = done.melt([*shared, "strategy"], measured, "metric", "after").dropna(subset="after")
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
    seeds = over_cells = Interval(None, None)
    known = bool(part["gain"].notna().all())
    if known:
        over_cells = bootstrap_interval(means["gain"])
        several = cells["gain"].transform("size") > 1
        distance = (part["gain"] - cells["gain"].transform("mean"))[several]
        around = t_interval(distance.groupby(part["seed"]).mean())
        if around.low is not None and around.high is not None:
            half = (around.high - around.low) / 2
            seeds = Interval(gain - half, gain + half)
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
        "low": seeds.low,
        "high": seeds.high,
        "cells_low": over_cells.low,
        "cells_high": over_cells.high,
        "in_deviations": units.mean() if len(units) else None,
        "wins": int((improvement > 0).sum()),
        "ties": int((improvement == 0).sum()),
        "losses": int((improvement < 0).sum()),
        "p": test(improvement if len(means) == 1 or not known else part["gain"]),
        "p_holm": None,
    }


def format_gain(value: float | None, metric: str) -> str | None:
    """A gain in percent, or in percentage points for a share; None where it is not defined."""
    if value is None or is_undefined(value):
        return None
    return f"{signed(value)} pp" if find_metric(metric).share else percent(value)
