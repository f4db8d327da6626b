"""The times of a table: a column, several together, or the index, in UTC or by the local clock.

Where two ways of reading make sense, the error names the option that decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.dates import AWARE, DATE_FORMS, MONTHS, Times, from_typed, read_clock, read_column
from sacm.data.grid import coverage
from sacm.data.numbers import GAP_WORDS, holds_numbers, is_text, plain_text, words_of
from sacm.errors import ArgumentError, DataError

# Names of columns that hold a part of the date.
PARTS = {
    "year": ["year", "yr", "yyyy", "jahr", "jaar", "anno", "annee", "année", "ano", "año"],
    "month": ["month", "mon", "mm", "mo", "monat", "mois", "mes", "maand", "mese"],
    "day": ["day", "dd", "dayofmonth", "tag", "jour", "dia", "dag"],
    "day of year": ["doy", "dayofyear", "julian", "jday", "yday", "ddd"],
    "quarter": ["quarter", "qtr", "quartal"],
    "hour": ["hour", "hr", "hh", "hours", "stunde", "heure", "hora", "uur"],
    "minute": ["minute", "minutes", "min", "mi"],
}
LIMITS = {
    "year": (1000, 2999),
    "month": (1, 12),
    "day": (1, 31),
    "day of year": (1, 366),
    "quarter": (1, 4),
    "hour": (0, 24),
    "minute": (0, 59),
}
TIME_NAME = re.compile(
    r"date|time|datum|zeit|stamp|period|year|jahr|month|monat|week|day|yyyy|epoch|fecha|quarter"
    r"|^ds$|^ts?$|^when$|^utc$|日|时",
    re.IGNORECASE,
)
COUNTER_NAMES = frozenset(
    words_of(
        "index idx id no nr num number row rownum rowid rownumber rowno n i k t step steps "
        "timestep timeindex sno counter seq sequence sample sampleno obs observation record "
        "seconds elapsed elapsedtime time times timesec timems"
    )
) | {"", "unnamed0"}
FIRST_FIELD = {"%d": "day first", "%m": "month first", "%y": "year first", "%Y": "year first"}
CLOSE = 0.2  # two readings whose grids are complete to shares this close are both possible
MOSTLY = 0.9  # share of cells like dates that make a column one of times


def find_times(
    frame: pd.DataFrame,
    where: str,
    *,
    time: Sequence[str] = (),
    skip: Sequence[str] = (),
    ids: Sequence[str] = (),
    date_order: str | None = None,
    zone: str | None = None,
    notes: list[str],
) -> tuple[Times | None, list[str]]:
    """Find the times of a table.

    Args:
        frame: The table; dates may also be its index.
        where: What errors call the table.
        time: The columns that hold the time, if the user names them.
        skip: Columns that are something else.
        ids: Columns that tell series apart, if they are known.
        date_order: "day first", "month first" or "year first".
        zone: The time zone of the times.
        notes: Takes a sentence on whatever was understood.

    Returns:
        The times, None if there are none, and other columns of times, which are no channels.

    Raises:
        DataError: The dates can be read in two ways, or a cell cannot be read.
    """
    pool = list(time) or [name for name in frame.columns if name not in (*skip, *ids)]
    index = None if time else _index_times(frame)
    found = [index] if index is not None else []
    broken: str | None = None
    if index is None:
        parts = _from_parts(frame, pool)
        found += [parts] if parts is not None else []
        for name in pool:
            if parts is not None and name in parts.columns:
                continue
            named = bool(time) or bool(TIME_NAME.search(name))
            if not named and name != frame.columns[0] and frame[name].dtype.kind in "fiu":
                continue
            readings = read_column(
                frame[name], named=named, first=name == frame.columns[0], asked=bool(time)
            )
            chosen = _choose(readings, name, where, date_order)
            if chosen is None:
                if broken is None and _looks_dated(frame[name]):
                    broken = name
                continue
            found.append(chosen)
            clock = _clock_beside(frame, name, list(time), chosen)
            if clock is not None:
                found.append(clock)
    found = [each for each in found if each.distinct > 1 or len(frame) == 1]
    if not found:
        counter = _find_counter(frame, pool, ids, asked=bool(time))
        if counter is None and (broken or time):
            raise _unread_error(frame[broken or time[0]], where)
        return counter, []
    best = max(found, key=lambda each: each.distinct)
    others = sorted(
        {name for each in found for name in each.columns} - set(best.columns),
        key=list(frame.columns).index,
    )
    if others and not time:
        notes.append(f"Other columns of times were left out (time=): {', '.join(others)}.")
    return _place_in_zone(best, zone, where, notes), others


def _index_times(frame: pd.DataFrame) -> Times | None:
    """The index of a frame, if it holds dates."""
    index = frame.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return from_typed(index, ())
    if index.inferred_type != "string" or any(TIME_NAME.search(name) for name in frame.columns):
        return None
    column = pd.Series(index, name="index")
    readings = read_column(column, named=False)
    return replace(readings[0], columns=()) if len(readings) == 1 else None


def part_of(name: str) -> str | None:
    """The part of a date that a column is named after."""
    plain = re.sub(r"[^a-zà-ÿ]", "", name.lower())
    return next((part for part, words in PARTS.items() if plain in words), None)


def month_numbers(column: pd.Series) -> pd.Series:
    """Months written as numbers or names, as numbers; NaN for anything else."""
    text = plain_text(column)
    return pd.to_numeric(text.str.lower().str.strip(".").map(MONTHS).fillna(text), errors="coerce")


def _from_parts(frame: pd.DataFrame, pool: Sequence[str]) -> Times | None:
    """Year with month, quarter or day of the year, perhaps day, hour and minute, in columns."""
    parts: dict[str, str] = {}
    for name in pool:
        part = part_of(name)
        if part is not None:
            parts.setdefault(part, name)
    coarse = next((part for part in ("month", "day of year", "quarter") if part in parts), None)
    if "year" not in parts or coarse is None:
        return None
    used = ["year", coarse, *(["day"] if coarse == "month" and "day" in parts else [])]
    if "day" in used or coarse == "day of year":
        used += [part for part in ("hour", "minute") if part in parts]
    numbers: dict[str, pd.Series] = {}
    for part in used:
        column = frame[parts[part]].reset_index(drop=True)
        if part == "month":
            numbers[part] = month_numbers(column)
        else:
            text = plain_text(column).str.lstrip("Qq") if is_text(column) else column
            numbers[part] = pd.to_numeric(text, errors="coerce")
        if not numbers[part].between(*LIMITS[part]).all() or (numbers[part] % 1 != 0).any():
            return None
    month = numbers.get("month", numbers["quarter"] * 3 - 2 if coarse == "quarter" else 1)
    day = numbers["day"] if "day" in used else 1
    base = pd.to_datetime(
        pd.DataFrame({"year": numbers["year"], "month": month, "day": day}), errors="coerce"
    )
    seconds = {"day of year": (86_400, 1), "hour": (3600, 0), "minute": (60, 0)}
    for part, (length, least) in seconds.items():
        if part in used:
            base = base + pd.to_timedelta((numbers[part] - least) * length, unit="s")
    if base.isna().any():
        return None
    columns = tuple(parts[part] for part in used)
    return Times(columns, pd.DatetimeIndex(base), f"the columns {', '.join(columns)} together")


def _clock_beside(frame: pd.DataFrame, name: str, asked: list[str], date: Times) -> Times | None:
    """The time that a column of dates and the column of clocks or hours after it make."""
    if date.stamps is None or date.distinct == len(frame):
        return None
    names = list(frame.columns)
    following = [each for each in asked if each != name] or names[names.index(name) + 1 :][:1]
    if not following or date.zone is not None:
        return None
    other = following[0]
    clock = _clock_of(frame[other], sure=bool(asked))
    if clock is None:
        return None
    columns = (*date.columns, other)
    return Times(columns, date.stamps + clock, f"the columns {', '.join(columns)} together")


def _clock_of(column: pd.Series, *, sure: bool) -> pd.TimedeltaIndex | None:
    """A column of clocks (13:30), hours (0 to 24) or HHMM as time since midnight."""
    name = str(column.name)
    text = plain_text(column.astype("Int64") if column.dtype.kind == "i" else column)
    if text.str.fullmatch(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?\s*([AaPp][Mm])?").all():
        parts = text.str.extract(r"^(\S+?)\s*([AaPp][Mm])?$")
        return read_clock(parts[0], parts[1])
    likely = part_of(name) == "hour" or re.search("time|zeit|hhmm|clock|uhr", name, re.IGNORECASE)
    if not (sure or likely) or not text.str.fullmatch(r"\d{1,6}").all():
        return None
    numbers = text.astype(int)
    if numbers.max() <= 24:
        return pd.TimedeltaIndex(pd.to_timedelta(numbers.to_numpy(), unit="h"))
    if numbers.max() <= 2400 and (numbers % 100 < 60).all():
        minutes = numbers // 100 * 60 + numbers % 100
        return pd.TimedeltaIndex(pd.to_timedelta(minutes.to_numpy(), unit="min"))
    return None


def _choose(readings: list[Times], name: str, where: str, date_order: str | None) -> Times | None:
    """The reading of a column whose dates lie best on a grid; refuse where two do alike."""
    if date_order is not None:
        fitting = [r for r in readings if r.form and FIRST_FIELD.get(r.form[:2]) == date_order]
        readings = fitting or [r for r in readings if r.form not in _ambiguous()]
    if len(readings) < 2:
        return readings[0] if readings else None
    score: Callable[[Times], float] = lambda reading: coverage(_index(reading))  # noqa: E731
    ranked = sorted(readings, key=score, reverse=True)
    best, second = ranked[0], ranked[1]
    if score(best) - score(second) < CLOSE and not _index(best).equals(_index(second)):
        row = int(np.flatnonzero(_index(best) != _index(second))[0])
        orders = [FIRST_FIELD[str(each.form)[:2]].split()[0] for each in (best, second)]
        raise DataError(
            f"{where}: the dates in column {name!r} can be read in two ways (row {row + 1} is "
            f"{_index(best)[row]} or {_index(second)[row]}): date_order={orders[0]!r} or "
            f"date_order={orders[1]!r} (--date-order) decides."
        )
    return best


def _ambiguous() -> tuple[str, ...]:
    return (*DATE_FORMS["last"], *DATE_FORMS["short"])


def _index(times: Times) -> pd.DatetimeIndex:
    assert times.stamps is not None
    return times.stamps


def _looks_dated(column: pd.Series) -> bool:
    """Whether most cells of a column look like times, though not all can be read."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return bool(column.notna().mean() > MOSTLY)
    if not is_text(column) or holds_numbers(column):
        return False
    text = plain_text(column.iloc[:500])
    text = text[text != ""]
    return bool(text.str.contains(r"\d+[-/.:]\d+[-/.:T ]|\d+:\d\d", regex=True).mean() > MOSTLY)


