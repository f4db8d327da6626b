"""What a user passes, in memory: text, Excel, JSON, Parquet, Feather and NumPy files, objects.

In a text or sheet the separator, header, units, footnotes and empty rows are found. Only the first
and last lines decide where the table is; pandas reads the rows between.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from sacm.data.columns import (
    COUNTER_NAMES,
    DATE_OR_CLOCK,
    GAP_WORDS,
    PLAIN,
    Reading,
    flag,
    is_named,
    is_text,
    part_of,
)
from sacm.data.datasets import Kind, as_numpy
from sacm.data.load import read_bytes
from sacm.data.times import MONTHS, read_column
from sacm.errors import DataError, list_names
from sacm.settings import ReadOptions

OLD_EXCEL = b"\xd0\xcf\x11\xe0"
MARKS = {b"\xff\xfe\x00\x00": "utf-32", b"\xef\xbb\xbf": "utf-8-sig"}
MARKS |= dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "utf-16")
CODE_PAGES = ("shift_jis", "gb18030", "euc_kr", "big5", "cp1251", "cp1253", "cp1255", "cp1256")
BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")  # bytes that do not occur in text
FOREIGN_RUN = 2  # bytes above 127 in a row that Western European text has at most
SEPARATORS = (",", ";", "\t", "|")
HEAD_LINES, TAIL_LINES = 400, 60  # lines that are looked at to find the table
MOST_CELLS = 200  # cells of a row that are looked at
COMMENTS = ("#", "%")  # signs that begin a line that is no row
MOST_EVEN = 0.6  # share of lines with as many words that make a table of blanks
FITTING = 0.5  # share of the columns of values in which a row of the table has values
ALWAYS = 0.98  # share of rows in which a column always has a value
FEWEST_DATES = 5  # dates in a header that make a row a series
FEWEST_NUMBERED = 9  # numbered columns that make a row a series
VALUE = re.compile(
    r"^[-+(<>$€£¥'\"?]*[.,]?\d|^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? \d|^q[1-4] |"
    rf"^(?:{'|'.join(MONTHS)})\.?[-/ ,]+\d",
    re.IGNORECASE,
)
TWICE = re.compile(r"^(\d{4}) \[YR\1\]$")  # years as the World Bank writes them
TURNED_TIME, TURNED_VALUE = "time", "value"
Cells = list[str]


class Source(NamedTuple):
    """What a user passed, in memory."""

    content: np.ndarray | pd.DataFrame  # a frame has text as column names
    name: str
    where: str  # what errors call it
    kind: Kind  # of the object that results are given back as
    separator: str | None = None  # of the fields of a text
    notes: tuple[str, ...] = ()


def load_source(
    source: Any, options: ReadOptions | None = None, *, name: str | None = None
) -> Source:
    """Load a file, a pandas or polars frame or series, an array, a tensor or nested lists.

    Files are text (CSV and the like), JSON, Excel, Parquet, Feather, `.npy` or `.npz`, also gzipped
    or zipped. A `Source` is returned as it is. `options` gives `sheet` and `encoding`.
    """
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        where = name or "the data"
        held, kind = _from_object(source, where)
        return Source(held, name or "data", where, kind)
    path, reading = Path(source), Reading(str(source), options or ReadOptions())
    content = read_bytes(path)
    try:
        loaded = _unpack(content, path.suffix.lower(), reading)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(f"{path} needs another library: {error}") from error
    except Exception as error:  # each library has its own errors for damaged files
        said = f"is not a readable {path.suffix} file: it may be damaged"
        raise DataError(f"{path} {said}.") from error
    if isinstance(loaded, str):
        loaded = _read_text(loaded, reading)
    notes = tuple(reading.notes)
    return Source(loaded, name or path.stem, reading.where, "pandas", reading.separator, notes)


def _from_object(source: Any, where: str) -> tuple[np.ndarray | pd.DataFrame, Kind]:
    """An object in memory as an array or a pandas frame, and the kind of object it was."""
    if isinstance(source, Tensor):
        return as_numpy(source), "tensor"
    if isinstance(source, np.ma.MaskedArray) and source.dtype.kind in "fiub":
        return np.ma.filled(source.astype(np.float64), np.nan), "array"
    if isinstance(source, np.ndarray):
        return source, "array"
    if type(source).__module__.startswith("polars"):
        source = source.to_pandas()
    kind: Kind = "series" if isinstance(source, pd.Series) else "pandas"
    if kind == "series":
        source = source.to_frame(name=source.name or "0")
    if isinstance(source, pd.DataFrame):
        return source.set_axis([str(column) for column in source.columns], axis=1), kind
    try:
        return np.asarray(source, dtype=np.float64), "array"
    except (TypeError, ValueError) as error:
        said = f"is a {type(source).__name__}: pass a file, an array or a data frame"
        raise DataError(f"{where} {said}.") from error


def _unpack(content: bytes, suffix: str, reading: Reading) -> Any:
    """The text, frame or array in the content of a file, by its first bytes."""
    sheet, excel = reading.options.sheet, suffix.startswith(".xls") or content.startswith(OLD_EXCEL)
    if suffix in (".npy", ".npz"):
        arrays: Any = np.load(io.BytesIO(content), allow_pickle=False)
        names = [] if suffix == ".npy" else arrays.files
        return arrays[_choose(names, "arrays", sheet or "values")] if names else arrays
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    elif content[:4] == b"PK\x03\x04" and not excel:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [each for each in archive.namelist() if not each.startswith("__MACOSX")]
            files = [each for each in files if not each.endswith("/")]
            content = archive.read(_choose(files, "files", sheet))
    if excel:
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, header=None, dtype=object)
        texts = {str(name): held.to_csv(index=False, header=False) for name, held in sheets.items()}
        rows = {name: _split(text.split("\n"), ",") for name, text in texts.items()}
        tables = [name for name in rows if sum(any(map(is_value, row)) for row in rows[name]) > 2]
        chosen = _choose(tables if sheet is None else list(rows), "sheets", sheet)
        if len(rows) > 1:
            others = list_names(name for name in rows if name != chosen)
            reading.note(f"Sheet {chosen!r} was read, not {others} (--sheet).")
        return f"sep=,\n{texts[chosen]}"
    if content[:4] in (b"PAR1", b"ARRO", b"FEA1"):
        read = pd.read_parquet if content[:4] == b"PAR1" else pd.read_feather
        frame = read(io.BytesIO(content))
    else:
        text = _decode(content, reading)
        if text.lstrip()[:1] not in ("{", "["):
            return text
        lines = text.strip().split("\n")
        a_record_a_line = len(lines) > 1 and lines[0].rstrip().endswith("}")
        held = [json.loads(each) for each in lines] if a_record_a_line else json.loads(text)
        frame = max(_json_tables(held), key=len, default=pd.DataFrame())
        if frame.empty:
            raise reading.error("no table was found in this JSON: write a list of records.")
    if frame.index.name is not None or isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.reset_index()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _choose(names: list[str], what: str, wanted: str | None) -> str:
    """The only name, or the one that is wanted."""
    if wanted in names or len(names) == 1:
        return str(wanted) if wanted in names else names[0]
    example = f": {flag('sheet', names[0])} reads one of them" if names else ""
    raise DataError(f"The file holds {len(names)} {what}, {list_names(names) or 'none'}{example}.")


def _json_tables(held: Any) -> Iterator[pd.DataFrame]:
    """The tables inside a JSON value: lists of records, and lists of one length side by side."""
    if isinstance(held, list) and held and all(isinstance(each, dict) for each in held):
        yield pd.json_normalize(held)
    elif isinstance(held, list) and held and isinstance(held[0], list):
        if len(set(map(len, held))) == 1:
            yield pd.DataFrame(held).rename(columns=lambda place: f"column {place + 1}")
    elif isinstance(held, dict) and {"columns", "data"} <= held.keys():
        yield pd.DataFrame(held["data"], columns=held["columns"])
    elif isinstance(held, dict):
        if len(held) > 1 and all(map(is_value, held)):  # a row a time
            frame = pd.DataFrame.from_dict(held, orient="index")
            yield frame.reset_index(names="time")
        elif len(held) > 1 and all(isinstance(each, dict) for each in held.values()):
            yield pd.DataFrame(held).reset_index()
        lists = {name: each for name, each in held.items() if isinstance(each, list)}
        if len(lists) > 1 and len(set(map(len, lists.values()))) == 1:
            yield pd.DataFrame(lists)
        for each in held.values():
            yield from _json_tables(each)


def _decode(content: bytes, reading: Reading) -> str:
    """Text by the mark it begins with, as UTF-8, or as Western European; others are asked for."""
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), "")
    encoding = reading.options.encoding or marked
    if not encoding and BINARY.search(content[:2000]):
        raise DataError(f"{reading.where} is not a text file: it holds binary data.")
    try:
        return content.decode(encoding or "utf-8")
    except LookupError:
        raise DataError(f"encoding {encoding!r} is no code page: use one such as cp1251.") from None
    except UnicodeDecodeError:
        longest = max(map(len, re.findall(rb"[\x80-\xff]+", content)), default=0)
    if encoding or longest > FOREIGN_RUN:
        able = [page for page in CODE_PAGES if "\ufffd" not in content.decode(page, "replace")]
        likely = f", which may be {' or '.join(able[:4])}" if able else ""
        said = f"is not {encoding or 'utf-8'} text: --encoding names its code page{likely}"
        raise DataError(f"{reading.where} {said}.")
    reading.note("The text was read as cp1252 (--encoding).")
    return content.decode("cp1252", errors="replace")


def _read_text(text: str, reading: Reading) -> pd.DataFrame:
    """Read delimited text; columns that hold anything but numbers are text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    hint = re.match(r"sep=(.)\n", text)
    text = (text[hint.end() :] if hint else text).rstrip("\n")
    separator = hint[1] if hint else _find_separator(text.split("\n", HEAD_LINES)[:HEAD_LINES])
    reading.separator = separator
    if separator == " ":  # a date and its clock are one cell
        text = re.sub(r"(?m)^#[ \t]+", "", text)
        text = re.sub(r"(\d{4}-\d\d-\d\d) +(\d\d:\d\d)", r"\1T\2", text)
    rows = _split(text.split("\n", HEAD_LINES)[:HEAD_LINES], separator)
    tail = _split(text.rsplit("\n", TAIL_LINES)[-TAIL_LINES:], separator)
    names, first, last = _find_layout(rows, tail, reading)
    if last and len(tail) == min(TAIL_LINES, text.count("\n") + 1):  # no cell has several lines
        text, last = text.rsplit("\n", last)[0], 0
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=r"\s+" if separator == " " else separator,
            header=None,
            names=range(max(map(len, rows))),
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            skipinitialspace=True,
            skip_blank_lines=False,
        )
    except pd.errors.ParserError as error:
        too_long = re.search(r"line (\d+), saw (\d+)", str(error))
        if not too_long:
            raise reading.error("a quote is opened and never closed: there is no table.") from error
        line, fields = int(too_long[1]), int(too_long[2])
    else:
        frame = frame[first : len(frame) - last]
        beyond = frame.iloc[:, len(names) :].notna().sum(axis=1).to_numpy()
        line, fields = first + int(beyond.argmax()) + 1, len(names) + int(beyond.max())
    if fields > len(names):
        raise reading.error(
            f"line {line} has {fields} fields where the header has {len(names)}: put a cell that "
            f"holds {separator!r} in quotes."
        )
    frame = frame.iloc[:, : len(names)].set_axis(names, axis=1)
    start = frame.iloc[:, 0]
    again = start == names[0]
    if again.any():
        again &= (frame == names).all(axis=1)
    left_out = {"Empty rows": frame.isna().all(axis=1), "Repeated headers": again}
    left_out["Comments"] = start.str.startswith("#", na=False)
    for what, rows_of_kind in left_out.items():
        if rows_of_kind.any():
            reading.note(f"{what} were left out: {int(rows_of_kind.sum()):,}.")
    frame = frame[~pd.DataFrame(left_out).any(axis=1)].reset_index(drop=True)
    for name in names:
        if frame[name].isna().all() and (not name or name.startswith("Unnamed: ")):
            frame = frame.drop(columns=name)
        elif _plain_numbers(frame[name][:HEAD_LINES], separator) is not None:  # quickly
            numbers = _plain_numbers(frame[name], separator)
            frame[name] = frame[name] if numbers is None else numbers
    return frame


