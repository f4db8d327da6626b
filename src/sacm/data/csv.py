"""Text and sheets as frames: separator, header, units, footnotes and empty rows are found.

Only the first and last lines decide where the table is; pandas reads the rows between them.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sacm.data.dates import MONTHS, read_column
from sacm.data.numbers import GAP_WORDS, PLAIN, some
from sacm.errors import DataError

SEPARATORS = (",", ";", "\t", "|")
HEAD_LINES, TAIL_LINES = 400, 60  # lines that are looked at to find the table
MOST_CELLS = 200  # cells of a row that are looked at
FITTING = 0.5  # share of the columns of values in which a row of the table has values
ALWAYS = 0.98  # share of rows in which a column always has a value
FEWEST_DATES = 5  # dates in a header that make a row a series
VALUE = re.compile(
    r"^[-+(<>$€£¥'\"]*[.,]?\d|^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d|^q[1-4] |^(?:"
    + "|".join(MONTHS)
    + r")\.?[-/ ,]+\d",
    re.IGNORECASE,
)
DATE_AND_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d) +(\d\d:\d\d)")
Cells = list[str]


@dataclass(frozen=True)
class Layout:
    """Where the table is among rows of cells.

    Attributes:
        names: Names of the columns.
        first: The first row of the body.
        last: The number of rows of the tail that are no body.
        notes: What was left out.
    """

    names: list[str]
    first: int
    last: int
    notes: tuple[str, ...]


def read_text(text: str, where: str) -> tuple[pd.DataFrame, str, tuple[str, ...]]:
    """Read delimited text.

    Args:
        text: The whole text.
        where: What errors call it.

    Returns:
        The frame (text where a column holds anything but numbers), the separator, and notes.

    Raises:
        DataError: There is no table, or a row has more fields than the others.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    hint = re.match(r"sep=(.)\n", text)
    text = text[hint.end() :] if hint else text
    head_end = _line_end(text, HEAD_LINES)
    head = text[:head_end].splitlines(keepends=True)
    separator = hint[1] if hint else _find_separator(head)
    if separator == " ":
        text = DATE_AND_CLOCK.sub(r"\1T\2", text)
        head = text[: _line_end(text, HEAD_LINES)].splitlines(keepends=True)
    rows, lines = _split(head, separator)
    tail_start = max(_line_start(text, TAIL_LINES), _line_end(text, lines[0] if lines else 1))
    tail_lines = text[tail_start:].splitlines(keepends=True)
    tail, tail_ends = _split(tail_lines, separator)
    layout = find_layout(rows, tail, where)
    start = _line_end(text, lines[layout.first - 1] if layout.first else 0)
    kept = tail_ends[-layout.last - 1] if layout.last and len(tail_ends) > layout.last else None
    stop = len(text)
    if layout.last:
        stop = tail_start + sum(map(len, tail_lines[:kept])) if kept else tail_start
    cut = tail and not text.endswith("\n") and 1 < len(tail[-1]) < len(layout.names)
    cut_notes: tuple[str, ...] = ()
    if cut and not layout.last and len(tail) > 1:
        stop = text.rfind("\n") + 1
        cut_notes = ("The last line is cut off and was left out.",)
    frame = _read_body(text[start:stop], layout.names, separator, where, lines[layout.first - 1])
    frame, notes = drop_hollow(frame)
    return frame, separator, (*layout.notes, *cut_notes, *notes)


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
        return [line.split() for line in lines], list(range(1, len(lines) + 1))
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


