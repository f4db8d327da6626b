"""Find the time of a table: a column, or the index of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sacm.data.tables.columns import check_present
from sacm.data.tables.date_text import looks_dated

if TYPE_CHECKING:
    import pandas as pd

TIME_NAMES = ("date", "ds", "timestamp", "time", "datetime", "date_time")
UNUSED_INDEX = "The index of the frame is not used: it holds no dates, or another column does."


class TimedFrame(NamedTuple):
    """The time column of a table, the rest of it, and whether the time was the index."""

    time: pd.Series | None
    rest: pd.DataFrame
    indexed: bool = False
    notes: tuple[str, ...] = ()


def split_time(frame: pd.DataFrame, time: str | None, where: str) -> TimedFrame:
    """Take the time out of a table.

    Args:
        frame: The table.
        time: The name of its time column. Default: the index if it holds dates, a column with a
            usual name, or the first column if it holds dates.
        where: What errors call the table.

    Returns:
        The time, and the other columns with rows numbered from 0.

    Raises:
        DataError: There is no column `time`.
    """
    if time is not None:
        check_present(frame, [time], where)
    index = time_index(frame) if time is None else None
    rest = frame.reset_index(drop=True)
    if index is not None:
        return TimedFrame(index.reset_index(drop=True), rest, indexed=True)
    plain = frame.index.inferred_type in ("integer", "datetime64", "period")
    notes = () if plain else (UNUSED_INDEX,)
    first = rest.columns[0]
    # A nameless counter is what a frame's index looks like after a round trip through CSV.
    if first in ("", "Unnamed: 0") and time != first and len(rest.columns) > 1:
        rest = rest.drop(columns=first)
    chosen = time or time_column(rest)
    if chosen is None:
        return TimedFrame(None, rest, notes=notes)
    return TimedFrame(rest[chosen], rest.drop(columns=chosen), notes=notes)


def time_column(frame: pd.DataFrame) -> str | None:
    """The column with the timestamps: by name, or the first one if it holds dates."""
    import pandas as pd

    for name in frame.columns:
        if str(name).lower() in TIME_NAMES:
            return str(name)
    first = frame.iloc[:, 0]
    if pd.api.types.is_datetime64_any_dtype(first):
        return str(frame.columns[0])
    if pd.api.types.is_numeric_dtype(first) or not len(first.dropna()):
        return None
    return str(frame.columns[0]) if looks_dated(str(first.dropna().iloc[0])) else None


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
