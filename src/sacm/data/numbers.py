"""Cells of text as numbers: gap words, decimal signs, units and currencies.

One reading must fit a whole column. Where two readings differ, the error names the option that
decides. Messages name options as on the command line: `--na -999` is `na=-999` in Python.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sacm.errors import DataError
from sacm.settings import ReadOptions


def words_of(text: str) -> list[str]:
    """The words of a text, for tables of names."""
    return text.split()


# Words that commonly stand for a missing value, in small letters.
GAP_WORDS = {"", "no data"}.union(
    words_of(
        "na n/a #n/a #na n.a. nan nat null none nil - -- --- . .. … : ? * <na> no_data nodata "
        "missing #value! #div/0! #ref! #null! #num! #name?"
    )
)
SWITCHES = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "on": 1.0, "off": 0.0}
# Numbers that loggers write where nothing was measured.
GAP_CODES = (-99999, -9999, -999.9, -999, -200, -99.9, -99, 999, 9999, 99999, 32767, -32768)
FAR_AWAY = 3  # a code is proposed as a gap if it is this many times the largest other value
LARGEST = np.float64(np.finfo(np.float32).max)
MOST_NAMES = 6  # of a list in a sentence
MOST_CLASSES = 20  # different cells of a column of words, if it names states
FEW_WORDS = 0.1  # share of words among numbers that can be gaps whatever the column
MOST_GAP_WORDS = 5  # kinds of other words in a column of numbers that become gaps
SAMPLE_ROWS = 2_000  # rows by which a column is told to hold numbers

# Digits of other scripts, the minus of typesetters, blanks that do not break.
DIGITS = "٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹０１２３４５６７８９"
PLAIN = {ord(digit): str(place % 10) for place, digit in enumerate(DIGITS)}
PLAIN |= {0x2212: "-", 0xA0: " ", 0x202F: " ", 0x2009: " "}
# Opening parenthesis, what stands before the number, the number, what stands behind it.
NUMBER = re.compile(
    r"^(?P<open>\()?(?P<before>[^\d.,()]*?)(?P<digits>[.,]?\d[\d.,' ]*(?:[eEdD][-+]?\d+)?)"
    r"(?P<after>[^\d()]*)(?P<close>\))?$"
)
THOUSANDS = r"[1-9]\d{0,2}([.,]\d{3})+"
DATE_OR_CLOCK = r"\d[-/:]\d|\d\.\d+\."


@dataclass
class Reading:
    """What is known about a table while it is read.

    Attributes:
        where: What errors call the table.
        options: How the user wants it to be read.
        separator: What separates the fields of a text, None for other files.
        notes: What was understood, a sentence each.
        signs: Decimal signs that are certain in some column: see `certain_signs`.
    """

    where: str
    options: ReadOptions = field(default_factory=ReadOptions)
    separator: str | None = None
    notes: list[str] = field(default_factory=list)
    signs: set[str] = field(default_factory=set)

    def note(self, sentence: str) -> None:
        """Say what was understood."""
        self.notes.append(sentence)

    def error(self, sentence: str) -> DataError:
        """The error that begins with the name of the table."""
        return DataError(f"{self.where}: {sentence}")

    @property
    def gap_words(self) -> set[str]:
        """All words that are gaps, in small letters."""
        return GAP_WORDS | {word.strip().lower() for word in self.options.na or ()}

    def without_codes(self, values: np.ndarray) -> np.ndarray:
        """Numbers with those that the user takes as gaps replaced by NaN."""
        found = [word for word in self.gap_words if re.fullmatch(r"-?\d+(\.\d+)?", word)]
        return np.where(np.isin(values, [float(word) for word in found]), np.nan, values)


def flag(name: str, value: object = "") -> str:
    """An option as it is written on the command line: `--ignore 'a b'`."""
    option = f"--{name.replace('_', '-')}"
    return f"{option} {shlex.quote(str(value))}" if value != "" else option


def some(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """A list in words, only the first few if there are many."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(name if len(name) < 60 else f"{name[:57]}…" for name in listed[:most]) + more


def plain_name(name: object) -> str:
    """The letters and digits of a name, small."""
    return re.sub(r"[\W_]", "", str(name).lower())


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


