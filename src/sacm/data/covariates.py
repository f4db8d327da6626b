"""Covariates: columns beside the channels, and calendar features, of rows and of steps ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from sacm.data.datasets import ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.errors import ArgumentError, DataError

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


FEATURES = ("hour", "weekday", "monthday", "yearday", "weekend")  # of the calendar


def calendar_features(stamps: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The named features `[N, K]` float32 of times `[N]`, in the order of the names."""
    day, week, month, year = stamp_features(stamps).T
    weekday = np.rint(week * 7).astype(np.int64)  # Monday 0

    def circle(share: np.ndarray) -> np.ndarray:
        """Shares of a period as points on a circle, so that its ends meet."""
        return np.stack([np.sin(2 * np.pi * share), np.cos(2 * np.pi * share)], axis=1)

    features = {
        "hour": circle(day),
        "weekday": np.eye(7)[weekday],
        "monthday": circle(month),
        "yearday": circle(year),
        "weekend": (weekday >= 5)[:, None],
    }
    return np.concatenate([features[name] for name in names], axis=1).astype(np.float32)


def holiday_features(stamps: np.ndarray, place: str) -> np.ndarray:
    """Whether each time lies on, before or after a public holiday, `[N, 3]` float32."""
    days = stamps.astype("datetime64[D]")
    if not len(days):
        return np.zeros((0, 3), dtype=np.float32)
    years = (days.min() - 1, days.max() + 1)
    first, last = (int(day.astype("datetime64[Y]").astype(np.int64)) + 1970 for day in years)
    free = find_holidays(place, first, last)
    return np.stack([np.isin(days + shift, free) for shift in (0, 1, -1)], axis=1).astype(
        np.float32
    )


@lru_cache(maxsize=32)
def find_holidays(place: str, first: int, last: int) -> np.ndarray:
    """The public holidays of a place in the years `first … last`, datetime64 days."""
    try:
        import holidays
    except ImportError:
        raise ArgumentError(
            "holidays = … needs the library holidays: pip install 'sacm[holidays]'."
        ) from None
    country, _, part = place.upper().partition("-")
    years = range(first, last + 1)
    try:
        found: Any = holidays.country_holidays(country, subdiv=part or None, years=years)
    except NotImplementedError:
        raise ArgumentError(
            f"holidays = {place!r} is not known: name a country by two letters, such as DE, or a "
            "part of it, such as US-NY."
        ) from None
    return np.array(sorted(found), dtype="datetime64[D]")


ROLES = ("past", "future", "static")


@dataclass(frozen=True)
class CovariatePlan:
    """The covariates of a run by name.

    Example:
        >>> plan = CovariatePlan(past=("load",), calendar=("weekend",))
        >>> times = np.array(["2024-01-05", "2024-01-06"], dtype="datetime64[s]")
        >>> plan.features(np.array([[3.0], [4.0]]), times).tolist()
        [[3.0, 0.0], [4.0, 1.0]]
    """

    past: tuple[str, ...] = ()  # columns that are known up to the last value of the channels
    future: tuple[str, ...] = ()  # columns that are also known for the steps to forecast
    static: tuple[str, ...] = ()  # columns that never change within a series
    calendar: tuple[str, ...] = ()  # features of the calendar: see `FEATURES`
    holidays: str | None = None  # country, or part of one, whose holidays count

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> CovariatePlan:
        """The plan that options of a run ask for; those that are None or absent ask for nothing."""
        names = {name: options.get(name) or () for name in (*ROLES, "calendar")}
        names = {n: (v,) if isinstance(v, str) else tuple(v) for n, v in names.items()}
        if names["calendar"] == ("all",):
            names["calendar"] = tuple(FEATURES)
        return cls(**names, holidays=options.get("holidays") or None)

    def __post_init__(self) -> None:
        for name in self.calendar:
            if name not in FEATURES:
                known = ", ".join([*FEATURES, "all"])
                raise ArgumentError(f"calendar = {name!r} is not a feature: choose among {known}.")
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if twice:
            raise ArgumentError(
                f"column {twice[0]!r} is named twice: it is a past, a future or a static covariate."
            )

    def __bool__(self) -> bool:
        return bool(self.columns or self.calendar or self.holidays)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the user's table that are covariates, those of the past first."""
        return (*self.past, *self.future, *self.static)

    @property
    def needs_times(self) -> bool:
        """Whether the features cannot be made without timestamps."""
        return bool(self.calendar or self.holidays)

    def features(self, columns: np.ndarray | None, stamps: np.ndarray | None) -> np.ndarray:
        """`[N, K]`: columns `[N, k]`, then calendar and holidays of times `[N]` by the clock."""
        parts = [] if columns is None else [columns.astype(np.float32)]
        if self.needs_times:
            if stamps is None:
                raise DataError(
                    "calendar and holidays need timestamps, which the data lack: --time-column "
                    "names their column."
                )
            parts += [calendar_features(stamps, self.calendar)] if self.calendar else []
            parts += [holiday_features(stamps, self.holidays)] if self.holidays else []
        return np.concatenate(parts, axis=1)

    def describe(self) -> list[str]:
        """Short lines for the user: the columns by their role."""
        words = {"past": "past covariates", "future": "known-future covariates"}
        return [
            f"{words.get(role, 'static features')} (--{role}): {', '.join(getattr(self, role))}"
            for role in ROLES
            if getattr(self, role)
        ]


