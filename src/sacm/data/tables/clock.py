"""Time zones and offsets: read in UTC or by the local clock, and given back as they came."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sacm.data.tables.time_grid import is_even

if TYPE_CHECKING:
    import pandas as pd

OFFSET = r"([+-])(\d{2}):?(\d{2})?\s*$"
ZONE_NAME = re.compile(r"\s([A-Z]{2,5}|[A-Z][A-Za-z]+/[A-Za-z_/]+)\s*$")


def prefers_local_clock(
    column: pd.Series, stamps: pd.Series, groups: pd.Series | None = None
) -> bool:
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
    return utc_times(stamps) + offsets(column)


def offsets(column: pd.Series) -> pd.Series:
    """The offset from UTC that each text ends with; none, or a Z, is 0."""
    import pandas as pd

    parts = column.astype(str).str.extract(OFFSET)
    minutes = pd.to_numeric(parts[1]).fillna(0) * 60 + pd.to_numeric(parts[2]).fillna(0)
    return pd.to_timedelta(minutes.where(parts[0] != "-", -minutes), unit="min")


def zone_of(column: pd.Series, stamps: pd.Series) -> str:
    """The zone to give times back in; of several offsets in text, that of the latest row."""
    import pandas as pd

    if getattr(column.dtype, "tz", None) is not None:
        return str(stamps.dt.tz)
    last = int(offsets(column).iloc[int(stamps.to_numpy().argmax())] / pd.Timedelta(minutes=1))
    if last == 0:
        return "UTC"
    hours, minutes = divmod(abs(last), 60)
    return f"UTC{'-' if last < 0 else '+'}{hours:02d}:{minutes:02d}"


def spell_offsets(column: pd.Series) -> pd.Series:
    """Texts that end with GMT or UTC, end with an offset instead, which pandas does not drop."""
    text = column.astype(str)
    if not text.str.contains(r"(?:GMT|UTC)", regex=True).any():
        return column
    text = text.str.replace(r"\s*(?:GMT|UTC)\s*$", "+00:00", regex=True)
    return text.str.replace(r"\s*(?:GMT|UTC)\s*(?=[+-]\d)", "", regex=True)