def certain_signs(column: pd.Series) -> set[str]:
    """The decimal signs of a column whose cells leave no doubt; "0." also if one is like 0.418."""
    if not is_text(column):  # pandas read fractions with points
        numbers = column.iloc[:SAMPLE_ROWS].dropna()
        return {"."} if column.dtype.kind == "f" and (numbers % 1 != 0).any() else set()
    cells = plain_text(column.iloc[:SAMPLE_ROWS]).str.extract(r"^[^\d]*?(\d*)([.,])(\d+)\D*$")
    cells = cells.dropna()
    small = cells[0].str.fullmatch("0?") & (cells[2].str.len() == 3)
    return {*cells[1][small | (cells[2].str.len() != 3)], *("0" + cells[1][small])}


def read_numbers(column: pd.Series, reading: Reading) -> np.ndarray | None:
    """Read a column as numbers.

    Args:
        column: The column `[T]`.
        reading: What is known about the table; takes notes.

    Returns:
        Float64 `[T]`, NaN for gaps; None if the column holds words.

    Raises:
        DataError: Some cells can be read in two ways, or in none.
    """
    if not is_text(column) and column.dtype.kind in "fiub":
        values = column.to_numpy(np.float64, na_value=np.nan)
        return _check_range(reading.without_codes(values), column.name, reading)
    text = plain_text(column)
    small = text.str.lower()
    gap = small.isin(reading.gap_words).to_numpy()
    values = pd.to_numeric(text.mask(gap), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    plain = bool((gap | np.isfinite(values)).all())
    if not plain or _dots_may_be_thousands(text[~gap], reading):
        words = small[~gap]
        if words.isin(SWITCHES).all():
            said = ", ".join(f"{word} as {SWITCHES[word]:g}" for word in words.unique())
            reading.note(f"Column {column.name!r}: {said}.")
            return np.asarray(small.map(SWITCHES), dtype=np.float64)
        written = _read_written(text, ~gap, str(column.name), reading)
        if written is None:
            return None
        values = written
    return _check_range(reading.without_codes(values), column.name, reading)


def _dots_may_be_thousands(text: pd.Series, reading: Reading) -> bool:
    """Whether numbers such as 1.234 stand in a file that may have decimal commas."""
    decimal = reading.options.decimal
    european = "," in reading.signs or (reading.separator == ";" and "0." not in reading.signs)
    asked = decimal == "," or (decimal is None and european)
    return bool(asked and len(text) and text.str.fullmatch(f"-?{THOUSANDS}").all())


def _read_written(
    text: pd.Series, given: np.ndarray, name: str, reading: Reading
) -> np.ndarray | None:
    """Numbers with signs of thousands, units, currencies or words between them."""
    cells = text[given]
    parts = cells.str.extract(NUMBER)
    strange = parts["before"].str.contains(r"[<>~≤≥A-Za-z\[{?]", regex=True, na=False)
    wrong = parts["digits"].isna() | strange
    if wrong.mean() > 0.5 or cells.str.contains(DATE_OR_CLOCK, regex=True).mean() > 0.5:
        return None
    words = cells[wrong].value_counts()
    good = parts[~wrong].fillna("")
    before, after = good["before"].str.strip(), good["after"].str.strip()
    marks = (before.str.strip("-+ ") + "…" + after.where(after != "-", "")).unique()
    many = len(words) > MOST_GAP_WORDS
    states = cells.nunique() <= MOST_CLASSES
    if (wrong.mean() > FEW_WORDS and (many or states)) or (len(marks) > 1 and states):
        return None
    if many or any(re.search(r"\d", str(word)) for word in words.index):
        raise reading.error(
            f"column {name!r} holds numbers and also {some(words.index)}: "
            f"{flag('na', ','.join(map(str, words.index[:MOST_NAMES])))} takes such cells as gaps, "
            f"{flag('ignore', name)} leaves the column out."
        )
    if len(marks) > 1:
        raise reading.error(
            f"column {name!r} mixes numbers with different signs or units ({some(marks)}): write "
            f"them alike, or leave the column out with {flag('ignore', name)}."
        )
    digits = good["digits"].str.replace(r"(?<=\d)[ '](?=\d{3})", "", regex=True).str.strip()
    digits = digits.str.replace("[dD]", "e", regex=True)
    sign = reading.options.decimal or _find_sign(digits, name, reading)
    plain = digits.str.replace("," if sign == "." else ".", "", regex=False)
    numbers = pd.to_numeric(plain.str.replace(",", ".", regex=False), errors="coerce")
    if numbers.isna().any():
        cell = cells[numbers.index[numbers.isna()][0]]
        raise reading.error(
            f"column {name!r} holds {cell!r}, which is no number with the decimal sign {sign!r}: "
            f"{flag('decimal')} names the sign, {flag('na', cell)} takes the cell as a gap."
        )
    in_parentheses = ((good["open"] == "(") & (good["close"] == ")")) | (after == "-")
    numbers = numbers.where(~(in_parentheses | before.str.contains("-", regex=False)), -numbers)
    for word, count in words.items():
        reading.note(f"Column {name!r}: {count:,} cells {str(word)!r} are gaps ({flag('na')}).")
    if in_parentheses.any():
        reading.note(f"Column {name!r}: numbers in parentheses or before a minus are negative.")
    if marks[0] != "…":
        reading.note(f"Column {name!r}: {marks[0].strip('…')!r} beside every number was removed.")
    changed = plain.ne(good["digits"]) | (sign == ",")
    if changed.any():
        place = int(changed.to_numpy().argmax())
        cell, value = cells[changed.index].iloc[place], numbers.iloc[place]
        reading.note(f"Column {name!r}: {cell!r} was read as {value:.12g}.")
    return numbers.reindex(text.index).to_numpy(np.float64)


def _find_sign(digits: pd.Series, name: str, reading: Reading) -> str:
    """The decimal sign: by cells that leave one reading, else by other columns of the file."""
    comma = digits.str.contains(",", regex=False)
    point = digits.str.contains(".", regex=False)
    both = digits[comma & point]
    if len(both):
        return "." if (both.str.rfind(".") > both.str.rfind(",")).all() else ","
    if comma.any() and point.any():
        for sign, others in ((",", digits[point]), (".", digits[comma])):
            if others.str.fullmatch(THOUSANDS).all():
                return sign
        raise reading.error(
            f"column {name!r} holds {digits[comma].iloc[0]!r} and {digits[point].iloc[0]!r}: write "
            "numbers with one decimal sign."
        )
    sign, other = (",", ".") if comma.any() else (".", ",")
    cells = digits[comma | point]
    if (cells.str.count(re.escape(sign)) > 1).any():
        return other
    if not len(cells) or not cells.str.fullmatch(THOUSANDS).all():
        return sign
    if sign == "," and reading.separator == ";" and "." not in reading.signs:
        return sign
    if other in reading.signs and sign not in reading.signs:
        return other
    # 1.234 is a thousand in many files with semicolons, unless 0.123 is there, too.
    sure = reading.separator != ";" or f"0{sign}" in reading.signs
    if sign in reading.signs and other not in reading.signs and sure:
        return sign
    raise reading.error(
        f"column {name!r} has three digits after every {sign!r} ({cells.iloc[0]!r}), which can be "
        f"thousands or a fraction: {flag('decimal', sign)} for fractions, {flag('decimal', other)} "
        "for thousands."
    )


def _check_range(values: np.ndarray, name: object, reading: Reading) -> np.ndarray:
    """Numbers `[T]` with infinite ones as gaps; refuse those beyond float32."""
    infinite = np.isinf(values)
    if infinite.any():
        values = np.where(infinite, np.nan, values)
        reading.note(f"Column {name!r}: infinite values are gaps ({int(infinite.sum()):,}).")
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        raise reading.error(
            f"column {name!r} is {values[wrong[0]]:g} in row {wrong[0] + 1}, which is too large."
        )
    return values


def propose_gap_code(name: object, values: np.ndarray, reading: Reading) -> None:
    """Say that a code such as -9999, far from all other values of a column, may be a gap."""
    measured = values[~np.isnan(values)]
    for code in GAP_CODES if len(measured) else ():
        if code not in (measured.min(), measured.max()):
            continue
        count, others = int((measured == code).sum()), measured[measured != code]
        if count > 1 and len(others) and abs(code) > FAR_AWAY * np.abs(others).max():
            reading.note(
                f"Column {name!r} is {code} in {count:,} rows, far from its other values: "
                f"{flag('na', code)} makes them gaps."
            )
            return
