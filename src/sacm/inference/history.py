"""The series that a forecast starts from: read, ordered and checked like the training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sacm.data.covariates import ROLES, CovariatePlan
from sacm.data.datasets import ForecastingData, Segment
from sacm.data.gaps import Policy
from sacm.data.own.read import rename
from sacm.data.own.separate import separate
from sacm.data.own.series import ALL_ROWS, Layout, choose_target, series_data
from sacm.data.own.series import read_series as read_user_series
from sacm.data.splits import Splits
from sacm.data.tables.form import Form
from sacm.data.tables.ids import find_ids
from sacm.data.tables.source import Source, keep_present, load_source
from sacm.data.tables.table import as_list
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
    trained: Sequence[str] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> SeriesReading:
    """Read what `sacm.data.forecasting_data` reads, or take a `ForecastingData` as it is.

    `trained` are the columns that were trained on, if something was; `reading` holds options of a
    run by their names on the command line, which go before the others.
    """
    if isinstance(source, ForecastingData):
        long = len(source.last_rows(1)) > 1
        time = "ds" if long else "date"
        form = Form(
            "pandas",
            long=long,
            time=None if source.timestamps is None else time,
            channels=source.columns if long else ("y",),
        )
        return SeriesReading(source, form)
    given = {"timestamp": timestamp, "columns": columns, "irregular": irregular}
    options = {**given, **rename(dict(reading or {}), {"time": "timestamp"})}
    scaling = options.pop("scaling", "series")
    options.pop("split", None)  # is for training
    missing, target = options.pop("missing", missing), options.pop("target", None)
    plan = CovariatePlan.of({role: options.pop(role, None) for role in ROLES})
    name = str(source) if isinstance(source, str | Path) else "data"
    loaded = load_source(source, name, options.pop("decimal", None))
    options = keep_present(loaded, options) if trained is not None else options
    layout: Layout = "auto"
    if trained is not None:
        layout = trained_layout(loaded, trained, options)
        options["columns"] = options["columns"] if layout == "channels" else trained
    found = read_user_series(loaded, covariates=plan.columns, **options)
    data = series_data(
        found,
        ratios=ratios,
        missing=missing,
        layout=layout,
        plan=plan,
        target=target,
        scaling=scaling,
    )
    form = separate(found, plan, as_list(target or ()))[0].form if plan.columns else found.form
    return SeriesReading(choose_target(data, target), form)


def trained_layout(source: Source, trained: Sequence[str], options: Mapping[str, Any]) -> Layout:
    """How to join series as in training, where the names that were trained on are `trained`.

    They are columns of the table, or, if the series of a long table were channels side by side,
    names of series.
    """
    several = options.get("id") or find_ids(source, options["timestamp"], options.get("ignore", ()))
    if not several or isinstance(source.content, np.ndarray):
        return "auto"
    return "series" if set(trained) <= set(source.content.columns) else "channels"


def read_history(
    source: Any,
    *,
    columns: tuple[str, ...] | None,
    frequency: str | None,
    timestamp: str | None = None,
    missing: Policy = "interpolate",
    irregular: Irregular = "error",
    reading: Mapping[str, Any] | None = None,
) -> SeriesReading:
    """Read data to forecast from.

    Args:
        source: What `read_as_came` reads.
        columns: The columns that were trained on; None if they have no names.
        frequency: The time step that was trained on, if it is known.
        timestamp: The time column. Default: found by name or content.
        missing: How gaps are treated.
        irregular: What becomes of timestamps on no grid.
        reading: Options of a run for reading, by their names on the command line.

    Returns:
        The series with its channels in the order of the training data.

    Raises:
        DataError: The data cannot be read, or have other columns or another time step.
    """
    history = read_as_came(
        source,
        timestamp=timestamp,
        missing=missing,
        irregular=irregular,
        trained=columns,
        reading=reading,
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
        for name in ("values", "timestamps", "targets", "observed", "covariates")
    }
    return replace(data, splits=splits, segments=tuple(segments), **arrays)
