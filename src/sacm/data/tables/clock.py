"""Time zones and offsets: read in UTC or by the local clock, and given back as they came."""

from __future__ import annotations

import re
import zoneinfo
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tables.time_grid import is_even
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

OFFSET = r"([+-])(\d{2}):?(\d{2})?\s*$"
COMMON_ZONES = (
    *("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago"),
    *("America/Denver", "America/Los_Angeles", "Australia/Sydney", "America/Sao_Paulo"),
)
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
    """The zone to give times back in; of several offsets in text, a zone whose clock shows them.

    If no zone does, the offset of the latest row.
    """
    import pandas as pd

    if getattr(column.dtype, "tz", None) is not None:
        return str(stamps.dt.tz)
    found = offsets(column)
    if found.nunique() > 1:
        named = zone_with_offsets(stamps, found)
        if named is not None:
            return named
    last = int(offsets(column).iloc[int(stamps.to_numpy().argmax())] / pd.Timedelta(minutes=1))
    if last == 0:
        return "UTC"
    hours, minutes = divmod(abs(last), 60)
    return f"UTC{'-' if last < 0 else '+'}{hours:02d}:{minutes:02d}"


def zone_with_offsets(stamps: pd.Series, found: pd.Series) -> str | None:
    """A zone whose clock has these offsets from UTC `[T]` at these times, the usual ones first."""
    import pandas as pd

    times = pd.DatetimeIndex(utc_times(stamps)).as_unit("s")
    order = times.argsort()
    times, wanted = times[order], pd.TimedeltaIndex(found)[order]
    # Most zones already differ at the first and last time before and after a change.
    changes = np.flatnonzero(wanted[1:] != wanted[:-1])
    some = np.unique([0, len(times) - 1, *changes[:20], *(changes[:20] + 1)])
    for zone in (*COMMON_ZONES, *sorted(zoneinfo.available_timezones())):
        if all(has_offsets(times[rows], wanted[rows], zone) for rows in (some, slice(None))):
            return zone
    return None


def has_offsets(times: pd.DatetimeIndex, wanted: pd.TimedeltaIndex, zone: str) -> bool:
    """Whether the clock of a zone is ahead of UTC `times` by the offsets wanted."""
    try:
        local = times.tz_localize("UTC").tz_convert(zone).tz_localize(None)
    except (ValueError, KeyError, OverflowError):  # zones that pandas does not know
        return False
    return bool(((local - times) == wanted).all())


def spell_offsets(column: pd.Series) -> pd.Series:
    """Texts that end with GMT or UTC, end with an offset instead, which pandas does not drop."""
    text = column.astype(str)
    if not text.str.contains(r"(?:GMT|UTC)", regex=True).any():
        return column
    text = text.str.replace(r"\s*(?:GMT|UTC)\s*$", "+00:00", regex=True)
    return text.str.replace(r"\s*(?:GMT|UTC)\s*(?=[+-]\d)", "", regex=True)


def put_in_zone(stamps: pd.Series, zone: str, groups: pd.Series | None, where: str) -> pd.Series:
    """Dates `[T]` with a time zone: those that have none are read by the clock of the zone.

    An hour that the clock shows twice is told apart by the order of rows, series by series.
    """
    import pandas as pd

    try:
        if getattr(stamps.dtype, "tz", None) is not None:
            return stamps.dt.tz_convert(zone)
        pd.Timestamp("2024-01-01").tz_localize(zone)
    except (ValueError, KeyError, LookupError, TypeError):
        raise ArgumentError(
            f"zone {zone!r} is not a time zone: use a name such as Europe/Berlin or UTC."
        ) from None
    own = [stamps] if groups is None else [part for _, part in stamps.groupby(groups.to_numpy())]
    try:
        parts = [part.dt.tz_localize(zone, ambiguous="infer") for part in own]
    except (ValueError, KeyError) as error:  # pandas has one of its own for each kind of doubt
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(
            f"{where}: the times are not those of a clock in {zone}: {reason}."
        ) from None
    return pd.concat(parts).reindex(stamps.index)
