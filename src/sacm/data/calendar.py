"""Calendar features, and the timestamps that follow a series."""

from __future__ import annotations

import numpy as np

from sacm.data.tables.timeline import check_frequency
from sacm.errors import ArgumentError

SECONDS_A_DAY = 86_400
# The first calendar table of the published Informer has this size where a step is a day or longer.
COARSE_STEPS = 60


def stamp_features(timestamps: np.ndarray) -> np.ndarray:
    """Calendar position `[T, 4]` float32, each in [0, 1).

    Columns: position in the day, day of week / 7 (Monday 0), (day of month - 1) / 31,
    (day of year - 1) / 366.
    """
    seconds = timestamps.astype("datetime64[s]")
    days = seconds.astype("datetime64[D]")
    since_epoch = days.astype(np.int64)
    within_day = (seconds - days).astype(np.int64) / SECONDS_A_DAY
    weekday = (since_epoch + 3) % 7 / 7  # 1970-01-01 was a Thursday
    of_month = (days - days.astype("datetime64[M]")).astype(np.int64) / 31
    of_year = (days - days.astype("datetime64[Y]")).astype(np.int64) / 366
    return np.stack([within_day, weekday, of_month, of_year], axis=1).astype(np.float32)


def calendar_sizes(timestamps: np.ndarray) -> tuple[int, int, int, int]:
    """Sizes of the four calendar tables for a series with these timestamps."""
    step = int(np.median(np.diff(timestamps.astype("datetime64[s]")).astype(np.int64)))
    if step >= SECONDS_A_DAY:
        return (COARSE_STEPS, 7, 31, 366)
    return (min(SECONDS_A_DAY // max(step, 1), 1_440), 7, 31, 366)


def future_timestamps(
    timestamps: np.ndarray, horizon: int, *, frequency: str | None = None
) -> np.ndarray:
    """The `horizon` timestamps that follow.

    `frequency` is a pandas alias ("h", "15min", "MS", "B" …); without it the last step repeats.
    """
    if frequency is None:
        if len(timestamps) < 2:
            raise ArgumentError("Two timestamps or a frequency are needed to look ahead.")
        step = timestamps[-1] - timestamps[-2]
        return np.asarray(timestamps[-1] + np.arange(1, horizon + 1) * step)
    import pandas as pd

    check_frequency(frequency)
    ahead = pd.date_range(timestamps[-1], periods=horizon + 1, freq=frequency)
    # A last stamp off the grid is not part of the range, which then has one step too many.
    following = ahead[ahead > timestamps[-1]][:horizon]
    return np.asarray(following, dtype=timestamps.dtype)
