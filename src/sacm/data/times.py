"""The times of a table: a column, several together, or the index, in UTC or by the local clock.

Where two ways of reading make sense, the error names the option that decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.dates import (
    AWARE,
    DATE_FORMS,
    MONTHS,
    Times,
    first_unread,
    from_typed,
    read_clock,
    read_column,
)
from sacm.data.grid import coverage
from sacm.data.numbers import (
    GAP_WORDS,
    Reading,
    flag,
    holds_numbers,
    is_text,
    plain_name,
    plain_text,
    words_of,
)
from sacm.errors import ArgumentError, DataError

# Parts of the date: names of columns that hold them, and the smallest and largest value.
PARTS = {
    "year": ("year yr yyyy jahr jaar anno annee année ano año", 1000, 2999),
    "month": ("month mon mm mo mnth monat mois mes maand mese", 1, 12),
    "day": ("day dd dayofmonth tag jour dia dag", 1, 31),
    "day of year": ("doy dayofyear julian jday yday ddd", 1, 366),
    "quarter": ("quarter qtr quartal", 1, 4),
    "hour": ("hour hr hh hours stunde heure hora uur", 0, 24),
    "minute": ("minute minutes min mi", 0, 59),
}
SECONDS = {"day of year": 86_400, "hour": 3600, "minute": 60}
TIME_NAME = re.compile(
    r"date|time|datum|zeit|stamp|period|year|jahr|month|monat|week|day|yyyy|epoch|fecha|quarter"
    r"|^ds$|^ts?$|^when$|^utc$|日|时",
    re.IGNORECASE,
)
COUNTER_NAMES = {"", "unnamed0"}.union(
    words_of(
        "index idx id no nr num number row rows rownum rowid rownumber rownames rowno n i k t "
        "step steps timestep timeindex timestamp sno counter seq sequence sample sampleno obs "
        "observation record instant seconds elapsed elapsedtime time times timesec timems"
    )
)
FIRST_FIELD = {"%d": "day first", "%m": "month first", "%y": "year first", "%Y": "year first"}
CLOSE = 0.2  # two readings whose grids are complete to shares this close are both possible
MOSTLY = 0.9  # share of cells like dates that make a column one of times
CLOCK = r"\d{1,2}[:.]\d\d([:.]\d\d([.,]\d+)?)?\s*([AaPp][Mm])?"


def find_times(
    frame: pd.DataFrame,
    reading: Reading,
    *,
    time: Sequence[str] = (),
    skip: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> tuple[Times | None, list[str]]:
    """Find the times of a table.

    Args:
        frame: The table; dates may also be its index.
        reading: The options `date_order` and `zone` are used; takes notes.
        time: The columns that hold the time, if they are known.
        skip: Columns that are something else.
        ids: Columns that tell series apart, if they are known.

    Returns:
        The times, None if there are none, and other columns of times, which are no channels.

    Raises:
        DataError: The dates can be read in two ways, or a cell cannot be read.
    """
    pool = list(time) or [name for name in frame.columns if name not in (*skip, *ids)]
    index = None if time else _index_times(frame)
    found = [index] if index is not None else []
    broken: str | None = None
    parts = _from_parts(frame, pool) if index is None else None
    found += [parts] if parts is not None else []
    for name in pool if index is None else ():
        first, named = name == frame.columns[0], bool(time) or bool(TIME_NAME.search(name))
        numeric = frame[name].dtype.kind in "fiu"
        if (parts is not None and name in parts.columns) or (numeric and not (named or first)):
            continue
        readings = read_column(frame[name], named=named, first=first, asked=bool(time))
        readings = _add_clock(frame, name, list(time), pool, readings)
        chosen = _choose(readings, name, reading)
        if chosen is not None:
            found.append(chosen)
        elif broken is None and _looks_dated(frame[name]):
            broken = name
    found = [each for each in found if each.distinct > 1 or len(frame) == 1]
    if not found:
        counter = _find_counter(frame, pool, ids, asked=bool(time))
        if counter is None and (broken or time):
            raise _unread_error(frame[broken or time[0]], reading)
        return counter, []
    best = max(found, key=lambda each: each.distinct)
    held = {name for each in found for name in each.columns} - set(best.columns)
    others = [name for name in frame.columns if name in held]
    if others and not time:
        reading.note(f"Other columns of times were left out ({flag('time')}): {', '.join(others)}.")
    return _place_in_zone(best, reading), others


def _index_times(frame: pd.DataFrame) -> Times | None:
    """The index of a frame, if it holds dates."""
    index = frame.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return from_typed(index, ())
    if index.inferred_type != "string" or any(TIME_NAME.search(name) for name in frame.columns):
        return None
    readings = read_column(pd.Series(index, name="index"), named=False)
    return replace(readings[0], columns=()) if len(readings) == 1 else None


def part_of(name: object) -> str | None:
    """The part of a date that a column is named after."""
    plain = re.sub(r"\d", "", plain_name(name))
    return next((part for part, (words, *_) in PARTS.items() if plain in words.split()), None)


def is_calendar(column: pd.Series) -> bool:
    """Whether a column holds months, quarters or clocks, which never tell series apart."""
    text = plain_text(column.drop_duplicates().iloc[:100]).str.lower()
    months = text.str.strip(".").isin(MONTHS)
    return bool((months | text.str.fullmatch(rf"[mq]\d\d?|{CLOCK}")).all())


def _part_numbers(column: pd.Series, part: str) -> pd.Series | None:
    """A part of the date as numbers; months may be names; None if one is out of range."""
    text = plain_text(column).str.lower().str.strip(".") if is_text(column) else column
    if part == "month" and is_text(column):
        text = text.map(lambda word: MONTHS.get(word, word))
    if part in ("month", "quarter") and is_text(column):
        text = text.astype(str).str.lstrip("mq")
    numbers = pd.to_numeric(text, errors="coerce").reset_index(drop=True)
    _, least, most = PARTS[part]
    fitting = numbers.between(least, most).all() and (numbers % 1 == 0).all()
    return numbers if fitting else None


def _from_parts(frame: pd.DataFrame, pool: Sequence[str]) -> Times | None:
    """Year with month, quarter or day of the year, perhaps day, hour and minute, in columns."""
    parts: dict[str, str] = {}
    for name in pool:
        part = part_of(name)
        if part is None and plain_name(name) == "period" and is_text(frame[name]):
            starts = set(plain_text(frame[name]).str[:1].str.lower())
            part = {"q": "quarter", "m": "month"}.get("".join(starts))
        if part is not None:
            parts.setdefault(part, name)
    coarse = next((part for part in ("month", "day of year", "quarter") if part in parts), None)
    if "year" not in parts or coarse is None:
        return None
    used = ["year", coarse, *(["day"] if coarse == "month" and "day" in parts else [])]
    if "day" in used or coarse == "day of year":
        used += [part for part in ("hour", "minute") if part in parts]
    numbers: dict[str, Any] = {part: _part_numbers(frame[parts[part]], part) for part in used}
    if any(each is None for each in numbers.values()):
        return None
    month = numbers.get("month", numbers["quarter"] * 3 - 2 if coarse == "quarter" else 1)
    days = {"year": numbers["year"], "month": month, "day": numbers.get("day", 1)}
    base = pd.to_datetime(pd.DataFrame(days), errors="coerce")
    for part in SECONDS.keys() & set(used):
        count = numbers[part] - (part == "day of year")
        base = base + pd.to_timedelta(count * SECONDS[part], unit="s")
    if base.isna().any():
        return None
    return Times(stamps=pd.DatetimeIndex(base), **_joined([parts[part] for part in used]))


def _add_clock(
    frame: pd.DataFrame, name: str, asked: list[str], pool: Sequence[str], readings: list[Times]
) -> list[Times]:
    """Readings of a column of dates, together with the column of clocks or hours beside it.

    The clock is the next column, or one that is named after the hour.
    """
    dated = [
        each
        for each in readings
        if each.zone is None and each.index.equals(each.index.normalize())  # days without a clock
    ]
    if not dated or max(each.distinct for each in dated) == len(frame):
        return readings
    names = list(frame.columns)
    following = names[names.index(name) + 1 :][:1]
    others = [each for each in asked if each != name] or [
        each for each in pool if each in following or part_of(each) == "hour"
    ]
    for other in others:
        clock = _clock_of(frame[other], sure=bool(asked))
        if clock is not None:
            joined = _joined([name, other])
            return [replace(each, stamps=each.index + clock, **joined) for each in dated]
    return readings


def _joined(columns: Sequence[str]) -> dict[str, Any]:
    """What is said of a time that several columns make together."""
    written = f"the columns {', '.join(columns)} together"
    return {"columns": tuple(columns), "written": written, "style": None}


def _clock_of(column: pd.Series, *, sure: bool) -> pd.TimedeltaIndex | None:
    """A column of clocks (13:30), hours (0 to 24) or HHMM as time since midnight."""
    text = plain_text(column.astype("Int64") if column.dtype.kind == "i" else column)
    if text.str.fullmatch(CLOCK).all() and is_text(column):
        parts = text.str.extract(r"^(\S+?)\s*([AaPp][Mm])?$")
        return read_clock(parts[0], parts[1])
    likely = part_of(column.name) == "hour" or re.search(
        "time|zeit|hhmm|clock|uhr", str(column.name), re.IGNORECASE
    )
    if not (sure or likely) or not text.str.fullmatch(r"\d{1,6}").all():
        return None
    numbers = text.astype(int)
    if numbers.max() <= 24:
        return pd.TimedeltaIndex(pd.to_timedelta(numbers.to_numpy(), unit="h"))
    if numbers.max() <= 2400 and (numbers % 100 < 60).all():
        minutes = numbers // 100 * 60 + numbers % 100
        return pd.TimedeltaIndex(pd.to_timedelta(minutes.to_numpy(), unit="min"))
    return None


def _choose(readings: list[Times], name: str, reading: Reading) -> Times | None:
    """The reading of a column whose dates lie best on a grid; refuse where two do alike."""
    order = reading.options.date_order
    if order is not None:
        fitting = [r for r in readings if r.form and FIRST_FIELD.get(r.form[:2]) == order]
        ambiguous = (*DATE_FORMS["last"], *DATE_FORMS["short"])
        readings = fitting or [r for r in readings if r.form not in ambiguous]
    if len(readings) < 2:
        return readings[0] if readings else None
    shares = {r.form: coverage(r.index) for r in readings}
    best, second, *_ = sorted(readings, key=lambda r: shares[r.form], reverse=True)
    close = shares[best.form] - shares[second.form] < CLOSE
    if close and not best.index.equals(second.index):
        row = int(np.flatnonzero(best.index != second.index)[0])
        orders = [FIRST_FIELD[str(each.form)[:2]].split()[0] for each in (best, second)]
        raise reading.error(
            f"the dates in column {name!r} can be read in two ways (row {row + 1} is "
            f"{best.index[row]} or {second.index[row]}): {flag('date_order', orders[0])} or "
            f"{flag('date_order', orders[1])} decides."
        )
    return best


def _looks_dated(column: pd.Series) -> bool:
    """Whether most cells of a column look like times, though not all can be read."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return bool(column.notna().mean() > MOSTLY)
    if not is_text(column) or holds_numbers(column):
        return False
    text = plain_text(column.iloc[:500])
    text = text[text != ""]
    return bool(text.str.match(r"\S*\d+[-/.:]\d+[-/.:T ]|\d+:\d\d").mean() > MOSTLY)


