"""Find the time of a table: a column, several columns together, or the index of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.tables.columns import check_present
from sacm.data.tables.date_numbers import decode, find_style
from sacm.data.tables.date_text import looks_dated
from sacm.data.tables.names import is_counter, plain_name
from sacm.data.tables.time_grid import grid_cost
from sacm.data.tables.time_parts import find_parts, join_time_parts
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

TIME_NAMES = ("date", "ds", "timestamp", "time", "datetime", "date_time")
# Taken as the time only if their values are dates.
LIKELY_NAMES = (
    *("year", "yr", "jahr", "quarter", "month", "monat", "week", "day", "tag", "period"),
    *("ts", "epoch", "unix", "unixtime", "utc", "datum", "zeit", "zeitstempel", "uhrzeit"),
    *("fecha", "datetimeutc", "utctimestamp", "utctime", "timestamputc", "dateutc"),
)
UNUSED_INDEX = "The index of the frame is not used: it holds no dates, or another column does."


class TimedFrame(NamedTuple):
    """The time column of a table, the rest of it, and whether the time was the index."""

    time: pd.Series | None
    rest: pd.DataFrame
    indexed: bool = False
    notes: tuple[str, ...] = ()


def split_time(
    frame: pd.DataFrame,
    time: str | Sequence[str] | None,
    where: str,
    channels: Sequence[str] = (),
) -> TimedFrame:
    """Take the time out of a table.

    Args:
        frame: The table.
        time: The name of its time column, or of several that make the time together. Default: the
            index if it holds dates, a column with a usual name, or one that holds dates.
        where: What errors call the table.
        channels: Columns that are channels, so that none of them is taken as the time.

    Returns:
        The time, and the other columns with rows numbered from 0.

    Raises:
        DataError: There is no column `time`, or no row.
    """
    asked = [time] if isinstance(time, str) else list(time or ())
    check_present(frame, asked, where)
    if not len(frame) or not len(frame.columns):
        raise DataError(f"{where} has no rows or no columns.")
    index = time_index(frame) if not asked else None
    rest = frame.reset_index(drop=True)
    if index is not None:
        return TimedFrame(index.reset_index(drop=True), rest, indexed=True)
    plain = frame.index.inferred_type in ("integer", "datetime64", "period")
    notes: tuple[str, ...] = () if plain else (UNUSED_INDEX,)
    first = rest.columns[0]
    # A nameless counter is what a frame's index looks like after a round trip through CSV.
    if first in ("", "Unnamed: 0") and first not in asked and len(rest.columns) > 1:
        rest = rest.drop(columns=first)
    free = rest.drop(columns=[name for name in channels if name in rest.columns])
    found = asked or find_time(free)
    if not found:
        return TimedFrame(None, rest, notes=notes)
    if len(found) == 1:
        return TimedFrame(rest[found[0]], rest.drop(columns=found), notes=notes)
    note = f"The columns {', '.join(found)} were read as the time together."
    joined = join_time_parts(rest, found, where)
    return TimedFrame(joined, rest.drop(columns=found), notes=(*notes, note))


def find_time(frame: pd.DataFrame) -> list[str]:
    """The column that holds the time, or several that do together; none if there is no time."""
    if not len(frame.columns):
        return []
    parts = find_parts(frame)
    if parts:
        return parts
    column = time_column(frame)
    return [] if column is None else [column]


def time_column(frame: pd.DataFrame) -> str | None:
    """The column that holds the time, by its name or by its values."""
    names = [str(name) for name in frame.columns]
    for name in names:
        if name.lower() in TIME_NAMES:
            return name
    if holds_dates(frame.iloc[:, 0]):
        return names[0]
    for name in names:
        if plain_name(name) in LIKELY_NAMES and holds_dates(frame[name], named=True):
            return name
    dated = [name for name in names[1:] if is_text(frame[name]) and holds_dates(frame[name])]
    if len(dated) == 1:
        return dated[0]
    counters = [name for name in names if is_counter(frame[name])]
    return counters[0] if counters and len(names) > 1 else None


def holds_dates(column: pd.Series, *, named: bool = False) -> bool:
    """Whether a column holds dates; numbers must lie on a grid of dates, too.

    `named` says that the name of the column is one of a time, so that 2024 is a year.
    """
    import pandas as pd

    kept = column.dropna()
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        return True
    if not len(kept) or pd.api.types.is_bool_dtype(column) or column.dtype.kind == "m":
        return False
    if not pd.api.types.is_numeric_dtype(column):
        return looks_dated(str(kept.iloc[0]))
    if len(kept) < len(column) or column.dtype.kind == "c":
        return False
    values = column.to_numpy() if column.dtype.kind in "iu" else column.to_numpy(np.float64)
    style = find_style(values, years=named)
    if style is None:
        return False
    stamps = pd.Series(decode(values, style))
    if stamps.isna().any() or not stamps.is_unique:
        return False
    irregular, disorder, _ = grid_cost(stamps)
    # Out of order they are dates only if both their name and their grid say so.
    return (named or not irregular) if disorder < 2 else (named and not irregular)


def is_text(column: pd.Series) -> bool:
    """Whether a column holds no numbers."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(column)


def time_index(frame: pd.DataFrame) -> pd.Series | None:
    """The index as a time column, if it holds timestamps, periods or dates written as text."""
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    elif index.inferred_type == "string":
        if not looks_dated(str(index[0])) or time_column(frame) is not None:
            return None
    elif not isinstance(index, pd.DatetimeIndex):
        return None
    return index.to_series(name=index.name or "index")
