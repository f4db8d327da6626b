"""Load whatever the user has: a file, an array, a tensor or a data frame."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from sacm.data.tables.csv_file import check_csv_file, parse_table, read_table, unpack
from sacm.data.tables.folder import FILE_COLUMN, read_folder
from sacm.data.tables.form import Kind
from sacm.data.tables.number_text import Decimal, convert_numbers, take_notes
from sacm.data.tables.tensors import as_numpy
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

STDIN = "-"


class Source(NamedTuple):
    """What a user passed, in memory: its content, a short name, and how errors call it.

    `id` names the column that tells series apart, where it came from the source itself; `notes` say
    how its text was read.
    """

    content: np.ndarray | pd.DataFrame
    name: str
    where: str
    kind: Kind
    id: str | None = None
    notes: tuple[str, ...] = ()


def load_source(source: Any, name: str | None = None, decimal: Decimal | None = None) -> Source:
    """Load a file, array, tensor or data frame, each of them once.

    Args:
        source: A CSV, Parquet, Excel, `.npy` or `.npz` file; a folder of CSV files, a series each;
            "-" for rows that are piped in; a pandas or polars frame or series; an array or tensor
            `[T]` or `[T, C]`; nested lists. A `Source` is returned as it is.
        name: A short name. Default: that of the file without its ending, or "data".
        decimal: "," or ".", the sign before the fraction of numbers in text; the other sign then
            separates thousands. Default: a point, and no thousands.

    Returns:
        The content as an array or as a pandas frame with text column names.

    Raises:
        DataError: The file cannot be read, or the object is none of these.
        ArgumentError: `decimal` is another sign.
    """
    if decimal not in (None, ",", "."):
        raise ArgumentError(f"decimal must be ',' or '.', got {decimal!r}.")
    if isinstance(source, Source):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_dir() and str(source):
            joined = read_folder(path, decimal)
            notes = take_notes(joined)
            return Source(joined, name or path.name, str(source), "pandas", FILE_COLUMN, notes)
        if str(source) == STDIN:
            piped = read_stdin(decimal)
            where = "standard input"
            return Source(piped, name or "stdin", where, "pandas", notes=take_notes(piped))
        if path.suffix in (".npy", ".npz"):
            return Source(read_array(path), name or path.stem, str(source), "pandas")
        table = read_table(path, decimal)
        return Source(table, name or path.stem, str(source), "pandas", notes=take_notes(table))
    where = name or "the data"
    held = load_object(source, where)
    if decimal is not None and not isinstance(held, np.ndarray):
        held = convert_numbers(held, decimal)
    return Source(held, name or "data", where, kind_of(source))


def load_object(source: Any, where: str) -> np.ndarray | pd.DataFrame:
    """An object in memory as an array or a pandas frame."""
    if isinstance(source, Tensor):
        return as_numpy(source)
    if isinstance(source, np.ma.MaskedArray) and source.dtype.kind in "fiub":
        return fill_masked(source)
    if isinstance(source, np.ndarray):
        return source
    import pandas as pd

    if isinstance(source, pd.Series):
        source = source.to_frame(name=source.name or "0")
    elif not isinstance(source, pd.DataFrame) and hasattr(source, "to_pandas"):
        source = source.to_pandas()
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        frame.columns = [str(column) for column in frame.columns]
        return frame
    try:
        return np.asarray(source, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{where} is a {type(source).__name__}: pass a file, an array or a data frame."
        ) from error


def fill_masked(array: np.ma.MaskedArray[Any, Any]) -> np.ndarray:
    """A masked array with NaN where it is masked; whole numbers become float64 for that."""
    floats: Any = array if array.dtype.kind == "f" else array.astype(np.float64)
    return np.asarray(floats.filled(np.nan))


def read_stdin(decimal: Decimal | None) -> pd.DataFrame:
    """The table that is piped in."""
    if sys.stdin is None or sys.stdin.isatty():
        raise DataError("There is nothing on standard input: pipe a table into the command.")
    content = unpack(read_once(sys.stdin), "standard input")
    if not content.strip():
        raise DataError("Standard input is empty: pipe a table into the command.")
    return parse_table(content, "standard input", decimal)


@lru_cache(maxsize=1)
def read_once(stream: Any) -> bytes:
    """The content of a stream, which can be read only once, so it is kept."""
    content: bytes = stream.buffer.read()
    return content


def read_array(path: Path) -> np.ndarray:
    """Read a `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    check_csv_file(path)
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


def kind_of(source: Any) -> Kind:
    """The kind of object that results should be given back as."""
    if isinstance(source, Tensor):
        return "tensor"
    origin = type(source).__module__.partition(".")[0]
    if origin == "pandas":
        return "series" if source.ndim == 1 else "pandas"
    return "polars" if origin == "polars" else "array"


def keep_present(source: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for reading without labels and ignored columns that are not there.

    New data need not hold columns that were left out in training.
    """
    kept = dict(options)
    columns = set() if isinstance(source.content, np.ndarray) else set(source.content.columns)
    if kept.get("ignore"):
        kept["ignore"] = tuple(name for name in kept["ignore"] if name in columns)
    if kept.get("label") not in columns:
        kept.pop("label", None)
    return kept
