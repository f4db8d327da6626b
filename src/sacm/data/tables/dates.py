"""Read a time column: dates as text, numbers or timestamps, durations, or a plain counter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sacm.data.tables.clock import (
    ZONE_NAME,
    local_times,
    prefers_local_clock,
    put_in_zone,
    spell_offsets,
    utc_times,
    zone_of,
)
from sacm.data.tables.date_numbers import decode, find_style
from sacm.data.tables.date_text import YEAR, DateOrder, quiet_dates, read_text
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

YEAR_NAMES = ("year", "years", "yr", "jahr", "date", "ds")
SPAN = (np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s"))  # of nanoseconds


class Times(NamedTuple):
    """A time column as it was understood: dates, or a counter that only gives the order of rows.

    `style` says how numbers or durations write the time, `written` the same in words.
    """

    name: str
    stamps: np.ndarray | None  # [T] datetime64, in UTC or by the local clock
    counter: np.ndarray | None = None  # [T] float64
    zone: str | None = None
    local: bool = False
    style: str | None = None
    written: str = ""
    notes: tuple[str, ...] = ()

    @property
    def by_clock(self) -> np.ndarray | None:
        """The stamps `[T]` as a clock in their zone shows them, by which calendars go."""
        if self.stamps is None or self.zone is None or self.local:
            return self.stamps
        import pandas as pd

        shown = pd.Series(self.stamps).dt.tz_localize("UTC").dt.tz_convert(self.zone)
        clock: np.ndarray = shown.dt.tz_localize(None).to_numpy()
        return clock

    def take(self, rows: np.ndarray) -> Times:
        """Some of the rows, without the notes on the whole column."""
        stamps = None if self.stamps is None else self.stamps[rows]
        counter = None if self.counter is None else self.counter[rows]
        return self._replace(stamps=stamps, counter=counter, notes=())


def read_times(
    column: pd.Series,
    where: str,
    groups: pd.Series | None = None,
    order: DateOrder | None = None,
    zone: str | None = None,
) -> Times:
    """Read a time column, once.

    Args:
        column: The column `[T]`, as the user has it.
        where: What errors call the table.
        groups: Which series each row belongs to, where there are several.
        order: How to read dates such as 01/02/03. Default: as needs the least sorting and filling.
        zone: The time zone of times that name none, and in which all are given back.

    Returns:
        The times of all rows, in the order of the table.

    Raises:
        DataError: A cell is not a date like the others, or is no time of the zone.
        ArgumentError: There is no such zone.
    """
    found = read_any_times(column, where, groups, order, zone)
    if zone is not None and found.zone is None:
        raise DataError(
            f"{where}: the time column {found.name!r} holds {found.written}, for which there is no "
            "zone: leave out zone=."
        )
    return found


def read_any_times(
    column: pd.Series,
    where: str,
    groups: pd.Series | None,
    order: DateOrder | None,
    zone: str | None,
) -> Times:
    """Read a time column of any kind; `zone` matters to dates only."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column):
        raise DataError(f"{where}: the time column {column.name!r} holds true and false.")
    if pd.api.types.is_numeric_dtype(column):
        return read_numeric_times(column, where)
    if not pd.api.types.is_datetime64_any_dtype(column):
        durations = as_durations(column)
        if durations is not None:
            return durations
        as_numbers = pd.to_numeric(column.astype(object), errors="coerce")
        if as_numbers.notna().all():
            return read_numeric_times(as_numbers, where)
    return read_dates(column, where, groups, order, zone)


def read_numeric_times(column: pd.Series, where: str) -> Times:
    """A time column of numbers: dates if they look like some, otherwise a counter."""
    name = str(column.name)
    exact = column.dtype.kind in "iu"
    values = column.to_numpy() if exact else column.to_numpy(dtype=np.float64, na_value=np.nan)
    style = find_style(values, years=name.strip().lower() in YEAR_NAMES)
    if style is None:
        note = f"The time column {name!r} is numeric: it is used for the order of rows only."
        return Times(name, None, values.astype(np.float64), written="a counter", notes=(note,))
    stamps = decode(values, style)
    check_dates(column, np.isnat(stamps), where)
    note = f"The numbers in the time column {name!r} were read as dates ({style})."
    whole = exact or bool((values == np.floor(values)).all())
    # Fractions of a second are given back as dates: as floats, tables print them rounded.
    return Times(
        name, in_seconds(stamps), style=style if whole else None, written=style, notes=(note,)
    )


