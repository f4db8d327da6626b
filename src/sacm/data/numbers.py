"""Cells of text as numbers: gap words, decimal signs, units and currencies.

One reading must fit a whole column. Where two readings differ, the error names the option that
decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sacm.errors import DataError


def words_of(text: str) -> list[str]:
    """The words of a text, for tables of names."""
    return text.split()


# Words that commonly stand for a missing value, in small letters.
GAP_WORDS = frozenset(
    words_of(
        "na n/a #n/a #na n.a. nan nat null none nil - -- --- . .. … : ? * <na> no_data nodata "
        "missing #value! #div/0! #ref! #null! #num! #name?"
    )
) | {"", "no data"}
SWITCHES = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "on": 1.0, "off": 0.0}
# Numbers that loggers write where nothing was measured.
GAP_CODES = (-99999, -9999, -999.9, -999, -99.9, -99, 999, 9999, 99999, 32767, -32768)
FAR_AWAY = 3  # a code is proposed as a gap if it is this many times the largest other value
LARGEST = np.float64(np.finfo(np.float32).max)
EXACT = 2**53  # whole numbers above are rounded in float64
MOST_NAMES = 6  # of a list in a sentence
MOST_CLASSES = 20  # different cells of a column of words, if it names states
FEW_WORDS = 0.1  # share of words among numbers that can be gaps whatever the column
MOST_GAP_WORDS = 5  # kinds of other words in a column of numbers that become gaps
SAMPLE_ROWS = 2_000  # rows by which a column is told to hold numbers

DIGITS = {
    ord(digit): str(place % 10)
    for place, digit in enumerate("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹０１２３４５６７８９")
}
PLAIN = DIGITS | {0x2212: "-", 0xA0: " ", 0x202F: " ", 0x2009: " "}
# Opening parenthesis, what stands before the number, the number, what stands behind it.
NUMBER = re.compile(
    r"^(?P<open>\()?(?P<before>[^\d.,()]*?)(?P<digits>[.,]?\d[\d.,' ]*(?:[eEdD][-+]?\d+)?)"
    r"(?P<after>[^\d()]*)(?P<close>\))?$"
)
DATE_OR_CLOCK = r"\d[-/:]\d"


@dataclass
class NumberStyle:
    """What is known about the numbers of a file before a column is read.

    Attributes:
        decimal: The sign before a fraction, if the user names it.
        na: Words and numbers that are gaps, in small letters, besides `GAP_WORDS`.
        separator: What separates the fields of the text, None for other files.
        signs: Decimal signs that are certain in some column.
    """

    decimal: str | None = None
    na: frozenset[str] = frozenset()
    separator: str | None = None
    signs: set[str] = field(default_factory=set)

    @property
    def gaps(self) -> Collection[str]:
        """All words that are gaps."""
        return GAP_WORDS | self.na

    @property
    def codes(self) -> list[float]:
        """The numbers among the words that are gaps."""
        return [float(word) for word in self.na if re.fullmatch(r"-?\d+(\.\d+)?", word)]


def is_text(column: pd.Series) -> bool:
    """Whether a column holds text or objects, not numbers or times."""
    return not (
        pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column)
    ) or isinstance(column.dtype, pd.CategoricalDtype)


def plain_text(column: pd.Series) -> pd.Series:
    """Cells as plain text without blanks at the ends; "" where there is nothing."""
    text = column.astype(object).where(column.notna(), "").astype(str)
    text = text.str.strip()
    odd = text.str.contains(r"[^\x00-\x7f]", regex=True)
    return text.where(~odd, text.str.translate(PLAIN).str.strip()) if odd.any() else text


def some(names: Iterable[object], most: int = MOST_NAMES) -> str:
    """A list in words, only the first few if there are many."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(name if len(name) < 60 else f"{name[:57]}…" for name in listed[:most]) + more


def holds_numbers(column: pd.Series, gaps: Collection[str] = GAP_WORDS) -> bool:
    """Whether at least half of the cells of a column are numbers."""
    if not is_text(column):
        return column.dtype.kind in "fiub"
    text = plain_text(column.iloc[:SAMPLE_ROWS])
    text = text[~text.str.lower().isin(gaps)]
    if not len(text):
        return False
    numbers = text.str.match(NUMBER) & ~text.str.contains(DATE_OR_CLOCK, regex=True)
    return bool(numbers.mean() >= 0.5)


