"""Known-future covariates from a table of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sacm.data.calendar import future_timestamps
from sacm.data.covariates import CovariatePlan
from sacm.data.datasets import ForecastingData
from sacm.data.own.read import rename
from sacm.data.own.series import read_series
from sacm.data.tables.panel import Panel
from sacm.data.tables.source import load_source
from sacm.data.tables.table import Table
from sacm.errors import ArgumentError, DataError
from sacm.inference.history import SeriesReading

_OPTIONS = ("time", "date_order", "zone", "id", "decimal")


def add_future(
    reading: SeriesReading,
    source: Any,
    plan: CovariatePlan,
    *,
    horizon: int,
    options: Mapping[str, Any],
) -> SeriesReading:
    """A reading with the known-future covariates of another table.

    Args:
        reading: The series to forecast from.
        source: A file or a frame with the columns `plan.future`, and the times and ids of the
            series where they have some.
        plan: The covariates of the network.
        horizon: Steps to forecast.
        options: Options of the run for reading, by their names on the command line.

    Raises:
        ArgumentError: The network takes no known-future covariates.
        DataError: The table cannot be read, or lacks a column, a series or its times.
    """
    if not plan.future:
        raise ArgumentError("future_data: the network was trained without known-future covariates.")
    data = reading.data
    tables = _read_tables(reading, source, plan, options)
    ahead = {}
    for name, rows in data.last_rows(2).items():
        table = tables.get(name) or (tables.get("") if len(data.last_rows(1)) == 1 else None)
        if table is None:
            raise DataError(f"{source_name(source)} has no rows for series {name!r}.")
        values = np.zeros((horizon, len(plan.columns)), dtype=np.float32)
        first = len(plan.past)
        values[:, first : first + len(plan.future)] = _align(table, data, rows, horizon)
        ahead[name] = values
    return SeriesReading(replace(data, ahead=ahead), reading.form)


def _read_tables(
    reading: SeriesReading, source: Any, plan: CovariatePlan, options: Mapping[str, Any]
) -> dict[str, Table]:
    """The series of the table by name; "" if it holds a single one without a name."""
    form = reading.form
    loaded = load_source(source, source_name(source), options.get("decimal"))
    if isinstance(loaded.content, np.ndarray):
        raise DataError(f"{loaded.where} is an array, whose columns have no names: use a frame.")
    given = {name: options[name] for name in _OPTIONS if name in options and name != "decimal"}
    columns = set(loaded.content.columns)
    # The names of the history are good guesses where the user has named nothing.
    if form.time in columns:
        given.setdefault("time", (form.time,))
    if form.long and form.id in columns:
        given.setdefault("id", form.id)
    found = read_series(
        loaded, columns=plan.future, irregular="keep", **rename(given, {"time": "timestamp"})
    )
    if isinstance(found, Panel):
        return {one.name: one for one in found.series}
    return {"": found}


def _align(table: Table, data: ForecastingData, rows: np.ndarray, horizon: int) -> np.ndarray:
    """Values `[H, F]` of the steps after `rows`; NaN where the table has none."""
    if data.timestamps is None:
        found = table.values[:horizon]
        return np.pad(found, ((0, horizon - len(found)), (0, 0)), constant_values=np.nan)
    if table.times is None:
        raise DataError(f"{table.where} has no time column, but the series has: time= names one.")
    wanted = future_timestamps(data.timestamps[rows], horizon, frequency=data.frequency)
    places = {time: place for place, time in enumerate(table.times.astype("datetime64[ns]"))}
    found = np.full((horizon, table.values.shape[1]), np.nan, dtype=np.float32)
    for step, time in enumerate(wanted.astype("datetime64[ns]")):
        if time in places:
            found[step] = table.values[places[time]]
    return found


def source_name(source: Any) -> str:
    """What errors call the table."""
    return (
        str(source) if isinstance(source, str) or hasattr(source, "__fspath__") else "future_data"
    )
