"""Columns of a table: cells as numbers, and which columns are channels or labels.

One reading must fit a whole column. Where two readings differ, the error names the option that
decides. Messages name options as on the command line: `--na -999` is `na=-999` in Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sacm.errors import MOST_NAMES, DataError, list_names
from sacm.settings import ReadOptions
from sacm.types import GAP_CODES

Names = Sequence[str]
Stamps = pd.DatetimeIndex | None
Codes = dict[str, dict[str, int]]  # for each number that looks like a gap, channels and rows


def words_of(text: str) -> list[str]:
    """The words of a text, for tables of names."""
    return text.split()


# Words that commonly stand for a missing value, in small letters.
GAP_WORDS = words_of(
    "na n/a #n/a #na n.a. nan nat null none nil - -- --- . .. … : ? * <na> no_data nodata missing "
    "#value! #div/0! #ref! #null! #num! #name?"
)
GAP_WORDS += ["", "no data"]
SWITCHES = dict.fromkeys(words_of("true yes on attack anomaly fault"), 1.0)
SWITCHES |= dict.fromkeys(words_of("false no off normal benign"), 0.0)
FAR_AWAY = 3  # a code is proposed as a gap if it is this many times the largest other value
LARGEST = np.float64(np.finfo(np.float32).max)
MOST_CLASSES = 20  # different cells of a column of words, if it names states
FEW_WORDS = 0.1  # share of words among numbers that can be gaps whatever the column
MOST_GAP_WORDS = 5  # kinds of other words in a column of numbers that become gaps
SAMPLE_ROWS = 2_000  # rows by which a column is told to hold numbers

# The minus of typesetters, blanks that do not break.
PLAIN = {0x2212: "-", 0xA0: " ", 0x202F: " ", 0x2009: " "}
# Opening parenthesis, what stands before the number, the number, what stands behind it.
NUMBER = re.compile(
    r"^(?P<open>\()?(?P<before>[^\d.,()]*?)(?P<digits>[.,]?\d[\d.,' ]*(?:[eEdD][-+]?\d+)?)"
    r"(?P<after>[^\d()]*)(?P<close>\))?$"
)
# Numbers with each decimal sign; the other sign may stand before every three digits.
WITH_SIGN = {
    sign: rf"-?[1-9]\d{{0,2}}(?:\{other}\d{{3}})+(?:\{sign}\d+)?|-?\d*\{sign}?\d*(?:e[-+]?\d+)?"
    for sign, other in (".,", ",.")
}
DATE_OR_CLOCK = r"\d[-/:]\d|\d\.\d+\."
LABEL_NAME = re.compile(
    r"(?<![a-z])(?:is)?(?:labels?|anomal(?:y|ies|ous)|attacks?|outliers?|change ?points?|faulty?|"
    r"faults|ground ?truth|intrusion)(?![a-z])"
)
TIME_WORDS = (
    "date|time|datum|zeit|stamp|period|year|jahr|année|month|monat|mese|week|day|yyyy|epoch|unix|"
    "fecha|quarter"
)
TIME_NAME = re.compile(rf"{TIME_WORDS}|^ds$|^ts?$|^when$|^utc$|日|时", re.IGNORECASE)
COUNTER_NAMES = words_of(
    "index idx id no nr num number row rows rownum rowid rownumber rownames rowno n i k t step "
    "steps timestep timeindex sno counter seq sequence sample sampleno obs observation record "
    "instant seconds elapsed elapsedtime timesec timems unnamed0"
)
COUNTER_NAMES += [""]
ID_NAMES = re.compile(
    r"(?:unique|series|ts|item|product|store|shop|sensor|station|device|machine|unit|asset|meter|"
    r"site|plant|location|customer)?(?:id)?|series|sku|dept|entity|group"
)
FEW_RESTARTS = 0.1  # share of rows in which a counter may begin anew
# Parts of the date: names of columns that hold them, and the smallest and largest value.
PARTS = {
    "year": ("year yr yyyy jahr jaar anno annee année ano año", 1000, 2999),
    "month": ("month mon mm mo mnth monat mois mes mês maand mese", 1, 12),
    "day": ("day dd dayofmonth dateofmonth mday tag jour dia día dag giorno", 1, 31),
    "day of year": ("doy dayofyear julian jday yday ddd", 1, 366),
    "quarter": ("quarter qtr quartal", 1, 4),
    "hour": ("hour hr hh hours he hourending stunde heure hora ora uur", 0, 24),
    "minute": ("minute minutes min mi", 0, 59),
    "weekday": ("weekday dow dayofweek", 0, 7),
}


@dataclass
class Reading:
    """What is known about a table while it is read."""

    where: str  # name of the table in error messages
    options: ReadOptions = field(default_factory=ReadOptions)
    separator: str | None = None  # of the fields of a text
    notes: list[str] = field(default_factory=list)
    points: bool = False  # whether another column has decimal points
    time: str = ""  # the columns that hold the times

    def note(self, sentence: str) -> None:
        """Say what was understood."""
        self.notes.append(sentence)

    @property
    def gap_words(self) -> list[str]:
        """Words for a gap in small letters, customary ones and those of `--na`."""
        return [*GAP_WORDS, *(word.strip().lower() for word in self.options.na or ())]

    def error(self, sentence: str) -> DataError:
        """The error that begins with the name of the table."""
        return DataError(f"{self.where}: {sentence}")


def flag(name: str, value: object) -> str:
    """An option as it is written on the command line: `--ignore 'a b'`."""
    return f"--{name} {shlex.quote(str(value))}"


def plain_name(name: object) -> str:
    """The letters and digits of a name, small."""
    return re.sub(r"[\W_]", "", str(name).lower())


def part_of(name: object) -> str | None:
    """The part of a date that a column is named after."""
    plain = re.sub(r"\d", "", plain_name(name))
    return next((part for part, (words, *_) in PARTS.items() if plain in words.split()), None)


def is_named(name: object) -> bool:
    """Whether a column is named like one of times."""
    return bool(TIME_NAME.search(str(name))) or part_of(name) in ("year", "month", "day")


def is_text(column: pd.Series) -> bool:
    """Whether a column holds text or objects, not numbers or times."""
    typed = pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)
    return not typed or isinstance(column.dtype, pd.CategoricalDtype)


def plain_text(column: pd.Series) -> pd.Series:
    """Cells as plain text without blanks at the ends; "" where there is nothing."""
    text = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    odd = text.str.contains(r"[^\x00-\x7f]", regex=True)
    return text.where(~odd, text.str.translate(PLAIN).str.strip()) if odd.any() else text


def holds_numbers(column: pd.Series) -> bool:
    """Whether at least half of the cells of a column are numbers."""
    if not is_text(column):
        return column.dtype.kind in "fiub"
    text = plain_text(column.iloc[:SAMPLE_ROWS])
    text = text[~text.str.lower().isin(GAP_WORDS)]
    numbers = text.str.match(NUMBER) & ~text.str.contains(DATE_OR_CLOCK, regex=True)
    return bool(len(text) and numbers.mean() >= 0.5)


def read_numbers(column: pd.Series, reading: Reading) -> np.ndarray | None:
    """Read a column as numbers `[T]`, NaN for gaps; None if it holds words."""
    options, name = reading.options, str(column.name)
    if not is_text(column) and column.dtype.kind in "fiub":
        return clean_numbers(column.to_numpy(np.float64, na_value=np.nan), name, reading)
    text = plain_text(column)
    small = text.str.lower()
    gap = small.isin(reading.gap_words)
    cells, words = text[~gap], small[~gap]
    numbers: Any = pd.to_numeric(cells, errors="coerce")
    # Where commas are usual, 1.234 may be a thousand.
    doubt = (options.decimal or ",") == "," and reading.separator == ";"
    if not np.isfinite(numbers).all() or (doubt and len(_fitting_signs(cells)) > 1):
        if words.isin(SWITCHES).all():
            said = ", ".join(f"{word} as {SWITCHES[word]:g}" for word in words.unique())
            reading.note(f"Column {name!r}: {said}.")
            return np.asarray(small.map(SWITCHES), dtype=np.float64)
        numbers = _read_written(cells, name, reading)
    if numbers is None:
        return None
    return clean_numbers(numbers.reindex(text.index).to_numpy(np.float64), name, reading)


def _fitting_signs(digits: pd.Series) -> list[str]:
    """The decimal signs with which all digits are numbers: both for 1.234, else at most one."""
    if not digits.str.contains("[.,]", regex=True).any():
        return ["."]
    return [sign for sign, form in WITH_SIGN.items() if digits.str.fullmatch(form).all()]


def _read_written(cells: pd.Series, name: str, reading: Reading) -> pd.Series | None:
    """Numbers with signs of thousands, units, currencies or words between them."""
    parts = cells.str.extract(NUMBER)
    before, after = parts["before"].str.strip(), parts["after"].str.strip()
    marks = before.str.strip("-+ ") + "…" + after.where(after != "-", "")  # units and currencies
    usual = marks.mode().get(0, "")
    wrong = (marks != usual) | before.str.contains(r"[<>~≤≥A-Za-z\[{?]", regex=True, na=True)
    dated = cells.str.contains(DATE_OR_CLOCK, regex=True)
    states = wrong.mean() > FEW_WORDS and cells.nunique() <= MOST_CLASSES
    if wrong.mean() > 0.5 or dated.mean() > 0.5 or states:
        return None
    words = cells[wrong].value_counts()
    if len(words) > MOST_GAP_WORDS or any(re.search(r"\d", str(word)) for word in words.index):
        gaps = f"{flag('na', ','.join(map(str, words.index)))} takes such cells as gaps, "
        raise reading.error(
            f"column {name!r} holds numbers and also {list_names(words.index)}: "
            f"{gaps if len(words) <= MOST_NAMES else ''}{flag('ignore', name)} leaves it out."
        )
    digits = parts.loc[~wrong, "digits"].str.lower().str.replace("d", "e", regex=False)
    digits = digits.str.replace(r"(?<=\d)[ '](?=\d{3})", "", regex=True).str.strip()
    sign = reading.options.decimal or _find_sign(digits, name, reading)
    unfit = cells[digits.index[~digits.str.fullmatch(WITH_SIGN[sign])]]
    if len(unfit):
        raise reading.error(
            f"column {name!r} holds {unfit.iloc[0]!r}, which is no number with the decimal sign "
            f"{sign!r}: --decimal names it, {flag('na', unfit.iloc[0])} takes the cell as a gap."
        )
    plain = digits.str.replace("," if sign == "." else ".", "", regex=False)
    numbers = pd.to_numeric(plain.str.replace(",", ".", regex=False))
    in_parentheses = parts["open"].notna() & parts["close"].notna()
    negative = in_parentheses | (after == "-") | before.str.contains("-", regex=False, na=False)
    numbers = numbers.where(~negative[numbers.index], -numbers)
    for word, count in words.items():
        reading.note(f"Column {name!r}: {count:,} cells {str(word)!r} are gaps (--na).")
    plainly = pd.to_numeric(cells[numbers.index], errors="coerce")
    for row in plainly.index[plainly.ne(numbers)][:1]:
        reading.note(f"Column {name!r}: {cells[row]!r} was read as {numbers[row]:.12g}.")
    return numbers


def _find_sign(digits: pd.Series, name: str, reading: Reading) -> str:
    """The decimal sign of a column: by its own cells, else by the other columns of the file."""
    signs = _fitting_signs(digits)
    if len(signs) < 2:
        return signs[0] if signs else "."
    written, other = ".," if digits.str.contains(".", regex=False).any() else ",."
    if written == "," and reading.points != (reading.separator == ";"):
        return "." if reading.points else ","
    raise reading.error(
        f"column {name!r} has three digits after every {written!r} ({digits.iloc[0]!r}), which can "
        f"be thousands or a fraction: {flag('decimal', written)} for fractions, "
        f"{flag('decimal', other)} for thousands."
    )


def clean_numbers(values: np.ndarray, name: object, reading: Reading) -> np.ndarray:
    """Numbers `[T]` with codes of gaps and infinite ones as NaN; refuse those beyond float32."""
    codes = [word for word in reading.options.na or () if re.fullmatch(r"-?\d+(\.\d+)?", word)]
    infinite = np.isinf(values)
    gaps = infinite | np.isin(values, [float(code) for code in codes])
    if gaps.any():
        values = np.where(gaps, np.nan, values)
    if infinite.any():
        reading.note(f"Column {name!r}: infinite values are gaps ({int(infinite.sum()):,}).")
    for row in np.flatnonzero(np.abs(values) > LARGEST)[:1]:
        said = f"column {name!r} is {values[row]:g} in row {row + 1}, which is too large."
        raise reading.error(said)
    return values


@dataclass
class Channels:
    """The columns of a table that are numbers."""

    values: dict[str, np.ndarray] = field(default_factory=dict)  # [T] of each, NaN for gaps
    label: str | None = None
    labels: np.ndarray | None = None  # [T]
    categories: list[str] = field(default_factory=list)  # channels of 0 and 1, made of words


def read_channels(
    frame: pd.DataFrame, reading: Reading, stamps: Stamps, columns: Names | None, also: Names
) -> Channels:
    """Read the channels of a table: those asked for, or all columns that are nothing else."""
    options, asked = reading.options, [*(columns or ()), *also]
    channels, category = Channels(), options.category or ()
    left_out: dict[str, list[str]] = {}
    codes: Codes = {}
    reading.points = any(dtype.kind == "f" for dtype in frame.dtypes)
    for name in frame.columns:
        spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", name).lower()
        likely = bool(LABEL_NAME.search(spaced)) and frame[name].nunique() <= MOST_CLASSES
        likely = name == options.label or (likely and name not in asked)
        if name in category or (columns is not None and not likely and name not in asked):
            continue
        values = read_numbers(frame[name], reading)
        reason = None if name in asked else _reason(name, frame[name], values, stamps)
        if likely and values is not None and not np.nansum(values % 1):
            if name == (options.label or name) and channels.label is None:
                channels.label, channels.labels = name, values
                continue
            reason = "looks like labels"
        if values is None and (name in asked or name == options.label):
            said = f"holds words such as {frame[name].dropna().iloc[0]!r}, no numbers"
            helps = f"labels are 0 and 1, {flag('category', name)} makes inputs of 0 and 1 of it"
            raise reading.error(f"column {name!r} {said}: {helps}.")
        if reason is not None or values is None:
            left_out.setdefault(str(reason), []).append(name)
            continue
        channels.values[name] = values
        if name not in asked:
            _check_channel(name, values, stamps, codes, reading)
    if options.label != channels.label and plain_name(channels.label) not in ("label", "labels"):
        said = "was taken as labels: --label names another column, --columns takes it as a channel"
        reading.note(f"Column {channels.label!r} {said}.")
    for name in category:
        _add_category(frame[name], channels, asked, reading)
    if columns is not None:  # in the order in which they were asked for
        ordered = dict.fromkeys([*asked, *channels.values])
        channels.values = {n: channels.values[n] for n in ordered if n in channels.values}
    for code, counts in codes.items():
        said = f"{code} in {max(counts.values()):,} rows, far from other values"
        reading.note(f"Column {list_names(counts)} is {said}: {flag('na', code)} makes them gaps.")
    dates = [name for name in channels.values if part_of(name) not in (None, "hour", "minute")]
    if stamps is None and 0 < len(dates) < len(channels.values) and columns is None:
        said = "is named like a part of a date but gives no time: --ignore leaves it out"
        reading.note(f"Channel {list_names(map(repr, dates))} {said}.")
    reasons = [f"{reason}: {list_names(map(repr, names))}" for reason, names in left_out.items()]
    if not channels.values:
        said = f" ({'; '.join(reasons)})" if reasons else ""
        raise DataError(f"{reading.where} has no column of values{said}.")
    for said in reasons:
        reading.note(f"Left out, {said} (--columns takes it in).")
    return channels


def _reason(name: str, column: pd.Series, values: Any, stamps: Stamps) -> str | None:
    """Why a column that nobody asked for is no channel; None if it is one."""
    if values is None:
        few = 1 < column.nunique() <= MOST_CLASSES
        return "words (--category makes inputs of it)" if few else "words"
    if np.isnan(values).all():
        return "no value"
    if stamps is None or part_of(name) is None:
        return None
    weekday = stamps.dayofweek
    parts = [stamps.year, stamps.quarter, stamps.month, stamps.day, stamps.dayofyear, stamps.hour]
    parts += [stamps.minute, weekday, weekday + 1, (weekday + 1) % 7]
    repeats = any(np.array_equal(values, part) for part in parts)
    return "only repeats the calendar" if repeats else None


def _check_channel(
    name: str, values: np.ndarray, stamps: Stamps, codes: Codes, reading: Reading
) -> None:
    """Refuse a counter that begins anew, and count numbers that look like codes of gaps."""
    restarts = values[1:][np.diff(values) != 1]
    few = len(values) > 11 and 0 < len(restarts) < FEW_RESTARTS * len(values)
    if stamps is None and part_of(name) is None and few and len(np.unique(restarts)) == 1:
        said = f"leave it out with {flag('ignore', name)}, or take it with --columns"
        raise reading.error(f"column {name!r} counts rows and begins anew: {said}.")
    measured = values[~np.isnan(values)]
    for code in {measured.min(), measured.max()} & set(GAP_CODES):
        count, others = int((measured == code).sum()), measured[measured != code]
        far = len(others) and abs(code) > FAR_AWAY * np.abs(others).max()
        if count > 1 and len(others) and (far or code < 0 <= others.min()):
            codes.setdefault(f"{code:g}", {})[repr(name)] = count


def _add_category(column: pd.Series, channels: Channels, asked: Names, reading: Reading) -> None:
    """Channels of 0 and 1 for the words of a column; those asked for, if a trained model asks."""
    name, words = str(column.name), plain_text(column)
    kinds = [f"{name}={kind}" for kind in sorted(set(words) - {""})]
    if len(kinds) > MOST_CLASSES:
        said = f"has {len(kinds)} different words, more than the {MOST_CLASSES} of a category"
        raise reading.error(f"column {name!r} {said}: {flag('ignore', name)} leaves it out.")
    trained = [each for each in asked if each.startswith(f"{name}=")]
    for each in trained or kinds:
        values = (name + "=" + words == each).to_numpy(np.float64)
        channels.values[each] = np.where(words == "", np.nan, values)
        channels.categories.append(each)


def find_series(
    frame: pd.DataFrame, ids: Names, stamps: Stamps, skip: Names, reading: Reading
) -> tuple[list[str], pd.Series | None, list[tuple[str, np.ndarray]]]:
    """Columns that tell series apart, as one of names; name and rows of every series in order."""
    if not ids and stamps is not None:
        ids = _find_ids(frame, stamps, skip, reading)
    if not ids:
        return [], None, [("", np.arange(len(frame)))]
    for name in ids:
        if frame[name].isna().any():
            raise reading.error(f"row {int(frame[name].isna().argmax()) + 1} has no {name}.")
    column = frame[ids[0]]
    for name in ids[1:]:
        column = column.astype(str) + "/" + frame[name].astype(str)
    codes, keys = pd.factorize(column)
    borders = np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1]
    rows = np.split(np.argsort(codes, kind="stable"), borders)
    return list(ids), column.rename("/".join(ids)), list(zip(map(str, keys), rows, strict=True))


def _find_ids(
    frame: pd.DataFrame, stamps: pd.DatetimeIndex, skip: Names, reading: Reading
) -> Names:
    """The column that tells series apart where times repeat; empty for one series."""
    if stamps.is_unique:
        return []
    free = [name for name in frame.columns if name not in skip and part_of(name) is None]
    names = [name for name in free if not is_named(name) or "series" in name.lower()]
    words = [name for name in names if is_text(frame[name]) and not holds_numbers(frame[name])]
    usual = [name for name in names if ID_NAMES.fullmatch(plain_name(name))]
    able: list[str] = []
    for name in dict.fromkeys([*words, *usual]):
        cells = frame[name]
        again = pd.DataFrame({"id": cells.astype(str), "time": stamps}).duplicated().any()
        if not again and not cells.isna().any() and 1 < cells.nunique() <= len(cells) / 2:
            # A column that only renames the series of another one is no further candidate.
            able += [] if any(frame.groupby(n)[name].nunique().max() == 1 for n in able) else [name]
    if len(able) > 1:
        said = f"several columns can tell series apart ({list_names(able)})"
        raise reading.error(f"times repeat and {said}: {flag('id', able[0])} names one of them.")
    for name in able:
        said = "was taken to tell series apart: --id names another, --ignore leaves it out"
        reading.note(f"Column {name!r} {said}.")
    return able
