"""A text as a frame: separator, header, units, footnotes and empty rows are found.

Only the first and last lines decide where the table is; pandas reads the rows between.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import pandas as pd

from sacm.data.columns import GAP_WORDS, PLAIN, Reading, flag, is_text, part_of, some
from sacm.data.times import MONTHS, read_column
from sacm.errors import DataError

MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\xef\xbb\xbf": "utf-8-sig"}
MARKS |= dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "utf-16")
CODE_PAGES = ("shift_jis", "gb18030", "euc_kr", "big5", "cp1251", "cp1253", "cp1255", "cp1256")
BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")  # bytes that do not occur in text
FOREIGN_RUN = 2  # bytes above 127 in a row that Western European text has at most
SEPARATORS = (",", ";", "\t", "|")
HEAD_LINES, TAIL_LINES = 400, 60  # lines that are looked at to find the table
MOST_CELLS = 200  # cells of a row that are looked at
FITTING = 0.5  # share of the columns of values in which a row of the table has values
ALWAYS = 0.98  # share of rows in which a column always has a value
FEWEST_DATES = 5  # dates in a header that make a row a series
FEWEST_NUMBERED = 9  # numbered columns that make a row a series
VALUE = re.compile(
    r"^[-+(<>$€£¥'\"?]*[.,]?\d|^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d|^q[1-4] |^(?:"
    + "|".join(MONTHS)
    + r")\.?[-/ ,]+\d",
    re.IGNORECASE,
)
TURNED_TIME, TURNED_VALUE = "time", "value"
Cells = list[str]


def decode(content: bytes, reading: Reading) -> str:
    """Text by the mark it begins with, as UTF-8, or as Western European; others are asked for."""
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), "")
    encoding = reading.options.encoding or marked
    start = content[:2000]
    if not encoding and BINARY.search(start):
        places = (start[::2].count(0), start[1::2].count(0))
        if 2 * max(places) < 0.4 * len(start):
            raise DataError(f"{reading.where} is not a text file: it holds binary data.")
        encoding = "utf-16-be" if places[0] > places[1] else "utf-16-le"
    try:
        return content.decode(encoding or "utf-8")
    except LookupError:
        raise DataError(f"encoding {encoding!r} is no code page: use one such as cp1251.") from None
    except UnicodeDecodeError:
        longest = max(map(len, re.findall(rb"[\x80-\xff]+", content)), default=0)
    if encoding or longest > FOREIGN_RUN:
        able = [page for page in CODE_PAGES if "\ufffd" not in content.decode(page, "replace")]
        likely = f", which may be {' or '.join(able[:4])}" if able else ""
        raise DataError(
            f"{reading.where} is not {encoding or 'utf-8'} text: {flag('encoding')} names its code "
            f"page{likely}."
        )
    reading.note(f"The text was read as cp1252 ({flag('encoding')}).")
    return content.decode("cp1252", errors="replace")


def read_text(text: str, reading: Reading) -> pd.DataFrame:
    """Read delimited text; columns that hold anything but numbers are text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    hint = re.match(r"sep=(.)\n", text)
    text = text[hint.end() :] if hint else text
    separator = hint[1] if hint else _find_separator(_first_lines(text))
    reading.separator = separator
    if separator == " ":  # a date and its clock are one cell
        text = re.sub(r"(\d{4}-\d\d-\d\d) +(\d\d:\d\d)", r"\1T\2", text)
    lines, last_lines = _first_lines(text), text.rsplit("\n", TAIL_LINES)[-TAIL_LINES:]
    rows, ends = _split(lines, separator)
    tail, tail_ends = _split(last_lines, separator)
    names, first, last = _find_layout(rows, tail, reading)
    if not last and last_lines[-1] and 1 < len(tail[-1]) < len(names):
        last = 1
        reading.note("The last line is cut off and was left out.")
    before = ends[first - 1] if first else 0
    after = last_lines[tail_ends[-last - 1] :] if last else []
    start = sum(len(line) + 1 for line in lines[:before])
    stop = len(text) - sum(len(line) + 1 for line in after)
    return _drop_empty(_read_body(text[start:stop], names, reading, before), reading)


def _first_lines(text: str) -> list[str]:
    return text.split("\n", HEAD_LINES)[:HEAD_LINES]


def _split(lines: Sequence[str], separator: str) -> tuple[list[Cells], list[int]]:
    """Rows of cells, and how many lines were read up to the end of each."""
    if separator == " ":
        lines = [re.sub(r"\s+", " ", line.strip()) for line in lines]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows, ends = [], []
    with suppress(csv.Error):  # a field longer than the module takes, or a quote that never ends
        for row in reader:
            rows.append(row)
            ends.append(reader.line_num)
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


def _kinds(rows: list[Cells], width: int) -> np.ndarray:
    """Cells `[N, width]`: 1 for a value, 0 for a gap, -1 for a word or a cell that is not there."""
    kinds = np.full((len(rows), width), -1)
    for row, cells in enumerate(rows):
        for place, cell in enumerate(cells[:width]):
            if is_value(cell):
                kinds[row, place] = 1
            elif cell.strip().lower() in GAP_WORDS:
                kinds[row, place] = 0
    return kinds


