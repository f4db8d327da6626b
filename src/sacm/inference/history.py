"""The series that a forecast starts from: read, ordered and checked like the training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sacm.data.datasets import ForecastingData, Segment
from sacm.data.own.series import ALL_ROWS, Layout, series_data
from sacm.data.own.series import read_series as read_user_series
from sacm.data.splits import Splits
from sacm.data.tables.form import Form
from sacm.data.tables.gaps import Policy
from sacm.data.tables.timeline import Irregular
from sacm.errors import DataError
from sacm.tasks.shape import check_trained_columns


class SeriesReading(NamedTuple):
    """A series, and the form it came in."""

    data: ForecastingData
    form: Form

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the channels; None for arrays, whose columns have none."""
        return None if self.form.kind in ("array", "tensor") else self.data.columns


def read_as_came(
    source: Any,
    *,
    ratios: tuple[float, float, float] = ALL_ROWS,
    timestamp: str | None = None,
    columns: Sequence[str] | None = None,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
    layout: Layout = "auto",
) -> SeriesReading:
    """Read what `sacm.data.forecasting_data` reads, or take a `ForecastingData` as it is."""
    if isinstance(source, ForecastingData):
        time = None if source.timestamps is None else "date"
        return SeriesReading(source, Form("pandas", long=len(source.last_rows(1)) > 1, time=time))
    found = read_user_series(
        source,
        name=str(source) if isinstance(source, str | Path) else "data",
        timestamp=timestamp,
        columns=columns,
        irregular=irregular,
    )
    data = series_data(found, ratios=ratios, missing=missing, layout=layout)
    return SeriesReading(data, found.form)


def read_history(
    source: Any,
    *,
    columns: tuple[str, ...] | None,
    frequency: str | None,
    timestamp: str | None = None,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
) -> SeriesReading:
    """Read data to forecast from.

    Args:
        source: What `read_as_came` reads.
        columns: The columns that were trained on; None if they have no names.
        frequency: The time step that was trained on, if it is known.
        timestamp: The time column. Default: found by name or content.
        missing: How gaps are treated.
        irregular: What becomes of timestamps on no grid.

    Returns:
        The series with its channels in the order of the training data.

    Raises:
        DataError: The data cannot be read, or have other columns or another time step.
    """
    history = read_as_came(
        source,
        timestamp=timestamp,
        columns=columns,
        missing=missing,
        irregular=irregular,
        layout="series" if columns == ("y",) else "channels",
    )
    data = history.data
    if columns is not None and history.columns is not None:
        if history.form.long and set(data.columns) == set(columns):
            data = reorder_columns(data, columns)
        check_trained_columns(data.name, data.columns, columns)
    return SeriesReading(match_frequency(data, frequency), history.form)


def reorder_columns(data: ForecastingData, columns: Sequence[str]) -> ForecastingData:
    """The same channels in another order."""
    places = [data.columns.index(name) for name in columns]
    observed = None if data.observed is None else data.observed[:, places]
    values = np.ascontiguousarray(data.values[:, places])
    return replace(data, values=values, observed=observed, columns=tuple(columns))


def match_frequency(data: ForecastingData, frequency: str | None) -> ForecastingData:
    """The same data with the time step of the training data; refused if they have another."""
    if data.timestamps is None or frequency in (None, data.frequency):
        return data
    import pandas as pd

    # Five weekdays in a row look daily: what lies on the trained grid has its step.
    stamps = data.timestamps[next(iter(data.last_rows(len(data.values)).values()))]
    grid = pd.date_range(stamps[0], periods=len(stamps), freq=frequency)
    if not np.array_equal(grid.to_numpy().astype(stamps.dtype), stamps):
        raise DataError(
            f"{data.name} has a time step of {data.frequency!r} but {frequency!r} was "
            "trained on: resample it."
        )
    return replace(data, frequency=frequency)


def keep_tail(data: ForecastingData, count: int) -> ForecastingData:
    """Keep the validation rows and, of the other splits, the last `count` rows of every series.

    With `count` the length of a window, that is all that forecasting after the end and calibrating
    intervals need.
    """
    kept: list[np.ndarray[Any, Any]] = []
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
