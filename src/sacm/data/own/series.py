"""A user's own series, from a file, an array or a data frame, as `ForecastingData`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from sacm.data.datasets import ForecastingData
from sacm.data.own.panel import ID_COLUMN, panel_data
from sacm.data.splits import DEFAULT_RATIOS, split_by_ratio
from sacm.data.tables import gaps
from sacm.data.tables.columns import coarse_note, from_array, matrix
from sacm.data.tables.csv_file import check_file, read_table
from sacm.data.tables.dates import quiet_dates
from sacm.data.tables.tensors import as_numpy
from sacm.data.tables.timeline import Irregular, Timeline, time_column, timeline
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS = 3
LONG_COLUMNS = {ID_COLUMN, "ds", "y"}


def forecasting_data(
    source: Any,
    *,
    name: str | None = None,
    timestamp: str | None = None,
    columns: Sequence[str] | None = None,
    ratios: tuple[float, float, float] = DEFAULT_RATIOS,
    missing: gaps.Policy = "interpolate",
    irregular: Irregular = "error",
    frequency: str | None = None,
    layout: Literal["auto", "channels", "series"] = "auto",
) -> ForecastingData:
    """Read a series to forecast.

    `source`: a CSV, Parquet, `.npy` or `.npz` file; a pandas or polars frame, wide (timestamp and
    channels) or long (`unique_id, ds, y`); an array or tensor `[T]` or `[T, C]`. `columns` chooses
    channels. Series in long format become channels if they share all timestamps, otherwise separate
    series of one channel; `layout` says which. What was repaired is in `notes`.
    """
    where = name or (str(source) if isinstance(source, str | Path) else "the data")
    label = name or (Path(source).stem if isinstance(source, str | Path) else "data")
    table = load_source(source, where)
    if isinstance(table, np.ndarray):
        return from_matrix(table, label, ratios=ratios, missing=missing, where=where)
    if set(table.columns) >= LONG_COLUMNS:
        return panel_data(
            table,
            label,
            where=where,
            ratios=ratios,
            missing=missing,
            irregular=irregular,
            frequency=frequency,
            layout=layout,
        )
    unused = index_note(table, timestamp)
    times, table = take_times(table, timestamp, where)
    line = timeline(times, len(table), where=where, frequency=frequency, irregular=irregular)
    line = line.noting(unused)
    if columns is not None:
        table = choose(table, columns, where)
    check_inserted(line, missing, where)
    values = placed(matrix(table, where), line.rows)
    line = line.noting(coarse_note(table))
    return finish(values, line, tuple(table.columns), label, where, ratios=ratios, missing=missing)


def load_source(source: Any, where: str) -> np.ndarray | pd.DataFrame:
    """Whatever the user has, as an array or a pandas frame with plain column names."""
    if isinstance(source, str | Path):
        path = Path(source)
        return read_array(path) if path.suffix in (".npy", ".npz") else read_table(path)
    if isinstance(source, Tensor):
        return as_numpy(source)
    if isinstance(source, np.ndarray):
        return source
    import pandas as pd

    if isinstance(source, pd.Series):
        source = source.to_frame(name=source.name or "0")
    elif not isinstance(source, pd.DataFrame) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        frame.columns = [str(column) for column in frame.columns]
        return frame
    try:
        return np.asarray(source, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where} is a {type(source).__name__}: pass a file, an array or a data frame."
        ) from error


def read_array(path: Path) -> np.ndarray:
    """A `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    check_file(path)
    try:
        if path.suffix == ".npy":
            return np.asanyarray(np.load(path, mmap_mode="c", allow_pickle=False))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            key = "values" if "values" in archive.files else archive.files[0]
            if key != "values" and len(archive.files) > 1:
                raise DataError(f"{path} holds {', '.join(archive.files)}: name one 'values'.")
            return np.asarray(archive[key])
    except DataError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error


def take_times(
    table: pd.DataFrame, timestamp: str | None, where: str
) -> tuple[pd.Series | None, pd.DataFrame]:
    """The timestamps and the rest of the table."""
    if timestamp is not None and timestamp not in table.columns:
        raise DataError(f"{where} has no column {timestamp!r}; it has {listed(table)}.")
    index = time_index(table) if timestamp is None else None
    if index is not None:
        return index.reset_index(drop=True), table.reset_index(drop=True)
    table = table.reset_index(drop=True)
    first = table.columns[0]
    # A nameless counter is what a frame's index looks like after a round trip through CSV.
    if first in ("", "Unnamed: 0") and timestamp != first and len(table.columns) > 1:
        table = table.drop(columns=first)
    chosen = timestamp or time_column(table)
    if chosen is None:
        return None, table
    return table[chosen], table.drop(columns=chosen)


def time_index(table: pd.DataFrame) -> pd.Series | None:
    """The index as a time column, if it holds timestamps, periods or dates written as text."""
    import pandas as pd

    index = table.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    elif index.inferred_type == "string":
        first = pd.Series([str(index[0])])
        dated = first.str.contains("[-/.:]").all() and quiet_dates(first).notna().all()
        if not dated or time_column(table) is not None:
            return None
    elif not isinstance(index, pd.DatetimeIndex):
        return None
    return index.to_series(name=index.name or "index")


def index_note(table: pd.DataFrame, timestamp: str | None = None) -> str | None:
    """A note on an index of text or durations, which no one reads."""
    if table.index.inferred_type in ("integer", "datetime64", "period"):
        return None
    if timestamp is None and time_index(table) is not None:
        return None
    return "The index of the frame is not used: it holds no dates, or another column does."


def choose(table: pd.DataFrame, columns: Sequence[str], where: str) -> pd.DataFrame:
    """The columns asked for, in that order."""
    for column in columns:
        if column not in table.columns:
            raise DataError(f"{where} has no column {column!r}; it has {listed(table)}.")
    return table[list(columns)]


def listed(table: pd.DataFrame) -> str:
    """Column names, shortened if there are many."""
    names = [str(column) for column in table.columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def check_inserted(line: Timeline, missing: gaps.Policy, where: str) -> None:
    """With `missing="error"` a row that is not there is an error, too."""
    absent = np.flatnonzero(line.rows < 0)
    if missing == "error" and len(absent) and line.timestamps is not None:
        raise DataError(f"{where}: there is no row for {line.timestamps[absent[0]]}.")


def placed(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows in their places on the grid; NaN where there is none."""
    result: np.ndarray = values[rows]
    result[rows < 0] = np.nan
    return result


def from_matrix(
    array: np.ndarray,
    label: str,
    *,
    ratios: tuple[float, float, float],
    missing: gaps.Policy,
    where: str,
) -> ForecastingData:
    """An array without timestamps."""
    values = from_array(array, where)
    line = Timeline(np.arange(len(values)), None, None, ()).noting(coarse_note(array))
    names = tuple(str(position) for position in range(values.shape[1]))
    return finish(values, line, names, label, where, ratios=ratios, missing=missing)


def finish(
    values: np.ndarray,
    line: Timeline,
    columns: tuple[str, ...],
    label: str,
    where: str,
    *,
    ratios: tuple[float, float, float],
    missing: gaps.Policy,
) -> ForecastingData:
    """Split, fill gaps, and say what is odd."""
    if len(values) < MIN_ROWS:
        raise DataError(f"{where} has {len(values)} rows: too few to train, choose and test on.")
    splits = split_by_ratio(len(values), ratios)
    filled = gaps.fill(values, splits, policy=missing, columns=columns, where=where)
    notes = [*line.notes, filled.note, constant_note(filled.values, splits.train, columns)]
    return ForecastingData(
        name=label,
        values=filled.values,
        columns=columns,
        splits=splits,
        timestamps=line.timestamps,
        frequency=line.frequency,
        observed=filled.observed,
        notes=tuple(note for note in notes if note),
    )


def constant_note(values: np.ndarray, rows: range, columns: Sequence[str]) -> str | None:
    """A note on channels that never change in training."""
    part = values[rows.start : rows.stop]
    if not len(part):
        return None
    flat = np.flatnonzero(part.min(axis=0) == part.max(axis=0))
    if not len(flat):
        return None
    named = ", ".join(repr(columns[position]) for position in flat[:5])
    more = f" and {len(flat) - 5} more" if len(flat) > 5 else ""
    return f"Constant in the training rows, so there is nothing to learn: {named}{more}."
