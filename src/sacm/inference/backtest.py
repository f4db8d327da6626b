"""Rolling-origin backtests: what forecasts made in the past would have been."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.datasets import ForecastingData, Splits
from sacm.data.scaling import cover_series, fill_gaps
from sacm.errors import ArgumentError
from sacm.inference.forecast import forecast_data
from sacm.inference.predictor import Array, Predictor
from sacm.metrics.forecasting import season_length
from sacm.tasks.calibration import MAX_REPAIRED

if TYPE_CHECKING:
    import pandas as pd


def backtest(
    predictor: Predictor, data: ForecastingData, *, origins: int = 10, step: int | None = None
) -> pd.DataFrame:
    """Forecast from at most so many origins, `step` rows (default: the horizon) apart.

    They end with the data, which are one series, and lie in its test part if it has one.

    Returns:
        One row for each origin, step and channel, in raw units: `forecast` (NaN where too much of
        the rows before an origin was missing), `truth` (NaN where nothing was measured), `naive`
        and `seasonal_naive`, which repeat the last value and the last season, and `scale`, the
        channel's deviation in the training rows. `attrs["season"]` is the length of a season.
    """
    import pandas as pd

    length, horizon = predictor.shape.input_len, predictor.shape.horizon
    places = _find_origins(predictor, data, origins, step or horizon)
    before = _cut(data, 0, int(places[0]))
    season = season_length(fill_gaps(before.values), data.frequency)
    season = season if season <= places[0] else 1
    if predictor.scaler.series:
        # What the network knows the series by; one that it does not is scaled by the rows before.
        name = next(iter(data.last_rows(1)))
        data, before = replace(data, name=name), replace(before, name=name, segments=())
    scaler = cover_series(predictor.scaler, before, length)
    predictor = replace(predictor, scaler=scaler)
    forecasts = np.full((len(places), horizon, data.channels), np.nan)  # [K, H, C]
    for number, origin in enumerate(places.tolist()):
        found = forecast_data(predictor, _cut(data, origin - length, origin), max_repaired=1.0)
        if found.repaired.mean() <= MAX_REPAIRED:
            forecasts[number] = found.values[0]
    origin, ahead, channel = (each.ravel() for each in np.indices(forecasts.shape))
    rows = places[origin] + ahead
    truth, values = data.clean[rows, channel].astype(np.float64), data.values.astype(np.float64)
    if data.observed is not None:
        truth[data.observed[rows, channel] < 1] = np.nan
        values[data.observed == 0] = np.nan
    # Naive forecasts repeat what was measured before each origin, and nothing after it.
    past = np.stack([fill_gaps(values[: int(place)])[-season:] for place in places])
    frame = pd.DataFrame(
        {
            "origin": places[origin] + 1,
            "step": ahead + 1,
            "row": rows + 1,
            **({} if data.timestamps is None else {"time": data.timestamps[rows]}),
            "channel": np.array(data.columns)[channel],
            "forecast": forecasts.ravel(),
            "truth": truth,
            "naive": past[origin, -1, channel],
            "seasonal_naive": past[origin, ahead % season, channel],
            "scale": scaler.of_series(list(before.last_rows(1))).std.reshape(-1)[channel],
        }
    )
    frame.attrs |= {"season": season, "unit": ", z-scored" if data.channels > 1 else ""}
    return frame


def errors_by_origin(frame: pd.DataFrame) -> pd.DataFrame:
    """One row an origin: MAE of a backtest's forecasts and of naive ones; `attrs` has the unit."""
    naive = ["naive", *(["seasonal_naive"] if frame.attrs["season"] > 1 else [])]
    scale = frame["scale"] if frame.attrs["unit"] else 1.0
    errors = frame[["forecast", *naive]].sub(frame["truth"], axis=0).div(scale, axis=0)
    table = errors.abs().groupby(frame["origin"]).mean().rename(columns={"forecast": "mae"})
    if "time" in frame:
        table.insert(0, "from", frame.groupby("origin")["time"].first())
    return table.rename_axis("row").reset_index()


def _find_origins(predictor: Predictor, data: ForecastingData, count: int, step: int) -> Array:
    """First forecast rows, ascending."""
    if predictor.settings.task != "forecasting":
        raise ArgumentError(f"a network for {predictor.settings.task} has nothing to backtest.")
    if len(data.last_rows(1)) > 1:
        raise ArgumentError(f"{data.name} holds several series: backtest one of them at a time.")
    horizon, rows, earliest = predictor.shape.horizon, len(data.values), predictor.shape.input_len
    if len(data.splits.test):
        earliest = max(earliest, data.splits.test.start)
    last = rows - horizon
    if last < earliest:
        before = f"of which the first {earliest} come before any origin"
        raise ArgumentError(f"{data.name} has {rows} rows, {before}: too few for {horizon} steps.")
    return last - step * np.arange(min(count, (last - earliest) // step + 1))[::-1]


def _cut(data: ForecastingData, start: int, stop: int) -> ForecastingData:
    """Rows `start … stop - 1` of one series."""
    names = ("values", "timestamps", "targets", "observed", "covariates", "interpolated")
    given = {name: getattr(data, name) for name in names}
    arrays: Any = {name: each[start:stop] for name, each in given.items() if each is not None}
    rows = range(stop - start)
    # Only known-future covariates are taken from what lies ahead.
    ahead = None if data.covariates is None else {data.name: data.covariates[stop:]}
    splits = Splits(rows, rows[:0], rows[:0])
    return replace(data, splits=splits, segments=(), ahead=ahead, **arrays)