def _unread_error(column: pd.Series, reading: Reading) -> DataError:
    """Say which cell of a column of times cannot be read."""
    name, text = column.name, plain_text(column)
    in_order = f"take rows in their order with {flag('ignore', name)}"
    empty = np.flatnonzero(text.str.lower().isin(GAP_WORDS))
    if len(empty):
        return reading.error(
            f"row {empty[0] + 1} of the time column {name!r} is empty: fill it in, or {in_order}."
        )
    if text.str.fullmatch(CLOCK).all():
        return reading.error(
            f"column {name!r} holds clocks without a date ({text.iloc[0]!r}): {in_order}, or name "
            f"the column of dates too ({flag('time')})."
        )
    shape = text.str.replace(r"\d", "0", regex=True)
    odd = np.flatnonzero(shape != shape.iloc[0])
    row, why = first_unread(column), "which cannot be read as a date like the others"
    aware = text.str.contains(AWARE, regex=True)
    if aware.nunique() > 1:
        row, why = int(np.flatnonzero(aware != aware.iloc[0])[0]), "and only some times name a zone"
    elif len(odd):
        row, why = int(odd[0]), f"which is not written like the first one ({text.iloc[0]!r})"
    return reading.error(
        f"row {row + 1} of the time column {name!r} holds {text.iloc[row]!r}, {why}: write all "
        f"dates as YYYY-MM-DD HH:MM:SS, or {in_order}."
    )


