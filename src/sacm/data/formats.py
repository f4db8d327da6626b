"""Tables that are no text: Excel, JSON, Parquet, Feather, NumPy, and objects in memory."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from sacm.data.columns import Reading, flag, some
from sacm.data.datasets import Kind, as_numpy
from sacm.data.text import is_value, read_cells
from sacm.errors import DataError


def unzip(content: bytes, reading: Reading) -> bytes:
    """The only file of a zip archive, or the one that is named."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            held = [each for each in archive.namelist() if not each.startswith("__MACOSX")]
            name = _choose([each for each in held if not each.endswith("/")], "files", reading)
            return archive.read(name)
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


def read_arrow(content: bytes, reading: Reading) -> pd.DataFrame:
    """The table of a Parquet or Feather file."""
    parquet = content[:4] == b"PAR1"
    try:
        return _tidy((pd.read_parquet if parquet else pd.read_feather)(io.BytesIO(content)))
    except Exception as error:  # pyarrow lets through whatever it stumbles on
        kind = "Parquet" if parquet else "Feather"
        raise DataError(f"{reading.where} is not a readable {kind} file.") from error


def read_excel(content: bytes, reading: Reading) -> pd.DataFrame:
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


def read_json(text: str, reading: Reading) -> pd.DataFrame:
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


def from_object(source: Any, where: str) -> np.ndarray | pd.DataFrame:
    """An object in memory as an array or a pandas frame."""
    if isinstance(source, Tensor):
        return as_numpy(source)
    if isinstance(source, np.ma.MaskedArray) and source.dtype.kind in "fiub":
        floats: Any = source.astype(np.float64)
        return np.asarray(floats.filled(np.nan))
    if isinstance(source, np.ndarray):
        return source
    if not isinstance(source, pd.DataFrame | pd.Series) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if isinstance(source, pd.Series):
        source = source.to_frame(name=source.name or "0")
    if isinstance(source, pd.DataFrame):
        return source.set_axis([str(column) for column in source.columns], axis=1)
    try:
        return np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where} is a {type(source).__name__}: pass a file, an array or a data frame."
        ) from error


def kind_of(source: Any) -> Kind:
    """The kind of object that results are given back as."""
    if isinstance(source, Tensor):
        return "tensor"
    origin = type(source).__module__.partition(".")[0]
    if origin == "pandas":
        return "series" if source.ndim == 1 else "pandas"
    return "polars" if origin == "polars" else "array"


def read_array(path: Path) -> np.ndarray:
    """Read a `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    try:
        if path.suffix == ".npy":
            return np.asanyarray(np.load(path, mmap_mode="c", allow_pickle=False))
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            key = "values" if "values" in archive.files else archive.files[0]
            held, array = archive.files, np.asarray(archive[key])
    except Exception as error:  # NumPy, zipfile and zlib each have their own for damaged files
        raise DataError(f"{path} is not a readable NumPy file of numbers.") from error
    if key != "values" and len(held) > 1:
        raise DataError(f"{path} holds {', '.join(held)}: name one 'values'.")
    return array
