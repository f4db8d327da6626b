"""Dates as users write them, as plain timestamps."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.tables.time_grid import is_even
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

EITHER_FIRST = re.compile(r"\s*\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}")  # the day or the month
OFFSET = r"\s*(?:Z|[+-]\d{2}:?\d{2})$"


class Times(NamedTuple):
    """A time column as it was understood: dates, or a counter that only gives the order of rows."""

    name: str
    stamps: np.ndarray | None  # [T] datetime64, in UTC or by the local clock
    counter: np.ndarray | None = None  # [T] float64
    zone: str | None = None
    local: bool = False
    notes: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> Times:
        """Some of the rows, without the notes on the whole column."""
        stamps = None if self.stamps is None else self.stamps[rows]
        counter = None if self.counter is None else self.counter[rows]
        return self._replace(stamps=stamps, counter=counter, notes=())


def read_times(column: pd.Series, where: str, groups: pd.Series | None = None) -> Times:
    """Read a time column, once.

    Args:
        column: The column `[T]`, as the user has it.
        where: What errors call the table.
        groups: Which series each row belongs to, where there are several.

    Returns:
        The times of all rows, in the order of the table.

    Raises:
        DataError: A cell is not a date like the others.
    """
    import pandas as pd

    name = str(column.name)
    if pd.api.types.is_numeric_dtype(column):
        counter = column.to_numpy(dtype=np.float64, na_value=np.nan)
        note = f"The time column {name!r} is numeric: it is used for the order of rows only."
        return Times(name, None, counter, notes=(note,))
    dates, notes = read_dates(column, groups)
    wrong = np.flatnonzero(dates.isna().to_numpy())
    if len(wrong):
        raise DataError(
            f"{where}: row {wrong[0] + 1} of the time column {name!r} holds "
            f"{str(column.iloc[wrong[0]])!r}, not a date like the first one: write all dates as "
            "YYYY-MM-DD HH:MM:SS."
        )
    local = False
    if getattr(dates.dtype, "tz", None) is not None:
        local = by_local_clock(column, dates, groups)
        dates = local_times(column, dates) if local else utc_times(dates)
        notes += (
            "Timestamps are taken by the local clock."
            if local
            else "Timestamps were converted to UTC.",
        )
    exact = dates.to_numpy().astype("datetime64[ns]")
    whole = exact.astype("datetime64[s]")
    stamps = whole if (whole == exact).all() else exact
    return Times(name, stamps, zone=zone_of(column), local=local, notes=notes)


def zone_of(column: pd.Series) -> str | None:
    """The time zone of a column of timestamps."""
    zone = getattr(column.dtype, "tz", None)
    return None if zone is None else str(zone)


def read_dates(column: pd.Series, groups: pd.Series | None) -> tuple[pd.Series, tuple[str, ...]]:
    """Dates, NaT where a value is none; day first where month first makes no sense."""
    stamps = quiet_dates(column)
    if not len(column) or not EITHER_FIRST.match(str(column.iloc[0])):
        return stamps, ()
    if stamps.notna().all() and is_even(stamps, groups):
        return stamps, ()
    other = quiet_dates(column, day_first=True)
    if other.isna().any() or (stamps.notna().all() and not is_even(other, groups)):
        return stamps, ()
    if other.equals(stamps):
        return stamps, ()
    return other, (f"Dates were read with the day first ({column.iloc[0]} as {other.iloc[0]}).",)


def by_local_clock(column: pd.Series, stamps: pd.Series, groups: pd.Series | None) -> bool:
    """Whether dates that name a time zone are even by the local clock, and no shorter than days.

    Midnights are 23 or 25 hours apart when the clock is put forward or back. Steps below a day
    are taken by the local clock only if they are uneven in UTC.
    """
    import pandas as pd

    local, utc = local_times(column, stamps), utc_times(stamps)
    if not is_even(local, groups):
        return False
    usual = pd.Timedelta(utc.drop_duplicates().sort_values().diff().median())
    return usual >= pd.Timedelta(days=1) or not is_even(utc, groups)


def utc_times(stamps: pd.Series) -> pd.Series:
    """Plain dates in UTC."""
    return stamps.dt.tz_convert("UTC").dt.tz_localize(None)


def local_times(column: pd.Series, stamps: pd.Series) -> pd.Series:
    """Plain dates as a local clock showed them; offsets in text may differ from row to row."""
    if getattr(column.dtype, "tz", None) is not None:
        return stamps.dt.tz_localize(None)
    return quiet_dates(column.astype(str).str.replace(OFFSET, "", regex=True))


def quiet_dates(column: pd.Series, *, day_first: bool = False) -> pd.Series:
    """Dates, NaT where a value is none; pandas' advice on formats is for others."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pd.to_datetime(column, errors="coerce", dayfirst=day_first)
        except ValueError:  # mixed time zones
            return pd.to_datetime(column, errors="coerce", dayfirst=day_first, utc=True)
