"""The user's series, whatever holds them, and the history that a forecast starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sacm.data.datasets import ForecastingData, Segment
from sacm.data.own.series import ALL_ROWS, read_series, series_data
from sacm.data.splits import Splits
from sacm.data.tables.form import Form
from sacm.data.tables.gaps import Policy
from sacm.data.tables.timeline import Irregular
from sacm.errors import DataError
from sacm.training.data_record import DataRecord, check_columns, positions


class Reading(NamedTuple):
    """A series, and the form it came in."""

    data: ForecastingData
    form: Form


def read(
    source: Any,
    *,
    ratios: tuple[float, float, float] = ALL_ROWS,
    timestamp: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
    layout: Literal["auto", "channels", "series"] = "auto",
) -> Reading:
    """Read what `sacm.data.forecasting_data` reads, or take a `ForecastingData` as it is."""
    if isinstance(source, ForecastingData):
        time = None if source.timestamps is None else "date"
        return Reading(source, Form("pandas", long=len(series_of(source)) > 1, time=time))
    found = read_series(
        source,
        name=str(source) if isinstance(source, str | Path) else "data",
        timestamp=timestamp,
        columns=columns,
        irregular=irregular,
    )
    data = series_data(found, ratios=ratios, missing=missing, layout=layout)
    return Reading(data, found.form)


def read_history(
    source: Any,
    like: Reading,
    *,
    timestamp: str | None = None,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
) -> Reading:
    """Data to forecast from, with the columns of the data `like` that were trained on."""
    trained, form = like
    named = form.kind not in ("array", "tensor")
    layout: Literal["channels", "series"] = "series" if trained.columns == ("y",) else "channels"
    history = read(
        source,
        timestamp=timestamp,
        columns=trained.columns if named else None,
        missing=missing,
        irregular=irregular,
        layout=layout,
    )
    data = history.data
    if history.form.long and set(data.columns) == set(trained.columns):
        data = in_order(data, trained.columns)
    if named and history.form.kind not in ("array", "tensor"):
        check_columns(data.name, data.columns, trained.columns)
    return Reading(on_trained_grid(data, trained), history.form)


def without_rows(record: DataRecord, channels: int) -> Reading:
    """What `read_history` needs of data that were trained on and are not at hand."""
    named = record.columns is not None
    data = ForecastingData(
        name="data",
        values=np.empty((0, channels), dtype=np.float32),
        columns=record.columns or positions(channels),
        splits=Splits(range(0), range(0), range(0)),
        frequency=record.frequency,
    )
    return Reading(data, Form("pandas" if named else "array"))


def in_order(data: ForecastingData, columns: Sequence[str]) -> ForecastingData:
    """The same channels in another order."""
    places = [data.columns.index(name) for name in columns]
    observed = None if data.observed is None else data.observed[:, places]
    values = np.ascontiguousarray(data.values[:, places])
    return replace(data, values=values, observed=observed, columns=tuple(columns))


def on_trained_grid(data: ForecastingData, trained: ForecastingData) -> ForecastingData:
    """The same with the time step of the training data; refused if it has another."""
    if data.timestamps is None or trained.frequency in (None, data.frequency):
        return data
    import pandas as pd

    # Five weekdays in a row look daily: what lies on the trained grid has its step.
    stamps = data.timestamps[next(iter(data.last_rows(len(data.values)).values()))]
    grid = pd.date_range(stamps[0], periods=len(stamps), freq=trained.frequency)
    if not np.array_equal(grid.to_numpy().astype(stamps.dtype), stamps):
        raise DataError(
            f"{data.name} has a time step of {data.frequency!r} but {trained.frequency!r} was "
            "trained on: resample it."
        )
    return replace(data, frequency=trained.frequency)


def series_of(data: ForecastingData) -> list[str]:
    """The names of the series, in order."""
    return list(data.last_rows(1))


def tail(data: ForecastingData, count: int) -> ForecastingData:
    """The validation rows and, of the other splits, the last `count` rows of every series.

    With `count` the length of a window, that is all that forecasting after the end and calibrating
    intervals need.
    """
    kept: list[np.ndarray] = []
    segments: list[Segment] = []
    borders = [0]
    for split in ("train", "val", "test"):
        position = borders[-1]
        for segment in data.segments:
            rows = np.arange(
                max(segment.start, data.splits[split].start),
                min(segment.stop, data.splits[split].stop),
            )
            rows = rows if split == "val" else rows[-count:]
            if len(rows):
                segments.append(Segment(segment.name, position, position + len(rows)))
                kept.append(rows)
                position += len(rows)
        borders.append(position)
    chosen = np.concatenate(kept)
    splits = Splits(*(range(borders[i], borders[i + 1]) for i in range(3)))
    arrays: dict[str, Any] = {
        name: None if getattr(data, name) is None else getattr(data, name)[chosen]
        for name in ("values", "timestamps", "targets", "observed")
    }
    return replace(data, splits=splits, segments=tuple(segments), **arrays)