def covariate_rows(data: ForecastingData, plan: CovariatePlan) -> np.ndarray:
    """Features `[T, K]` of every row, in raw units."""
    check_roles(data, plan)
    return plan.features(data.covariates, times_by_clock(data, data.timestamps))


def check_roles(data: ForecastingData, plan: CovariatePlan) -> None:
    """Refuse data whose covariates are not those of the plan."""
    for role in ROLES:
        found, wanted = getattr(data, role), getattr(plan, role)
        if found != wanted:
            raise DataError(
                f"{data.name} has the {role} covariates {', '.join(found) or 'none'} but "
                f"{', '.join(wanted) or 'none'} were asked for: read it with --{role}."
            )


def fit_covariates(data: ForecastingData, plan: CovariatePlan) -> ChannelScaler:
    """Mean and deviation of every feature in the training rows."""
    rows = covariate_rows(data, plan)
    return ChannelScaler.fit(rows[part.start : part.stop] for part in data.ranges("train"))


def times_by_clock(data: ForecastingData, stamps: np.ndarray | None) -> np.ndarray | None:
    """Timestamps as the local clock shows them; a holiday begins at midnight of its place."""
    if stamps is None or data.zone is None:
        return stamps
    import pandas as pd

    flat = pd.DatetimeIndex(stamps.ravel()).tz_localize("UTC").tz_convert(data.zone)
    return flat.tz_localize(None).to_numpy().reshape(stamps.shape)


def window_ahead(
    data: ForecastingData,
    series: str,
    plan: CovariatePlan,
    *,
    rows: np.ndarray,
    times: np.ndarray | None,
    horizon: int,
) -> np.ndarray:
    """Features `[L + H, K]` of the last rows `[L]` of a series and of the steps after it.

    Past covariates are 0 there, static features repeat, and known-future values must be given.
    """
    columns, past = None, len(plan.past)
    if data.covariates is not None:
        ahead = np.repeat(data.covariates[rows[-1:]], horizon, axis=0)
        future = slice(past, past + len(plan.future))
        ahead[:, future] = np.nan
        known = (data.ahead or {}).get(series, ahead)[:horizon]
        ahead[: len(known), future] = known[:, future]
        ahead[:, :past] = 0
        gaps = np.isnan(ahead)
        if gaps.any():
            lacking = " and ".join(repr(plan.columns[i]) for i in np.flatnonzero(gaps.any(axis=0)))
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
        columns = np.concatenate([data.covariates[rows], ahead])
    stamps = None
    if data.timestamps is not None and times is not None:
        stamps = np.concatenate([data.timestamps[rows], times])
    return plan.features(columns, times_by_clock(data, stamps))


def move_channels(data: ForecastingData, plan: CovariatePlan) -> ForecastingData:
    """The same data with some of their channels as covariates."""
    for name in plan.columns:
        if name not in data.columns:
            known = ", ".join(data.columns[:8])
            raise DataError(f"{data.name}: {name!r} is no channel; channels are {known}.")
    places = [data.columns.index(name) for name in plan.columns]
    rest = [place for place in range(data.channels) if place not in places]
    if not rest:
        raise DataError(f"{data.name}: every channel is a covariate, so none is left to forecast.")
    roles: dict[str, Any] = {role: getattr(plan, role) for role in ROLES}
    moved = np.ascontiguousarray(data.values[:, places])
    return replace(data.take(rest), covariates=moved, **roles)