def _filled(row: Cells) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _find_layout(
    rows: list[Cells], tail: list[Cells], reading: Reading
) -> tuple[list[str], int, int]:
    """Names of the columns, rows before the table and after it (in `tail`).

    Rows of the table have values in the columns in which most rows have values.
    """
    full = [row for row in rows if _filled(row)]
    if not full:
        raise DataError(f"{reading.where} is empty.")
    sample, head = full[1:] or full, full[0]
    width = Counter(map(len, sample)).most_common(1)[0][0]
    kinds = _kinds(sample, min(width, MOST_CELLS))
    profile = (kinds == 1).sum(axis=0) > (kinds == -1).sum(axis=0)
    steady = np.flatnonzero((kinds == 1).mean(axis=0) > ALWAYS)

    def fits(rows: list[Cells]) -> np.ndarray:
        """Whether rows have values in most of those columns, or in all that always have some."""
        kinds = _kinds(rows, len(profile))
        usual = (kinds[:, profile] >= 0).sum(axis=1) > FITTING * profile.sum()
        always = (kinds[:, steady] == 1).all(axis=1) & bool(len(steady))
        return np.asarray((kinds == 1).any(axis=1) & (usual | always))

    # The first row is a header if it has words, or nothing, where all others have values.
    names = _filled(head)
    named = bool((_kinds([head], len(profile))[0, steady] != 1).any())
    named |= len(names) > 1 and names in [[str(k + s) for k in range(len(names))] for s in (0, 1)]
    body = [k for k in np.flatnonzero(fits(rows)).tolist() if not (named and rows[k] is head)]
    if not body:
        raise reading.error(
            f"there are no rows of numbers after {' '.join(head)[:60]!r}: name another file."
        )
    first = body[0] + (len(body) > 1 and bool(_dated_cells(rows[body[0]])))
    before = [row for row in rows[:first] if _filled(row)]
    nameless = first == 1 and len(steady) and not "".join(head[steady[0] : steady[0] + 1]).strip()
    least = max(min(2, width) - bool(nameless), 0.5 * width - 1)
    heads = [row for row in before if len(_filled(row)) >= least][-3:]
    given = heads[0] if heads else []
    good = fits(tail) & (_kinds(tail, len(profile))[:, steady[:1]] == 1).all(axis=1)
    last = int(good[::-1].argmax())
    last = last if any(map(_filled, tail[len(tail) - last :])) else 0
    beside = {"beside the header": [row for row in before if row is not given]}
    beside["after the table"] = [row for row in tail[len(tail) - last :] if _filled(row)]
    for where, left_out in beside.items():
        if left_out:
            texts = some(" ".join(_filled(row)) for row in left_out)
            reading.note(f"Lines {where} were left out: {texts}.")
    if not heads:
        reading.note("There is no header: columns are numbered.")
        return [f"column {place + 1}" for place in range(width)], first, last
    names = [re.sub(r"^(['\"])(.*)\1$", r"\2", cell.strip()) for cell in given]
    if len(names) == width - 1 == len(_filled(given)):
        starts = [row[0] for row in rows[first:] if row]
        counted = starts == [str(place + 1) for place in range(len(starts))]
        if counted or not any(map(is_value, starts)):  # as R writes tables
            reading.note("The header has no name for the first column, which names the rows.")
            names = ["", *names]
    return _name_columns(names + [""] * (width - len(names)), reading), first, last


def read_cells(rows: list[Cells], reading: Reading) -> pd.DataFrame:
    """Read rows of cells that are text, such as those of a sheet."""
    names, first, last = _find_layout(rows, rows[-TAIL_LINES:], reading)
    cells = [row[: len(names)] for row in rows[first : len(rows) - last]]
    return _drop_empty(pd.DataFrame(cells, columns=names, dtype=object).replace("", None), reading)


def _name_columns(given: list[str], reading: Reading) -> list[str]:
    """Every column with a name of its own."""
    names: list[str] = []
    for place, name in enumerate(given):
        names.append(f"{name}.{given[:place].count(name) + 1}" if name in given[:place] else name)
        if name and names[-1] != name:
            reading.note(f"Another column {name!r} is called {names[-1]!r}.")
    nameless = [place for place, name in enumerate(given) if not name]
    for place in nameless:
        names[place] = "" if nameless == [0] else f"Unnamed: {place}"
    return names


