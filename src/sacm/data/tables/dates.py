"""Dates as users write them, as plain timestamps."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tables.time_grid import is_even
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

EITHER_FIRST = re.compile(r"\s*\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}")  # the day or the month
OFFSET = r"\s*(?:Z|[+-]\d{2}:?\d{2})$"


def parse_dates(column: pd.Series, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """A column of dates as datetime64; if it names a time zone, in UTC or by the local clock."""
    stamps, notes = read_dates(column)
    wrong = np.flatnonzero(stamps.isna().to_numpy())
    if len(wrong):
        raise DataError(
            f"{where}: row {wrong[0] + 1} of the time column {column.name!r} holds "
            f"{str(column.iloc[wrong[0]])!r}, not a date like the first one: write all dates as "
            "YYYY-MM-DD HH:MM:SS."
        )
    if getattr(stamps.dtype, "tz", None) is not None:
        if by_local_clock(column):
            stamps = local_times(column, stamps)
            notes += ("Timestamps are taken by the local clock.",)
        else:
            stamps = utc_times(stamps)
            notes += ("Timestamps were converted to UTC.",)
    exact = stamps.to_numpy().astype("datetime64[ns]")
    whole = exact.astype("datetime64[s]")
    return (whole if (whole == exact).all() else exact), notes


def read_dates(column: pd.Series) -> tuple[pd.Series, tuple[str, ...]]:
    """Dates, NaT where a value is none; day first where month first makes no sense."""
    stamps = quiet_dates(column)
    if not len(column) or not EITHER_FIRST.match(str(column.iloc[0])):
        return stamps, ()
    if stamps.notna().all() and is_even(stamps):
        return stamps, ()
    other = quiet_dates(column, day_first=True)
    if other.isna().any() or (stamps.notna().all() and not is_even(other)):
        return stamps, ()
    if other.equals(stamps):
        return stamps, ()
    return other, (f"Dates were read with the day first ({column.iloc[0]} as {other.iloc[0]}).",)


def by_local_clock(column: pd.Series) -> bool:
    """Whether dates that name a time zone are even by the local clock, and no shorter than days.

    Midnights are 23 or 25 hours apart when the clock is put forward or back. Steps below a day
    are taken by the local clock only if they are uneven in UTC.
    """
    import pandas as pd

    stamps = quiet_dates(column)
    if getattr(stamps.dtype, "tz", None) is None or stamps.isna().any():
        return False
    local, utc = local_times(column, stamps), utc_times(stamps)
    if not is_even(local):
        return False
    usual = pd.Timedelta(utc.drop_duplicates().sort_values().diff().median())
    return usual >= pd.Timedelta(days=1) or not is_even(utc)


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
