"""The times of a table, from a column or several together, and the step between them.

One form must read all rows of a column. Where two forms do, the error names the option that
decides.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from sacm.data.columns import (
    COUNTER_NAMES,
    PARTS,
    TIME_WORDS,
    Reading,
    flag,
    holds_numbers,
    is_named,
    is_text,
    part_of,
    plain_name,
    plain_text,
    words_of,
)
from sacm.errors import ArgumentError, DataError

Names = Sequence[str]
MONTH_WORDS = words_of(
    "jan feb mar apr may jun jul aug sep oct nov dec january february march april may june july "
    "august september october november december januar februar märz april mai juni juli august "
    "september oktober november dezember jän feb mrz apr mai jun jul aug sept okt nov dez "
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre "
    "janv févr mars avr mai juin juil août sept oct nov déc enero febrero marzo abril mayo junio "
    "julio agosto septiembre octubre noviembre diciembre ene feb mar abr may jun jul ago sep oct "
    "nov dic gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre gen feb mar apr mag giu lug ago sett ott nov dic"
)
MONTHS = {word: place % 12 + 1 for place, word in enumerate(MONTH_WORDS)}
EXACT_NAME = re.compile(rf"(?:{TIME_WORDS})+s?|ds|ts|when|utc", re.IGNORECASE)
# Forms of whole numbers by their count of digits, and of counts since 1970.
DIGIT_FORMS = {4: "%Y", 6: "%Y%m", 8: "%Y%m%d", 10: "%Y%m%d%H", 12: "%Y%m%d%H%M"}
DIGIT_FORMS[14] = "%Y%m%d%H%M%S"
EPOCHS: dict[Any, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH_SECONDS = (10**8, 4_102_444_800)  # March 1973 to 2100; smaller numbers count something
# Counts of days as spreadsheets and MATLAB write them: smallest, largest, and 1970-01-01.
DAY_COUNTS = {"1899-12-30": (20_000, 80_000, 25_569), "year 0": (700_000, 770_000, 719_529)}
FIRST_YEAR = 1678  # nanoseconds hold no earlier times
YEARS = (1500, 2100)  # numbers that can be years whatever their column is called
FIRST_FIELD = {"%d": "day", "%m": "month", "%y": "year", "%Y": "year"}
AMBIGUOUS = ("%d-%m-%Y", "%m-%d-%Y", "%d-%m-%y", "%m-%d-%y", "%y-%m-%d")
DATE_FORMS = ("%Y-%m-%d", *AMBIGUOUS, "w%d-%m-%y", "y%y-%m", "%Y-%m", "%m-%Y", "%Y%m%d")
WEEK_FORM = "%G-W%V-%u"
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)|\d{8}T\d{4}")
AWARE = r"(?:Z|[+-]\d\d:?\d\d|\b(?:UTC|GMT))\s*$"
WEEKDAY = r"^(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so)[a-z]*\.?,?\s+(?=\d|[A-Z])"
MONTH_WORD = (
    r"(?<![a-zà-ÿ])(" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![a-zà-ÿ])\.?"
)
CLOCK = r"\d{1,2}[:.][0-5]\d(?:[:.][0-5]\d(?:[.,]\d+)?)?"
HALF = r"[AaPp]\.?[Mm]\.?"
WHEN = re.compile(
    rf"^(?P<date>\S+?)(?:[ T](?P<clock>{CLOCK}|\d{{1,2}}(?=\s|$))\s*(?P<half>{HALF})?"
    r"\s*(?P<zone>UTC|GMT|Z)?\s*(?P<offset>[+-]\d\d:?\d\d)?)?$"
)
# Texts of dates that become numbers with hyphens, in this order; M05 is a month by its name.
REWRITES = (
    (r"\s+(-|–|to)\s+\d.*$", ""),  # the end of an interval
    (r"\s+de\s+", " "),
    (r"(\d)T(\d)", r"\1 \2"),
    (r"^(\d{4})[- ]?Q([1-4])$", lambda m: f"{m[1]}-{3 * int(m[2]) - 2:02d}"),
    (r"^Q([1-4])[- /]?(\d{4})$", lambda m: f"{m[2]}-{3 * int(m[1]) - 2:02d}"),
    (r"^(\d{4})-?W(\d\d)$", r"\1-W\2-1"),
    (r"^(\d{4})[-/.,\s]*M(\d\d)\s*$", r"\1-\2"),
    (r"^\s*M(\d\d)[-\s]*(\d{1,2})(?:st|nd|rd|th)?,?[-\s]+(\d{4})", r"\3-\1-\2"),
    (r"^(\d{1,2})(?:st|nd|rd|th)?[-/.,\s]*M(\d\d)[-/.,\s]*(\d{4})", r"\3-\2-\1"),
    (r"^(\d{1,2})[-/.,\s]*M(\d\d)[-/.,\s]*(\d\d)\b", r"w\1-\2-\3"),
    (r"^\s*M(\d\d)[-/.,\s]*(\d{4})$", r"\2-\1"),
    (r"^\s*M(\d\d)[-/'\s]*(\d\d)$", r"y\2-\1"),
    (r"^(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4}):?", r"\1-\2-\3 "),
    (r"^(\d{4}|\d\d)[/.](\d{4}|\d\d)$", r"\1-\2"),
    (r"^(\d)-\s*M?(\d\d)\s*$", r"190\1-\2"),  # the first years of something
    (r"\s+", " "),
)
CLOSE = 0.2  # two readings whose grids are complete to shares this close are both possible
MOSTLY = 0.9  # share of cells like dates that make a column one of times
FEWEST_ROWS = 3  # rows that show a step
MOST_DATELESS = 0.1  # share of rows without a time that are left out


@dataclass(frozen=True)
class Times:
    """The times of all rows, in the order of the table."""

    columns: tuple[str, ...]  # that hold them
    stamps: pd.DatetimeIndex  # with a zone while they are read, then in UTC or by the local clock
    written: str  # how they were written, in words
    form: str | None = None  # such as `%d-%m-%Y`, where it was found among several
    zone: str | None = None
    local: bool = False  # whether the stamps are by the local clock of the zone
    mixed: bool = False  # whether they were written with different offsets from UTC


def read_column(
    column: pd.Series, *, named: bool, first: bool = False, asked: bool = False
) -> list[Times]:
    """Every way to read a whole column as times; none if it holds something else."""
    columns = (str(column.name),)
    if isinstance(column.dtype, pd.PeriodDtype):
        return [Times(columns, pd.DatetimeIndex(column.dt.to_timestamp()), "periods")]
    if column.isna().any() or column.dtype.kind in "bcm":
        return []
    if pd.api.types.is_datetime64_any_dtype(column):
        return [Times(columns, pd.DatetimeIndex(column), "timestamps")]
    start = str(column.iloc[0])
    if not any(map(str.isdigit, start)) or len(start) > 60:
        return []
    if ISO.match(start):  # the usual form, quickly
        cells, mixed = column.astype(str), False
        try:
            stamps = pd.to_datetime(cells, format="ISO8601", errors="coerce")
        except ValueError:  # offsets differ, or only some cells have one
            if not cells.str.contains(AWARE, regex=True).all():
                return []
            mixed = True
            stamps = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
        if stamps.notna().all():
            return [Times(columns, pd.DatetimeIndex(stamps), f"dates like {start}", mixed=mixed)]
    codes, unique = pd.factorize(column)
    text = plain_text(pd.Series(unique, dtype=object)) if is_text(column) else None
    if text is None or text.str.fullmatch(r"\d+(\.\d+)?").all():
        numbers = column.to_numpy() if text is None else pd.to_numeric(text).to_numpy()[codes]
        exact = asked or bool(EXACT_NAME.fullmatch(plain_name(column.name)))
        return _number_times(numbers, columns, named=named, first=first, exact=exact)
    return [replace(r, stamps=r.stamps.take(codes)) for r in _text_times(text, columns)]


def _text_times(text: pd.Series, columns: tuple[str, ...]) -> list[Times]:
    """Every form that reads all of some different texts, once months are numbers in them."""
    plain = text.str.replace(WEEKDAY, "", regex=True, flags=re.IGNORECASE).str.replace(
        MONTH_WORD, lambda m: f" M{MONTHS[m[1].lower()]:02d} ", regex=True, flags=re.IGNORECASE
    )
    for pattern, replacement in REWRITES:
        plain = plain.str.replace(pattern, replacement, regex=True)
    parts = plain.str.strip().str.extract(WHEN)
    clock = _read_clock(parts["clock"], parts["half"])
    aware = parts["zone"].notna() | parts["offset"].notna()
    if parts["date"].isna().any() or clock is None or aware.nunique() > 1:
        return []
    offsets = parts["offset"].fillna("+0000").where(aware, "")
    mixed, ending = offsets.nunique() > 1, "%z" if aware.all() else ""
    found, dates = [], parts["date"] + offsets
    for form in (*DATE_FORMS, WEEK_FORM):
        options: dict[str, Any] = {"format": form + ending, "errors": "coerce", "utc": mixed}
        if pd.to_datetime(dates[:1], **options).notna().all():
            days = pd.DatetimeIndex(pd.to_datetime(dates, **options))
            if not days.hasnans and days.year.min() >= FIRST_YEAR:
                written = f"dates like {text.iloc[0]}"
                found.append(Times(columns, days + clock, written, form, mixed=mixed))
    return found


def _read_clock(clock: pd.Series, half: pd.Series) -> pd.TimedeltaIndex | None:
    """Clocks such as 13:30, 1:30 PM or 24:00 as time since midnight; None if one is no clock."""
    fields = clock.fillna("0").str.extract(r"^(\d+)(?:[:.](\d\d))?(?:[:.](\d\d(?:[.,]\d+)?))?$")
    fields = fields.fillna("00")
    text = fields[0] + ":" + fields[1] + ":" + fields[2].str.replace(",", ".", regex=False)
    since: Any = pd.to_timedelta(text, errors="coerce")
    if half.notna().any():
        if half.isna().any() or not fields[0].astype(int).between(1, 12).all():
            return None
        late = half.str.lower().str.startswith("p").astype(int)
        since = since % pd.Timedelta(hours=12) + late * pd.Timedelta(hours=12)
    if since.isna().any() or (since > pd.Timedelta(hours=24)).any():
        return None
    return pd.TimedeltaIndex(since.astype("timedelta64[ns]"))


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
    form = DIGIT_FORMS.get(len(str(int(most)))) if whole else None
    years = YEARS[0] <= least and most <= YEARS[1] and named | first
    sure = named and (ordered or exact) if most < 10**6 else named or (first and ordered)
    sure |= years and len(steps) > 1 and bool((steps == 1).all())
    if form and sure and len(str(int(least))) == len(str(int(most))) and str(int(most))[0] in "12":
        text, shape = pd.Series(numbers.astype(np.int64)).astype(str), form
        if form.endswith("%H"):  # pandas reads an hour only before a minute
            text, shape = text + "00", form + "%M"
        dates = pd.DatetimeIndex(pd.to_datetime(text, format=shape, errors="coerce"))
        if not dates.hasnans:
            return [Times(columns, dates, f"numbers ({form})")]
    low, high = EPOCH_SECONDS
    for unit, ticks in EPOCHS.items() if exact or (ordered and (named or first)) else ():
        if least >= low * ticks and most <= high * ticks:
            stamps = pd.DatetimeIndex(pd.to_datetime(numbers, unit=unit)).as_unit("ns")
            stamps = stamps if whole else stamps.round("us")  # as exact as such floats are
            return [Times(columns, stamps, f"{unit} since 1970")]
    for start, (low, high, unix) in DAY_COUNTS.items() if named and ordered else ():
        if low < least and most < high:
            days = pd.to_datetime(numbers.astype(np.float64) - unix, unit="D")
            return [Times(columns, pd.DatetimeIndex(days).round("s"), f"days since {start}")]
    months = np.floor(12 * numbers + 0.02)  # 1949.0833 is February 1949
    if years and not whole and len(set(np.diff(months))) == 1 and np.diff(months)[0] > 0:
        starts = pd.to_datetime({"year": months // 12, "month": months % 12 + 1, "day": 1})
        return [Times(columns, pd.DatetimeIndex(starts), "years with a fraction")]
    return []


def find_times(
    frame: pd.DataFrame, reading: Reading, time: Names, skip: Names, ids: Names
) -> tuple[pd.DataFrame, Times | None, list[str]]:
    """The rows that have a time, their times, and other columns that hold times too."""
    pool = list(time) or [name for name in frame.columns if name not in (*skip, *ids)]
    parts = _from_parts(frame, pool)
    found = [] if parts is None else [parts]
    unread: list[str] = []
    order = (reading.options.date_order or "").removesuffix(" first")
    for name in pool:
        first, named = name == frame.columns[0], bool(time) or is_named(name)
        numeric = frame[name].dtype.kind in "fiu"
        if (parts is not None and name in parts.columns) or (numeric and not (named or first)):
            continue
        readings = [
            each
            for each in read_column(frame[name], named=named, first=first, asked=bool(time))
            if not order or each.form not in AMBIGUOUS or FIRST_FIELD[each.form[:2]] == order
        ]
        readings = _add_clock(frame, name, [each for each in time if each != name], pool, readings)
        if readings:
            found.append(_choose(readings, name, reading))
        elif _looks_dated(frame[name]):
            unread.append(name)
    found = [each for each in found if each.stamps.nunique() > 1 or len(frame) == 1]
    if not found:
        if not unread and (not time or counts(frame, time[0], ids)):
            return frame, None, []
        column = frame[[*unread, *time][0]]
        gaps = plain_text(column).str.lower().isin(reading.gap_words)
        if not 0 < gaps.mean() <= MOST_DATELESS:
            raise _unread_error(column, reading)
        reading.note(f"Rows without a time in {column.name!r} were left out: {gaps.sum():,}.")
        return find_times(frame[~gaps], reading, time, skip, ids)
    best = max(found, key=lambda each: each.stamps.nunique())
    held = {name for each in found for name in each.columns} - set(best.columns)
    others = [name for name in frame.columns if name in held]
    if others and not time:
        reading.note(f"Other columns of times were left out (--time-column): {', '.join(others)}.")
    return frame, _place_in_zone(best, reading), others


def _from_parts(frame: pd.DataFrame, pool: Names) -> Times | None:
    """Year with month, quarter or day of the year, perhaps day, hour and minute, in columns."""
    names = {part_of(name): name for name in reversed(pool)}
    for name in pool:  # Q1 or M01 in a column "period"
        if plain_name(name) == "period" and is_text(frame[name]):
            starts = "".join(set(plain_text(frame[name]).str[:1].str.lower()))
            names[{"q": "quarter", "m": "month"}.get(starts)] = name
    coarse = next((part for part in ("month", "day of year", "quarter") if part in names), None)
    if "year" not in names or coarse is None:
        return None
    used = ["year", coarse, *(["day"] if coarse == "month" and "day" in names else [])]
    if "day" in used or coarse == "day of year":
        used += [part for part in ("hour", "minute") if part in names]
    numbers: dict[str, pd.Series] = {}
    for part in used:
        cells = plain_text(frame[names[part]]).str.lower().str.strip(".").reset_index(drop=True)
        cells = cells.map(lambda word: str(MONTHS.get(word, word)).lstrip("mq"))
        numbers[part] = pd.to_numeric(cells, errors="coerce")
        _, least, most = PARTS[part]
        if not numbers[part].between(least, most).all() or (numbers[part] % 1 != 0).any():
            return None
    month = numbers["quarter"] * 3 - 2 if coarse == "quarter" else numbers.get("month", 1)
    days = {"year": numbers["year"], "month": month, "day": numbers.get("day", 1)}
    stamps = pd.to_datetime(pd.DataFrame(days), errors="coerce")
    stamps += pd.to_timedelta(numbers.get("day of year", 1) - 1, unit="D")
    minutes = numbers.get("hour", 0) * 60 + numbers.get("minute", 0)
    stamps += pd.to_timedelta(minutes, unit="min")
    if stamps.isna().any():
        return None
    columns = tuple(names[part] for part in used)
    return Times(columns, pd.DatetimeIndex(stamps), f"the columns {', '.join(columns)} together")


def _add_clock(
    frame: pd.DataFrame, name: str, asked: list[str], pool: Names, readings: list[Times]
) -> list[Times]:
    """Dates with the clocks (13:30), hours (0 to 24) or HHMM of the next or an `hour` column."""
    dated = [r for r in readings if r.stamps.tz is None and r.stamps.equals(r.stamps.normalize())]
    if not dated or max(each.stamps.nunique() for each in dated) == len(frame):
        return readings
    following = list(frame.columns)[list(frame.columns).index(name) + 1 :][:1]
    for other in asked or [n for n in pool if n in following or part_of(n) == "hour"]:
        text, sure = plain_text(frame[other]), bool(asked) or part_of(other) == "hour"
        sure |= bool(re.search("time|zeit|hhmm|clock|uhr|period|interval", other.lower()))
        if sure and text.str.fullmatch(r"\d{1,6}").all():
            width = int(text.str.len().max())
            text = text.str.zfill(width + width % 2)
            text = text.str.replace(r"^\d\d$", r"\g<0>:00", regex=True)
            text = text.str.replace(r"^(\d\d)(\d\d)(\d\d)?$", r"\1:\2:\3", regex=True)
        text = text.str.replace(r":$|\s*[-–]\s*\d.*$", "", regex=True)  # the end of an interval
        parts = text.str.extract(rf"^({CLOCK})\s*({HALF})?$")
        clock = None if parts[0].isna().any() else _read_clock(parts[0], parts[1])
        if clock is not None:
            written = f"the columns {name}, {other} together"
            return [Times((name, other), r.stamps + clock, written, r.form) for r in dated]
    return readings


def _choose(readings: list[Times], name: str, reading: Reading) -> Times:
    """The reading of a column whose dates lie best on a grid; refuse where two do alike."""
    shares = {r.form: coverage(r.stamps) for r in readings}
    best, *others = sorted(readings, key=lambda r: shares[r.form], reverse=True)
    second = others[0] if others else best
    differ = np.flatnonzero(best.stamps != second.stamps)[:1]
    if len(differ) and shares[best.form] - shares[second.form] < CLOSE:
        row = int(differ[0])
        orders = [FIRST_FIELD[str(each.form)[:2]] for each in (best, second)]
        raise reading.error(
            f"the dates in column {name!r} can be read in two ways (row {row + 1} is "
            f"{best.stamps[row]} or {second.stamps[row]}): --date-order {orders[0]} or "
            f"--date-order {orders[1]} decides."
        )
    return best


def _looks_dated(column: pd.Series) -> bool:
    """Whether most cells of a column look like times, though not all can be read."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return bool(column.notna().mean() > MOSTLY)
    if not is_text(column):
        return False
    text = plain_text(column.iloc[:500])
    text = text[text != ""]
    dated = text.str.match(r"\S*\d+[-/.:]\d+[-/.:T ]|\d+:\d\d") & (not holds_numbers(column))
    if text.nunique() > MOSTLY * len(text):
        dated |= text.str.contains(r"\d", regex=True) & bool(EXACT_NAME.fullmatch(str(column.name)))
    return bool(dated.mean() > MOSTLY)


