"""Load whatever the user has: a file, an array, a tensor or a data frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from sacm.data.tables.csv_file import Decimal, check_file, convert_numbers, read_table
from sacm.data.tables.form import Kind
from sacm.data.tables.tensors import as_numpy
from sacm.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd


class Source(NamedTuple):
    """What a user passed, in memory: its content, a short name, and how errors call it."""

    content: np.ndarray | pd.DataFrame
    name: str
    where: str
    kind: Kind


def load_source(source: Any, name: str | None = None, decimal: Decimal | None = None) -> Source:
    """Load a file, array, tensor or data frame, each of them once.

    Args:
        source: A CSV, Parquet, `.npy` or `.npz` file; a pandas or polars frame or series; an array
            or tensor `[T]` or `[T, C]`; nested lists. A `Source` is returned as it is.
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
        arrays = path.suffix in (".npy", ".npz")
        content = read_array(path) if arrays else read_table(path, decimal)
        return Source(content, name or path.stem, str(source), "pandas")
    where = name or "the data"
    held = load_object(source, where)
    if decimal is not None and not isinstance(held, np.ndarray):
        held = convert_numbers(held, decimal)
    return Source(held, name or "data", where, kind_of(source))


def load_object(source: Any, where: str) -> np.ndarray | pd.DataFrame:
    """An object in memory as an array or a pandas frame."""
    if isinstance(source, Tensor):
        return as_numpy(source)
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


def read_array(path: Path) -> np.ndarray:
    """Read a `.npy` file, memory-mapped, or the array `values` (or the only one) of an `.npz`."""
    check_file(path)
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
