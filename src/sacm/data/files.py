"""Whatever the user has, in memory: a file of any common kind, a folder, an array or a frame."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from sacm.data.csv import is_value, read_cells, read_text
from sacm.data.form import Kind, as_numpy
from sacm.data.numbers import Reading, flag, some
from sacm.errors import DataError
from sacm.settings import ReadOptions

STDIN = "-"
FILE_COLUMN = "file"
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".feather", ".jsonl")
MARKS = {
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
CODE_PAGES = ("shift_jis", "gb18030", "euc_kr", "big5", "cp1251", "cp1253", "cp1255", "cp1256")
BINARY = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")  # bytes that text does not hold
FOREIGN_RUN = 2  # bytes above 127 in a row that Western European text has at most


class Source(NamedTuple):
    """What a user passed, in memory.

    Attributes:
        content: An array, or a frame with text as column names.
        name: A short name.
        where: What errors call it.
        kind: The kind of object that results are given back as.
        id: The column that tells series apart, where the source itself has it.
        separator: What separated the fields of a text.
        notes: How it was read.
    """

    content: np.ndarray | pd.DataFrame
    name: str
    where: str
    kind: Kind
    id: str | None = None
    separator: str | None = None
    notes: tuple[str, ...] = ()


def load_source(
    source: Any, options: ReadOptions | None = None, *, name: str | None = None
) -> Source:
    """Load a file, folder, array, tensor or data frame, each of them once.

    Args:
        source: A text (CSV and the like), JSON, Excel, Parquet, Feather, `.npy` or `.npz` file,
            also gzipped or zipped; a folder of such files, a series each; "-" for rows that are
            piped in; a pandas or polars frame or series; an array or tensor `[T]` or `[T, C]`;
            nested lists. A `Source` is returned as it is.
        options: `sheet` and `encoding` are used here.
        name: A short name. Default: that of the file without its ending, or "data".

    Raises:
        DataError: The file cannot be read, or the object is none of these.
    """
    options = options or ReadOptions()
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        where = name or "the data"
        return Source(_from_object(source, where), name or "data", where, _kind_of(source))
    path = Path(source)
    if str(source) == STDIN:
        return _parse(_read_stdin(), name or "stdin", "", Reading("standard input", options))
    if path.is_dir() and str(source):
        return _read_folder(path, name or path.name, options)
    content = read_bytes(path)
    if path.suffix in (".npy", ".npz"):
        return Source(_read_array(path), name or path.stem, str(source), "pandas")
    return _parse(content, name or path.stem, path.suffix.lower(), Reading(str(source), options))


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped.

    Raises:
        DataError: There is no such file, it is a folder, or it is empty.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file.")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {str(error.strerror).lower()}.") from error
    if not content:
        raise DataError(f"{path} is empty.")
    return _unpack(content, str(path))


def _unpack(content: bytes, where: str) -> bytes:
    """The content of a gzipped file; any other as it is."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} is a damaged gzip file.") from error


def _parse(content: bytes, name: str, suffix: str, reading: Reading) -> Source:
    """The table in the content of a file, by its first bytes."""
    if content[:4] == b"PK\x03\x04" and not suffix.startswith(".xls"):
        content = _unzip(content, reading)
    start = content[:4]
    if start == b"\xd0\xcf\x11\xe0" or suffix.startswith(".xls"):
        frame = _read_excel(content, reading)
    elif start in (b"PAR1", b"ARRO", b"FEA1"):
        kind, reader = ("Parquet", pd.read_parquet) if start == b"PAR1" else ("", pd.read_feather)
        try:
            frame = _tidy(reader(io.BytesIO(content)))
        except Exception as error:  # pyarrow lets through whatever it stumbles on
            what = f"not a readable {kind or 'Feather'} file"
            raise DataError(f"{reading.where} is {what}.") from error
    else:
        text = _decode(content, reading)
        json_like = text.lstrip()[:1] in ("{", "[")
        frame = _read_json(text, reading) if json_like else read_text(text, reading)
    notes = tuple(reading.notes)
    return Source(frame, name, reading.where, "pandas", None, reading.separator, notes)


def _decode(content: bytes, reading: Reading) -> str:
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
            able = [each for each in CODE_PAGES if _can_decode(content, each)]
            raise DataError(
                f"{reading.where} is not {encoding or 'utf-8'} text: "
                f"{flag('encoding')} names its code page"
                + (f", which may be {' or '.join(able[:4])}." if able else ".")
            ) from None
        reading.note(f"The text was read as cp1252 ({flag('encoding')}).")
        return content.decode("cp1252", errors="replace")


