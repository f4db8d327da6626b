"""What a user passes, in memory: text, Excel, JSON, Parquet, Feather and NumPy files, objects."""

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

from sacm.data.columns import Reading, flag, some
from sacm.data.datasets import Kind, as_numpy
from sacm.data.text import decode, is_value, read_cells, read_text
from sacm.errors import DataError
from sacm.settings import ReadOptions

STDIN = "-"
FILE_COLUMN = "file"
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".feather", ".jsonl")  # in a folder


class Source(NamedTuple):
    """What a user passed, in memory."""

    content: np.ndarray | pd.DataFrame  # a frame has text as column names
    name: str
    where: str  # what errors call it
    kind: Kind  # of the object that results are given back as
    id: str | None = None  # column that tells series apart, if the source names it
    separator: str | None = None  # of the fields of a text
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
    """
    options = options or ReadOptions()
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | Path):
        where = name or "the data"
        held, kind = _from_object(source, where)
        return Source(held, name or "data", where, kind)
    path = Path(source)
    if str(source) == STDIN:
        content = _read_stdin(sys.stdin)
        return _parse(content, name or "stdin", "", Reading("standard input", options))
    if path.is_dir() and str(source):
        return _read_folder(path, name or path.name, options)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {str(error.strerror).lower()}.") from error
    if not content:
        raise DataError(f"{path} is empty.")
    if path.suffix in (".npy", ".npz"):
        return Source(_read_array(path), name or path.stem, str(source), "pandas")
    return _parse(content, name or path.stem, path.suffix.lower(), Reading(str(source), options))


def _parse(content: bytes, name: str, suffix: str, reading: Reading) -> Source:
    """The table in the content of a file, by its first bytes."""
    content = _unpack(content, suffix, reading)
    start = content[:4]
    if start == b"\xd0\xcf\x11\xe0" or suffix.startswith(".xls"):
        frame = _read_excel(content, reading)
    elif start in (b"PAR1", b"ARRO", b"FEA1"):
        try:
            read = pd.read_parquet if start == b"PAR1" else pd.read_feather
            frame = _tidy(read(io.BytesIO(content)))
        except Exception as error:  # pyarrow lets through whatever it stumbles on
            kind = "Parquet" if start == b"PAR1" else "Feather"
            raise DataError(f"{reading.where} is not a readable {kind} file.") from error
    else:
        text = decode(content, reading)
        json_like = text.lstrip()[:1] in ("{", "[")
        frame = _read_json(text, reading) if json_like else read_text(text, reading)
    notes = tuple(reading.notes)
    return Source(frame, name, reading.where, "pandas", None, reading.separator, notes)


def _unpack(content: bytes, suffix: str, reading: Reading) -> bytes:
    """The file in a gzip or zip file, the named one if it holds several; others as they are."""
    packed = content[:4] == b"PK\x03\x04" and not suffix.startswith(".xls")
    try:
        if content[:2] == b"\x1f\x8b":
            return _unpack(gzip.decompress(content), suffix, reading)
        if not packed:
            return content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            held = [each for each in archive.namelist() if not each.startswith("__MACOSX")]
            name = _choose([each for each in held if not each.endswith("/")], "files", reading)
            return _unpack(archive.read(name), suffix, reading)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, RuntimeError) as error:
        kind = "zip file, or has a password" if packed else "gzip file"
        raise DataError(f"{reading.where} is a damaged {kind}.") from error


def _choose(names: list[str], what: str, reading: Reading) -> str:
    """The only name, or the one that is wanted."""
    wanted = reading.options.sheet
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    example = f": {flag('sheet', names[0])} reads one of them" if names else ""
    raise DataError(f"{reading.where} holds {len(names)} {what}, {some(names) or 'none'}{example}.")


@lru_cache(maxsize=1)
def _read_stdin(stream: Any) -> bytes:
    """The table that is piped in, kept because a stream can be read only once."""
    content: bytes = b"" if stream is None or stream.isatty() else stream.buffer.read()
    if not content.strip():
        raise DataError("Standard input is empty: pipe a table into the command.")
    return content


def _read_folder(folder: Path, name: str, options: ReadOptions) -> Source:
    """The files of a folder, one below the other, with their names in the column "file"."""
    held = sorted(each for each in folder.iterdir() if each.name.lower().endswith(ENDINGS))
    files = [each for each in held if each.is_file() and not each.name.startswith(".")]
    if not files:
        raise DataError(f"{folder} is a folder: name a file, or a folder of CSV files.")
    sources = [load_source(path, options) for path in files]
    stems = [path.name.removesuffix(".gz").rpartition(".")[0] for path in files]
    frames: dict[str, Any] = {s: each.content for s, each in zip(stems, sources, strict=True)}
    names = {frozenset(frame.columns) for frame in frames.values()}
    if len(names) > 1 or FILE_COLUMN in frames[stems[0]]:
        raise DataError(
            f"{folder} is a folder of files with different columns, or one {FILE_COLUMN!r}."
        )
    joined = pd.concat(frames, names=[FILE_COLUMN]).reset_index(0).reset_index(drop=True)
    notes = tuple(dict.fromkeys(note for source in sources for note in source.notes))
    separator = sources[-1].separator
    return Source(joined, name, str(folder), "pandas", FILE_COLUMN, separator, notes)


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
    rows = {str(name): [list(map(_as_text, r)) for r in s.to_numpy()] for name, s in sheets.items()}
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
    inner = list(held.values())
    if {"columns", "data"} <= held.keys():
        yield pd.DataFrame(held["data"], columns=held["columns"])
    elif all(isinstance(each, dict) and each.keys() == inner[0].keys() for each in inner):
        rows = pd.DataFrame.from_dict(held, orient="index")
        rows = rows if len(rows) >= len(rows.columns) else rows.T
        counted = [str(key) for key in rows.index] == [str(k) for k in range(len(rows))]
        yield rows.reset_index(drop=True) if counted else rows.rename_axis("key")
    elif len(inner) > 2 and all(isinstance(each, int | float | None) for each in inner):
        yield pd.Series(held, name="value").rename_axis("key").to_frame()
    else:
        lists = dict(_json_lists(held, ()))
        longest = max(map(len, lists.values()), default=0)
        columns = {path: each for path, each in lists.items() if len(each) == longest}
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
    """A frame with text as column names; an index with a name or dates is a column."""
    if frame.index.name is not None or isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.reset_index()
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _from_object(source: Any, where: str) -> tuple[np.ndarray | pd.DataFrame, Kind]:
    """An object in memory as an array or a pandas frame, and the kind of object it was."""
    if isinstance(source, Tensor):
        return as_numpy(source), "tensor"
    if isinstance(source, np.ma.MaskedArray) and source.dtype.kind in "fiub":
        return np.ma.filled(source.astype(np.float64), np.nan), "array"
    if isinstance(source, np.ndarray):
        return source, "array"
    kind: Kind = "polars" if type(source).__module__.startswith("polars") else "pandas"
    if not isinstance(source, pd.DataFrame | pd.Series) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if isinstance(source, pd.Series):
        kind = "series" if kind == "pandas" else kind
        source = source.to_frame(name=source.name or "0")
    if isinstance(source, pd.DataFrame):
        return source.set_axis([str(column) for column in source.columns], axis=1), kind
    try:
        return np.asarray(source, dtype=np.float64), "array"
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where} is a {type(source).__name__}: pass a file, an array or a data frame."
        ) from error


def _read_array(path: Path) -> np.ndarray:
    """Read a `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    try:
        if path.suffix == ".npy":
            return np.asanyarray(np.load(path, mmap_mode="c", allow_pickle=False))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            held = archive.files
            if len(held) == 1 or "values" in held:
                return np.asarray(archive["values" if "values" in held else held[0]])
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error
    raise DataError(f"{path} holds {', '.join(held)}: name one 'values'.")
