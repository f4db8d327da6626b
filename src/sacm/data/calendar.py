"""What the calendar says about times: features of rows, and the times that follow a series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

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

    from sacm.data.grid import check_frequency

    check_frequency(frequency)
    ahead = pd.date_range(timestamps[-1], periods=horizon + 1, freq=frequency)
    # A last stamp off the grid is not part of the range, which then has one step too many.
    following = ahead[ahead > timestamps[-1]][:horizon]
    return np.asarray(following, dtype=timestamps.dtype)


HOLIDAY_NAMES = ("holiday", "day before a holiday", "day after a holiday")
_EVERYTHING = "all"


def _circle(share: np.ndarray) -> np.ndarray:
    """Shares `[N]` of a period as points on a circle `[N, 2]`, so that its ends meet."""
    angle = 2 * np.pi * share
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def _weekdays(stamps: np.ndarray) -> np.ndarray:
    """Day of the week `[N]`, Monday 0."""
    return np.asarray(np.rint(stamp_features(stamps)[:, 1] * 7), dtype=np.int64)


def _weekend(stamps: np.ndarray) -> np.ndarray:
    return (_weekdays(stamps) >= 5)[:, None]


# Each gives `[N, …]` for the times of N rows.
FEATURES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hour": lambda stamps: _circle(stamp_features(stamps)[:, 0]),
    "weekday": lambda stamps: np.eye(7)[_weekdays(stamps)],
    "monthday": lambda stamps: _circle(stamp_features(stamps)[:, 2]),
    "yearday": lambda stamps: _circle(stamp_features(stamps)[:, 3]),
    "weekend": _weekend,
}


def check_calendar(names: Sequence[str]) -> tuple[str, ...]:
    """The features that are asked for; "all" stands for each of them.

    Raises:
        ArgumentError: There is no such feature.
    """
    if tuple(names) == (_EVERYTHING,):
        return tuple(FEATURES)
    for name in names:
        if name not in FEATURES:
            known = ", ".join([*FEATURES, _EVERYTHING])
            raise ArgumentError(f"calendar = {name!r} is not a feature: choose among {known}.")
    return tuple(names)


def calendar_features(stamps: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The named features `[N, K]` float32 of times `[N]`, in the order of the names."""
    parts = [FEATURES[name](stamps) for name in check_calendar(names)]
    return np.concatenate(parts, axis=1).astype(np.float32)


def holiday_features(stamps: np.ndarray, place: str) -> np.ndarray:
    """Whether each time lies on, before or after a public holiday, `[N, 3]` float32.

    Args:
        stamps: Times `[N]` by the local clock.
        place: A country as two letters, or a part of one: "DE", "US-NY".
    """
    days = stamps.astype("datetime64[D]")
    if not len(days):
        return np.zeros((0, len(HOLIDAY_NAMES)), dtype=np.float32)
    years = (days.min() - 1, days.max() + 1)
    first, last = (int(day.astype("datetime64[Y]").astype(np.int64)) + 1970 for day in years)
    free = find_holidays(place, first, last)
    shifts = (0, 1, -1)
    return np.stack([np.isin(days + shift, free) for shift in shifts], axis=1).astype(np.float32)


@lru_cache(maxsize=32)
def find_holidays(place: str, first: int, last: int) -> np.ndarray:
    """The public holidays of a place in the years `first … last`, datetime64 days.

    Raises:
        ArgumentError: The library `holidays` is not installed, or does not know the place.
    """
    try:
        import holidays
    except ImportError:
        raise ArgumentError(
            "holidays = … needs the library holidays: pip install 'sacm[holidays]'."
        ) from None
    country, _, part = place.partition("-")
    found: dict[Any, str]
    try:
        found = holidays.country_holidays(
            country.upper(), subdiv=part.upper() or None, years=range(first, last + 1)
        )
    except NotImplementedError:
        raise ArgumentError(
            f"holidays = {place!r} is not known: name a country by two letters, such as DE, or a "
            "part of it, such as US-NY."
        ) from None
    return np.array(sorted(found), dtype="datetime64[D]")