def _find_counter(
    frame: pd.DataFrame, pool: Sequence[str], ids: Sequence[str], *, asked: bool
) -> Times | None:
    """A column that counts the rows or seconds, and so gives their order only."""
    for name in pool:
        if not asked and (plain_name(name) not in COUNTER_NAMES or len(pool) < 2):
            continue
        numbers = pd.to_numeric(_as_seconds(frame[name]), errors="coerce").to_numpy(float)
        steps = np.diff(numbers)
        if ids:
            groups = frame[list(ids)].astype(str).agg("/".join, axis=1).to_numpy()
            within = pd.Series(numbers).groupby(groups).diff().to_numpy()
            steps = within[~np.isnan(within)]
        if not len(steps) or not np.isfinite(numbers).all() or not (steps > 0).all():
            continue
        if asked or np.allclose(steps, np.median(steps), rtol=1e-3):
            return Times((name,), None, "a counter", counter=numbers)
    return None


def _as_seconds(column: pd.Series) -> Any:
    """Durations such as 00:01:30 as seconds; anything else as it is."""
    if column.dtype.kind == "m":
        return column.dt.total_seconds()
    if is_text(column):
        text = plain_text(column)
        if text.str.fullmatch(r"\d+:\d\d:\d\d(\.\d+)?").all():
            return pd.to_timedelta(text).dt.total_seconds()
    return column


