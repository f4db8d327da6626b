"""Forecasting with a trained network: what follows the end of a series, in its own units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from sacm.data.calendar import future_timestamps, stamp_features
from sacm.data.covariates import check_roles, window_ahead
from sacm.data.datasets import ForecastingData
from sacm.data.gaps import fill
from sacm.data.scaling import new_series
from sacm.errors import ArgumentError, DataError
from sacm.inference.answer import TableAnswer, warn_of
from sacm.inference.future_data import add_future
from sacm.inference.history import SeriesReading, read_history
from sacm.inference.repairs import find_repairs
from sacm.inference.trained import Array, TrainedNetwork, as_tensor, is_array, like


class Forecast(NamedTuple):
    """Forecasts of every series and the times they are for."""

    series: list[str]
    values: Array  # [S, H, C]
    times: Array | None  # [S, H]


def predict_next(trained: TrainedNetwork, data: Any, future_data: Any = None) -> Any:
    """Forecast what follows, in the form of the data; windows `[B, L, C]` one by one."""
    if is_array(data):
        return trained.forecast(data) if data.ndim == 3 else forecast_rows(trained, data)
    reading = read_for(trained, data, future_data)
    kept, short = leave_out_short(reading.data, trained.shape.input_len)
    warn_of(short if isinstance(data, ForecastingData) else (*kept.notes, *short))
    return give(SeriesReading(kept, reading.form), forecast_ahead(trained, kept))


def forecast_rows(trained: TrainedNetwork, rows: Any) -> Any:
    """What follows the rows `[T, C]` or `[T]` of an array or a tensor, in its form."""
    if rows.ndim not in (1, 2):
        raise ArgumentError(f"rows must be [T, C] or [T], got {list(rows.shape)}.")
    values = as_tensor(rows if rows.ndim == 2 else rows[:, None])
    trained.check_channels(values.shape[1], "data")
    length = trained.shape.input_len
    if len(values) < length:
        raise short_series_error("data", len(values), length)
    if values.isnan().any():
        names = [str(place) for place in range(values.shape[1])]
        pieces = [range(len(values))]
        array = values.cpu().numpy()
        filled = fill(array, pieces, policy="interpolate", columns=names, where="data")
        warn_of([filled.note] if filled.note else [])
        values = torch.from_numpy(filled.values)
    scaler = trained.scaler_of_windows(values[None])  # of all rows, where series have their own
    ahead = like(trained.forecast(values[None, -length:], scaler=scaler)[0], rows)
    return ahead if rows.ndim == 2 else ahead[:, 0]


def tabulate_next(trained: TrainedNetwork, data: Any, future_data: Any = None) -> TableAnswer:
    """Forecast what follows as a pandas frame with a time or a row number in front."""
    return tabulate_reading(trained, read_for(trained, data, future_data))


def tabulate_reading(trained: TrainedNetwork, reading: SeriesReading) -> TableAnswer:
    """Forecast what follows data that have been read, as `tabulate_next`."""
    form = reading.form.as_table()
    kept, short = leave_out_short(reading.data, trained.shape.input_len)
    reading = SeriesReading(kept, form)
    forecast = forecast_ahead(trained, reading.data)
    frame = give(reading, forecast)
    if form.time is None and not form.long:
        frame.insert(0, "row", frame.index + 1)
    notes = (*reading.data.notes, *short, *note_new(trained, reading.data))
    rows = last_rows(reading.data, trained.shape.input_len)
    windows = reading.data.values[np.stack(list(rows.values()))]
    scaled = trained.scale(windows, trained.scaler_of_series(reading.data))
    repairs = find_repairs(trained, scaled, list(rows), reading.data.columns)
    if repairs is not None:
        frame["repaired_share"] = np.repeat(repairs.shares, len(frame) // len(rows))
        notes = (*notes, *repairs.notes)
    return TableAnswer(frame, notes, reading.data.understood, reading)


def read_for(trained: TrainedNetwork, data: Any, future_data: Any = None) -> SeriesReading:
    """Read data to forecast from, with the columns and the time step that were trained on.

    `future_data` is another table with known-future covariates, if there is one.
    """
    shape, options = trained.shape, trained.settings.reading()
    reading = read_history(data, columns=shape.columns, frequency=shape.frequency, reading=options)
    if future_data is None:
        return reading
    return add_future(reading, future_data, trained.plan, horizon=shape.horizon, options=options)


def forecast_ahead(
    trained: TrainedNetwork, data: ForecastingData, level: float | None = None
) -> Forecast:
    """Forecast the steps after the last row of every series in `data`.

    Args:
        trained: The network.
        data: Series of at least L rows each, in raw units.
        level: The quantile, for networks that were trained for some.

    Returns:
        Values `[S, H, C]` in raw units, and timestamps where the data have some.

    Raises:
        ArgumentError: The number of channels is another than that of the training data.
        DataError: A series is too short, or lacks the timestamps that the network needs.
        SACMError: A forecast is not finite.
    """
    trained.check_channels(data.channels, data.name)
    rows = last_rows(data, trained.shape.input_len)
    positions = np.stack(list(rows.values()))  # [S, L]
    times = future_times(data, positions, trained.shape.horizon)
    stamps = None
    if trained.shape.calendar_sizes is not None:
        stamps = calendar_features_ahead(data, positions, times)
    values = trained.forecast(
        data.values[positions],
        stamps,
        covariates_ahead(trained, data, rows, times),
        scaler=trained.scaler_of_series(data),
        level=level,
    )
    return Forecast(list(rows), values, times)


def covariates_ahead(
    trained: TrainedNetwork, data: ForecastingData, rows: dict[str, Array], times: Array | None
) -> Array | None:
    """Covariates `[S, L + H, K]` of inputs and targets; None for a network without."""
    plan, horizon = trained.plan, trained.shape.horizon
    if not plan:
        return None
    check_roles(data, plan)
    own = [None] * len(rows) if times is None else list(times)
    windows = [
        window_ahead(data, name, plan, rows=places, times=following, horizon=horizon)
        for (name, places), following in zip(rows.items(), own, strict=True)
    ]
    return np.stack(windows)


def give(reading: SeriesReading, forecast: Forecast, rows: int | None = None) -> Any:
    """Forecasts in the form that the data came in; they followed `rows` rows."""
    data, values, columns = reading.data, forecast.values, reading.data.columns
    if data.target:  # the other channels were inputs only
        values = values[..., [columns.index(name) for name in data.target]]
        columns = data.target
    return reading.form.give(
        values,
        series=forecast.series,
        columns=columns,
        times=forecast.times,
        rows=len(data.values) if rows is None else rows,
    )


def leave_out_short(data: ForecastingData, count: int) -> tuple[ForecastingData, tuple[str, ...]]:
    """The series that have `count` rows, and a note on the others; all of them if none has."""
    lengths = {name: len(rows) for name, rows in data.last_rows(len(data.values)).items()}
    short = [name for name, length in lengths.items() if length < count]
    if not short or len(short) == len(lengths):
        return data, ()
    kept = tuple(segment for segment in data.segments if segment.name not in short)
    named = ", ".join(f"{name!r} ({lengths[name]})" for name in short[:5])
    more = f" and {len(short) - 5} more" if len(short) > 5 else ""
    note = f"No forecast for series with fewer than {count} rows: {named}{more}."
    return replace(data, segments=kept), (note,)


def note_new(trained: TrainedNetwork, data: ForecastingData) -> tuple[str, ...]:
    """Say which series the network has not seen, if every series has a scale of its own."""
    found = new_series(trained.scaler, data)
    if not found:
        return ()
    named = ", ".join(map(repr, found[:5])) + (f" and {len(found) - 5} more" * (len(found) > 5))
    return (f"Not trained on, so scaled by their own rows: {named}.",)


def last_rows(data: ForecastingData, count: int) -> dict[str, Array]:
    """Positions of the last `count` rows of every series; none may be shorter."""
    rows = data.last_rows(count)
    for name, positions in rows.items():
        if len(positions) < count:
            where = f"series {name!r} of {data.name}" if len(rows) > 1 else data.name
            raise short_series_error(where, len(positions), count)
    return rows


def short_series_error(where: str, found: int, needed: int) -> DataError:
    """The error for a series that is shorter than a window."""
    return DataError(f"{where} has {found} rows but a forecast starts from the last {needed}.")


def future_times(data: ForecastingData, positions: Array, horizon: int) -> Array | None:
    """Timestamps `[S, H]` that follow, where there are any."""
    if data.timestamps is None:
        return None
    stamps = data.timestamps[positions]  # [S, L]
    return np.stack([future_timestamps(own, horizon, frequency=data.frequency) for own in stamps])


def calendar_features_ahead(data: ForecastingData, positions: Array, times: Array | None) -> Array:
    """Calendar position of inputs and targets, `[S, L + H, 4]`."""
    if data.timestamps is None or times is None:
        raise DataError(
            f"{data.name} has no timestamps, but the network was trained with calendar features."
        )
    stamps = np.concatenate([data.timestamps[positions], times], axis=1)
    return np.stack([stamp_features(own) for own in stamps])