def _can_decode(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _unzip(content: bytes, reading: Reading) -> bytes:
    """The only file of a zip archive, or the one that is named."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            held = [each for each in archive.namelist() if not each.startswith("__MACOSX")]
            name = _choose([each for each in held if not each.endswith("/")], "files", reading)
            return _unpack(archive.read(name), reading.where)
    except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise DataError(f"{reading.where} is a damaged zip file, or has a password.") from error


def _choose(names: list[str], what: str, reading: Reading) -> str:
    """The only name, or the one that is wanted."""
    wanted = reading.options.sheet
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    example = f": {flag('sheet', names[0])} reads one of them" if names else ""
    raise DataError(f"{reading.where} holds {len(names)} {what}, {some(names) or 'none'}{example}.")


def _read_excel(content: bytes, reading: Reading) -> pd.DataFrame:
    """One sheet of an Excel file, if the library for it is installed."""
    library = "xlrd" if content[:4] == b"\xd0\xcf\x11\xe0" else "openpyxl"
    if importlib.util.find_spec(library) is None:
        raise DataError(
            f"{reading.where} is an Excel file, which needs {library}: pip install {library}, or "
            "save the sheet as CSV."
        )
    try:
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, header=None, dtype=object)
    except Exception as error:  # whatever a damaged file makes the library stumble on
        raise DataError(f"{reading.where} is not a readable Excel file.") from error
    rows = {
        str(name): [[_as_text(cell) for cell in row] for row in held.to_numpy(object)]
        for name, held in sheets.items()
    }
    tables = [
        name for name, held in rows.items() if sum(any(map(is_value, row)) for row in held) > 2
    ]
    chosen = _choose(tables if reading.options.sheet is None else list(rows), "sheets", reading)
    others = [name for name in rows if name != chosen]
    if others:
        reading.note(f"Sheet {chosen!r} was read, not {some(others)} ({flag('sheet')}).")
    return read_cells(rows[chosen], reading)


def _as_text(cell: Any) -> str:
    """A cell of a sheet as text, "" for nothing."""
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return ""
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15
    return str(int(cell)) if whole else str(cell)


def _read_json(text: str, reading: Reading) -> pd.DataFrame:
    """Records, columns, a record a line, or the largest table somewhere inside an answer."""
    try:
        if re.match(r"\s*\{[^\n]*\}\s*\n\s*\{", text):
            held: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            held = json.loads(text)
    except ValueError as error:
        raise DataError(f"{reading.where} is not a readable JSON file.") from error
    tables = [each for each in _json_tables(held) if len(each.columns)]
    if not tables:
        raise DataError(f"{reading.where} holds no table of records or columns.")
    return _tidy(max(tables, key=len))


def _json_tables(held: Any) -> Iterator[pd.DataFrame]:
    """The tables inside a JSON value: records, rows, records by key, and lists of one length."""
    if isinstance(held, list) and held:
        if all(isinstance(each, dict) for each in held):
            yield pd.json_normalize(held)
        elif all(isinstance(each, list) for each in held):
            yield pd.DataFrame(held)
    if not isinstance(held, dict) or not held:
        return
    if {"columns", "data"} <= held.keys():
        yield pd.DataFrame(held["data"], columns=held["columns"])
        return
    inner = list(held.values())
    if all(isinstance(each, dict) and each.keys() == inner[0].keys() for each in inner):
        rows = pd.DataFrame.from_dict(held, orient="index")
        rows = rows if len(rows) >= len(rows.columns) else rows.T
        counted = [str(key) for key in rows.index] == [str(k) for k in range(len(rows))]
        yield rows.reset_index(drop=True) if counted else rows.rename_axis("key")
        return
    if len(inner) > 2 and all(isinstance(each, int | float | None) for each in inner):
        yield pd.Series(held, name="value").rename_axis("key").to_frame()
        return
    lists = dict(_json_lists(held, ()))
    longest = max(map(len, lists.values()), default=0)
    columns = {path: cells for path, cells in lists.items() if len(cells) == longest}
    keys = [path[-1] for path in columns]
    names = [path[-1] if keys.count(path[-1]) == 1 else ".".join(path) for path in columns]
    yield pd.DataFrame(dict(zip(names, columns.values(), strict=True)))
    for each in inner:
        yield from _json_tables(each)


def _json_lists(held: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Path and cells of all lists of plain values inside a JSON value."""
    if isinstance(held, dict):
        for key, each in held.items():
            yield from _json_lists(each, (*path, str(key)))
    elif isinstance(held, list) and held and not isinstance(held[0], list | dict):
        yield path, held
    elif isinstance(held, list) and held and isinstance(held[0], dict):
        nested = any(isinstance(each, list | dict) for each in held[0].values())
        for place, each in enumerate(held) if nested else ():
            yield from _json_lists(each, (*path[:-1], str(each.get("label", place + 1))))


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of a file with text as column names; an index with a name or dates is a column."""
    if frame.index.name is not None or isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.reset_index()
    frame = frame.copy(deep=False)
    frame.columns = pd.Index([str(name) for name in frame.columns])
    return frame


def _from_object(source: Any, where: str) -> np.ndarray | pd.DataFrame:
    """An object in memory as an array or a pandas frame."""
    if isinstance(source, Tensor):
        return as_numpy(source)
    if isinstance(source, np.ma.MaskedArray) and source.dtype.kind in "fiub":
        floats: Any = source if source.dtype.kind == "f" else source.astype(np.float64)
        return np.asarray(floats.filled(np.nan))
    if isinstance(source, np.ndarray):
        return source
    if not isinstance(source, pd.DataFrame | pd.Series) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if isinstance(source, pd.Series):
        source = source.to_frame(name=source.name or "0")
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        frame.columns = pd.Index([str(column) for column in frame.columns])
        return frame
    try:
        return np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where} is a {type(source).__name__}: pass a file, an array or a data frame."
        ) from error


def _kind_of(source: Any) -> Kind:
    """The kind of object that results are given back as."""
    if isinstance(source, Tensor):
        return "tensor"
    origin = type(source).__module__.partition(".")[0]
    if origin == "pandas":
        return "series" if source.ndim == 1 else "pandas"
    return "polars" if origin == "polars" else "array"


def _read_array(path: Path) -> np.ndarray:
    """Read a `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    try:
        if path.suffix == ".npy":
            return np.asanyarray(np.load(path, mmap_mode="c", allow_pickle=False))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            key = "values" if "values" in archive.files else archive.files[0]
            if key != "values" and len(archive.files) > 1:
                raise DataError(f"{path} holds {', '.join(archive.files)}: name one 'values'.")
            return np.asarray(archive[key])
    except DataError:
        raise
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error


def _read_stdin() -> bytes:
    """The table that is piped in."""
    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("There is nothing on standard input: pipe a table into the command.")
    content = _unpack(_read_once(sys.stdin), "standard input")
    if not content.strip():
        raise DataError("Standard input is empty: pipe a table into the command.")
    return content


@lru_cache(maxsize=1)
def _read_once(stream: Any) -> bytes:
    """The content of a stream, which can be read only once, so it is kept."""
    content: bytes = stream.buffer.read()
    return content


def _read_folder(folder: Path, name: str, options: ReadOptions) -> Source:
    """The files of a folder, one below the other, with their names in the column "file"."""
    found = sorted(each for each in folder.iterdir() if each.name.lower().endswith(ENDINGS))
    files = [each for each in found if each.is_file() and not each.name.startswith(".")]
    if not files:
        raise DataError(f"{folder} is a folder: name a file, or a folder of CSV files.")
    parts: list[pd.DataFrame] = []
    notes: dict[str, None] = {}
    separator = None
    for path in files:
        loaded = load_source(path, options)
        part: Any = loaded.content
        wanted = parts[0].columns[1:].tolist() if parts else part.columns.tolist()
        if sorted(part.columns) != sorted(wanted) or FILE_COLUMN in wanted:
            raise DataError(
                f"{folder} is a folder of files with different columns, or with a column "
                f"{FILE_COLUMN!r}: {path.name} has {some(part.columns)}, {files[0].name} has "
                f"{some(wanted)}."
            )
        stem = path.name.removesuffix(".gz").rpartition(".")[0]
        part = part[wanted].copy()
        part.insert(0, FILE_COLUMN, stem)
        parts.append(part)
        notes |= dict.fromkeys(loaded.notes)
        separator = loaded.separator
    joined = pd.concat(parts, ignore_index=True)
    return Source(joined, name, str(folder), "pandas", FILE_COLUMN, separator, tuple(notes))
