"""Text and sheets as frames: separator, header, units, footnotes and empty rows are found.

Only the first and last lines decide where the table is; pandas reads the rows between them.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sacm.data.dates import MONTHS, read_column
from sacm.data.numbers import GAP_WORDS, PLAIN, Reading, is_text, some
from sacm.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
HEAD_LINES, TAIL_LINES = 400, 60  # lines that are looked at to find the table
MOST_CELLS = 200  # cells of a row that are looked at
FITTING = 0.5  # share of the columns of values in which a row of the table has values
ALWAYS = 0.98  # share of rows in which a column always has a value
FEWEST_DATES = 5  # dates in a header that make a row a series
VALUE = re.compile(
    r"^[-+(<>$€£¥'\"?]*[.,]?\d|^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d|^q[1-4] |^(?:"
    + "|".join(MONTHS)
    + r")\.?[-/ ,]+\d",
    re.IGNORECASE,
)
DATE_AND_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d) +(\d\d:\d\d)")
Cells = list[str]


class Layout(NamedTuple):
    """Names of the columns, the first row of the body, and how many rows follow its end."""

    names: list[str]
    first: int
    last: int


def read_text(text: str, reading: Reading) -> pd.DataFrame:
    """Read delimited text; columns that hold anything but numbers are text.

    Raises:
        DataError: There is no table, or a row has more fields than the others.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    hint = re.match(r"sep=(.)\n", text)
    text = text[hint.end() :] if hint else text
    head = text[: _line_end(text, HEAD_LINES)].splitlines(keepends=True)
    separator = reading.separator = hint[1] if hint else _find_separator(head)
    if separator == " ":
        text = DATE_AND_CLOCK.sub(r"\1T\2", text)
        head = text[: _line_end(text, HEAD_LINES)].splitlines(keepends=True)
    rows, lines = _split(head, separator)
    tail_start = max(_line_start(text, TAIL_LINES), _line_end(text, lines[0] if lines else 1))
    tail_lines = text[tail_start:].splitlines(keepends=True)
    tail, tail_ends = _split(tail_lines, separator)
    layout = find_layout(rows, tail, reading)
    before = lines[layout.first - 1] if layout.first else 0
    stop = len(text)
    if layout.last:
        kept = tail_ends[-layout.last - 1] if len(tail_ends) > layout.last else 0
        stop = tail_start + sum(map(len, tail_lines[:kept]))
    elif len(tail) > 1 and not text.endswith("\n") and 1 < len(tail[-1]) < len(layout.names):
        stop = text.rfind("\n") + 1
        reading.note("The last line is cut off and was left out.")
    body = text[_line_end(text, before) : stop]
    return drop_empty(_read_body(body, layout.names, reading, before), reading)


def _line_end(text: str, count: int) -> int:
    """The position after so many lines."""
    position = 0
    for _ in range(count):
        found = text.find("\n", position)
        if found < 0:
            return len(text)
        position = found + 1
    return position


def _line_start(text: str, count: int) -> int:
    """The position before the last so many lines."""
    position = len(text)
    for _ in range(count + 1):
        position = text.rfind("\n", 0, position)
        if position < 0:
            return 0
    return position + 1


def _split(lines: Sequence[str], separator: str) -> tuple[list[Cells], list[int]]:
    """Rows of cells, and how many lines were read up to the end of each."""
    if separator == " ":
        lines = [re.sub(r"\s+", " ", line.strip()) for line in lines]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows, ends = [], []
    try:
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
    except csv.Error:  # a field longer than the module takes, or a quote that never ends
        pass
    return rows, ends


def _find_separator(lines: Sequence[str]) -> str:
    """The sign that splits lines into the most even number of whole cells."""
    sample = [line for line in lines if line.strip()]
    best, winner = (0.0, 0.0), " "
    for separator in SEPARATORS:
        rows = [row for row in _split(sample, separator)[0] if row]
        if not rows:
            continue
        width, count = Counter(map(len, rows)).most_common(1)[0]
        cells = [cell for row in rows[-200:] if len(row) == width for cell in row[:MOST_CELLS]]
        others = "".join(sign for sign in SEPARATORS if sign not in (separator, ","))
        whole = np.mean([not any(sign in cell for sign in others) for cell in cells])
        score = (round(float(count / len(rows) * whole), 1), float(width))
        if width > 1 and score > best:
            best, winner = score, separator
    if best[0] > 0:
        return winner
    blanks = [len(line.split()) for line in sample]
    return " " if len(blanks) > 1 and min(blanks[1:]) == max(blanks[1:]) > 1 else ","


def is_value(cell: str) -> bool:
    """Whether a cell looks like a number or a date."""
    return bool(VALUE.match(cell.strip().translate(PLAIN)))


def _is_gap_or_value(cell: str) -> bool:
    return is_value(cell) or cell.strip().lower() in GAP_WORDS


