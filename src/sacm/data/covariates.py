"""Covariates: columns beside the channels, of rows and steps ahead; positions in the calendar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from sacm.data.datasets import ForecastingData
from sacm.errors import ArgumentError, DataError

SECONDS_A_DAY = 86_400
# The first calendar table of the published Informer has this size where a step is a day or longer.
COARSE_STEPS = 60
# Columns that are known up to the last value of the channels; for the steps to forecast, too.
ROLES = ("past", "future")
Roles = dict[str, tuple[str, ...]]


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


def future_timestamps(timestamps: np.ndarray, horizon: int, frequency: str | None) -> np.ndarray:
    """The `horizon` timestamps that follow; without a frequency the last step repeats."""
    import pandas as pd

    step: Any = frequency or pd.Timedelta(timestamps[-1] - timestamps[-2])
    ahead = pd.date_range(timestamps[-1], periods=horizon + 1, freq=step)
    # A last stamp off the grid is not part of the range, which then has one step too many.
    following = ahead[ahead > timestamps[-1]][:horizon]
    return np.asarray(following, dtype=timestamps.dtype)


def roles_of(options: Mapping[str, Any]) -> Roles:
    """The columns that options ask for by role, none where they ask for nothing."""
    given = {role: options.get(role) or () for role in ROLES}
    roles = {k: (names,) if isinstance(names, str) else tuple(names) for k, names in given.items()}
    for name, count in Counter(name for names in roles.values() for name in names).items():
        if count > 1:
            raise ArgumentError(
                f"column {name!r} is named twice: it is a past or future covariate."
            )
    return roles


def check_roles(data: ForecastingData, roles: Roles) -> None:
    """Refuse data whose covariates are not those that were asked for."""
    for role, wanted in roles.items():
        if getattr(data, role) != wanted:
            raise DataError(
                f"{data.name} has the {role} covariates {', '.join(getattr(data, role)) or 'none'} "
                f"but {', '.join(wanted) or 'none'} were asked for: read it with --{role}."
            )


def window_ahead(
    data: ForecastingData, series: str, *, rows: np.ndarray, times: np.ndarray | None, horizon: int
) -> np.ndarray:
    """Covariates `[L + H, K]` of the last rows `[L]` of a series and of the steps after it.

    Past covariates are 0 there, and known-future values must be given.
    """
    assert data.covariates is not None
    past, columns = len(data.past), (*data.past, *data.future)
    ahead = np.zeros((horizon, len(columns)), np.float32)
    ahead[:, past:] = np.nan
    known = (data.ahead or {}).get(series, ahead)[:horizon]
    ahead[: len(known), past:] = known[:, past:]
    gaps = np.isnan(ahead)
    if gaps.any():
        lacking = " and ".join(repr(columns[i]) for i in np.flatnonzero(gaps.any(axis=0)))
        first = int(np.flatnonzero(gaps.any(axis=1))[0])
        where = f"series {series!r} of {data.name}" if len(data.last_rows(1)) > 1 else data.name
        span, begin = f"the {horizon} steps after the last row", f"step {first + 1}"
        if times is not None:
            span, begin = f"{times[0]} to {times[-1]}", str(times[first])
        raise DataError(
            f"{where}: the forecast needs the values of {lacking} for {span}, missing from "
            f"{begin} on: add rows with them after the last one "
            f"({', '.join(data.columns[:3])} stay empty)."
        )
    return np.concatenate([data.covariates[rows], ahead]).astype(np.float32)
