"""Rolling-origin backtests: what forecasts made in the past, one after the other, would have been.

At each origin the network sees the rows before it and forecasts those that follow. With refits a
new network is trained on the rows before an origin, with the settings of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.datasets import ForecastingData, Splits
from sacm.data.scaling import cover_series, fill_gaps
from sacm.errors import ArgumentError
from sacm.inference.forecast import forecast_values
from sacm.inference.predictor import Array, Predictor
from sacm.metrics.forecasting import season_length

if TYPE_CHECKING:
    import pandas as pd

    from sacm.training import Hardware


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts `[K, H, C]` from K origins, the truth, and what repeating the past would have said.

    Attributes:
        origins: First forecast row of each origin, `[K]`.
        forecasts: In raw units.
        truth: In raw units, NaN where nothing was observed.
        naive: The last value, repeated.
        seasonal: The last season, repeated.
        season: Its length in steps.
        scale: Deviation of each channel `[C]`, in which errors are stated.
        refitted: Whether a network was trained for an origin, `[K]`.
        data: The series.
    """

    origins: Array
    forecasts: Array
    truth: Array
    naive: Array
    seasonal: Array
    season: int
    scale: Array
    refitted: Array
    data: ForecastingData

    @property
    def unmeasured(self) -> float:
        """The share of the targets that was not measured, which count in no error."""
        return float(np.isnan(self.truth).mean())

    def table(self) -> pd.DataFrame:
        """One row an origin: MAE in deviations of the training rows, also of naive forecasts."""
        import pandas as pd

        def errors(forecasts: Array) -> Array:
            off = np.abs(forecasts - self.truth) / self.scale
            counts = np.isfinite(off).sum(axis=(1, 2))
            sums: Array = np.nansum(off, axis=(1, 2))
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

        columns: dict[str, Any] = {"row": self.origins + 1}
        if self.data.timestamps is not None:
            columns["from"] = self.data.timestamps[self.origins]
        columns |= {"mae": errors(self.forecasts), "naive": errors(self.naive)}
        if self.season > 1:
            columns["seasonal_naive"] = errors(self.seasonal)
        return pd.DataFrame({**columns, "refitted": self.refitted})

    def long(self) -> pd.DataFrame:
        """One row for each origin, step and channel: forecast and truth in raw units."""
        import pandas as pd

        count, horizon, channels = self.forecasts.shape
        rows = np.repeat(self.origins[:, None] + np.arange(horizon), channels, axis=1).ravel()
        columns: dict[str, Any] = {
            "origin": np.repeat(self.origins + 1, horizon * channels),
            "step": np.tile(np.repeat(np.arange(1, horizon + 1), channels), count),
            "row": rows + 1,
        }
        if self.data.timestamps is not None:
            columns["time"] = self.data.timestamps[rows]
        return pd.DataFrame(
            {
                **columns,
                "channel": np.tile(self.data.columns, count * horizon),
                "forecast": self.forecasts.ravel(),
                "truth": self.truth.ravel(),
            }
        )