def _filled(row: Cells) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def find_layout(rows: list[Cells], tail: list[Cells], reading: Reading) -> Layout:
    """Find header and body among rows, by the columns in which most rows have values.

    Args:
        rows: The first rows.
        tail: The last rows, perhaps the same.
        reading: Takes notes on what was left out.
    """
    full = [row for row in rows if _filled(row)]
    if not full:
        raise DataError(f"{reading.where} is empty.")
    sample = full[1:] or full
    width = Counter(map(len, sample)).most_common(1)[0][0]
    columns = [
        [row[place] if place < len(row) else "" for row in sample]
        for place in range(min(width, MOST_CELLS))
    ]
    counts = [sum(map(is_value, column)) for column in columns]
    words = [sum(not _is_gap_or_value(cell) for cell in column) for column in columns]
    profile = [place for place, count in enumerate(counts) if count > words[place]]
    steady = [place for place in profile if counts[place] > ALWAYS * len(sample)]

    def share(row: Cells) -> float:
        """The share of the columns of values in which a row has values."""
        if not profile or not any(map(is_value, row[:MOST_CELLS])):
            return 0.0
        if steady and len(row) == width and all(is_value(row[place]) for place in steady):
            return 1.0  # a word in another column is a gap
        fitting = [place < len(row) and _is_gap_or_value(row[place]) for place in profile]
        return sum(fitting) / len(profile)

    head = full[0]
    # The first row is a header if it has words, or nothing, where all others have values.
    named = any(place >= len(head) or not is_value(head[place]) for place in steady)
    numbers = _filled(head)
    counts_up = [[str(k + start) for k in range(len(numbers))] for start in (0, 1)]
    named |= len(numbers) > 1 and numbers in counts_up
    nameless = bool(steady) and (len(head) <= steady[0] or not head[steady[0]].strip())
    found = [place for place, row in enumerate(rows) if _filled(row) and share(row) > FITTING]
    found = [place for place in found if not (named and rows[place] is head)]
    if not found:
        raise reading.error(
            f"there are no rows of numbers after {' '.join(full[0])[:60]!r}: name another file."
        )
    first = found[0]
    if len(found) > 1 and dated_cells(rows[first]):
        first += 1
    before = [row for row in rows[:first] if _filled(row)]
    least = max(min(2, width) - bool(nameless and first == 1), 0.5 * width - 1)
    heads = [row for row in before if len(_filled(row)) >= least][-3:]
    given = heads[0] if heads else []
    last = _count_footers(tail, share, steady)
    titles = [" ".join(_filled(row)) for row in before if row is not given]
    if titles:
        reading.note(f"Lines beside the header were left out: {some(titles)}.")
    if last:
        feet = filter(None, (" ".join(_filled(row)) for row in tail[-last:]))
        reading.note(f"Lines after the table were left out: {some(feet)}.")
    if not heads:
        reading.note("There is no header: columns are numbered.")
        return Layout([f"column {place + 1}" for place in range(width)], first, last)
    names = [re.sub(r"^(['\"])(.*)\1$", r"\2", cell.strip()) for cell in given]
    if len(names) == width - 1 == len(_filled(given)) and any(columns[-1]):
        body = [row[0] for row in rows[first:] if row]
        counted = body == [str(place + 1) for place in range(len(body))]
        if counted or not any(map(is_value, body)):  # as R writes tables
            reading.note("The header has no name for the first column, which names the rows.")
            names = ["", *names]
    return Layout(
        _name_columns(names + [""] * (width - len(names)), reading), first=first, last=last
    )


def _count_footers(
    tail: list[Cells], share: Callable[[Cells], float], steady: Sequence[int]
) -> int:
    """How many of the last rows are footnotes or totals."""
    count = 0
    for row in reversed(tail):
        unsteady = bool(steady) and (len(row) <= steady[0] or not is_value(row[steady[0]]))
        if _filled(row) and share(row) > FITTING and not unsteady:
            break
        count += 1
    empty = not any(_filled(row) for row in tail[len(tail) - count :])
    return 0 if count == len(tail) or empty else count


def _name_columns(given: list[str], reading: Reading) -> list[str]:
    """Every column with a name of its own."""
    names: list[str] = []
    for place, name in enumerate(given):
        new, number = name, given[:place].count(name) + 1
        while new and new in names:
            new, number = f"{name}.{number}", number + 1
        if new != name:
            reading.note(f"Another column {name!r} is called {new!r}.")
        names.append(new)
    nameless = [place for place, name in enumerate(names) if not name]
    for place in nameless:
        names[place] = "" if place == 0 and len(nameless) == 1 else f"Unnamed: {place}"
    return names