def find_layout(rows: list[Cells], tail: list[Cells], where: str) -> Layout:
    """Find header and body among rows, by the columns in which most rows have values.

    Args:
        rows: The first rows.
        tail: The last rows, perhaps the same.
        where: What errors call the table.
    """
    full = [row for row in rows if any(cell.strip() for cell in row)]
    if not full:
        raise DataError(f"{where} is empty.")
    sample = full[1:] or full
    width = Counter(map(len, sample)).most_common(1)[0][0]
    counts = {
        place: sum(place < len(row) and is_value(row[place]) for row in sample)
        for place in range(min(width, MOST_CELLS))
    }
    words = {
        place: sum(
            place < len(row) and bool(row[place].strip()) and not _is_gap_or_value(row[place])
            for row in sample
        )
        for place in counts
    }
    profile = [place for place, count in counts.items() if count > words[place]]
    steady = [place for place in profile if counts[place] > ALWAYS * len(sample)]

    def share(row: Cells) -> float:
        if not profile or not any(map(is_value, row[:MOST_CELLS])):
            return 0.0
        if steady and len(row) == width and all(is_value(row[place]) for place in steady):
            return 1.0  # a word in another column is a gap
        fitting = [place < len(row) and _is_gap_or_value(row[place]) for place in profile]
        return sum(fitting) / len(profile)

    head = full[0]
    # The first row is a header if it has words, or nothing, where all others have values.
    named = any(
        place >= len(head)
        or head[place].strip().lower() in ("", *GAP_WORDS)
        or not is_value(head[place])
        for place in steady
    )
    numbers = [cell.strip() for cell in head if cell.strip()]
    first_number = next(iter(numbers), "")
    if len(numbers) > 1 and first_number in ("0", "1"):  # columns that are numbered
        start = int(first_number)
        named |= numbers == [str(place) for place in range(start, start + len(numbers))]
    nameless = bool(steady) and (len(head) <= steady[0] or not head[steady[0]].strip())
    found = [place for place, row in enumerate(rows) if row in full and share(row) > FITTING]
    found = [place for place in found if not (named and rows[place] is head)]
    if not found:
        raise DataError(
            f"{where}: there are no rows of numbers after {' '.join(full[0])[:60]!r}: "
            "name another file, or a sheet with sheet= (--sheet)."
        )
    first = found[0]
    if len(found) > 1 and dated_cells(rows[first]):
        first += 1
    before = [row for row in rows[:first] if any(cell.strip() for cell in row)]
    least = max(min(2, width) - bool(nameless and first == 1), 0.5 * width - 1)
    heads = [row for row in before if sum(bool(cell.strip()) for cell in row) >= least][-3:]
    given = heads[0] if heads else []
    last = _count_footers(tail, share, steady)
    notes = []
    titles = [" ".join(filter(str.strip, row)) for row in before if row is not given]
    if titles:
        notes.append(f"Lines beside the header were left out: {some(titles)}.")
    if last:
        feet = [" ".join(filter(str.strip, row)) for row in tail[-last:]]
        notes.append(f"Lines after the table were left out: {some(filter(None, feet))}.")
    if not heads:
        notes.append("There is no header: columns are numbered.")
    body_width = max(width, len(given))
    names = [cell.strip() for cell in given] + [""] * (body_width - len(given))
    return Layout(_name_columns(names, notes, bool(heads)), first, last, tuple(notes))


def _is_gap_or_value(cell: str) -> bool:
    return is_value(cell) or cell.strip().lower() in GAP_WORDS


def _count_footers(tail: list[Cells], share: object, steady: list[int]) -> int:
    """How many of the last rows are footnotes or totals."""
    count = 0
    for row in reversed(tail):
        held = [cell for cell in row if cell.strip()]
        unsteady = bool(steady) and (len(row) <= steady[0] or not is_value(row[steady[0]]))
        if held and not (callable(share) and share(row) <= FITTING) and not unsteady:
            break
        count += 1
    empty = all(not any(cell.strip() for cell in row) for row in tail[len(tail) - count :])
    return 0 if count == len(tail) or empty else count


def _name_columns(given: list[str], notes: list[str], named: bool) -> list[str]:
    """Every column with a name of its own."""
    names: list[str] = []
    for place, name in enumerate(given):
        name = name or ("" if named else f"column {place + 1}")
        new = name
        while new and new in names:
            new = f"{name}.{given[:place].count(name) + 1 + (new != name)}"
        if new != name:
            notes.append(f"Another column {name!r} is called {new!r}.")
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
    size = Counter(map(len, values)).most_common(1)[0][0]
    dated = [cell for cell in values if len(cell) == size]
    years = all(re.fullmatch(r"(1[5-9]|20)\d\d", cell) for cell in dated)
    if len(dated) < max(FEWEST_DATES, 0.9 * len(values)) or (size < 6 and not years):
        return []
    for times in read_column(pd.Series(dated, dtype=object, name="year"), named=True):
        index = times.stamps
        if index is not None and index.is_monotonic_increasing and index.is_unique:
            return dated
    return []