def backtest(
    predictor: Predictor,
    data: ForecastingData,
    *,
    origins: int | None = None,
    step: int | None = None,
    refit: int = 0,
    folder: Path = Path("runs"),
    hardware: Hardware | None = None,
    on_refit: Callable[[int], None] | None = None,
) -> Backtest:
    """Forecast from origins that end with the data.

    Args:
        predictor: A forecasting network.
        data: One series; without refits the origins lie in its test part.
        origins: How many, at most. Default: as many as there are, up to 10.
        step: Rows between two origins. Default: the horizon.
        refit: Retrain every so many origins; 0 = never.
        folder: Where the runs of refits are kept; they are not repeated.
        hardware: Where refits train.
        on_refit: Called with the number of the origin before each refit.

    Raises:
        ArgumentError: The network does not forecast, there are several series, or no origin fits.
    """
    places = find_origins(predictor, data, origins=origins, step=step, in_test_part=refit == 0)
    length, horizon = predictor.shape.input_len, predictor.shape.horizon
    # Long enough for the training rows of the first refit to hold the season three times.
    season = season_length(fill_gaps(data.values[: places[0]]), data.frequency)
    if predictor.scaler.series:
        # What the network knows the series by; one that it does not is scaled by the rows before.
        data = replace(data, name=next(iter(data.last_rows(1))))
        scaler = cover_series(predictor.scaler, cut(data, 0, int(places[0])), length)
        predictor = replace(predictor, scaler=scaler)
    season = season if season <= places[0] else 1
    forecasts, refitted, current = [], [], predictor
    for number, origin in enumerate(places):
        due = bool(refit) and number % refit == 0
        if due:
            if on_refit is not None:
                on_refit(number)
            current = train_before(predictor, data, int(origin), folder=folder, hardware=hardware)
        seen = cut(data, int(origin - length), int(origin))
        forecasts.append(forecast_values(current, seen)[0])
        refitted.append(due)
    steps = places[:, None] + np.arange(horizon)
    truth = data.clean[steps].astype(np.float64)
    values = data.values.astype(np.float64)
    if data.observed is not None:
        truth[data.observed[steps] < 1] = np.nan
        values[data.observed == 0] = np.nan
    # Naive forecasts repeat what was measured before each origin, and nothing after it.
    past = np.stack([fill_gaps(values[: int(origin)])[-season:] for origin in places])
    return Backtest(
        origins=places,
        forecasts=np.stack(forecasts),
        truth=truth,
        naive=np.repeat(past[:, -1:], horizon, axis=1),
        seasonal=past[:, np.arange(horizon) % season],
        season=season,
        scale=predictor.scaler_of_series(cut(data, 0, int(places[0]))).std.reshape(-1),
        refitted=np.array(refitted),
        data=data,
    )


def find_origins(
    predictor: Predictor,
    data: ForecastingData,
    *,
    origins: int | None,
    step: int | None,
    in_test_part: bool,
) -> Array:
    """First forecast rows, ascending; in the test part if that is asked."""
    if predictor.settings.task != "forecasting":
        raise ArgumentError(f"a network for {predictor.settings.task} has nothing to backtest.")
    if len(data.last_rows(1)) > 1:
        raise ArgumentError(f"{data.name} holds several series: backtest one of them at a time.")
    predictor.check_channels(data.channels, data.name)
    step = step or predictor.shape.horizon
    earliest = predictor.shape.input_len
    if in_test_part and len(data.splits.test):
        earliest = max(earliest, data.splits.test.start)
    elif not in_test_part:  # a refit needs validation rows that hold a window, and more to train on
        earliest = 6 * (predictor.shape.input_len + predictor.shape.horizon)
    last = len(data.values) - predictor.shape.horizon
    if last < earliest:
        raise ArgumentError(
            f"{data.name} has {len(data.values)} rows, of which the first {earliest} come before "
            f"any origin: no forecast of {predictor.shape.horizon} steps fits behind them."
        )
    possible = (last - earliest) // step + 1
    count = min(possible, origins or 10)
    return last - step * np.arange(count)[::-1]


def cut(data: ForecastingData, start: int, stop: int) -> ForecastingData:
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


def train_before(
    predictor: Predictor,
    data: ForecastingData,
    origin: int,
    *,
    folder: Path,
    hardware: Hardware | None,
) -> Predictor:
    """A network with the same settings, trained on the rows before `origin`; a fifth chooses."""
    from sacm.training import train

    past = cut(data, 0, origin)
    border = origin - max(origin // 5, predictor.shape.input_len + predictor.shape.horizon)
    splits = Splits(range(border), range(border, origin), range(origin, origin))
    run = train(
        predictor.settings, folder=folder, data=replace(past, splits=splits), hardware=hardware
    )
    return Predictor.load(run)