def dated_cells(cells: Sequence[str]) -> list[str]:
    """The dates of a header in which they rise; none if it is no header of dates."""
    values = [cell.strip() for cell in cells if is_value(cell)]
    if len(values) < max(FEWEST_DATES, len(cells) - 6):
        return []
    shapes = [re.sub(r"\d+", "0", cell) for cell in values]
    usual = Counter(shapes).most_common(1)[0][0]
    dated = [cell for cell, shape in zip(values, shapes, strict=True) if shape == usual]
    years = all(re.fullmatch(r"(1[5-9]|20)\d\d", cell) for cell in dated)
    short = usual == "0" and max(map(len, dated)) < 6  # numbers that only count
    if len(dated) < max(FEWEST_DATES, 0.9 * len(values)) or (short and not years):
        return []
    for times in read_column(pd.Series(dated, dtype=object, name="year"), named=True):
        index = times.stamps
        if index is not None and index.is_monotonic_increasing and index.is_unique:
            return dated
    return []


def _read_body(text: str, names: list[str], reading: Reading, lines_before: int) -> pd.DataFrame:
    """The rows between header and footnotes, by pandas."""
    separator = str(reading.separator)
    if not text.strip():
        raise DataError(f"{reading.where} has a header but no rows.")
    quoted_by = "'" if re.match(r"\s*'[^']*'\s*(?:[,;\t|\n]|$)", text) else '"'
    how: dict[str, Any] = {
        "sep": r"\s+" if separator == " " else separator,
        "header": None,
        "names": range(len(names)),
        "index_col": False,
        "keep_default_na": False,
        "na_values": [""],
        "skipinitialspace": True,
        "quotechar": quoted_by,
        "low_memory": False,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # With semicolons 1.234 may be a thousand, so numbers are read later.
            frame = pd.read_csv(io.StringIO(text), dtype=str if separator == ";" else None, **how)
            frame = _keep_zeros(frame, text, how)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise _field_error(text, names, reading, lines_before) from error
    if separator == ";":
        for place in frame.columns:
            cells = frame[place]
            if not cells.str.contains(r"[.,]|^0\d", regex=True, na=False).any():
                numbers = pd.to_numeric(cells, errors="coerce")
                if numbers.notna().equals(cells.notna()):
                    frame[place] = numbers
    frame.columns = pd.Index(names)
    return frame


def _keep_zeros(frame: pd.DataFrame, text: str, how: dict[str, Any]) -> pd.DataFrame:
    """Keep whole numbers with leading zeros, such as 007, as text: they are names."""
    whole = [place for place in frame.columns if frame[place].dtype.kind == "i"]
    start = text[: _line_end(text, HEAD_LINES)]
    if not whole or not re.search(r"(?:^|[,;\t| \"])0\d+(?:[,;\t| \"]|$)", start, re.MULTILINE):
        return frame
    cells = pd.read_csv(io.StringIO(text), dtype=str, usecols=whole, **how)
    for place in whole:
        if cells[place].str.match(r"0\d", na=False).any():
            frame[place] = cells[place]
    return frame


def _field_error(text: str, names: list[str], reading: Reading, lines_before: int) -> DataError:
    """Name the line that has more fields than the header."""
    separator = str(reading.separator)
    rows, ends = _split(text.splitlines(keepends=True), separator)
    for row, end in zip(rows, ends, strict=True):
        if len(row) > len(names):
            return reading.error(
                f"line {lines_before + end} has {len(row)} fields where the header has "
                f"{len(names)}: put a cell that holds {separator!r} in quotes."
            )
    return reading.error("a quote is opened and never closed, so there is no table.")


def read_cells(rows: list[Cells], reading: Reading) -> pd.DataFrame:
    """Read rows of cells that are text, such as those of a sheet."""
    layout = find_layout(rows, rows[-TAIL_LINES:], reading)
    width = len(layout.names)
    body = [
        [*row[:width], *[""] * (width - len(row))]
        for row in rows[layout.first : len(rows) - layout.last]
    ]
    frame = pd.DataFrame(body, columns=layout.names, dtype=object).replace("", None)
    return drop_empty(frame, reading)


def drop_empty(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """The table without empty rows, repeated headers, and nameless columns without a value."""
    empty = again = np.ones(len(frame), dtype=bool)
    for name in frame.columns:
        if empty.any():
            empty = empty & frame[name].isna().to_numpy()
        if again.any():
            again = again & (is_text(frame[name]) and (frame[name] == name).to_numpy())
    for rows, what in ((empty, "Empty rows"), (again, "Repeated headers")):
        if rows.any():
            reading.note(f"{what} were left out: {int(rows.sum()):,}.")
    nameless = [name for name in frame.columns if not name or str(name).startswith("Unnamed: ")]
    hollow = [name for name in nameless if frame[name].isna().all()]
    return frame[~(empty | again)].drop(columns=hollow).reset_index(drop=True)
