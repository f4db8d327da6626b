"""Find the column that tells several series of one table apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tables.form import ID_COLUMN
from sacm.data.tables.names import plain_name
from sacm.data.tables.source import Source
from sacm.data.tables.time_column import LIKELY_NAMES, find_time, holds_dates, time_index
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

USUAL_COLUMNS = {ID_COLUMN, "ds", "y"}
# Numbers tell series apart only in a column with one of these names; words always may.
ID_NAMES = (
    *("uniqueid", "id", "seriesid", "series", "tsid", "itemid", "item", "sku", "product"),
    *("store", "storeid", "shop", "dept", "sensor", "sensorid", "station", "stationid", "device"),
    *("deviceid", "machine", "machineid", "unit", "unitid", "asset", "meter", "meterid", "site"),
    *("siteid", "plant", "location", "locationid", "customer", "customerid", "entity", "group"),
)


def is_usual(frame: pd.DataFrame) -> bool:
    """Whether a table has the columns `unique_id, ds, y`."""
    return set(frame.columns) >= USUAL_COLUMNS


def find_ids(
    source: Source, time: str | Sequence[str] | None = None, ignore: str | Sequence[str] = ()
) -> str | None:
    """Find the column that tells several series apart.

    Args:
        source: What was loaded.
        time: The time column, if the user names it.
        ignore: Columns that the user leaves out.

    Returns:
        That of a folder of files, `unique_id` beside `ds` and `y`, or, if times occur more than
        once, the first column of words (or of numbers with a name such as store) in each value of
        which they do not. None: there is one series.
    """
    frame = source.content
    if isinstance(frame, np.ndarray) or not frame.columns.is_unique:
        return None
    if source.id is not None:
        return source.id
    left = {ignore} if isinstance(ignore, str) else set(ignore)
    if is_usual(frame) and not left & USUAL_COLUMNS:
        return ID_COLUMN
    frame = frame.drop(columns=[name for name in left if name in frame.columns])
    stamps = [time] if isinstance(time, str) else list(time or ())
    if not set(stamps) <= set(frame.columns) or not len(frame) or not len(frame.columns):
        return None
    if not stamps and time_index(frame) is not None:
        return None
    rest = frame.reset_index(drop=True)
    stamps = stamps or find_time(rest) or find_repeated_time(rest)
    if not stamps or not rest.duplicated(stamps).any():
        return None
    for name in rest.columns:
        if (
            name not in stamps
            and can_be_id(rest[name])
            and not rest.duplicated([*stamps, name]).any()
        ):
            return str(name)
    return None


def find_repeated_time(frame: pd.DataFrame) -> list[str]:
    """A column with the name of a time whose numbers, each taken once, are dates."""
    for name in frame.columns:
        once = frame[name].drop_duplicates().sort_values()
        if plain_name(name) in LIKELY_NAMES and holds_dates(once, named=True):
            return [str(name)]
    return []


def can_be_id(column: pd.Series) -> bool:
    """Whether a column may name series: words, or numbers under the name of an id."""
    import pandas as pd

    if column.isna().any() or column.is_unique:
        return False
    named = plain_name(column.name) in ID_NAMES
    if pd.api.types.is_float_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    return named or not pd.api.types.is_numeric_dtype(column)


def join_ids(frame: pd.DataFrame, ids: Sequence[str], where: str) -> tuple[pd.DataFrame, str]:
    """The table with one column that names the series of each row, and the name of that column."""
    for name in ids:
        if frame[name].isna().any():
            row = int(np.flatnonzero(frame[name].isna())[0])
            raise DataError(f"{where}: row {row + 1} has no {name}.")
    if len(ids) == 1:
        return frame, ids[0]
    joined = frame[ids[0]].astype(str)
    for name in ids[1:]:
        joined = joined + "/" + frame[name].astype(str)
    key = "/".join(ids)
    return frame.drop(columns=list(ids)).assign(**{key: joined}), key


def turn_rows(
    frame: pd.DataFrame, key: str, time: str | Sequence[str] | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A table with a series in every row as one with a series below the other, and a note on it.

    Such a table has an id that never occurs twice, no time, and numbers only; a shorter series ends
    in empty cells.
    """
    import pandas as pd

    values = frame.drop(columns=key)
    numeric = all(pd.api.types.is_numeric_dtype(values[name]) for name in values.columns)
    if time is not None or not frame[key].is_unique or not numeric or values.shape[1] < 3:
        return frame, ()
    parts = []
    for name, row in zip(frame[key], values.to_numpy(np.float64), strict=True):
        known = np.flatnonzero(~np.isnan(row))
        length = int(known[-1]) + 1 if len(known) else 0
        parts.append(pd.DataFrame({key: name, "value": row[:length]}))
    note = f"Every row of the table was read as one series, named by column {key!r}."
    return pd.concat(parts, ignore_index=True), (note,)
