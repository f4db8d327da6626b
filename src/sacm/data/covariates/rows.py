"""Covariates of the rows of a data set, and of the steps after its end."""

from __future__ import annotations

import numpy as np

from sacm.data.covariates.plan import ROLES, CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.data.scaling import ChannelScaler
from sacm.errors import DataError


def covariate_rows(data: ForecastingData, plan: CovariatePlan) -> np.ndarray:
    """Features `[T, K]` of every row, in raw units.

    Raises:
        DataError: The data have other covariates than the plan, or lack timestamps.
    """
    check_roles(data, plan)
    return plan.features(data.covariates, times_by_clock(data, data.timestamps))


def check_roles(data: ForecastingData, plan: CovariatePlan) -> None:
    """Refuse data whose covariates are not those of the plan."""
    for role in ROLES:
        found, wanted = getattr(data, role), getattr(plan, role)
        if found != wanted:
            raise DataError(
                f"{data.name} has the {role} covariates {', '.join(found) or 'none'} but "
                f"{', '.join(wanted) or 'none'} were asked for: read it with {role}=."
            )
    if plan.needs_times and data.timestamps is None:
        raise DataError(
            f"{data.name} has no timestamps, but calendar and holidays need them: time= names "
            "their column."
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


def rows_ahead(
    data: ForecastingData, series: str, plan: CovariatePlan, horizon: int
) -> np.ndarray | None:
    """Columns `[H, k]` of the steps after a series; NaN where a known-future value is missing.

    Past covariates are 0, static features repeat. None if the plan has no columns.
    """
    if data.covariates is None:
        return None
    rows = np.zeros((horizon, len(plan.columns)), dtype=np.float32)
    first, last = len(plan.past), len(plan.past) + len(plan.future)
    rows[:, last:] = data.covariates[data.last_rows(1)[series][0], last:]
    rows[:, first:last] = np.nan
    known = (data.ahead or {}).get(series)
    if known is not None:
        count = min(horizon, len(known))
        rows[:count, first:last] = known[:count, first:last]
    return rows


def window_ahead(
    data: ForecastingData,
    series: str,
    plan: CovariatePlan,
    *,
    rows: np.ndarray,
    times: np.ndarray | None,
    horizon: int,
) -> np.ndarray:
    """Features `[L + H, K]` of the last rows of a series and of the steps after it.

    Args:
        data: The data.
        series: Name of the series.
        plan: The covariates.
        rows: Positions `[L]` of its last rows.
        times: Timestamps `[H]` of the steps; None if there are none.
        horizon: Steps H.

    Raises:
        DataError: Known-future values are missing; the sentence names them.
    """
    columns = rows_ahead(data, series, plan, horizon)
    if columns is not None and data.covariates is not None:
        if np.isnan(columns).any():
            raise missing_future_error(data, series, plan, columns, times)
        columns = np.concatenate([data.covariates[rows], columns])
    stamps = None
    if data.timestamps is not None and times is not None:
        stamps = np.concatenate([data.timestamps[rows], times])
    features = plan.features(columns, times_by_clock(data, stamps))
    features[len(rows) :, : len(plan.past)] = 0
    return features


def missing_future_error(
    data: ForecastingData,
    series: str,
    plan: CovariatePlan,
    columns: np.ndarray,
    times: np.ndarray | None,
) -> DataError:
    """Ask by name for the future values that a forecast needs."""
    gaps = np.isnan(columns)
    lacking = " and ".join(repr(plan.columns[i]) for i in np.flatnonzero(gaps.any(axis=0)))
    first = int(np.flatnonzero(gaps.any(axis=1))[0])
    where = f"series {series!r} of {data.name}" if len(data.last_rows(1)) > 1 else data.name
    span = f"the {len(columns)} steps after the last row"
    if times is not None:
        span = f"{times[0]} to {times[-1]}"
    missing = f"missing from {times[first] if times is not None else f'step {first + 1}'} on"
    empty = ", ".join(data.columns[:3])
    return DataError(
        f"{where}: the forecast needs the values of {lacking} for {span}, {missing}: add rows "
        f"with them after the last one ({empty} stay empty), or give them in a table of their own "
        "with future_data= (--future-data)."
    )
