"""The series that a forecast starts from: read, ordered and checked like the training data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sacm.data.covariates import ROLES, CovariatePlan, future_timestamps
from sacm.data.datasets import ForecastingData, Form, Splits
from sacm.errors import ArgumentError, DataError
from sacm.inference.predictor import as_tensor, is_array
from sacm.settings import ReadOptions
from sacm.tasks.base import check_trained_columns

if TYPE_CHECKING:
    from sacm.inference.predictor import Predictor

_FUTURE_OPTIONS = ("time", "date_order", "zone", "id", "decimal", "na", "sheet", "encoding")


def read_series(
    source: Any, options: Mapping[str, Any], *, trained: Sequence[str] | None = None
) -> ForecastingData:
    """Read a series; a `ForecastingData` is taken as it is.

    The columns that were trained on, if something was, are the channels where they are there.
    """
    if isinstance(source, ForecastingData):
        return source
    from sacm.data.forecasting import series_data
    from sacm.data.read import keep_present, load_source, read_table

    given = dict(options)
    plan = CovariatePlan.of({role: given.pop(role, None) for role in ROLES})
    chosen = ReadOptions.of(given)
    loaded = load_source(source, chosen, name=_name(source, "data"))
    join = True
    if trained is not None:
        chosen = keep_present(loaded, chosen)
        columns: Any = () if isinstance(loaded.content, np.ndarray) else loaded.content.columns
        words = set(chosen.category or ())
        if {each for each in trained if each.partition("=")[0] not in words} <= set(columns):
            chosen = chosen.model_copy(update={"columns": tuple(trained)})
            join = False
    table = read_table(loaded, chosen, also=plan.columns)
    return series_data(table, chosen, plan=plan, join=join)


def read_history(
    predictor: Predictor, source: Any, future_data: Any = None, horizon: int | None = None
) -> ForecastingData:
    """Read data to forecast from, with the columns and the time step that were trained on.

    `future_data` is another table with the known-future covariates of `horizon` steps.
    """
    shape = predictor.shape
    if is_array(source):
        data = _from_array(predictor, source)
    else:
        from sacm.data.forecasting import ALL_ROWS

        options = {**predictor.settings.reading(), "split": ALL_ROWS}
        data = read_series(source, options, trained=shape.columns)
        if form_of(data).kind not in ("array", "tensor"):  # whose columns have no names
            data = choose_columns(data, shape.columns)
        data = _match_frequency(data, shape.frequency)
    return data if future_data is None else _add_future(predictor, data, future_data, horizon)


def form_of(data: ForecastingData) -> Form:
    """The form that data came in; that of a pandas table for a data set."""
    if data.form is not None:
        return data.form
    long = len(data.last_rows(1)) > 1
    time = None if data.timestamps is None else "ds" if long else "date"
    channels = data.columns if long else ("y",)
    return Form("pandas", long=long, time=time, channels=channels, rows=len(data.values))


def _from_array(predictor: Predictor, rows: Any) -> ForecastingData:
    """Rows `[T, C]` or `[T]`; nothing but NumPy is needed for them."""
    if rows.ndim not in (1, 2):
        raise ArgumentError(f"rows must be [T, C] or [T], got {list(rows.shape)}.")
    refuse_covariates(predictor)
    values = as_tensor(rows).cpu().numpy().reshape(len(rows), -1)
    columns = predictor.shape.columns
    if columns is None or len(columns) != values.shape[1]:
        columns = tuple(map(str, range(values.shape[1])))
    splits = Splits(range(len(values)), range(0), range(0))
    form = Form("array" if isinstance(rows, np.ndarray) else "tensor", flat=rows.ndim == 1)
    return ForecastingData("data", values, columns, splits, form=form)


def refuse_covariates(predictor: Predictor) -> None:
    """Refuse arrays, which have no covariates, where the network needs some."""
    if predictor.plan:
        raise ArgumentError(
            "the network was trained with covariates: give the data as a table that has them."
        )


def choose_columns(data: ForecastingData, columns: Sequence[str] | None) -> ForecastingData:
    """The channels that were trained on, in their order; None if these have no names."""
    if columns is None or tuple(columns) == data.columns:
        return data
    if not set(columns) <= set(data.columns):
        check_trained_columns(data.name, data.columns, columns)
    return data.take([data.columns.index(name) for name in columns])


def _match_frequency(data: ForecastingData, frequency: str | None) -> ForecastingData:
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


def _add_future(
    predictor: Predictor, data: ForecastingData, source: Any, horizon: int | None = None
) -> ForecastingData:
    """Data with the known-future covariates of another table, a file or a frame.

    The table has the times and the ids of the series where they have some.
    """
    import pandas as pd

    from sacm.data.read import load_source, read_table

    plan, horizon = predictor.plan, horizon or predictor.shape.horizon
    if not plan.future:
        raise ArgumentError("future_data: the network was trained without known-future covariates.")
    form, name = form_of(data), _name(source, "future_data")
    options = predictor.settings.reading()
    options = {key: options[key] for key in _FUTURE_OPTIONS if key in options}
    loaded = load_source(source, ReadOptions.of(options), name=name)
    if isinstance(loaded.content, np.ndarray):
        raise DataError(f"{loaded.where} is an array, whose columns have no names: use a frame.")
    # The names of the history are good guesses where the user has named nothing.
    for role, column in (("time", form.time), ("id", form.id if form.long else None)):
        if column in loaded.content.columns:
            options.setdefault(role, (column,))
    table = read_table(loaded, {**options, "columns": plan.future}, grid=False)
    parts = {series: slice(start, stop) for series, start, stop in table.series}
    single = len(data.last_rows(1)) == 1 and not table.form.long
    ahead = {}
    for series, rows in data.last_rows(2).items():
        part = next(iter(parts.values())) if single else parts.get(series)
        if part is None:
            raise DataError(f"{name} has no rows for series {series!r}.")
        given = pd.DataFrame(table.values[part])
        if data.timestamps is not None:
            if table.times is None:
                raise DataError(f"{name} has no time column, but the series has: time= names one.")
            wanted = future_timestamps(data.timestamps[rows], horizon, frequency=data.frequency)
            given.index = pd.DatetimeIndex(table.times[part].astype("datetime64[ns]"))
            given = given[~given.index.duplicated(keep="last")]
            given = given.reindex(wanted.astype("datetime64[ns]")).reset_index(drop=True)
        values = np.zeros((horizon, len(plan.columns)), dtype=np.float32)
        first = len(plan.past)
        values[:, first : first + len(plan.future)] = given.reindex(range(horizon)).to_numpy()
        ahead[series] = values
    return replace(data, ahead=ahead)


def _name(source: Any, otherwise: str) -> str:
    """What errors call a source."""
    return str(source) if isinstance(source, str | Path) else otherwise