def _unread_error(column: pd.Series, reading: Reading) -> DataError:
    """Say which cell of a column of times cannot be read."""
    row = bisect_left(
        range(len(column) - 1),
        True,
        key=lambda last: not read_column(column.iloc[: last + 1], named=True, asked=True),
    )
    held = column.iloc[row]
    cell = "is empty" if pd.isna(held) else f"holds {held!r}"
    others = column.drop(column.index[row])
    alone = len(others) > 9 and read_column(others, named=True, asked=True)
    helps = f"{flag('na', held)} leaves that row out, " if alone else ""
    like = f" like {column.iloc[0]!r}" if row else ""
    return reading.error(
        f"row {column.index[row] + 1} of the time column {column.name!r} {cell}, which "
        f"cannot be read as a date{like}: write all dates as YYYY-MM-DD HH:MM:SS, zones as +01:00; "
        f"{helps}{flag('ignore', column.name)} takes rows in their order."
    )


def counts(frame: pd.DataFrame, name: str, ids: Names, *, evenly: bool = False) -> bool:
    """Whether a column rises within each series, and so gives the order of rows at least.

    `evenly` asks for equal steps and for the name of a counter or of a time.
    """
    numbers, plain = pd.to_numeric(frame[name], errors="coerce"), plain_name(name)
    if not numbers.notna().all() or numbers.dtype.kind not in "iuf":
        return False
    within = numbers.groupby([frame[each] for each in ids]) if ids else numbers
    steps = within.diff().dropna().to_numpy(np.float64)
    if evenly and not (plain in COUNTER_NAMES or EXACT_NAME.fullmatch(plain)):
        return False
    even = not evenly or (len(steps) > 1 and np.allclose(steps, np.median(steps), rtol=1e-3))
    return bool(len(steps) and (steps > 0).all() and even)