def _plain_numbers(cells: pd.Series, separator: str) -> pd.Series | None:
    """Text as numbers; None where a cell is no number, or can be a name (007) or a thousand."""
    numbers = pd.to_numeric(cells, errors="coerce")
    doubt = r"[.,]|^0\d" if separator == ";" else r"^0\d"
    plain = numbers.notna().equals(cells.notna())
    looked_at = separator == ";" or (numbers.dropna() % 1 == 0).all()
    return None if not plain or (looked_at and cells.str.contains(doubt).any()) else numbers


def _split(lines: Sequence[str], separator: str) -> list[Cells]:
    """Rows of cells."""
    if separator == " ":
        lines = [re.sub(r"\s+", " ", line.strip()) for line in lines]
    rows: list[Cells] = []
    with suppress(csv.Error):  # a field longer than the module takes, or a quote that never ends
        rows.extend(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    return rows


def _find_separator(lines: Sequence[str]) -> str:
    """The sign that splits lines into the most even number of whole cells."""
    sample = [line for line in lines if line.strip() and not line.startswith(COMMENTS)]
    best = (0.0, 0.0, "")
    for separator in SEPARATORS if sample else ():
        rows = _split(sample, separator)
        width, count = Counter(map(len, rows)).most_common(1)[0]
        others = {sign for sign in SEPARATORS if sign not in (separator, ",")}
        cells = [cell for row in rows[-200:] if len(row) == width for cell in row[:MOST_CELLS]]
        whole = np.mean([others.isdisjoint(cell) for cell in cells])
        score = round(float(count / len(rows) * whole), 1)
        if width > 1 and (score, width) > best[:2]:
            best = (score, width, separator)
    blanks = Counter(len(line.split()) for line in sample).most_common(1)
    even = blanks and blanks[0][0] > 1 and blanks[0][1] > MOST_EVEN * len(sample)
    return best[2] or (" " if even else ",")


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

    def dated(rows: list[Cells]) -> np.ndarray:
        """Whether the first of the columns that always have values holds a date."""
        cells = ["".join(row[place : place + 1]) for row in rows for place in steady[:1]]
        return np.array([bool(re.search(DATE_OR_CLOCK, cell)) for cell in cells] or [False])

    dates = dated(sample).mean() > FITTING

    def fits(rows: list[Cells]) -> np.ndarray:
        """Whether rows have values in most of those columns, or in all that always have some."""
        kinds = _kinds(rows, len(profile))
        usual = (kinds[:, profile] >= 0).sum(axis=1) > FITTING * profile.sum()
        usual |= (kinds[:, steady] == 1).all(axis=1) & bool(len(steady))
        usual &= (kinds[:, steady[:1]] == 1).all(axis=1) & (dated(rows) == dates)
        return np.asarray((kinds == 1).any(axis=1) & usual)

    # The first row is a header if it has words, or nothing, where all others have values.
    names = _filled(head)
    named = bool((_kinds([head], len(profile))[0, steady] != 1).any())
    named |= len(names) > 1 and names in [[str(k + s) for k in range(len(names))] for s in (0, 1)]
    body = [k for k in np.flatnonzero(fits(rows)).tolist() if not (named and rows[k] is head)]
    if not body:
        raise reading.error(f"there are no rows of numbers after {' '.join(head)[:60]!r}.")
    first = body[0] + (len(body) > 1 and bool(_dated_cells(rows[body[0]])))
    before = [row for row in rows[:first] if _filled(row)]
    nameless = first == 1 and len(steady) and not "".join(head[steady[0] : steady[0] + 1]).strip()
    blanks = reading.separator == " "  # where titles look like a row of names
    least = max(min(2, width) - bool(nameless), (1 if blanks else 0.5) * width - 1)
    heads = [row for row in before if len(_filled(row)) >= least][-1 if blanks else -3 :]
    heads = [row for row in heads if not row[0].startswith(COMMENTS)] or heads[-1:]
    values = [2 * sum(map(is_value, row)) >= len(_filled(row)) for row in heads]
    heads = heads[max((k + 1 for k in np.flatnonzero(values[:-1])), default=0) :]
    given = min(heads, key=lambda row: abs(len(_filled(row)) - width), default=[])
    used = [row for row in heads if row is given]
    for row in heads[heads.index(given) + 1 :] if heads else ():  # the first only groups columns
        if len(set(_filled(given)[1:])) < len(_filled(given)[1:]):
            given = [" ".join(filter(None, pair)) for pair in zip_longest(given, row, fillvalue="")]
            used.append(row)
    last = int(fits(tail)[::-1].argmax())
    beside = {"beside the header": [row for row in before if not any(row is x for x in used)]}
    beside["after the table"] = [row for row in tail[len(tail) - last :] if _filled(row)]
    for where, left_out in beside.items():
        if left_out:
            texts = list_names(" ".join(_filled(row)) for row in left_out)
            reading.note(f"Lines {where} were left out: {texts}.")
    if not heads:
        reading.note("There is no header: columns are numbered.")
        return [f"column {place + 1}" for place in range(width)], first, last
    names = [TWICE.sub(r"\1", cell.strip().strip("'")) for cell in given]
    names[0] = re.sub(r"^# ", "", names[0])
    if len(names) == width - 1 == len(_filled(given)):
        starts = [row[0] for row in rows[first:] if row]
        counted = starts == [str(place + 1) for place in range(len(starts))]
        if counted or not any(map(is_value, starts)):  # as R writes tables
            reading.note("The header has no name for the first column, which names the rows.")
            names = ["", *names]
    names += [""] * (width - len(names))
    nameless = names.count("") - (names[0] == "") > 0
    for place, name in reversed(list(enumerate(names))):
        if not name and (place or nameless):
            names[place] = f"Unnamed: {place}"
        elif name in names[:place]:
            names[place] = f"{name}.{names[:place].count(name) + 1}"
            reading.note(f"Another column {name!r} is called {names[place]!r}.")
    return names, first, last


def _dated_cells(cells: Sequence[str]) -> list[str]:
    """The dates of a header in which they rise; none if it is no header of dates."""
    values = [TWICE.sub(r"\1", cell.strip()) for cell in cells if is_value(cell)]
    if len(values) < max(FEWEST_DATES, len(cells) - 6):
        return []
    shapes = [re.sub(r"\d+", "0", cell) for cell in values]
    usual = Counter(shapes).most_common(1)[0][0]
    dated = [cell for cell, shape in zip(values, shapes, strict=True) if shape == usual]
    years = all(re.fullmatch(r"(1[5-9]|2[01])\d\d", cell) for cell in dated)
    short = usual == "0" and max(map(len, dated)) < 6  # numbers that only count
    if len(dated) < max(FEWEST_DATES, 0.9 * len(values)) or (short and not years):
        return []
    readings = read_column(pd.Series(dated, dtype=object, name="year"), named=True)
    rise = any(each.stamps.is_monotonic_increasing and each.stamps.is_unique for each in readings)
    return dated if rise else []


def turn_wide(
    frame: pd.DataFrame, ids: list[str], reading: Reading
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """Put a table with a series, or a year of months, in every row below each other.

    Returns the table, the columns that name its series, and its time column if it got one.
    """
    names = [str(name) for name in frame.columns]
    years = [name for name in names if part_of(name) == "year"]
    months = [name for name in names if name.lower().strip(".") in MONTHS]
    if names[1:] == [str(month) for month in range(1, 13)]:
        months = names[1:]
    if years and len(months) == 12:
        labels = [n for n in names if n not in months and (n in years or is_text(frame[n]))]
        reading.note("A calendar (a row a year, a column a month) was read as one series.")
        return _stack(frame, labels, months, "month", reading), ids, []
    dated, first = _dated_cells(names), frame[names[0]]
    if dated:
        labels = [name for name in names if not is_value(name) and name not in dated]
        several = [name for name in labels if frame[name].nunique() > 1] or labels
        labels = [name for name in several if frame[name].dtype.kind != "f"] or several
        long = _stack(frame, labels, dated, TURNED_TIME, reading)
        if [part_of(name) for name in labels] == ["month"]:
            reading.note("A calendar (a row a month, a column a year) was read as one series.")
            return long.rename(columns={TURNED_TIME: "year"}), ids, []
        said = f"named by {list_names(labels)}, with its times in the header"
        reading.note(f"Every row was read as a series, {said}.")
        return long, ids or labels, [TURNED_TIME]
    # Names of rows, then numbered columns: V1, V2, V3
    parts = [re.fullmatch(r"(\D*)\d+", name) for name in names[1:]]
    stems = {part and part[1] for part in parts}
    numbered = len(parts) >= FEWEST_NUMBERED and len(stems) == 1 and None not in stems
    numbered = numbered and is_text(first) and first.is_unique
    if not numbered or any(is_value(str(cell)) for cell in first[:50]):
        return frame, ids, []
    row_names = first.astype(str).str.extract(r"^([A-Za-z_]+)\d+$")[0]
    stem = str(row_names[0])  # H of H1, H2, H3
    sure = (row_names == stem).all() and not is_named(stem) and stem.lower() not in COUNTER_NAMES
    if not ids and not sure and frame[names[-1]].notna().mean() > 0.5:
        helps = f"{flag('id', names[0])} if a row is a series, {flag('ignore', names[0])} if not"
        raise reading.error(f"column {names[0]!r} names rows, the others are numbered: {helps}.")
    not_so = flag("ignore", names[0])
    reading.note(f"Every row was read as a series, named by {names[0]} ({not_so} if not).")
    long = _stack(frame, names[:1], names[1:], TURNED_TIME, reading).drop(columns=TURNED_TIME)
    given = long[TURNED_VALUE].notna()
    kept = given[::-1].groupby(long[names[0]]).cummax()[::-1]  # up to the last value
    return long[kept].reset_index(drop=True), ids or names[:1], []


def _stack(
    frame: pd.DataFrame, labels: list[str], values: list[str], time: str, reading: Reading
) -> pd.DataFrame:
    """A table with the cells of `values` below each other, row after row."""
    odd = [name for name in frame.columns if name not in (*labels, *values)]
    if odd:
        reading.note(f"Left out of the turned table: {list_names(odd)}.")
    filled = frame.fillna(dict.fromkeys(labels, ""))
    long = filled.melt(labels, values, time, TURNED_VALUE, ignore_index=False)
    return long.sort_index(kind="stable").reset_index(drop=True)