def certain_sign(column: pd.Series) -> str | None:
    """The decimal sign of a column of text, where its cells leave no doubt."""
    text = plain_text(column.iloc[:300])
    found = text.str.extract(r"^[^\d]*\d*([.,])(\d+)[^\d]*$").dropna()
    sure = found[found[1].str.len() != 3]
    return str(sure[0].iloc[0]) if len(sure) else None


def read_numbers(
    column: pd.Series, where: str, style: NumberStyle, notes: list[str]
) -> np.ndarray | None:
    """Read a column as numbers.

    Args:
        column: The column `[T]`.
        where: What errors call the table.
        style: What is known about the numbers of the file.
        notes: Takes a sentence on whatever was understood.

    Returns:
        Float64 `[T]`, NaN for gaps; None if the column holds words.

    Raises:
        DataError: Some cells can be read in two ways, or in none.
    """
    name = f"{where}: column {column.name!r}"
    if not is_text(column):
        if column.dtype.kind in "cmM":
            return None
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return check_range(np.where(np.isin(values, style.codes), np.nan, values), name, notes)
    text = plain_text(column)
    small = text.str.lower()
    gap = small.isin(style.gaps).to_numpy()
    quick = pd.to_numeric(text.mask(gap), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if (gap | np.isfinite(quick)).all() and not _dots_may_be_thousands(text[~gap], style):
        return check_range(np.where(np.isin(quick, style.codes), np.nan, quick), name, notes)
    words = small[~gap]
    if words.isin(SWITCHES).all():
        pairs = {word: SWITCHES[word] for word in words.unique()}
        said = ", ".join(f"{word} as {value:g}" for word, value in pairs.items())
        notes.append(f"Column {column.name!r}: {said}.")
        return np.asarray(small.map(SWITCHES), dtype=np.float64)
    return _read_written(text, ~gap, name, column.name, style, notes)


def _dots_may_be_thousands(text: pd.Series, style: NumberStyle) -> bool:
    """Whether numbers such as 1.234 stand in a file that has decimal commas."""
    european = "," in style.signs or style.separator == ";"
    asked = style.decimal == "," or (style.decimal is None and european)
    return bool(asked and len(text) and text.str.fullmatch(r"-?[1-9]\d{0,2}(\.\d{3})+").all())


def _read_written(
    text: pd.Series, given: np.ndarray, name: str, column: object, style: NumberStyle, notes: list
) -> np.ndarray | None:
    """Numbers with signs of thousands, units, currencies or words between them."""
    cells = text[given]
    parts = cells.str.extract(NUMBER)
    strange = parts["before"].str.contains(r"[<>~≤≥A-Za-z\[{]", regex=True, na=False)
    wrong = parts["digits"].isna() | strange
    if wrong.mean() > 0.5 or cells.str.contains(DATE_OR_CLOCK, regex=True).mean() > 0.5:
        return None
    words = cells[wrong].value_counts()
    good = parts[~wrong].fillna("")
    before, after = good["before"].str.strip(), good["after"].str.strip()
    marks = (before.str.strip("-+ ") + "…" + after.where(after != "-", "")).unique()
    if (len(marks) > 1 or wrong.mean() > FEW_WORDS) and cells.nunique() <= MOST_CLASSES:
        return None
    if len(words) > MOST_GAP_WORDS or any(re.search(r"\d", str(word)) for word in words.index):
        raise DataError(
            f"{name} holds numbers and also {some(words.index)}: na={words.index[0]!r} (--na) "
            f"takes such cells as gaps, ignore={column!r} (--ignore) leaves the column out."
        )
    if len(marks) > 1:
        raise DataError(
            f"{name} mixes numbers with different signs or units ({some(marks)}): write them "
            f"alike, or leave the column out with ignore={column!r} (--ignore)."
        )
    negative = ((good["open"] == "(") & (good["close"] == ")")) | (after == "-")
    digits = good["digits"].str.replace(r"(?<=\d)[ '](?=\d{3})", "", regex=True).str.strip()
    digits = digits.str.replace("[dD]", "e", regex=True)
    sign = style.decimal or _find_sign(digits, name, style)
    digits = digits.str.replace("," if sign == "." else ".", "", regex=False)
    numbers = pd.to_numeric(digits.str.replace(",", ".", regex=False), errors="coerce")
    if numbers.isna().any():
        cell = cells[numbers.index[numbers.isna()][0]]
        raise DataError(
            f"{name} holds {cell!r}, which is no number with the decimal sign {sign!r}: name the "
            f"sign with decimal= (--decimal), or the word with na={cell!r} (--na)."
        )
    for word, count in words.items():
        notes.append(f"Column {column!r}: {count:,} cells {str(word)!r} are gaps (na=).")
    if negative.any():
        notes.append(f"Column {column!r}: numbers in parentheses or before a minus are negative.")
    if marks[0] != "…":
        notes.append(f"Column {column!r}: {marks[0].strip('…')!r} beside every number was removed.")
    if digits.ne(good["digits"]).any() or sign == ",":
        first = numbers.index[0]
        notes.append(f"Column {column!r}: {cells[first]!r} was read as {numbers[first]:.12g}.")
    minus = negative | before.str.contains("-", regex=False)
    values = numbers.where(~minus, -numbers).reindex(text.index).to_numpy(np.float64)
    return check_range(np.where(np.isin(values, style.codes), np.nan, values), name, notes)


def _find_sign(digits: pd.Series, name: str, style: NumberStyle) -> str:
    """The decimal sign: by cells that leave one reading, else by other columns of the file."""
    comma = digits.str.contains(",", regex=False)
    point = digits.str.contains(".", regex=False)
    both = digits[comma & point]
    if len(both):
        return "." if (both.str.rfind(".") > both.str.rfind(",")).all() else ","
    if comma.any() and point.any():
        for sign, others in ((",", digits[point]), (".", digits[comma])):
            if others.str.fullmatch(r"[1-9]\d{0,2}([.,]\d{3})+").all():
                return sign
        raise DataError(
            f"{name} holds {digits[comma].iloc[0]!r} and {digits[point].iloc[0]!r}: write numbers "
            "with one decimal sign."
        )
    sign, other = (",", ".") if comma.any() else (".", ",")
    cells = digits[comma | point]
    if (cells.str.count(re.escape(sign)) > 1).any():
        return other
    if not len(cells) or not cells.str.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}").all():
        return sign
    if sign == "," and style.separator == ";" and "." not in style.signs:
        return sign
    if other in style.signs and sign not in style.signs:
        return other
    european = sign == "." and style.separator == ";"  # 1.234 is a thousand in many such files
    if sign in style.signs and other not in style.signs and not european:
        return sign
    raise DataError(
        f"{name} has three digits after every {sign!r} ({cells.iloc[0]!r}), which can be thousands "
        f"or a fraction: decimal={sign!r} (--decimal) is for fractions, {other!r} for thousands."
    )


