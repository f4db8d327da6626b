"""Numbers out of a table; whatever is not a number is named by row and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sacm.data.tabular import looks_like_decimal_comma
from sacm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

LARGEST = float(np.finfo(np.float32).max)


def matrix(frame: pd.DataFrame, where: str) -> np.ndarray:
    """The columns of `frame` as float32 `[T, C]`; missing entries are NaN."""
    if frame.shape[1] == 0:
        raise DataError(f"{where} has no column of values.")
    if not frame.columns.is_unique:
        name = frame.columns[frame.columns.duplicated()][0]
        raise DataError(f"{where}: two columns are called {name!r}: rename one.")
    values = np.empty(frame.shape, dtype=np.float32)
    for position, name in enumerate(frame.columns):
        values[:, position] = numbers(frame[name], where)
    return values


def numbers(column: pd.Series, where: str) -> np.ndarray:
    """One column as float64."""
    import pandas as pd

    if column.dtype.kind in "cmM":  # complex numbers, durations, dates
        raise not_numeric(column, where)
    if not pd.api.types.is_numeric_dtype(column):
        column = parsed(column, where)
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    check_range(values, f"column {column.name!r}", where)
    return values


def parsed(column: pd.Series, where: str) -> pd.Series:
    """A text column read as numbers."""
    import pandas as pd

    result = pd.to_numeric(column.astype(object), errors="coerce")
    wrong = np.flatnonzero((result.isna() & column.notna()).to_numpy())
    if len(wrong) and len(wrong) == column.notna().sum():
        raise not_numeric(column, where)
    if len(wrong):
        text = str(column.iloc[wrong[0]])
        hint = " (write decimals with a point)" if looks_like_decimal_comma(text) else ""
        raise DataError(
            f"{where}: row {wrong[0] + 1} of column {column.name!r} holds {text!r}, not a "
            f"number{hint}."
        )
    return result


def not_numeric(column: pd.Series, where: str) -> DataError:
    """The error for a column that holds no numbers at all."""
    first = str(column.dropna().iloc[0])
    if looks_like_decimal_comma(first):
        return DataError(
            f"{where}: column {column.name!r} uses decimal commas (first value {first!r}): write "
            "decimals with a point."
        )
    return DataError(
        f"{where}: column {column.name!r} is not numeric (first value {first!r}): leave it out, "
        "or choose the columns to use."
    )


def check_range(values: np.ndarray, what: str, where: str) -> None:
    """Refuse infinite entries and those beyond float32."""
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        raise DataError(
            f"{where}: row {wrong[0] + 1} of {what} is {values[wrong[0]]:g}, which is infinite or "
            "too large."
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
