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
    Floats,
    Interval,
    bootstrap_interval,
    holm,
    improvements,
    paired_t_test,
    relative_gain,
    t_interval,
    wilcoxon_test,
)
from sacm.metrics.catalogue import metric as find_metric
from sacm.reports.table import is_undefined, percent, signed

CELL = ("task", "data", "backbone", "size", "horizon")


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
    keys = [name for name in cell if name in done]
    check_unique(done, [*keys, "strategy", "seed"])
    before = done[done["strategy"] == baseline]
    others = done[done["strategy"] != baseline]
    rows: list[dict[str, Any]] = []
    together = others.merge(before, on=[*keys, "seed"], suffixes=("", "|before"))
    for row in together.to_dict("records"):
        for name in metrics:
            first, second = row.get(f"{name}|before"), row.get(name)
            if pd.notna(first) and pd.notna(second):
                shared = {key: row[key] for key in (*keys, "seed", "strategy")}
                rows.append({**shared, **_compare(name, float(first), float(second))})
    columns = [*keys, "seed", "strategy", "metric", "before", "after", "improvement", "gain"]
    return pd.DataFrame(rows, columns=columns)


def check_unique(frame: pd.DataFrame, keys: Sequence[str]) -> None:
    """Refuse two runs in one place, and say by which setting to choose between them."""
    twice = frame[frame.duplicated(list(keys), keep=False)]
    if twice.empty:
        return
    first, second = (row for _, row in twice.sort_values(list(keys)).head(2).iterrows())
    place = ", ".join(f"{key} {first[key]}" for key in keys if key != "task")
    ignored = {"run", "reason", "commit", "threads"}
    differing = [
        name
        for name in map(str, frame.columns)
        if name not in ignored and not isinstance(first[name], float)
        if pd.notna(first[name]) and first[name] != second[name]
    ]
    by = f"--where {differing[0]}={first[differing[0]]}" if differing else "--where run=NAME"
    raise ArgumentError(
        f"{place}: there are two runs, {first['run']} and {second['run']}; choose with {by}."
    )


def _compare(name: str, before: float, after: float) -> dict[str, Any]:
    known = find_metric(name.partition("@")[0])
    better = known.higher_is_better
    (improvement,) = improvements([before], [after], higher_is_better=better)
    if known.share:
        gain: float | None = 100 * float(improvement)
    else:
        gain = relative_gain(before, after, higher_is_better=better) if improvement else 0.0
    values = {"before": before, "after": after, "improvement": float(improvement), "gain": gain}
    return {"metric": name, **values}


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
    groups = [name for name in cell if name in by or name == "size"]
    rows = []
    keys = ["metric", *groups, "strategy"]
    numbered = pairs.assign(cell=pairs.groupby(cell, sort=False, dropna=False).ngroup())
    for values, part in numbered.groupby(keys, sort=False, dropna=False):
        rows.append({**dict(zip(keys, values, strict=True)), **_summary(part)})
    found = pd.DataFrame(rows, columns=[*keys, *_SUMMARY])
    families = [name for name in ("metric", "size") if name in found]
    for _, part in found.groupby(families, sort=False):
        adjusted = holm([None if pd.isna(p) else float(p) for p in part["p"]])
        found.loc[part.index, "p_holm"] = pd.Series(adjusted, index=part.index, dtype=float)
    return found


_SUMMARY = (
    *("n", "cells", "seeds", "before", "after", "gain", "low", "high", "cells_low", "cells_high"),
    *("in_deviations", "wins", "ties", "losses", "p", "p_holm"),
)


def _summary(part: pd.DataFrame) -> dict[str, Any]:
    """The row of one group; the column `cell` numbers its cells."""
    cell, seed = part["cell"].to_numpy(), part["seed"].to_numpy()
    columns = ("gain", "improvement", "before", "after")
    gain, improvement, before, after = (part[name].to_numpy(dtype=float) for name in columns)
    cells = [cell == each for each in dict.fromkeys(cell.tolist())]

    def by_cell(values: Floats) -> Floats:
        return np.array([values[own].mean() for own in cells])

    means = by_cell(gain)
    alone, known = len(cells) == 1, bool(np.isfinite(means).all())
    seeds = _over_seeds(gain, seed, cells) if known else Interval(None, None)
    over = bootstrap_interval(means) if known else Interval(None, None)
    spread = [before[own].std(ddof=1) if own.sum() > 1 else 0.0 for own in cells]
    units = [i / s for i, s in zip(by_cell(improvement), spread, strict=True) if s > 0]
    tested = improvement if alone or not known else gain
    return {
        "n": len(part),
        "cells": len(cells),
        "seeds": len(set(seed.tolist())),
        "before": by_cell(before).mean(),
        "after": by_cell(after).mean(),
        "gain": means.mean(),
        "low": seeds.low,
        "high": seeds.high,
        "cells_low": over.low,
        "cells_high": over.high,
        "in_deviations": float(np.mean(units)) if units else None,
        "wins": int((improvement > 0).sum()),
        "ties": int((improvement == 0).sum()),
        "losses": int((improvement < 0).sum()),
        "p": paired_t_test(tested) if alone else wilcoxon_test(tested),
        "p_holm": None,
    }


def _over_seeds(gain: Floats, seed: Any, cells: list[Any]) -> Interval:
    """The interval of the mean gain if other seeds had been drawn for the same cells."""
    mean = float(np.mean([gain[own].mean() for own in cells]))
    distances: dict[Any, list[float]] = {}
    for own in (each for each in cells if each.sum() > 1):
        for name, value in zip(seed[own].tolist(), gain[own] - gain[own].mean(), strict=True):
            distances.setdefault(name, []).append(float(value))
    if not distances:
        return Interval(None, None)
    around = t_interval([float(np.mean(values)) for values in distances.values()])
    if around.low is None or around.high is None:
        return around
    half = (around.high - around.low) / 2
    return Interval(mean - half, mean + half)


def format_gain(value: float | None, metric: str) -> str | None:
    """A gain in percent, or in percentage points for a share; None where it is not defined."""
    if value is None or is_undefined(value):
        return None
    return f"{signed(value)} pp" if find_metric(metric).share else percent(value)
