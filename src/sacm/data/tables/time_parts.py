"""A time that several columns make together: date and time, or year, month, day and hour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sacm.data.tables.names import calendar_part, plain_name
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CALENDAR = ("year", "month", "day", "hour", "minute", "second")
CLOCK = r"\s*\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[AaPp][Mm])?\s*"


def find_parts(frame: pd.DataFrame) -> list[str]:
    """Columns that make the time together, the largest unit first; none if there are no such."""
    named = {plain_name(name): str(name) for name in frame.columns}
    date = named.get("date")
    if date is not None and not frame[date].is_unique:
        clock = next((named[name] for name in ("time", "clock", "uhrzeit") if name in named), None)
        if clock is not None and is_clock(frame[clock]):
            return [date, clock]
        hour = named.get("hour")
        if hour is not None and calendar_part(frame[hour]) == "hour":
            return [date, hour]
    if any(name in named for name in ("date", "ds", "timestamp", "time", "datetime")):
        return []
    parts = []
    for name in CALENDAR:
        if name not in named or calendar_part(frame[named[name]]) != name:
            break
        parts.append(named[name])
    return parts if len(parts) > 1 else []


def is_clock(column: pd.Series) -> bool:
    """Whether a column holds times of day."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) or column.dtype.kind in "mM":
        return False
    return bool(column.astype(str).str.fullmatch(CLOCK).all())


def join_time_parts(frame: pd.DataFrame, names: Sequence[str], where: str) -> pd.Series:
    """One time column from several; a calendar starts with the year, anything else with a date."""
    first = frame[names[0]]
    parts = [plain_name(name) for name in names]
    if parts == list(CALENDAR[: len(parts)]) or parts[0] == "year":
        return join_calendar(frame, names, where)
    import pandas as pd

    text = first.dt.strftime("%Y-%m-%d") if first.dtype.kind == "M" else first.astype(str)
    clock = frame[names[1]]
    if pd.api.types.is_numeric_dtype(clock):
        clock = clock.astype(int).astype(str).str.zfill(2) + ":00"
    return (text + " " + clock.astype(str).str.strip()).rename(names[0])


def join_calendar(frame: pd.DataFrame, names: Sequence[str], where: str) -> pd.Series:
    """Timestamps from columns year, month, day, hour, minute, second."""
    import pandas as pd

    table = frame[list(names)].set_axis([plain_name(name) for name in names], axis=1)
    stamps = pd.to_datetime(table.assign(day=table.get("day", 1)), errors="coerce")
    if stamps.isna().any():
        row = int(stamps.isna().to_numpy().argmax())
        held = ", ".join(f"{name} {frame[name].iloc[row]}" for name in names)
        raise DataError(f"{where}: row {row + 1} is no date: {held}.")
    return stamps.rename("time")
