"""Long frames of series, repaired and marked for the libraries that learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sacm.errors import ArgumentError
from sacm.quality.inspect import inspect

if TYPE_CHECKING:
    import pandas as pd


def repair_frame(
    frame: pd.DataFrame,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    mask_col: str = "available_mask",
) -> pd.DataFrame:
    """Repair a long frame, and mark what was broken so that it does not count in the loss.

    NeuralForecast reads the marks from the column `available_mask` by itself. For
    pytorch-forecasting name the column with `weight=` of its `TimeSeriesDataSet`.

    Args:
        frame: One row for each series and time.
        id_col: The column that names the series.
        time_col: The column of times.
        target_col: The column to judge and repair.
        mask_col: The column to add.

    Returns:
        A copy with repaired values; `mask_col` is 1 where a value was healthy and 0 where not.

    Raises:
        ArgumentError: A column is missing, or the frame is none of pandas.
        DataError: The values cannot be read.
    """
    columns = {id_col: "unique_id", time_col: "ds", target_col: "y"}
    known = list(getattr(frame, "columns", ()))
    lacking = [name for name in columns if name not in known]
    if lacking or not hasattr(frame, "iloc"):
        raise ArgumentError(
            f"repair_frame needs a pandas frame with the columns {', '.join(columns)}; got "
            f"{type(frame).__name__} with {', '.join(map(str, known)) or 'none'}."
        )
    quality = inspect(frame[list(columns)].rename(columns=columns).reset_index(drop=True))
    broken = quality.flags != 0
    marks = quality.subject.restore(np.full(quality.values.shape, np.nan), broken)
    mended = frame.copy()
    if broken.any():
        mended[target_col] = quality.repaired["y"].to_numpy()
    mended[mask_col] = marks["y"].notna().to_numpy(np.float64)
    return mended
