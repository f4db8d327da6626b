"""A column, or several, as times: one way of writing must read every row.

Where two ways of reading make sense, the error names the option that decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from sacm.data.cells import GAP_WORDS, holds_numbers, is_text, plain_text, words_of
from sacm.data.grid import coverage
from sacm.errors import ArgumentError, DataError

MONTHS = {
    word: place % 12 + 1
    for place, word in enumerate(
        words_of(
            "jan feb mar apr may jun jul aug sep oct nov dec january february march april may "
            "june july august september october november december januar februar märz april mai "
            "juni juli august september oktober november dezember janvier février mars avril mai "
            "juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo "
            "junio julio agosto septiembre octubre noviembre diciembre gennaio febbraio marzo "
            "aprile maggio giugno luglio agosto settembre ottobre novembre dicembre januari "
            "februari maart april mei juni juli augustus september oktober november december jän "
            "feb mrz apr mai jun jul aug sept okt nov dez"
        )
    )
}
ZONES = {
    "Z": 0,
    "UTC": 0,
    "GMT": 0,
    "WET": 0,
    "WEST": 1,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "EEST": 3,
    "EST": -5,
    "EDT": -4,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
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
TIME_NAMES = frozenset(
    words_of(
        "date dates time timestamp datetime ds ts zeit datum zeitstempel fecha year jahr month "
        "monat period quarter week day epoch unix unixtime utc when"
    )
)
COUNTER_NAMES = frozenset(
    words_of(
        "index idx id no nr num number row rownum rowid rownumber rowno n i k t step steps "
        "timestep timeindex sno counter seq sequence sample sampleno obs observation record "
        "seconds elapsed elapsedtime time times timesec timems"
    )
) | {"", "unnamed0"}
# Forms of whole numbers by their count of digits, and of counts since a start.
DIGIT_FORMS = {
    4: "%Y",
    6: "%Y%m",
    8: "%Y%m%d",
    10: "%Y%m%d%H",
    12: "%Y%m%d%H%M",
    14: "%Y%m%d%H%M%S",
}
EPOCHS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH_SECONDS = (10**8, 4_102_444_800)  # March 1973 to 2100; smaller numbers count something
DAY_COUNTS = {"1899-12-30": (20_000, 80_000, 25_569), "year 0": (700_000, 770_000, 719_529)}
DATE_FORMS = {  # by the count of digits of the three fields
    "year": ("%Y-%m-%d",),
    "last": ("%d-%m-%Y", "%m-%d-%Y"),
    "short": ("%d-%m-%y", "%m-%d-%y", "%y-%m-%d"),
}
FIRST_FIELD = {"%d": "day first", "%m": "month first", "%y": "year first", "%Y": "year first"}
CLOSE = 0.2  # two readings whose grids are complete to shares this close are both possible
MOSTLY = 0.9  # share of cells like dates that make a column one of times
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)")
AWARE = r"(?:Z|[+-]\d\d:?\d\d|\b(?:UTC|GMT))\s*$"
WEEKDAY = r"^(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)[a-z]*\.?,?\s+(?=\d|[A-Z])"
MONTH_WORD = (
    r"(?<![a-zà-ÿ])(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![a-zà-ÿ])\.?"
)
CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d(?:[.,]\d+)?)?"
WHEN = re.compile(
    rf"^(?P<date>\S+?)(?:[ T](?P<clock>{CLOCK}|\d{{1,2}}(?=\s|$))\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
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


@dataclass(frozen=True)
class Times:
    """The times of all rows, in the order of the table.

    Attributes:
        columns: The columns that hold them; empty for the index of a frame.
        stamps: `[T]`, without a zone: in UTC, or by the local clock; None for a counter.
        written: How they were written, in words.
        form: The form of the dates, such as `%d-%m-%Y`, where it was found among several.
        counter: `[T]` float64 of a column that only counts.
        style: How whole numbers write the dates, to write more of them.
        zone: The time zone, None if no one names it.
        local: Whether the stamps are by the local clock of the zone.
        offsets: `[T]` of the texts, from UTC, if they have some.
    """

    columns: tuple[str, ...]
    stamps: pd.DatetimeIndex | None
    written: str
    form: str | None = None
    counter: np.ndarray | None = None
    style: str | None = None
    zone: str | None = None
    local: bool = False
    offsets: pd.TimedeltaIndex | None = None

    @property
    def distinct(self) -> int:
        """How many different times there are."""
        return 0 if self.stamps is None else int(self.stamps.nunique())


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


def read_column(
    column: pd.Series, *, named: bool, first: bool = False, asked: bool = False
) -> list[Times]:
    """Every way to read a whole column as times; none if it holds something else.

    Args:
        column: The column `[T]`.
        named: Whether its name is one of times, so that 2024 is a year.
        first: Whether it is the first of the table, where 20240131 is a date whatever its name.
        asked: Whether the user says that it holds times.
    """
    plain = re.sub(r"[^a-zà-ÿ]", "", str(column.name).lower())
    exact = asked or plain in TIME_NAMES
    columns = (str(column.name),)
    if isinstance(column.dtype, pd.PeriodDtype):
        return [Times(columns, pd.DatetimeIndex(column.dt.to_timestamp()), "periods")]
    if pd.api.types.is_datetime64_any_dtype(column) and not column.isna().any():
        return [_from_typed(pd.DatetimeIndex(column), columns)]
    if pd.api.types.is_bool_dtype(column) or column.dtype.kind in "cm" or column.isna().any():
        return []
    if not is_text(column):
        return _number_times(column, columns, named=named, first=first, exact=exact)
    if isinstance(column.iloc[0], list | dict | np.ndarray):
        return []
    start = str(column.iloc[0])
    if ISO.match(start):
        quick = _read_iso(column, columns)
        if quick is not None:
            return [quick]
    if not any(map(str.isdigit, start)) or len(start) > 60:
        return []
    codes, unique = pd.factorize(column)
    text = plain_text(pd.Series(unique, dtype=object))
    if text.str.fullmatch(r"\d+(\.\d+)?").all():
        numbers = pd.Series(pd.to_numeric(text).to_numpy()[codes], name=column.name)
        return _number_times(numbers, columns, named=named, first=first, exact=exact)
    return [_spread(each, codes) for each in _text_times(text, columns)]


def _from_typed(index: pd.DatetimeIndex, columns: tuple[str, ...]) -> Times:
    if index.tz is None:
        return Times(columns, index, "timestamps")
    local = index.tz_localize(None)
    utc = index.tz_convert("UTC").tz_localize(None)
    return Times(columns, utc, "timestamps", zone=str(index.tz), offsets=local - utc)


def _index_times(frame: pd.DataFrame) -> Times | None:
    """The index of a frame, if it holds dates."""
    index = frame.index
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return _from_typed(index, ())
    if index.inferred_type != "string" or any(TIME_NAME.search(name) for name in frame.columns):
        return None
    column = pd.Series(index, name="index")
    readings = read_column(column, named=False)
    return replace(readings[0], columns=()) if len(readings) == 1 else None


def _read_iso(column: pd.Series, columns: tuple[str, ...]) -> Times | None:
    """The usual form, quickly; None if a cell has another, or only some name a zone."""
    text = column.astype(str)
    aware = text.str.contains(AWARE, regex=True) & text.str.contains(":", regex=False)
    if aware.any():
        if not aware.all():
            return None
        offsets = _offsets(text.str.extract(r"(Z|UTC|GMT|[+-]\d\d:?\d\d)\s*$")[0])
        text = text.str.replace(AWARE, "", regex=True).str.strip()
    stamps = pd.to_datetime(text, format="ISO8601", errors="coerce")
    if stamps.isna().any():
        return None
    written = f"dates like {column.iloc[0]}"
    index = pd.DatetimeIndex(stamps)
    if not aware.any():
        return Times(columns, index, written)
    return Times(columns, index - offsets, written, zone=_zone_name(offsets), offsets=offsets)


def _offsets(text: pd.Series) -> pd.TimedeltaIndex:
    """Offsets from UTC that texts such as +01:00, CET or Z name."""
    hours = text.map(ZONES)
    parts = text.where(hours.isna()).str.extract(r"([+-])(\d\d):?(\d\d)")
    minutes = pd.to_numeric(parts[1]) * 60 + pd.to_numeric(parts[2])
    minutes = minutes.where(parts[0] != "-", -minutes)
    total = hours.astype(float).mul(60).where(hours.notna(), minutes)
    return pd.TimedeltaIndex(pd.to_timedelta(total.to_numpy(float), unit="min"))


def _zone_name(offsets: pd.TimedeltaIndex) -> str:
    """The zone of one offset, such as UTC+01:00; UTC if there are several."""
    minutes = int(offsets[0] / pd.Timedelta(minutes=1))
    if minutes == 0 or offsets.nunique() > 1:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"


def _spread(times: Times, codes: np.ndarray) -> Times:
    """Times of different cells, for every row."""
    offsets = None if times.offsets is None else times.offsets.take(codes)
    stamps = None if times.stamps is None else times.stamps.take(codes)
    return replace(times, stamps=stamps, offsets=offsets)


def _text_times(text: pd.Series, columns: tuple[str, ...]) -> list[Times]:
    """Every form that reads all of some different texts."""
    written = f"dates like {text.iloc[0]}"
    text = text.str.replace(r"\s+(-|–|to)\s+\d.*$", "", regex=True)  # the end of an interval
    text = text.str.replace(WEEKDAY, "", regex=True, flags=re.IGNORECASE)
    text = text.str.replace(
        MONTH_WORD, lambda m: f" M{MONTHS[m[1].lower()]:02d} ", regex=True, flags=re.IGNORECASE
    )
    text = text.str.replace(r"(\d)T(\d)", r"\1 \2", regex=True)
    for pattern, replacement in REWRITES:
        text = text.str.replace(pattern, replacement, regex=True)
    text = text.str.strip()
    if text.str.fullmatch(r"\d{4}q\d").all():
        quarters = pd.PeriodIndex(text.str.upper(), freq="Q").to_timestamp()
        return [Times(columns, quarters, written)]
    if text.str.fullmatch(r"\d{4}-?W\d\d").all():
        days = text.str.replace("-", "") + "-1"
        weeks = pd.to_datetime(days, format="%GW%V-%u", errors="coerce")
        return [] if weeks.isna().any() else [Times(columns, pd.DatetimeIndex(weeks), written)]
    parts = text.str.extract(WHEN)
    if parts["date"].isna().any():
        return []
    clock, offsets = _read_clock(parts["clock"], parts["half"]), None
    aware = parts["zone"].notna() | parts["offset"].notna()
    if clock is None or (aware.any() and not aware.all()):
        return []
    if aware.any():
        if not parts["zone"].dropna().isin(ZONES).all():
            return []
        offsets = _offsets(parts["offset"].fillna(parts["zone"]))
    found = []
    for form in _date_forms(parts["date"]):
        days = pd.to_datetime(parts["date"], format=form, errors="coerce")
        if days.notna().all():
            stamps = pd.DatetimeIndex(days) + clock
            if offsets is not None:
                stamps = stamps - offsets
            zone = None if offsets is None else _zone_name(offsets)
            found.append(Times(columns, stamps, written, form, zone=zone, offsets=offsets))
    return found


def _date_forms(text: pd.Series) -> Sequence[str]:
    """Forms that may read some dates, by the shape of the first."""
    first = str(text.iloc[0])
    if re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", first):
        return DATE_FORMS["year"]
    if re.fullmatch(r"\d{1,2}-\d{1,2}-\d{4}", first):
        return DATE_FORMS["last"]
    if re.fullmatch(r"\d{1,2}-\d{1,2}-\d{1,2}", first):
        return DATE_FORMS["short"]
    shapes = {
        r"w\d{1,2}-\d\d-\d\d": "w%d-%m-%y",
        r"y\d\d-\d\d": "y%y-%m",
        r"\d{4}-\d\d": "%Y-%m",
        r"\d\d-\d{4}": "%m-%Y",
        r"\d{8}": "%Y%m%d",
    }
    return [form for shape, form in shapes.items() if re.fullmatch(shape, first)]


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
    column: pd.Series, columns: tuple[str, ...], *, named: bool, first: bool, exact: bool
) -> list[Times]:
    """Numbers such as 2024, 20240131, or counts of seconds or days since a known start.

    Out of order they are times only if the whole name of the column is that of a time.
    """
    numbers = column.to_numpy()
    if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
        return []
    whole = bool((numbers == np.floor(numbers)).all())
    steps = np.diff(numbers.astype(np.float64))
    ordered = bool((steps >= 0).all() or (steps <= 0).all())
    if whole and (named or (first and ordered)):
        text = pd.Series(numbers.astype(np.int64)).astype(str)
        digits = int(text.str.len().iloc[0])
        form = DIGIT_FORMS.get(digits)
        sure = digits > 6 or (named and (ordered or exact))
        if form and sure and text.str.fullmatch(rf"(1\d|2\d)\d{{{digits - 2}}}").all():
            padded, style = text, form
            if digits == 10:  # pandas reads an hour only before a minute
                padded, form = text + "00", DIGIT_FORMS[12]
            stamps = pd.to_datetime(padded, format=form, errors="coerce")
            if stamps.notna().all():
                return [Times(columns, pd.DatetimeIndex(stamps), f"numbers ({style})", style=style)]
    low, high = EPOCH_SECONDS
    if (named and exact) or (ordered and (named or first)):
        for unit, ticks in EPOCHS.items():
            if numbers.min() >= low * ticks and numbers.max() <= high * ticks:
                stamps = _from_epoch(numbers, ticks, whole=whole)
                style = f"epoch {unit}" if whole else None
                return [Times(columns, stamps, f"{unit} since 1970", style=style)]
    for start, (least, most, zero) in DAY_COUNTS.items():
        if named and ordered and numbers.min() > least and numbers.max() < most:
            days = pd.to_datetime(numbers.astype(np.float64) - zero, unit="D")
            return [Times(columns, pd.DatetimeIndex(days).round("s"), f"days since {start}")]
    return []


def _from_epoch(numbers: np.ndarray, ticks: int, *, whole: bool) -> pd.DatetimeIndex:
    """Counts of `ticks` a second since 1970; floats hold them to about a microsecond."""
    if numbers.dtype.kind in "iu":
        return pd.DatetimeIndex((numbers.astype(np.int64) * (10**9 // ticks)).view("M8[ns]"))
    micros = np.round(numbers * (10**6 / ticks)).astype(np.int64)
    return pd.DatetimeIndex((micros * 1000).view("M8[ns]"))


def write_numbers(stamps: np.ndarray, style: str) -> np.ndarray | None:
    """Dates `[T]` as whole numbers of a style; None if they do not fit into those."""
    index = pd.DatetimeIndex(stamps)
    if style.startswith("epoch "):
        nanos = index.as_unit("ns").asi8
        numbers, rest = np.divmod(nanos, 10**9 // EPOCHS[style.removeprefix("epoch ")])
        return None if rest.any() else np.asarray(numbers)
    text = index.strftime(style)
    padded = style if style != "%Y%m%d%H" else DIGIT_FORMS[12]
    again = pd.to_datetime(pd.Series(text) + ("00" if padded != style else ""), format=padded)
    return text.astype(np.int64).to_numpy() if (again.to_numpy() == stamps).all() else None


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
    units = {"day of year": ("D", 1), "hour": ("h", 0), "minute": ("min", 0)}
    for part, (unit, least) in units.items():
        if part in used:
            base = base + pd.to_timedelta(numbers[part] - least, unit=unit)
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
        return _read_clock(parts[0], parts[1])
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
