"""Cells as dates: text, whole numbers or timestamps; one form must read a whole column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from sacm.data.numbers import is_text, plain_name, plain_text, words_of

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
TIME_NAMES = frozenset(
    words_of(
        "date dates time timestamp datetime ds ts zeit datum zeitstempel fecha year jahr month "
        "monat period quarter week day epoch unix unixtime utc when"
    )
)
# Forms of whole numbers by their count of digits, and of counts since a start.
DIGIT_FORMS = dict(
    zip(
        range(4, 15, 2),
        ("%Y", "%Y%m", "%Y%m%d", "%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"),
        strict=True,
    )
)
EPOCHS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH_SECONDS = (10**8, 4_102_444_800)  # March 1973 to 2100; smaller numbers count something
DAY_COUNTS = {"1899-12-30": (20_000, 80_000, 25_569), "year 0": (700_000, 770_000, 719_529)}
DATE_FORMS = {  # by the count of digits of the three fields
    "year": ("%Y-%m-%d",),
    "last": ("%d-%m-%Y", "%m-%d-%Y"),
    "short": ("%d-%m-%y", "%m-%d-%y", "%y-%m-%d"),
}
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
    """Every way to read a whole column as times; none if it holds something else.

    Args:
        column: The column `[T]`.
        named: Whether its name is one of times, so that 2024 is a year.
        first: Whether it is the first of the table, where 20240131 is a date whatever its name.
        asked: Whether the user says that it holds times.
    """
    exact = asked or plain_name(column.name) in TIME_NAMES
    columns = (str(column.name),)
    if isinstance(column.dtype, pd.PeriodDtype):
        return [Times(columns, pd.DatetimeIndex(column.dt.to_timestamp()), "periods")]
    if pd.api.types.is_datetime64_any_dtype(column) and not column.isna().any():
        return [from_typed(pd.DatetimeIndex(column), columns)]
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


def from_typed(index: pd.DatetimeIndex, columns: tuple[str, ...]) -> Times:
    """Timestamps of pandas; those with a zone in UTC, with their offsets."""
    if index.tz is None:
        return Times(columns, index, "timestamps")
    local = index.tz_localize(None)
    utc = index.tz_convert("UTC").tz_localize(None)
    return Times(columns, utc, "timestamps", zone=str(index.tz), offsets=local - utc)


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
        days = text.str.replace("-", "") + "-1"
        weeks = pd.DatetimeIndex(pd.to_datetime(days, format="%GW%V-%u", errors="coerce"))
        return [] if weeks.hasnans else [Times(columns, weeks, written)]
    parts = text.str.extract(WHEN)
    if parts["date"].isna().any():
        return []
    clock, offsets, zone = read_clock(parts["clock"], parts["half"]), None, None
    aware = parts["zone"].notna() | parts["offset"].notna()
    if clock is None or aware.nunique() > 1 or not parts["zone"].dropna().isin(ZONES).all():
        return []
    if aware.any():
        offsets = _offsets(parts["offset"].fillna(parts["zone"]))
        zone = _zone_name(offsets)
    found = []
    for form in _date_forms(parts["date"]):
        read = pd.DatetimeIndex(pd.to_datetime(parts["date"], format=form, errors="coerce"))
        if not read.hasnans:
            stamps = read + clock if offsets is None else read + clock - offsets
            found.append(Times(columns, stamps, written, form, zone=zone, offsets=offsets))
    return found


def first_unread(column: pd.Series) -> int:
    """The first row that cannot be read in the form that reads the most rows."""
    dates = _plain_dates(plain_text(column)).str.extract(WHEN)["date"]
    unread = [
        pd.to_datetime(dates, format=form, errors="coerce").isna() for form in _date_forms(dates)
    ]
    best = min(unread, key=lambda missing: missing.sum(), default=dates.isna())
    return int(best.to_numpy().argmax())


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


def read_clock(clock: pd.Series, half: pd.Series) -> pd.TimedeltaIndex | None:
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
            dates = pd.DatetimeIndex(pd.to_datetime(padded, format=form, errors="coerce"))
            if not dates.hasnans:
                return [Times(columns, dates, f"numbers ({style})", style=style)]
    low, high = EPOCH_SECONDS
    if (named and exact) or (ordered and (named or first)):
        for unit, ticks in EPOCHS.items():
            if numbers.min() >= low * ticks and numbers.max() <= high * ticks:
                kept = f"epoch {unit}" if whole else None
                stamps = _from_epoch(numbers, ticks)
                return [Times(columns, stamps, f"{unit} since 1970", style=kept)]
    if named and ordered and not whole and numbers.min() > 1500 and numbers.max() < 2100:
        return _decimal_years(numbers, columns)
    for start, (least, most, zero) in DAY_COUNTS.items():
        if named and ordered and numbers.min() > least and numbers.max() < most:
            days = pd.to_datetime(numbers.astype(np.float64) - zero, unit="D")
            return [Times(columns, pd.DatetimeIndex(days).round("s"), f"days since {start}")]
    return []


def _decimal_years(numbers: np.ndarray, columns: tuple[str, ...]) -> list[Times]:
    """Years with a fraction, such as 1949.083 for February; none if they are no months."""
    months = (numbers - 1970) * 12
    counts = np.round(months).astype(np.int64)
    if np.abs(months - counts).max() > 0.1:
        return []
    stamps = pd.DatetimeIndex(counts.astype("datetime64[M]").astype("datetime64[s]"))
    return [Times(columns, stamps, "years with a fraction")]


def _from_epoch(numbers: np.ndarray, ticks: int) -> pd.DatetimeIndex:
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
