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
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from sacm.data.csv import is_value, read_cells, read_text
from sacm.data.form import Kind, as_numpy
from sacm.data.numbers import some
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
        return _parse(_read_stdin(), "standard input", name or "stdin", "", options)
    if path.is_dir() and str(source):
        return _read_folder(path, name or path.name, options)
    content = read_bytes(path)
    if path.suffix in (".npy", ".npz"):
        return Source(_read_array(path), name or path.stem, str(source), "pandas")
    return _parse(content, str(source), name or path.stem, path.suffix.lower(), options)


def read_bytes(path: Path) -> bytes:
    """The content of a file.

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
    return unpack(content, str(path))


def unpack(content: bytes, where: str) -> bytes:
    """The content of a gzipped file; any other as it is."""
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} is a damaged gzip file.") from error


def _parse(content: bytes, where: str, name: str, suffix: str, options: ReadOptions) -> Source:
    """The table in the content of a file, by its first bytes."""
    notes: list[str] = []
    start = content[:4]
    if start == b"PK\x03\x04" and not suffix.startswith(".xls"):
        content = _unzip(content, where, options.sheet)
        start = content[:4]
    if start == b"\xd0\xcf\x11\xe0" or suffix.startswith(".xls"):
        frame, said = _read_excel(content, where, options.sheet)
        return Source(frame, name, where, "pandas", notes=said)
    if start in (b"PAR1", b"ARRO", b"FEA1"):
        reader = pd.read_parquet if start == b"PAR1" else pd.read_feather
        try:
            frame = reader(io.BytesIO(content))
        except Exception as error:  # pyarrow lets through whatever it stumbles on
            raise DataError(
                f"{where} is not a readable {'Parquet' if start == b'PAR1' else 'Feather'} file."
            ) from error
        return Source(_tidy(frame), name, where, "pandas")
    text = decode(content, where, options.encoding, notes)
    if text.lstrip()[:1] in ("{", "["):
        return Source(_read_json(text, where), name, where, "pandas", notes=tuple(notes))
    frame, separator, said = read_text(text, where)
    return Source(frame, name, where, "pandas", separator=separator, notes=(*notes, *said))


def decode(content: bytes, where: str, encoding: str | None, notes: list[str]) -> str:
    """Text by the mark it begins with, as UTF-8, or as Western European; others are asked for."""
    found = encoding or next((name for mark, name in MARKS.items() if content.startswith(mark)), "")
    if not found and 0 in content[:200]:
        wide = content[: 400 - 400 % 2]
        if wide[::2].count(0) < 0.4 * len(wide[::2]) > wide[1::2].count(0):
            raise DataError(f"{where} is not a text file: it holds binary data.")
        found = "utf-16-be" if content[0] == 0 else "utf-16-le"
    try:
        return content.decode(found or "utf-8")
    except LookupError:
        raise DataError(f"encoding {found!r} is not a code page: use one such as cp1251.") from None
    except UnicodeDecodeError:
        longest = max(map(len, re.findall(rb"[\x80-\xff]+", content)), default=0)
        if found or longest > FOREIGN_RUN:
            raise DataError(
                f"{where} is not {found or 'utf-8'} text and its code page cannot be told: "
                "encoding= (--encoding) names it, such as 'shift_jis', 'gb18030' or 'cp1251'."
            ) from None
        notes.append("The text was read as cp1252 (encoding=).")
        return content.decode("cp1252", errors="replace")


def _unzip(content: bytes, where: str, wanted: str | None) -> bytes:
    """The only file of a zip archive, or the one that is named."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [
                each
                for each in archive.namelist()
                if not each.endswith("/") and not each.startswith("__MACOSX")
            ]
            return unpack(archive.read(_choose(names, wanted, "files", where)), where)
    except (zipfile.BadZipFile, EOFError, zlib.error, RuntimeError) as error:
        raise DataError(f"{where} is a damaged zip file, or it has a password.") from error


def _choose(names: list[str], wanted: str | None, what: str, where: str) -> str:
    """The only name, or the one that is wanted."""
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted in names:
        return str(wanted)
    example = f": sheet={names[0]!r} (--sheet) reads one of them" if names else ""
    raise DataError(f"{where} holds {len(names)} {what}, {some(names) or 'none'}{example}.")


def _read_excel(
    content: bytes, where: str, sheet: str | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """One sheet of an Excel file, if the library for it is installed."""
    old = content[:4] == b"\xd0\xcf\x11\xe0"
    library = "xlrd" if old else "openpyxl"
    if importlib.util.find_spec(library) is None:
        raise DataError(
            f"{where} is an Excel file, which needs {library}: pip install {library}, or save the "
            "sheet as CSV."
        )
    try:
        sheets = pd.read_excel(io.BytesIO(content), sheet_name=None, header=None, dtype=object)
    except Exception as error:  # whatever a damaged file makes the library stumble on
        raise DataError(f"{where} is not a readable Excel file.") from error
    rows = {
        str(name): [[as_text(cell) for cell in row] for row in held.to_numpy(object)]
        for name, held in sheets.items()
    }
    filled = [
        name for name, held in rows.items() if sum(any(map(is_value, row)) for row in held) > 2
    ]
    chosen = _choose(filled if sheet is None else list(rows), sheet, "sheets", where)
    frame, notes = read_cells(rows[chosen], where)
    others = [name for name in rows if name != chosen]
    said = (f"Sheet {chosen!r} was read, not {some(others)} (sheet=).",) if others else ()
    return frame, (*said, *notes)


def as_text(cell: Any) -> str:
    """A cell of a sheet or a record as text, "" for nothing."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list | dict | tuple | np.ndarray):
        return f"[{cell}]"
    if pd.isna(cell):
        return ""
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())
    whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15
    return str(int(cell)) if whole else str(cell)


def _read_json(text: str, where: str) -> pd.DataFrame:
    """Records, columns, or a record a line."""
    try:
        if re.match(r"\s*\{[^\n]*\}\s*\n\s*\{", text):
            held: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            held = json.loads(text)
        if isinstance(held, dict) and {"columns", "data"} <= held.keys():
            return _tidy(pd.DataFrame(held["data"], columns=held["columns"]))
        return _tidy(pd.DataFrame(held))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{where} is not a readable JSON table of records or columns.") from error


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of a file with text as column names; an index with a name or dates is a column."""
    if frame.index.name is not None or isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.reset_index()
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
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
    if isinstance(source, pd.Series):
        source = source.to_frame(name=source.name or "0")
    elif not isinstance(source, pd.DataFrame) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
        source = source.to_frame(name=source.name or "0") if source.ndim == 1 else source
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        frame.columns = [str(column) for column in frame.columns]
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
    content = unpack(_read_once(sys.stdin), "standard input")
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
        if sorted(part.columns) != sorted(wanted):
            raise DataError(
                f"{folder} is a folder of files with different columns: {path.name} has "
                f"{some(part.columns)}, {files[0].name} has {some(wanted)}."
            )
        if FILE_COLUMN in part.columns:
            raise DataError(f"{path} has a column {FILE_COLUMN!r}: rename it.")
        stem = next(path.name[: -len(end)] for end in ENDINGS if path.name.lower().endswith(end))
        stem = stem.removesuffix(".csv")
        part = part[wanted].copy()
        part.insert(0, FILE_COLUMN, stem)
        parts.append(part)
        notes |= dict.fromkeys(loaded.notes)
        separator = loaded.separator
    joined = pd.concat(parts, ignore_index=True)
    return Source(joined, name, str(folder), "pandas", FILE_COLUMN, separator, tuple(notes))
