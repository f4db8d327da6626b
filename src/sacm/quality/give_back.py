"""Give repaired values back in the form in which the data came; healthy values bit-identical."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, from_numpy

from sacm.data.tables.source import Source


def give_array(data: Any, content: np.ndarray, values: np.ndarray, changed: np.ndarray) -> Any:
    """An array or tensor like `data` with the changed values in it.

    Args:
        data: What the user passed.
        content: The same as an array `[T]` or `[T, C]`.
        values: Repaired values `[T, C]`, in the user's order of rows.
        changed: Which of them were changed `[T, C]`.

    Returns:
        A copy. Floating-point numbers keep their precision; others become float64 if a value was
        changed.
    """
    marks = changed.reshape(content.shape)
    result = np.array(content)
    if marks.any():
        result = _as_floats(result)
        result[marks] = _within(values.reshape(content.shape)[marks], result.dtype)
    if isinstance(data, Tensor):
        tensor = from_numpy(result)
        floating = data.is_floating_point()
        return tensor.to(data.device, data.dtype if floating else tensor.dtype)
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.masked_invalid(result)
    if type(data).__module__.partition(".")[0] == "polars":
        import polars

        return polars.Series(data.name, result)
    return result


def give_frame(
    data: Any, source: Source, names: Sequence[str], values: np.ndarray, changed: np.ndarray
) -> Any:
    """A frame or series like `data` with the changed values in it.

    Args:
        data: What the user passed: a frame, a series, or a file.
        source: The same as a pandas frame with text column names.
        names: The C channels.
        values: Repaired values `[T, C]`, in the user's order of rows.
        changed: Which of them were changed `[T, C]`.

    Returns:
        A copy. Columns without a change stay exactly as they are; integers and text become
        floating-point numbers in a column with a change.
    """
    frame: Any = source.content
    places = [list(frame.columns).index(name) for name in names]
    touched = [place for place in range(len(names)) if changed[:, place].any()]
    columns = {
        places[place]: _give_column(
            frame.iloc[:, places[place]], values[:, place], changed[:, place]
        )
        for place in touched
    }
    if source.kind == "polars":
        import polars

        fresh = [
            polars.Series(data.columns[place], column.to_numpy())
            for place, column in columns.items()
        ]
        return data.with_columns(fresh)
    if source.kind == "series":
        return next(iter(columns.values())).rename(data.name) if columns else data.copy()
    result = data.copy() if type(data) is type(frame) else frame.copy()
    for place, column in columns.items():
        result.isetitem(place, column)
    return result


def _give_column(column: Any, values: np.ndarray, changed: np.ndarray) -> Any:
    """One column of a frame with the changed values in it."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column) and column.dtype.kind == "f":
        result = column.copy()
        plain = isinstance(column.dtype, np.dtype)
        result.iloc[np.flatnonzero(changed)] = (
            _within(values[changed], column.dtype) if plain else values[changed]
        )
        return result
    numeric = column if pd.api.types.is_numeric_dtype(column) else pd.to_numeric(column)
    floats = numeric.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    floats[changed] = values[changed]
    return pd.Series(floats, index=column.index, name=column.name)


def _as_floats(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _within(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values in another precision, held inside its limits."""
    limits = np.finfo(dtype)
    return np.clip(values, float(limits.min), float(limits.max)).astype(dtype)