def _place_in_zone(times: Times, reading: Reading) -> Times:
    """Times in UTC where a zone is known; days and longer steps by its local clock."""
    zone, stamps = reading.options.zone, times.stamps
    if zone is None and stamps.tz is None:
        return times
    name = zone or str(stamps.tz)
    try:
        pd.Timestamp("2024-01-01").tz_localize(name)
    except (ValueError, KeyError, LookupError, TypeError):
        said = f"zone {name!r} is not a time zone: use a name such as Europe/Berlin or UTC."
        raise ArgumentError(said) from None
    if stamps.tz is None:
        options: dict[str, Any] = {"tz": name, "nonexistent": "shift_forward"}
        try:  # the order of rows tells which hour is meant that the clock shows twice
            stamps = stamps.tz_localize(**options, ambiguous="infer")
        except ValueError:  # no such hour is there twice
            stamps = stamps.tz_localize(**options, ambiguous=np.ones(len(stamps), dtype=bool))
    utc, local = (stamps.tz_convert(each).tz_localize(None) for each in ("UTC", name))
    daily = bool(pd.Series(utc.unique().sort_values()).diff().median() >= pd.Timedelta(hours=23))
    if daily and times.mixed and zone is None:
        raise reading.error(
            "the offsets of the times change, so that days are even by the local clock only: "
            "--zone names the time zone, such as Europe/Berlin."
        )
    reading.note(f"Times are kept {'by the local clock' if daily else 'in UTC'}.")
    return replace(times, stamps=local if daily else utc, zone=name, local=daily)