def _read_body(
    text: str, names: list[str], separator: str, where: str, lines_before: int
) -> pd.DataFrame:
    """The rows between header and footnotes, by pandas."""
    if not text.strip():
        raise DataError(f"{where} has a header but no rows.")
    quoted_by = "'" if re.match(r"\s*'[^']*'\s*(?:[,;\t|\n]|$)", text) else '"'
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                sep=r"\s+" if separator == " " else separator,
                header=None,
                names=range(len(names)),
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                quotechar=quoted_by,
                low_memory=False,
                dtype=str if separator == ";" else None,  # 1.234 may be a thousand there
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise _field_error(text, names, separator, where, lines_before) from error
    if separator == ";":
        _read_whole_numbers(frame)
    _keep_zeros(frame, text, separator)
    frame.columns = [name.strip("'") if quoted_by == "'" else name for name in names]
    return frame


def _read_whole_numbers(frame: pd.DataFrame) -> None:
    """Make numbers of columns of text in which no cell has a sign of fractions or thousands."""
    for place in frame.columns:
        cells = frame[place]
        if not cells.str.contains(r"[.,]", regex=True, na=False).any():
            numbers = pd.to_numeric(cells, errors="coerce")
            if numbers.notna().equals(cells.notna()):
                frame[place] = numbers


def _keep_zeros(frame: pd.DataFrame, text: str, separator: str) -> None:
    """Keep whole numbers with leading zeros, such as 007, as text: they are names."""
    sign = re.escape(separator)
    start = text[: _line_end(text, HEAD_LINES)]
    if separator == " " or not re.search(rf'(?:^|{sign})"?0\d+"?(?:{sign}|$)', start, re.MULTILINE):
        return
    for place in frame.columns:
        if frame[place].dtype.kind != "i":
            continue
        raw = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            usecols=[place],
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
        )
        cells = raw.iloc[:, 0]
        if cells.str.match(r"0\d").any() and len(cells) == len(frame):
            frame[place] = cells


def _field_error(
    text: str, names: list[str], separator: str, where: str, lines_before: int
) -> DataError:
    """Name the line that has more fields than the header."""
    rows, ends = _split(text.splitlines(keepends=True), separator)
    for row, end in zip(rows, ends, strict=True):
        if len(row) > len(names):
            return DataError(
                f"{where}: line {lines_before + end} has {len(row)} fields where the header has "
                f"{len(names)}: put a cell that holds {separator!r} in quotes."
            )
    return DataError(f"{where} cannot be read as a table: a quote is opened and never closed.")


def read_cells(rows: list[Cells], where: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read rows of cells that are text, such as those of a sheet."""
    layout = find_layout(rows, rows[-TAIL_LINES:], where)
    width = len(layout.names)
    body = [
        [*row[:width], *[""] * (width - len(row))]
        for row in rows[layout.first : len(rows) - layout.last]
    ]
    frame = pd.DataFrame(body, columns=layout.names, dtype=object).replace("", None)
    frame, notes = drop_hollow(frame)
    return frame, (*layout.notes, *notes)


def drop_hollow(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table without empty rows, repeated headers, and nameless columns without a value."""
    notes = []
    texts = [name for name in frame.columns if frame[name].dtype.kind not in "iufbM"]
    count = len(frame)
    if texts:
        frame = frame[~_is_empty(frame)]
        if len(frame) < count:
            notes.append(f"{count - len(frame):,} empty rows were left out.")
        again = pd.Series(True, index=frame.index)
        for name in texts:
            again &= frame[name].astype(str) == str(name)
        if again.any() and len(texts) == len(frame.columns):
            frame = frame[~again]
            notes.append(f"{int(again.sum()):,} repeated headers were left out.")
    elif frame.isna().any(axis=None):
        frame = frame[~_is_empty(frame)]
        if len(frame) < count:
            notes.append(f"{count - len(frame):,} empty rows were left out.")
    nameless = [name for name in frame.columns if not name or str(name).startswith("Unnamed: ")]
    empty = [name for name in nameless if frame[name].isna().all()]
    return frame.drop(columns=empty).reset_index(drop=True), notes


def _is_empty(frame: pd.DataFrame) -> pd.Series:
    """Which rows hold nothing at all."""
    empty = pd.Series(True, index=frame.index)
    for name in frame.columns:
        empty &= frame[name].isna()
        if not empty.any():
            break
    return empty
