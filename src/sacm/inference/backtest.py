"""Rolling-origin backtests: what forecasts made in the past, one after the other, would have been.

At each origin the network sees the rows before it and forecasts those that follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts `[K, H, C]` from K origins, the truth, and what repeating the past would have said.

    All are in raw units.
    """

    data: ForecastingData
    origins: Array  # [K] first forecast row
    forecasts: Array  # NaN where too much of the rows before an origin was missing
    truth: Array  # NaN where nothing was observed
    naive: Array  # the last value, repeated
    seasonal: Array  # the last season, repeated
    season: int  # its length in steps
    scale: Array  # [C] deviation of each channel, in which errors are stated

    def table(self) -> pd.DataFrame:
        """One row an origin: MAE in deviations of the training rows, also of naive forecasts."""
        import pandas as pd

        def errors(forecasts: Array) -> Array:
            off = np.abs(forecasts - self.truth) / self.scale
            return pd.DataFrame(off.reshape(len(off), -1)).mean(axis=1).to_numpy()

        columns: dict[str, Any] = {"row": self.origins + 1}
        if self.data.timestamps is not None:
            columns["from"] = self.data.timestamps[self.origins]
        columns |= {"mae": errors(self.forecasts), "naive": errors(self.naive)}
        if self.season > 1:
            columns["seasonal_naive"] = errors(self.seasonal)
        return pd.DataFrame(columns)

    def long(self) -> pd.DataFrame:
        """One row for each origin, step and channel: forecast and truth in raw units."""
        import pandas as pd

        origin, step, channel = (each.ravel() for each in np.indices(self.forecasts.shape))
        rows, times = self.origins[origin] + step, self.data.timestamps
        return pd.DataFrame(
            {
                "origin": self.origins[origin] + 1,
                "step": step + 1,
                "row": rows + 1,
                **({} if times is None else {"time": times[rows]}),
                "channel": np.array(self.data.columns)[channel],
                "forecast": self.forecasts.ravel(),
                "truth": self.truth.ravel(),
            }
        )


def backtest(
    predictor: Predictor, data: ForecastingData, *, origins: int = 10, step: int | None = None
) -> Backtest:
    """Forecast from origins that end with the data.

    Args:
        predictor: A forecasting network.
        data: One series; the origins lie in its test part if it has one.
        origins: How many, at most.
        step: Rows between two origins. Default: the horizon.

    Raises:
        ArgumentError: The network does not forecast, there are several series, or no origin fits.
    """
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
    forecasts = np.full((len(places), horizon, data.channels), np.nan, np.float32)
    for number, origin in enumerate(places.tolist()):
        found = forecast_data(predictor, _cut(data, origin - length, origin), max_repaired=1.0)
        if found.repaired.mean() <= MAX_REPAIRED:
            forecasts[number] = found.values[0]
    steps = places[:, None] + np.arange(horizon)
    truth, values = data.clean[steps].astype(np.float64), data.values.astype(np.float64)
    if data.observed is not None:
        truth[data.observed[steps] < 1] = np.nan
        values[data.observed == 0] = np.nan
    # Naive forecasts repeat what was measured before each origin, and nothing after it.
    past = np.stack([fill_gaps(values[: int(origin)])[-season:] for origin in places])
    return Backtest(
        data=data,
        origins=places,
        forecasts=forecasts,
        truth=truth,
        naive=np.repeat(past[:, -1:], horizon, axis=1),
        seasonal=past[:, np.arange(horizon) % season],
        season=season,
        scale=scaler.of_series(list(before.last_rows(1))).std.reshape(-1),
    )


def _find_origins(predictor: Predictor, data: ForecastingData, count: int, step: int) -> Array:
    """First forecast rows, ascending; in the test part if there is one."""
    if predictor.settings.task != "forecasting":
        raise ArgumentError(f"a network for {predictor.settings.task} has nothing to backtest.")
    if len(data.last_rows(1)) > 1:
        raise ArgumentError(f"{data.name} holds several series: backtest one of them at a time.")
    earliest, horizon = predictor.shape.input_len, predictor.shape.horizon
    if len(data.splits.test):
        earliest = max(earliest, data.splits.test.start)
    last = len(data.values) - horizon
    if last < earliest:
        raise ArgumentError(
            f"{data.name} has {len(data.values)} rows, of which the first {earliest} come before "
            f"any origin: no forecast of {horizon} steps fits behind them."
        )
    return last - step * np.arange(min(count, (last - earliest) // step + 1))[::-1]


def _cut(data: ForecastingData, start: int, stop: int) -> ForecastingData:
    """Rows `start … stop - 1` of one series."""
    arrays: dict[str, Any] = {
        name: None if getattr(data, name) is None else getattr(data, name)[start:stop]
        for name in ("values", "timestamps", "targets", "observed", "covariates", "interpolated")
    }
    rows = range(stop - start)
    everything = Splits(rows, rows[:0], rows[:0])
    # Only known-future covariates are taken from what lies ahead.
    ahead = None if data.covariates is None else {data.name: data.covariates[stop:]}
    return replace(data, splits=everything, segments=(), ahead=ahead, **arrays)