def check_range(values: np.ndarray, name: str, notes: list[str]) -> np.ndarray:
    """Numbers `[T]` with infinite ones as gaps; refuse those beyond float32."""
    infinite = np.isinf(values)
    if infinite.any():
        values = np.where(infinite, np.nan, values)
        count = int(infinite.sum())
        notes.append(
            f"{name}: {count:,} infinite value{'s are gaps' if count > 1 else ' is a gap'}."
        )
    size = np.abs(values)
    wrong = np.flatnonzero(size > LARGEST)
    if len(wrong):
        raise DataError(
            f"{name} is {values[wrong[0]]:g} in row {wrong[0] + 1}, which is too large."
        )
    return values


def code_note(name: object, values: np.ndarray) -> str | None:
    """Propose a code such as -9999, far from all other values of a column, as a gap."""
    measured = values[~np.isnan(values)]
    if not len(measured):
        return None
    for code in GAP_CODES:
        if code not in (measured.min(), measured.max()):
            continue
        count, others = int((measured == code).sum()), measured[measured != code]
        if count > 1 and len(others) and abs(code) > FAR_AWAY * np.abs(others).max():
            return (
                f"Column {name!r} is {code} in {count:,} rows, far from its other values: "
                f"na={code} (--na) makes them gaps."
            )
    return None