def find_step(index: pd.DatetimeIndex) -> str:
    """The commonest step of sorted times as a pandas alias."""
    regular = pd.infer_freq(index)
    if regular is not None:
        return regular
    months = np.diff(index.year * 12 + index.month)
    ends = bool(index.is_month_end.all())
    if (months > 0).all() and (ends or (index.day == 1).all()) and index.equals(index.normalize()):
        every = Counter(months.tolist()).most_common(1)[0][0]
        return f"{every if every > 1 else ''}M{'E' if ends else 'S'}"
    nanos = np.diff(index.as_unit("ns").asi8)
    usual = pd.Timedelta(int(Counter(nanos.tolist()).most_common(1)[0][0]))
    days, rest = divmod(usual, pd.Timedelta(days=1))
    if rest:
        return str(to_offset(usual).freqstr)
    if days == 1 and len(index) > 9 and (index.dayofweek < 5).all():
        return "B"
    return f"W-{index[0]:%a}".upper() if days == 7 else f"{days if days > 1 else ''}D"


def seconds(step: str) -> float:
    """Length of a step, of those of the calendar the first in 2024."""
    start, offset = pd.Timestamp("2024-01-01"), to_offset(step)
    return float((start + 2 * offset - (start + offset)).total_seconds())


def coverage(stamps: pd.DatetimeIndex) -> float:
    """About the share of the grid of the commonest step that times, in any order, fill."""
    index = stamps.unique().sort_values()
    if len(index) < FEWEST_ROWS:
        return 1.0
    rows = (index[-1] - index[0]).total_seconds() / seconds(find_step(index)) + 1
    return len(index) / max(rows, len(index))


def check_frequency(frequency: str | None) -> None:
    """Refuse what pandas does not know as a frequency."""
    try:
        to_offset(frequency)
    except ValueError as error:
        said = f"{frequency!r} is not a frequency: use a pandas alias such as 'h' or '15min'."
        raise ArgumentError(said) from error
