"""The times of a table: a column, several together, or the index, in UTC or by the local clock.

One form must read all rows of a column. Where two forms do, the error names the option that
decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.columns import (
    COUNTER_NAMES,
    GAP_WORDS,
    PARTS,
    Reading,
    flag,
    holds_numbers,
    holds_objects,
    is_text,
    part_of,
    plain_name,
    plain_text,
    words_of,
)
from sacm.data.grid import coverage
from sacm.errors import ArgumentError, DataError

MONTHS = {
    word: place % 12 + 1
    for place, word in enumerate(
        words_of(
            "jan feb mar apr may jun jul aug sep oct nov dec january february march april may "
            "june july august september october november december januar februar märz april "
            "mai juni juli august september oktober november dezember janvier février mars "
            "avril mai juin juillet août septembre octobre novembre décembre enero febrero "
            "marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre "
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
            "novembre dicembre januari februari maart april mei juni juli augustus september "
            "oktober november december jän feb mrz apr mai jun jul aug sept okt nov dez"
        )
    )
}
# Hours from UTC.
ZONES = {"Z": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3}
ZONES |= {"EST": -5, "EDT": -4, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
TIME_NAME = re.compile(
    r"date|time|datum|zeit|stamp|period|year|jahr|month|monat|week|day|yyyy|epoch|fecha|quarter"
    r"|^ds$|^ts?$|^when$|^utc$|日|时",
    re.IGNORECASE,
)
EXACT_NAMES = words_of(
    "date dates time timestamp datetime ds ts zeit datum zeitstempel fecha year jahr month monat "
    "period quarter week day epoch unix unixtime utc when"
)
# Forms of whole numbers by their count of digits, and of counts since 1970.
DIGIT_FORMS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M"}
DIGIT_FORMS[14] = "%Y%m%d%H%M%S"
EPOCHS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH_SECONDS = (10**8, 4_102_444_800)  # March 1973 to 2100; smaller numbers count something
# Counts of days: least, most, and the count of 1970-01-01.
DAY_COUNTS = {"1899-12-30": (20_000, 80_000, 25_569), "year 0": (700_000, 770_000, 719_529)}
FIRST_FIELD = {"%d": "day", "%m": "month", "%y": "year", "%Y": "year"}
AMBIGUOUS = ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d")
# Forms of dates with hyphens, by the shape of the first.
DATE_FORMS = {
    r"\d{4}-\d{1,2}-\d{1,2}": ("%Y-%m-%d",),
    r"\d{1,2}-\d{1,2}-\d{4}": AMBIGUOUS[:2],
    r"\d{1,2}-\d{1,2}-\d{1,2}": AMBIGUOUS[2:],
    r"w\d{1,2}-\d\d-\d\d": ("w%d-%m-%y",),
    r"y\d\d-\d\d": ("y%y-%m",),
    r"\d{4}-\d\d": ("%Y-%m",),
    r"\d\d-\d{4}": ("%m-%Y",),
    r"\d{8}": ("%Y%m%d",),
}
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)")
AWARE = r"(?:Z|[+-]\d\d:?\d\d|\b(?:UTC|GMT))\s*$"
WEEKDAY = r"^(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)[a-z]*\.?,?\s+(?=\d|[A-Z])"
MONTH_WORD = (
    r"(?<![a-zà-ÿ])(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![a-zà-ÿ])\.?"
)
CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d(?:[.,]\d+)?)?"
HALF = r"[AaPp]\.?[Mm]\.?"
WHEN = re.compile(
    rf"^(?P<date>\S+?)(?:[ T](?P<clock>{CLOCK}|\d{{1,2}}(?=\s|$))\s*(?P<half>{HALF})?"
    r"\s*(?P<zone>[A-Z]{3,4}|Z)?\s*(?P<offset>[+-]\d\d:?\d\d)?)?$"
)
# Texts of dates that become numbers with hyphens, in this order.
REWRITES = (
    (r"^(\d{4})[- ]?Q([1-4])$", r"\1q\2"),
    (r"^Q([1-4])[- /]?(\d{4})$", r"\2q\1"),
    (r"^(\d{4})-?M(\d\d)$", r"\1-\2"),
    (r"^\s*M(\d\d)[-\s]*(\d{1,2})(?:st|nd|rd|th)?,?[-\s]+(\d{4})", r"\3-\1-\2"),
    (r"^(\d{1,2})(?:st|nd|rd|th)?[-/.,\s]*M(\d\d)[-/.,\s]*(\d{4})", r"\3-\2-\1"),
    (r"^(\d{1,2})[-/.,\s]*M(\d\d)[-/.,\s]*(\d\d)\b", r"w\1-\2-\3"),
    (r"^\s*M(\d\d)[-/.,\s]*(\d{4})$", r"\2-\1"),
    (r"^(\d{4})[-/.,\s]*M(\d\d)\s*$", r"\1-\2"),
    (r"^\s*M(\d\d)[-/'\s]*(\d\d)$", r"y\2-\1"),
    (r"^(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})", r"\1-\2-\3"),
    (r"^(\d{4})[/.](\d\d)$", r"\1-\2"),
    (r"^(\d\d)[/.](\d{4})$", r"\1-\2"),
    (r"\s+", " "),
)
CLOSE = 0.2  # two readings whose grids are complete to shares this close are both possible
MOSTLY = 0.9  # share of cells like dates that make a column one of times


@dataclass(frozen=True)
class Times:
    """The times of all rows, in the order of the table."""

    columns: tuple[str, ...]  # that hold them; empty for the index of a frame
    stamps: pd.DatetimeIndex | None  # without a zone: in UTC, or by the local clock
    written: str  # how they were written, in words
    form: str | None = None  # such as `%d-%m-%Y`, where it was found among several
    counter: np.ndarray | None = None  # of a column that only counts, which has no stamps
    style: str | None = None  # how whole numbers write the dates, to write more of them
    zone: str | None = None
    local: bool = False  # whether the stamps are by the local clock of the zone
    offsets: pd.TimedeltaIndex | None = None  # of the texts, from UTC

    @property
    def index(self) -> pd.DatetimeIndex:
        """The stamps, of which there must be some."""
        assert self.stamps is not None
        return self.stamps

    @property
    def distinct(self) -> int:
        """How many different times there are."""
        return 0 if self.stamps is None else int(self.stamps.nunique())


def read_column(
    column: pd.Series, *, named: bool, first: bool = False, asked: bool = False
) -> list[Times]:
    """Every way to read a whole column as times; none if it holds something else."""
    columns = (str(column.name),)
    if isinstance(column.dtype, pd.PeriodDtype):
        return [Times(columns, pd.DatetimeIndex(column.dt.to_timestamp()), "periods")]
    if column.isna().any() or column.dtype.kind in "bcm" or holds_objects(column):
        return []
    if pd.api.types.is_datetime64_any_dtype(column):
        return [_from_typed(pd.DatetimeIndex(column), columns)]
    start = str(column.iloc[0])
    iso = _read_iso(column, columns) if is_text(column) and ISO.match(start) else None
    if iso is not None:
        return [iso]
    if not any(map(str.isdigit, start)) or len(start) > 60:
        return []
    codes, unique = pd.factorize(column)
    text = plain_text(pd.Series(unique, dtype=object)) if is_text(column) else None
    if text is None or text.str.fullmatch(r"\d+(\.\d+)?").all():
        numbers = column.to_numpy() if text is None else pd.to_numeric(text).to_numpy()[codes]
        exact = asked or plain_name(column.name) in EXACT_NAMES
        return _number_times(numbers, columns, named=named, first=first, exact=exact)
    readings = []
    for times in _text_times(text, columns):
        offsets = None if times.offsets is None else times.offsets.take(codes)
        readings.append(replace(times, stamps=times.index.take(codes), offsets=offsets))
    return readings


def _from_typed(index: pd.DatetimeIndex, columns: tuple[str, ...]) -> Times:
    """Timestamps of pandas; those with a zone in UTC, with their offsets."""
    if index.tz is None:
        return Times(columns, index, "timestamps")
    local, utc = index.tz_localize(None), index.tz_convert("UTC").tz_localize(None)
    return Times(columns, utc, "timestamps", zone=str(index.tz), offsets=local - utc)


def _read_iso(column: pd.Series, columns: tuple[str, ...]) -> Times | None:
    """The usual form, quickly; None if a cell has another, or only some name a zone."""
    text = column.astype(str)
    aware = text.str.contains(AWARE, regex=True) & text.str.contains(":", regex=False)
    offsets = None
    if aware.any():
        if not aware.all():
            return None
        offsets = _offsets(text.str.extract(f"({AWARE})")[0].str.strip())
        text = text.str.replace(AWARE, "", regex=True).str.strip()
    stamps = pd.DatetimeIndex(pd.to_datetime(text, format="ISO8601", errors="coerce"))
    if stamps.hasnans:
        return None
    return _with_offsets(Times(columns, stamps, f"dates like {column.iloc[0]}"), offsets)


def _offsets(text: pd.Series) -> pd.TimedeltaIndex:
    """Offsets from UTC that texts such as +01:00, CET or Z name."""
    hours = text.map(ZONES)
    parts = text.where(hours.isna()).str.extract(r"([+-])(\d\d):?(\d\d)")
    minutes = pd.to_numeric(parts[1]) * 60 + pd.to_numeric(parts[2])
    minutes = minutes.where(parts[0] != "-", -minutes)
    total = hours.astype(float).mul(60).where(hours.notna(), minutes)
    return pd.TimedeltaIndex(pd.to_timedelta(total.to_numpy(float), unit="min"))


def _with_offsets(times: Times, offsets: pd.TimedeltaIndex | None) -> Times:
    """Local times as times in UTC; the zone of one offset is UTC+01:00, of several UTC."""
    if offsets is None:
        return times
    minutes = int(offsets[0] / pd.Timedelta(minutes=1))
    hours, rest = divmod(abs(minutes), 60)
    zone = f"UTC{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"
    zone = "UTC" if minutes == 0 or offsets.nunique() > 1 else zone
    return replace(times, stamps=times.index - offsets, zone=zone, offsets=offsets)


def _plain_dates(text: pd.Series) -> pd.Series:
    """Texts of dates with numbers for months, hyphens between fields, and without weekdays."""
    text = text.str.replace(r"\s+(-|–|to)\s+\d.*$", "", regex=True)  # the end of an interval
    text = text.str.replace(WEEKDAY, "", regex=True, flags=re.IGNORECASE)
    text = text.str.replace(
        MONTH_WORD, lambda m: f" M{MONTHS[m[1].lower()]:02d} ", regex=True, flags=re.IGNORECASE
    )
    text = text.str.replace(r"(\d)T(\d)", r"\1 \2", regex=True)
    for pattern, replacement in REWRITES:
        text = text.str.replace(pattern, replacement, regex=True)
    return text.str.strip()


def _text_times(text: pd.Series, columns: tuple[str, ...]) -> list[Times]:
    """Every form that reads all of some different texts."""
    written = f"dates like {text.iloc[0]}"
    text = _plain_dates(text)
    if text.str.fullmatch(r"\d{4}q\d").all():
        quarters = pd.PeriodIndex(text.str.upper(), freq="Q").to_timestamp()
        return [Times(columns, quarters, written)]
    if text.str.fullmatch(r"\d{4}-?W\d\d").all():
        mondays = text.str.replace("-", "") + "-1"
        weeks = pd.DatetimeIndex(pd.to_datetime(mondays, format="%GW%V-%u", errors="coerce"))
        return [] if weeks.hasnans else [Times(columns, weeks, written)]
    parts = text.str.extract(WHEN)
    if parts["date"].isna().any():
        return []
    clock, offsets = _read_clock(parts["clock"], parts["half"]), None
    aware = parts["zone"].notna() | parts["offset"].notna()
    if clock is None or aware.nunique() > 1 or not parts["zone"].dropna().isin(ZONES).all():
        return []
    if aware.any():
        offsets = _offsets(parts["offset"].fillna(parts["zone"]))
    found = []
    for form in _date_forms(parts["date"]):
        days = pd.DatetimeIndex(pd.to_datetime(parts["date"], format=form, errors="coerce"))
        if not days.hasnans:
            found.append(_with_offsets(Times(columns, days + clock, written, form), offsets))
    return found


def _date_forms(text: pd.Series) -> Sequence[str]:
    """Forms that may read some dates, by the shape of the first."""
    first = str(text.iloc[0])
    return next((forms for shape, forms in DATE_FORMS.items() if re.fullmatch(shape, first)), ())


def _read_clock(clock: pd.Series, half: pd.Series) -> pd.TimedeltaIndex | None:
    """Clocks such as 13:30, 1:30 PM or 24:00 as time since midnight; None if one is no clock."""
    fields = (
        clock.fillna("0")
        .str.replace(",", ".", regex=False)
        .str.extract(r"^(\d{1,2})(?:[:.](\d\d))?(?:[:.](\d\d(?:\.\d+)?))?$")
    )
    hours, minutes, seconds = (pd.to_numeric(fields[k]).fillna(0) for k in range(3))
    if half.notna().any():
        late = half.fillna("").str.lower().str.startswith("p")
        if not half.notna().all() or not hours.between(1, 12).all():
            return None
        hours = hours % 12 + 12 * late
    whole = hours * 3600 + minutes * 60
    if (minutes > 59).any() or (seconds >= 60).any() or (whole + seconds > 24 * 3600).any():
        return None
    nanos = whole.astype("int64") * 10**9 + (seconds * 10**9).round().astype("int64")
    return pd.TimedeltaIndex(pd.to_timedelta(nanos.to_numpy(), unit="ns"))


def _number_times(
    numbers: np.ndarray, columns: tuple[str, ...], *, named: bool, first: bool, exact: bool
) -> list[Times]:
    """Numbers such as 2024, 20240131, or counts of seconds or days since a known start."""
    if not np.isfinite(numbers).all():
        return []
    whole = bool((numbers == np.floor(numbers)).all())
    steps = np.diff(numbers.astype(np.float64))
    ordered = bool((steps >= 0).all() or (steps <= 0).all())
    least, most = numbers.min(), numbers.max()
    if whole and (named or (first and ordered)):
        text = pd.Series(numbers.astype(np.int64)).astype(str)
        digits = int(text.str.len().iloc[0])
        form = DIGIT_FORMS.get(digits)
        sure = digits > 6 or (named and (ordered or exact))
        if form and sure and text.str.fullmatch(rf"(1\d|2\d)\d{{{digits - 2}}}").all():
            dates = _read_digits(text, form)
            if not dates.hasnans:
                return [Times(columns, dates, f"numbers ({form})", style=form)]
    low, high = EPOCH_SECONDS
    for unit, ticks in EPOCHS.items() if exact or (ordered and (named or first)) else ():
        if least >= low * ticks and most <= high * ticks:
            style, said = f"epoch {unit}" if whole else None, f"{unit} since 1970"
            if not whole:  # floats hold times to about a microsecond
                numbers, unit = np.round(numbers * (10**6 / ticks)), "us"
            stamps = pd.DatetimeIndex(numbers.astype(np.int64).astype(f"datetime64[{unit}]"))
            return [Times(columns, stamps.as_unit("ns"), said, style=style)]
    if not (named and ordered):
        return []
    months = (numbers - 1970) * 12
    counts = np.round(months).astype(np.int64)
    if not whole and 1500 < least < most < 2100 and np.abs(months - counts).max() < 0.1:
        stamps = pd.DatetimeIndex(counts.astype("datetime64[M]").astype("datetime64[s]"))
        return [Times(columns, stamps, "years with a fraction")]
    for start, (smallest, largest, zero) in DAY_COUNTS.items():
        if smallest < least and most < largest:
            days = pd.to_datetime(numbers.astype(np.float64) - zero, unit="D")
            return [Times(columns, pd.DatetimeIndex(days).round("s"), f"days since {start}")]
    return []


def _read_digits(text: pd.Series, form: str) -> pd.DatetimeIndex:
    """Dates of digits only, NaT for others; pandas reads an hour only before a minute."""
    if form.endswith("%H"):
        text, form = text + "00", form + "%M"
    return pd.DatetimeIndex(pd.to_datetime(text, format=form, errors="coerce"))


def write_numbers(stamps: np.ndarray, style: str) -> np.ndarray | None:
    """Dates `[T]` as whole numbers of a style; None if they do not fit into those."""
    index = pd.DatetimeIndex(stamps)
    if style.startswith("epoch "):
        nanos = index.as_unit("ns").asi8
        numbers, rest = np.divmod(nanos, 10**9 // EPOCHS[style.removeprefix("epoch ")])
        return None if rest.any() else np.asarray(numbers)
    text = index.strftime(style)
    same = (_read_digits(pd.Series(text), style) == stamps).all()
    return text.astype(np.int64).to_numpy() if same else None


def find_times(
    frame: pd.DataFrame,
    reading: Reading,
    *,
    time: Sequence[str] = (),
    skip: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> tuple[Times | None, list[str]]:
    """Find the times of a table."""
    pool = list(time) or [name for name in frame.columns if name not in (*skip, *ids)]
    index = None if time else _index_times(frame)
    parts = _from_parts(frame, pool) if index is None else None
    found = [each for each in (index, parts) if each is not None]
    unread: str | None = None
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
        elif unread is None and _looks_dated(frame[name]):
            unread = name
    found = [each for each in found if each.distinct > 1 or len(frame) == 1]
    if not found:
        counter = _find_counter(frame, pool, ids, asked=bool(time))
        if counter is None and (unread or time):
            raise _unread_error(frame[unread or time[0]], reading)
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
    text = index.inferred_type == "string" and not any(map(TIME_NAME.search, frame.columns))
    if not text and not isinstance(index, pd.PeriodIndex | pd.DatetimeIndex):
        return None
    readings = read_column(pd.Series(index, name="index"), named=False)
    return replace(readings[0], columns=()) if len(readings) == 1 else None


def is_calendar(column: pd.Series) -> bool:
    """Whether a column holds months, quarters or clocks, which never tell series apart."""
    text = plain_text(column.drop_duplicates().iloc[:100]).str.lower()
    months = text.str.strip(".").isin(MONTHS)
    return bool((months | text.str.fullmatch(rf"[mq]\d\d?|{CLOCK}\s*({HALF})?")).all())


def _from_parts(frame: pd.DataFrame, pool: Sequence[str]) -> Times | None:
    """Year with month, quarter or day of the year, perhaps day, hour and minute, in columns."""
    parts: dict[str, str] = {}
    for name in pool:
        part = part_of(name)
        if plain_name(name) == "period" and is_text(frame[name]):
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
    numbers = dict.fromkeys(PARTS, pd.Series(0, index=range(len(frame))))
    for part in used:
        cells = plain_text(frame[parts[part]]).str.lower().str.strip(".").reset_index(drop=True)
        months = cells.map(lambda word: str(MONTHS.get(word, word)).lstrip("mq"))
        numbers[part] = pd.to_numeric(months, errors="coerce")
        _, least, most = PARTS[part]
        if not numbers[part].between(least, most).all() or (numbers[part] % 1 != 0).any():
            return None
    month = {"month": numbers["month"], "quarter": numbers["quarter"] * 3 - 2}.get(coarse, 1)
    days = {"year": numbers["year"], "month": month, "day": numbers["day"].clip(lower=1)}
    stamps = pd.to_datetime(pd.DataFrame(days), errors="coerce")
    stamps += pd.to_timedelta((numbers["day of year"] - 1).clip(lower=0), unit="D")
    stamps += pd.to_timedelta(numbers["hour"] * 60 + numbers["minute"], unit="min")
    if stamps.isna().any():
        return None
    return Times(stamps=pd.DatetimeIndex(stamps), **_joined([parts[part] for part in used]))


def _joined(columns: Sequence[str]) -> dict[str, Any]:
    """What is said of a time that several columns make together."""
    return {"columns": tuple(columns), "written": f"the columns {', '.join(columns)} together"}


def _add_clock(
    frame: pd.DataFrame, name: str, asked: list[str], pool: Sequence[str], readings: list[Times]
) -> list[Times]:
    """Readings of a column of dates, together with the column of clocks or hours beside it.

    The clock is the next column, or one that is named after the hour.
    """
    dated = [r for r in readings if r.zone is None and r.index.equals(r.index.normalize())]
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
            joined = {**_joined([name, other]), "style": None}
            return [replace(each, stamps=each.index + clock, **joined) for each in dated]
    return readings


def _clock_of(column: pd.Series, *, sure: bool) -> pd.TimedeltaIndex | None:
    """A column of clocks (13:30), hours (0 to 24) or HHMM as time since midnight."""
    text = plain_text(column)
    likely = part_of(column.name) == "hour" or re.search(
        "time|zeit|hhmm|clock|uhr", str(column.name), re.IGNORECASE
    )
    if (sure or likely) and text.str.fullmatch(r"\d{1,4}").all():
        hours_only = text.astype(int).max() <= 24
        text = text.str.zfill(2) + ":00" if hours_only else text.str.zfill(4)
        text = text.str.replace(r"^(\d\d)(\d\d)$", r"\1:\2", regex=True)
    parts = text.str.extract(rf"^({CLOCK})\s*({HALF})?$")
    return None if parts[0].isna().any() else _read_clock(parts[0], parts[1])


def _choose(readings: list[Times], name: str, reading: Reading) -> Times | None:
    """The reading of a column whose dates lie best on a grid; refuse where two do alike."""
    order = reading.options.date_order
    if order is not None:
        first = order.removesuffix(" first")
        fitting = [r for r in readings if r.form and FIRST_FIELD.get(r.form[:2]) == first]
        readings = fitting or [r for r in readings if r.form not in AMBIGUOUS]
    if len(readings) < 2:
        return readings[0] if readings else None
    shares = {r.form: coverage(r.index) for r in readings}
    best, second, *_ = sorted(readings, key=lambda r: shares[r.form], reverse=True)
    close = shares[best.form] - shares[second.form] < CLOSE
    if close and not best.index.equals(second.index):
        row = int(np.flatnonzero(best.index != second.index)[0])
        orders = [FIRST_FIELD[str(each.form)[:2]] for each in (best, second)]
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
    if text.str.fullmatch(CLOCK).all():
        return reading.error(
            f"column {name!r} holds clocks without a date ({text.iloc[0]!r}): {in_order}, or name "
            f"the column of dates too ({flag('time')})."
        )
    dates = _plain_dates(text).str.extract(WHEN)["date"]
    unread = [pd.to_datetime(dates, format=f, errors="coerce").isna() for f in _date_forms(dates)]
    shape, aware = text.str.replace(r"\d", "0", regex=True), text.str.contains(AWARE)
    doubts = {
        "which is empty": text.str.lower().isin(GAP_WORDS),
        "and only some times name a zone": aware != aware.iloc[0],
        f"which is not written like the first one ({text.iloc[0]!r})": shape != shape.iloc[0],
        "which cannot be read as a date like the others": min(
            unread, key=lambda missing: missing.sum(), default=dates.isna()
        ),
    }
    why, rows = next(((w, r) for w, r in doubts.items() if r.any()), next(iter(doubts.items())))
    row = int(rows.to_numpy().argmax())
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
        numbers = pd.to_numeric(frame[name], errors="coerce").astype(float)
        within = numbers.groupby([frame[each] for each in ids]) if ids else numbers
        steps = within.diff().dropna().to_numpy()
        rising = len(steps) and numbers.notna().all() and (steps > 0).all()
        if rising and (asked or np.allclose(steps, np.median(steps), rtol=1e-3)):
            return Times((name,), None, "a counter", counter=numbers.to_numpy())
    return None


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
        local = times.stamps
        # The order of rows tells which hour is meant that the clock shows twice.
        for twice in ("infer", np.ones(len(local), bool)):
            try:
                aware = local.tz_localize(name, ambiguous=twice, nonexistent="shift_forward")
                break
            except ValueError as error:  # pandas raises several subclasses of it
                reason = str(error).splitlines()[0].rstrip(".")
        else:
            raise reading.error(f"the times are not those of a clock in {name}: {reason}.")
        utc = aware.tz_convert("UTC").tz_localize(None)
    else:
        utc = times.stamps
        local = utc.tz_localize("UTC").tz_convert(name).tz_localize(None)
        if zone is None and times.offsets is not None:
            local = utc + times.offsets
    by_clock = _is_even_by_clock(local, utc)
    changing = times.offsets is not None and times.offsets.nunique() > 1
    if by_clock and zone is None and changing and "/" not in name:
        raise reading.error(
            "the offsets of the times change, and rows are even by the local clock only: "
            f"{flag('zone')} names the time zone, such as Europe/Berlin."
        )
    reading.note(f"Times are kept {'by the local clock' if by_clock else 'in UTC'}.")
    return replace(times, stamps=local if by_clock else utc, zone=name, local=by_clock)


def _is_even_by_clock(local: pd.DatetimeIndex, utc: pd.DatetimeIndex) -> bool:
    """Whether rows are even by the local clock: always for days, else if they are not in UTC."""
    by_clock, in_utc = coverage(local), coverage(utc)
    usual = pd.Timedelta(pd.Series(utc.unique().sort_values()).diff().median())
    if usual >= pd.Timedelta(hours=23):
        return by_clock >= in_utc
    return by_clock > in_utc + CLOSE
