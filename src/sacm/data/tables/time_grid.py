"""Regular grids that timestamps lie on."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    import pandas as pd

    if groups is not None:
        return all(is_even(own) for _, own in stamps.groupby(groups.to_numpy(), sort=False))
    index = pd.DatetimeIndex(stamps.unique()).sort_values()
    return len(index) < 3 or pd.infer_freq(index) is not None or full_grid(index, None) is not None