def _read_body(text: str, names: list[str], reading: Reading, lines_before: int) -> pd.DataFrame:
    """The rows between header and footnotes, by pandas."""
    separator = str(reading.separator)
    start = "\n".join(_first_lines(text))
    # With semicolons 1.234 may be a thousand, and 007 is a name: such numbers are read later.
    as_text = separator == ";" or re.search(r"(?:^|[,;\t| \"])0\d+(?:[,;\t| \"]|$)", start, re.M)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                dtype=str if as_text else None,
                sep=r"\s+" if separator == " " else separator,
                header=None,
                names=range(len(names)),
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=True,
                quotechar="'" if re.match(r"\s*'[^']*'\s*(?:[,;\t|\n]|$)", start) else '"',
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        rows, ends = _split(text.split("\n"), separator)
        for row, end in zip(rows, ends, strict=True):
            if len(row) > len(names):
                raise reading.error(
                    f"line {lines_before + end} has {len(row)} fields where the header has "
                    f"{len(names)}: put a cell that holds {separator!r} in quotes."
                ) from error
        raise reading.error("a quote is opened and never closed: there is no table.") from error
    kept = r"[.,]|^0\d" if separator == ";" else r"^0\d"
    for place in frame.columns if as_text else ():
        if not frame[place].str.contains(kept, regex=True, na=False).any():
            numbers = pd.to_numeric(frame[place], errors="coerce")
            if numbers.notna().equals(frame[place].notna()):
                frame[place] = numbers
    return frame.set_axis(names, axis=1)


def _drop_empty(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """The table without empty rows, repeated headers, and nameless columns without a value."""
    empty = np.ones(len(frame), dtype=bool)
    for name in frame.columns:
        if empty.any():
            empty &= frame[name].isna().to_numpy()
    # A header among the rows makes all columns text.
    again = np.full(len(frame), all(is_text(frame[name]) for name in frame.columns))
    for name in frame.columns if again.any() else ():
        again &= (frame[name] == name).to_numpy(bool, na_value=False)
    for rows, what in ((empty, "Empty rows"), (again, "Repeated headers")):
        if rows.any():
            reading.note(f"{what} were left out: {int(rows.sum()):,}.")
    nameless = [name for name in frame.columns if not name or str(name).startswith("Unnamed: ")]
    hollow = [name for name in nameless if frame[name].isna().all()]
    return frame[~(empty | again)].drop(columns=hollow).reset_index(drop=True)


def _dated_cells(cells: Sequence[str]) -> list[str]:
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
        if times.stamps.is_monotonic_increasing and times.stamps.is_unique:
            return dated
    return []


def turn_wide(
    frame: pd.DataFrame, ids: Sequence[str], time: Sequence[str], reading: Reading
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Make a table with times or months in its header, or a series a row, one series a column."""
    names = [str(name) for name in frame.columns]
    months = [name for name in names if name.lower() in MONTHS]
    if len(months) == 12 and not time and any(part_of(name) == "year" for name in names):
        reading.note("A calendar (a row a year, a column a month) was read as one series.")
        rest = [name for name in names if name not in months]
        return _melt(frame, rest, months).rename(columns={TURNED_TIME: "month"}), list(ids), []
    dated = _dated_cells(names)
    numbered = not dated and _is_numbered(frame, names)
    if time or not (dated or numbered):
        return frame, list(ids), list(time)
    if numbered and not ids and frame[names[-1]].notna().mean() > 0.5:
        raise reading.error(
            f"column {names[0]!r} names every row and the others are numbered: "
            f"{flag('id', names[0])} if a row is a series, {flag('ignore', names[0])} if a column "
            "is one."
        )
    labels = [name for name in names if not is_value(name)] if dated else names[:1]
    odd = [name for name in names if name not in (*labels, *dated)] if dated else []
    several = [name for name in labels if frame[name].nunique() > 1] or labels
    labels = [name for name in several if frame[name].dtype.kind != "f"] or several
    long = _melt(frame.fillna(dict.fromkeys(labels, "")), labels, dated or names[1:])
    how = ", with its times in the header" if dated else ""
    reading.note(f"Every row was read as a series, named by {some(labels)}{how}.")
    if odd:
        reading.note(f"Columns whose header is no time like the others were left out: {some(odd)}.")
    if dated:
        return long, list(ids) or labels, [TURNED_TIME]
    given = long[TURNED_VALUE].notna()
    kept = given[::-1].groupby(long[labels[0]]).cummax()[::-1]  # up to the last value
    return long[kept].drop(columns=TURNED_TIME).reset_index(drop=True), list(ids) or labels, []


def _melt(frame: pd.DataFrame, labels: list[str], columns: list[str]) -> pd.DataFrame:
    """A row for every cell of some columns, row by row."""
    long = frame.melt(labels, columns, TURNED_TIME, TURNED_VALUE, ignore_index=False)
    return long.sort_index(kind="stable").reset_index(drop=True)


def _is_numbered(frame: pd.DataFrame, names: list[str]) -> bool:
    """Whether the first column names every row and the others are numbered: V2, V3."""
    parts = [re.fullmatch(r"(\D*)(\d+)", name) for name in names[1:]]
    if len(parts) < FEWEST_NUMBERED or not all(parts):
        return False
    first = frame[names[0]]
    one_stem = len({part[1] for part in parts if part}) == 1
    words = is_text(first) and not any(is_value(str(cell)) for cell in first.iloc[:50])
    return one_stem and first.is_unique and words
