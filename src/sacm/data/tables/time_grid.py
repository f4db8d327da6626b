"""Regular grids that timestamps lie on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

CALENDAR_STEPS = ("B", "MS", "ME", "QS", "QE", "YS", "YE")


def full_grid(index: pd.DatetimeIndex, frequency: str | None) -> pd.DatetimeIndex | None:
    """The tightest regular grid that all of `index` lies on, if at least half of it is there."""
    import pandas as pd

    step = pd.Series(index).diff().median()
    # A stray date far away would make a grid that does not fit into memory.
    if (index[-1] - index[0]) / step > 4 * len(index):
        return None
    candidates = (frequency,) if frequency else (step, *CALENDAR_STEPS)
    grids = [pd.date_range(index[0], index[-1], freq=candidate) for candidate in candidates]
    fitting = [grid for grid in grids if (grid.get_indexer(index) >= 0).all()]
    tightest = min(fitting, key=len, default=None)
    return None if tightest is None or len(tightest) > 2 * len(index) else tightest


def is_even(stamps: pd.Series, groups: pd.Series | None = None) -> bool:
    """Whether dates, in any order, lie on a regular grid; those of each group on one of its own."""
    return grid_cost(stamps, groups)[0] == 0


def grid_cost(stamps: pd.Series, groups: pd.Series | None = None) -> tuple[float, ...]:
    """What it takes to put dates on a regular grid; lower is better.

    Args:
        stamps: Dates `[T]` in the order of the table.
        groups: Which series each row belongs to; the worst series counts.

    Returns:
        Whether they lie on no grid (0 or 1), whether they need sorting (0: no, 1: they only run
        backwards, 2: yes), and the share of rows to fill in.
    """
    import pandas as pd

    if groups is not None:
        return max(grid_cost(own) for _, own in stamps.groupby(groups.to_numpy(), sort=False))
    steps = np.diff(stamps.to_numpy()).astype(np.int64)
    disorder = 0 if (steps > 0).all() else 1 if (steps < 0).all() else 2
    index = pd.DatetimeIndex(stamps.unique()).sort_values()
    if len(index) < 3 or pd.infer_freq(index) is not None:
        return (0, disorder, 0.0)
    grid = full_grid(index, None)
    return (1, disorder, 0.0) if grid is None else (0, disorder, len(grid) / len(index) - 1)
