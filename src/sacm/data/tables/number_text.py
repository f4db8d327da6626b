"""Numbers as people write them: words for gaps, percent, thousands, decimal signs.

What was taken in one of two possible ways is said in a note, kept in `frame.attrs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

Decimal = Literal[",", "."]
NOTES = "sacm_notes"  # the attribute of a frame under which its notes are kept
# Only in columns of numbers: elsewhere these may be names.
GAPS = ("-", "--", "n/a", "#n/a", "#na", "<na>", "missing", "#value!", "#div/0!", "#ref!", "#num!")
POINT_ROWS = 1000  # to see how points are used
SPACES = " \u00a0\u202f'’"
_PERCENT = re.compile(r"\s*[-+]?[\d.,]+\s*%\s*")
_NUMBER = re.compile(r"\s*[-+]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")
_GROUPED = re.compile(r"\s*[-+]?[1-9]\d{0,2}\.\d{3}\s*")
_SMALL = re.compile(r"\s*[-+]?\d{1,3}\s*")


def add_note(frame: pd.DataFrame, note: str) -> None:
    """Keep a note on how a frame was read."""
    frame.attrs[NOTES] = (*frame.attrs.get(NOTES, ()), note)


def take_notes(frame: pd.DataFrame) -> tuple[str, ...]:
    """The notes on how a frame was read, which is then without them."""
    notes: tuple[str, ...] = frame.attrs.pop(NOTES, ())
    return notes


def tidy_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Text columns that are numbers but for words for gaps, or for percent signs, without these."""
    import pandas as pd

    result = frame.copy(deep=False)
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            continue
        known = column.dropna()
        if not len(known) or not known.map(lambda cell: isinstance(cell, str)).all():
            continue
        gaps = known.str.strip().str.lower().isin(GAPS)
        rest = known[~gaps]
        if not len(rest):
            continue
        percent = rest.map(lambda cell: _PERCENT.fullmatch(cell) is not None).all()
        numeric = gaps.any() and rest.map(lambda cell: _NUMBER.fullmatch(cell) is not None).all()
        if percent:
            first = rest.iloc[0].strip()
            add_note(result, f"Column {name!r} is in percent: {first} was read as {first[:-1]}.")
            rest = rest.str.replace("%", "", regex=False).str.strip()
        if percent or numeric:
            result[name] = as_numbers(rest.reindex(column.index))
    return result


def as_numbers(column: pd.Series) -> pd.Series:
    """A column of text as numbers, or as it is if one of its cells is none."""
    import pandas as pd

    try:
        found: pd.Series = pd.to_numeric(column)
    except ValueError:
        return column
    return found


def convert_numbers(frame: pd.DataFrame, decimal: Decimal) -> pd.DataFrame:
    """Columns of text as numbers, if every cell is one with this decimal sign.

    Thousands are separated by the other sign, by spaces or by apostrophes.
    """
    import pandas as pd

    thousands = "." if decimal == "," else ","
    apart = rf"[\{thousands}{SPACES}]"
    whole = rf"(?:\d{{1,3}}(?:{apart}\d{{3}})+|\d+)"
    number = rf"\s*[-+]?(?:{whole}(?:\{decimal}\d*)?|\{decimal}\d+)(?:[eE][-+]?\d+)?\s*"
    result = frame.copy(deep=False)
    for name in frame.columns:
        column = frame[name]
        known = column.dropna()
        if (
            pd.api.types.is_numeric_dtype(column)
            or not known.map(lambda cell: isinstance(cell, str)).all()
        ):
            continue
        if len(known) and known.str.fullmatch(number).all():
            plain = column.str.replace(apart, "", regex=True)
            result[name] = pd.to_numeric(plain.str.replace(decimal, ".", regex=False))
    return result


def note_points(frame: pd.DataFrame, start: pd.DataFrame, delimiter: str) -> None:
    """Say where a decimal point may separate thousands.

    `10.844` among whole numbers below 1,000, or in a file with semicolons where all numbers look
    like it, may be ten thousand or ten.

    Args:
        frame: The table as it was read; it gets the note.
        start: Its first rows as text.
        delimiter: What separates its fields.
    """
    for name in frame.select_dtypes(include="float64").columns:
        cells = start[name].dropna()
        grouped = cells.map(lambda cell: _GROUPED.fullmatch(cell) is not None)
        small = cells.map(lambda cell: _SMALL.fullmatch(cell) is not None)
        if grouped.any() and (grouped | small).all() and (small.any() or delimiter == ";"):
            add_note(
                frame,
                f"Column {name!r} has numbers such as {cells[grouped].iloc[0].strip()}, whose "
                "point was taken for a decimal one: decimal=',' takes it to separate thousands.",
            )


def looks_like_decimal_comma(text: str) -> bool:
    """Whether `text` is a number written with a decimal comma, with points for thousands or not."""
    return re.fullmatch(r"\s*[-+]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+\s*", text) is not None


def looks_like_thousands(text: str) -> bool:
    """Whether `text` is a number whose commas may separate thousands, such as 10,844."""
    return re.fullmatch(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?\s*", text) is not None


def looks_spaced(text: str) -> bool:
    """Whether `text` is a number with spaces, apostrophes or several points between thousands."""
    spaced = rf"\s*[-+]?[1-9]\d{{0,2}}([{SPACES}]\d{{3}})+([.,]\d+)?\s*"
    points = r"\s*[-+]?[1-9]\d{0,2}(\.\d{3}){2,}\s*"
    return re.fullmatch(rf"{spaced}|{points}", text) is not None
