"""Answers of one value a row, in the form of the data they are for: frames in, frames out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def like_rows(values: np.ndarray, data: Any, name: str) -> Any:
    """Give values `[T]` as a series like the rows of a frame; as they are for other data."""
    kind = frame_kind(data, len(values))
    if kind == "pandas":
        import pandas as pd

        return pd.Series(values, index=data.index, name=name)
    if kind == "polars":
        import polars as pl

        return pl.Series(name, values)
    return values


def like_table(values: np.ndarray, data: Any, columns: Sequence[Any]) -> Any:
    """Give values `[N, K]` as a frame like the rows of a frame; as they are for other data."""
    kind = frame_kind(data, len(values))
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(values, index=data.index, columns=list(columns))
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(values, schema=[str(name) for name in columns])
    return values


def frame_kind(data: Any, rows: int) -> str | None:
    """Name the library of a frame or series of so many rows; None for other data."""
    kind = type(data).__module__.partition(".")[0]
    if kind in ("pandas", "polars") and len(data) == rows:
        return kind
    return None