def as_durations(column: pd.Series) -> Times | None:
    """A time column of durations such as 00:00:01 as a counter of seconds; None if it has dates."""
    import pandas as pd

    name, style = str(column.name), "timedelta"
    if column.dtype.kind != "m":
        style = "durations"
        text = column.astype(str).str.strip()
        if not len(text) or not text.str.fullmatch(r"-?\d+:\d\d(?::\d\d(?:[.,]\d+)?)?").all():
            return None
        # Two fields are hours and minutes, as on a clock.
        short = text.str.fullmatch(r"-?\d+:\d\d")
        column = pd.to_timedelta((text + ":00").where(short, text).str.replace(",", "."))
    seconds = column.dt.total_seconds().to_numpy(dtype=np.float64)
    note = (
        f"The time column {name!r} holds durations, not dates: it is used for the "
        "order of rows only, in seconds."
    )
    return Times(name, None, seconds, style=style, written="durations", notes=(note,))


def read_dates(
    column: pd.Series,
    where: str,
    groups: pd.Series | None,
    order: DateOrder | None,
    zone: str | None = None,
) -> Times:
    """A time column of timestamps or of dates written as text."""
    import pandas as pd

    notes: tuple[str, ...] = ()
    if pd.api.types.is_datetime64_any_dtype(column):
        dates, written = column, "timestamps"
    elif isinstance(column.dtype, pd.PeriodDtype):
        dates, written = column.dt.to_timestamp(), "periods"
    elif column.map(lambda cell: isinstance(cell, str)).any():
        column = spell_offsets(column)
        dates, notes = read_text(column, groups, order)
        written = f"dates like {column.iloc[0]}"
    else:  # date and datetime objects
        dates, written = quiet_dates(column), "dates"
    check_dates(column, dates.isna().to_numpy(), where)
    if zone is not None:
        column = dates = put_in_zone(dates, zone, groups, where)
    local = False
    if getattr(dates.dtype, "tz", None) is not None:
        named = zone is not None or getattr(column.dtype, "tz", None) is not None
        zone = zone or zone_of(column, dates)
        if not named and "/" in zone:
            notes += (f"The offsets change as in {zone}: zone= names another.",)
        local = prefers_local_clock(column, dates, groups)
        dates = local_times(column, dates) if local else utc_times(dates)
        clock = "are taken by the local clock" if local else "were converted to UTC"
        notes += (f"Timestamps {clock}.",)
    stamps = in_seconds(dates.to_numpy())
    return Times(str(column.name), stamps, zone=zone, local=local, written=written, notes=notes)


def check_dates(column: pd.Series, wrong: np.ndarray, where: str) -> None:
    """Refuse cells that are no dates; `wrong` `[T]` marks them."""
    if not wrong.any():
        return
    row = int(np.flatnonzero(wrong)[0])
    cell = str(column.iloc[row])
    place = f"{where}: row {row + 1} of the time column {column.name!r}"
    if column.isna().iloc[row]:
        raise DataError(f"{place} is empty: every row needs its time.")
    if ZONE_NAME.search(cell):
        raise DataError(
            f"{place} holds {cell!r}: write its time zone as an offset, such as +01:00."
        )
    why = "not a date like the first one"
    if wrong.all():
        why = "not a date" if YEAR.search(cell) else "not a date with a year from 1000 to 2999"
    raise DataError(f"{place} holds {cell!r}, {why}: write all dates as YYYY-MM-DD HH:MM:SS.")


def in_seconds(stamps: np.ndarray) -> np.ndarray:
    """Dates `[T]` in seconds, or in the coarsest finer unit that holds them all exactly."""
    whole = stamps.astype("datetime64[s]")
    if (whole == stamps).all():
        return whole
    inside = (whole >= SPAN[0]).all() and (whole < SPAN[1]).all()
    return stamps.astype("datetime64[ns]" if inside else "datetime64[us]")