def _place_in_zone(times: Times, reading: Reading) -> Times:
    """Times in UTC where a zone is known; by the local clock where only that is even."""
    zone = reading.options.zone
    if times.stamps is None or (zone is None and times.zone is None):
        return times
    name = zone or str(times.zone)
    try:
        pd.Timestamp("2024-01-01").tz_localize(name)
    except (ValueError, KeyError, LookupError, TypeError):
        raise ArgumentError(
            f"zone {name!r} is not a time zone: use a name such as Europe/Berlin or UTC."
        ) from None
    if times.zone is None:
        utc, local = _to_utc(times.stamps, name, reading), times.stamps
    else:
        utc = times.stamps
        local = utc.tz_localize("UTC").tz_convert(name).tz_localize(None)
        if zone is None and times.offsets is not None:
            local = utc + times.offsets
    by_clock = _is_finer_by_clock(local, utc)
    changing = times.offsets is not None and times.offsets.nunique() > 1
    if by_clock and zone is None and changing and "/" not in name:
        raise reading.error(
            "the offsets of the times change, and rows are even by the local clock only: "
            f"{flag('zone')} names the time zone, such as Europe/Berlin."
        )
    reading.note(f"Times are kept {'by the local clock' if by_clock else 'in UTC'}.")
    return replace(times, stamps=local if by_clock else utc, zone=name, local=by_clock)


def _to_utc(stamps: pd.DatetimeIndex, zone: str, reading: Reading) -> pd.DatetimeIndex:
    """Times of a local clock in UTC; the hour that it shows twice is told by the order of rows."""
    for ambiguous in ("infer", np.ones(len(stamps), bool)):
        try:
            aware = stamps.tz_localize(zone, ambiguous=ambiguous, nonexistent="shift_forward")
            return aware.tz_convert("UTC").tz_localize(None)
        except ValueError as error:  # pandas has one of its own for each kind of doubt
            reason = str(error).splitlines()[0].rstrip(".")
    raise reading.error(f"the times are not those of a clock in {zone}: {reason}.")


def _is_finer_by_clock(local: pd.DatetimeIndex, utc: pd.DatetimeIndex) -> bool:
    """Whether rows are even by the local clock: always for days, else if they are not in UTC."""
    by_clock, in_utc = coverage(local), coverage(utc)
    usual = pd.Timedelta(pd.Series(utc.unique().sort_values()).diff().median())
    if usual >= pd.Timedelta(hours=23):
        return by_clock >= in_utc
    return by_clock > in_utc + CLOSE