def _unread_error(column: pd.Series, where: str) -> DataError:
    """Say which cell of a column of times cannot be read."""
    name, text = column.name, plain_text(column)
    place = f"{where}: row {{}} of the time column {name!r}"
    empty = np.flatnonzero(text.str.lower().isin(GAP_WORDS))
    if len(empty):
        return DataError(f"{place.format(empty[0] + 1)} is empty: every row needs its time.")
    shape = text.str.replace(r"\d", "0", regex=True)
    if shape.iloc[0] in ("00:00", "00:00:00"):
        return DataError(
            f"{where}: column {name!r} holds clocks without a date ({text.iloc[0]!r}): name the "
            f"column of dates too, time=('DATE', {name!r}) (--time), or take rows in their order "
            f"with ignore={name!r} (--ignore)."
        )
    odd = np.flatnonzero(shape != shape.iloc[0])
    row = int(odd[0]) if len(odd) else 0
    aware = text.str.contains(AWARE, regex=True)
    why = "which cannot be read as a date"
    if aware.any() and not aware.all():
        row, why = int(np.flatnonzero(aware != aware.iloc[0])[0]), "and only some times name a zone"
    elif row:
        why = f"which is not written like the first one ({text.iloc[0]!r})"
    return DataError(
        f"{place.format(row + 1)} holds {text.iloc[row]!r}, {why}: write all dates as YYYY-MM-DD "
        f"HH:MM:SS, or take rows in their order with ignore={name!r} (--ignore)."
    )


