"""Numbers out of a table; whatever is not a number is named by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tables.number_text import (
    looks_like_decimal_comma,
    looks_like_thousands,
    looks_spaced,
)
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# Of NumPy's own kind: a plain float beside a float16 array becomes float16, and infinite.
LARGEST = np.float64(np.finfo(np.float32).max)
FEWEST_STEPS = 16  # of float32 that a column should span


def matrix(frame: pd.DataFrame, where: str) -> np.ndarray:
    """The columns of `frame` as float32 `[T, C]`; missing entries are NaN."""
    if frame.shape[1] == 0:
        raise DataError(f"{where} has no column of values.")
    check_unique_names(frame, where)
    values = np.empty(frame.shape, dtype=np.float32)
    for position, name in enumerate(frame.columns):
        values[:, position] = numbers(frame[name], where)
    return values


def check_unique_names(frame: pd.DataFrame, where: str) -> None:
    """Refuse a table that uses a name twice."""
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"{where}: two columns are called {name!r}: rename one.")


def choose_columns(frame: pd.DataFrame, columns: Sequence[str], where: str) -> pd.DataFrame:
    """The columns asked for, in that order."""
    check_present(frame, columns, where)
    return frame[list(columns)]


def check_present(frame: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Refuse names that are no column of `frame`."""
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"{where} has no column {column!r}; it has {list_columns(frame)}.")


def list_columns(frame: pd.DataFrame) -> str:
    """Column names, shortened if there are many."""
    names = [str(column) for column in frame.columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def numbers(column: pd.Series, where: str) -> np.ndarray:
    """One column as float64."""
    import pandas as pd

    if column.dtype.kind in "cmM":  # complex numbers, durations, dates
        raise not_numeric_error(column, where)
    if not pd.api.types.is_numeric_dtype(column):
        column = parse_numbers(column, where)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    check_range(values, f"column {column.name!r}", where)
    return values


def parse_numbers(column: pd.Series, where: str) -> pd.Series:
    """A text column read as numbers."""
    import pandas as pd

    result = pd.to_numeric(column.astype(object), errors="coerce")
    wrong = np.flatnonzero((result.isna() & column.notna()).to_numpy())
    if len(wrong) and len(wrong) == column.notna().sum():
        raise not_numeric_error(column, where)
    if len(wrong):
        text = str(column.iloc[wrong[0]])
        hint = " (write decimals with a point)" if looks_like_decimal_comma(text) else ""
        hint = " (decimal= says what its comma means)" if looks_like_thousands(text) else hint
        if len(wrong) > len(column) / 2:
            hint = " (ignore= leaves the column out, id= takes it to tell series apart)"
        raise DataError(
            f"{where}: row {wrong[0] + 1} of column {column.name!r} holds {text!r}, not a "
            f"number{hint}."
        )
    return result


def not_numeric_error(column: pd.Series, where: str) -> DataError:
    """The error for a column that holds no numbers at all."""
    first = str(column.dropna().iloc[0])
    if looks_like_thousands(first):
        return DataError(
            f"{where}: column {column.name!r} has commas in its numbers (first value {first!r}): "
            "decimal='.' if they separate thousands, decimal=',' if decimals follow them."
        )
    if looks_like_decimal_comma(first):
        return DataError(
            f"{where}: column {column.name!r} uses decimal commas (first value {first!r}): "
            "decimal=',' reads them."
        )
    if looks_spaced(first):
        sign = "." if "." in first and first.count(".") == 1 else ","
        return DataError(
            f"{where}: column {column.name!r} has signs between thousands (first value {first!r}): "
            f"decimal={sign!r} reads them."
        )
    return DataError(
        f"{where}: column {column.name!r} is not numeric (first value {first!r}): leave it out "
        f"with ignore={column.name!r}, or choose the columns to use with columns=."
    )


def check_range(values: np.ndarray, what: str, where: str) -> None:
    """Refuse infinite entries and those beyond float32."""
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        raise DataError(
            f"{where}: row {wrong[0] + 1} of {what} is {values[wrong[0]]:g}, which is infinite or "
            "too large."
        )


def coarse_note(table: np.ndarray | pd.DataFrame) -> str | None:
    """A note on columns of a table `[T, C]` that change by less than float32 can hold there."""
    if isinstance(table, np.ndarray) and table.dtype.itemsize < 8:  # perhaps larger than memory
        return None
    import pandas as pd

    wide = pd.DataFrame(table).select_dtypes(include=["float64", "int64", "uint64"])
    low, high = wide.min().to_numpy(np.float64), wide.max().to_numpy(np.float64)
    span, level = high - low, np.maximum(np.abs(low), np.abs(high))
    step = np.spacing(level.astype(np.float32)).astype(np.float64)
    found = np.flatnonzero((span > 0) & (span < FEWEST_STEPS * step))
    if not len(found):
        return None
    first = found[0]
    more = f" (and {len(found) - 1} more columns)" if len(found) > 1 else ""
    return (
        f"Column {str(wide.columns[first])!r}{more} spans {span[first]:.3g} at a level of "
        f"{level[first]:.3g}, where float32 has steps of {step[first]:.3g}: its changes are lost "
        "unless you subtract an offset first."
    )


def from_array(array: np.ndarray, where: str) -> np.ndarray:
    """An array `[T]` or `[T, C]` as float32 `[T, C]`; a memory map of the right kind stays one."""
    if array.dtype == object or array.dtype.kind not in "fiub":
        raise DataError(f"{where}: the array holds {array.dtype}, not numbers.")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(f"{where}: the array must be [T] or [T, C], got {list(array.shape)}.")
    for position in range(array.shape[1]):
        check_range(np.asarray(array[:, position]), f"column {position}", where)
    if array.dtype == np.float32 and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, dtype=np.float32)