def _find_counter(
    frame: pd.DataFrame, pool: Sequence[str], ids: Sequence[str], *, asked: bool
) -> Times | None:
    """A column that counts the rows or seconds, and so gives their order only."""
    for name in pool:
        column = frame[name]
        plain = re.sub(r"[^a-z0-9]", "", name.lower())
        if not asked and (plain not in COUNTER_NAMES or len(pool) < 2):
            continue
        numbers = pd.to_numeric(_as_seconds(column), errors="coerce").to_numpy(float)
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


def _place_in_zone(times: Times, zone: str | None, where: str, notes: list[str]) -> Times:
    """Times in UTC where a zone is known; by the local clock where only that is even."""
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
        utc, local = _to_utc(times.stamps, name, where), times.stamps
    else:
        utc = times.stamps
        local = utc.tz_localize("UTC").tz_convert(name).tz_localize(None)
        if zone is None and times.offsets is not None:
            local = utc + times.offsets
    by_clock = _is_finer_by_clock(local, utc)
    changing = times.offsets is not None and times.offsets.nunique() > 1
    if by_clock and zone is None and changing and "/" not in name:
        raise DataError(
            f"{where}: the offsets of the times change, and rows are even by the local clock only: "
            "zone= (--zone) names the time zone, such as Europe/Berlin."
        )
    clock = "by the local clock" if by_clock else "in UTC"
    notes.append(f"Times are kept {clock}.")
    return replace(times, stamps=local if by_clock else utc, zone=name, local=by_clock)


def _to_utc(stamps: pd.DatetimeIndex, zone: str, where: str) -> pd.DatetimeIndex:
    """Times of a local clock in UTC; the hour that it shows twice is told by the order of rows."""
    for ambiguous in ("infer", np.ones(len(stamps), bool)):
        try:
            aware = stamps.tz_localize(zone, ambiguous=ambiguous, nonexistent="shift_forward")
            return aware.tz_convert("UTC").tz_localize(None)
        except ValueError as error:  # pandas has one of its own for each kind of doubt
            reason = str(error).splitlines()[0].rstrip(".")
    raise DataError(f"{where}: the times are not those of a clock in {zone}: {reason}.")


def _is_finer_by_clock(local: pd.DatetimeIndex, utc: pd.DatetimeIndex) -> bool:
    """Whether rows are even by the local clock: always for days, else if they are not in UTC."""
    by_clock, in_utc = coverage(local), coverage(utc)
    ordered = utc.unique().sort_values()
    usual = pd.Timedelta(pd.Series(ordered).diff().median())
    if usual >= pd.Timedelta(hours=23):
        return by_clock >= in_utc
    return by_clock > in_utc + CLOSE
