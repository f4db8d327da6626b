"""What the integrations share: the network and its window, and repaired frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from torch import nn

from sacm.errors import ArgumentError
from sacm.inject.window import InputArg, WindowLayout
from sacm.quality.inspect import inspect

if TYPE_CHECKING:
    import pandas as pd

Coverage = Literal["modules", "all"]


class WindowedNetwork(NamedTuple):
    """A network inside another library's model, and its window, as `sacm.attach` takes them."""

    model: nn.Module
    channels: int | None = None
    input_arg: InputArg = 0
    window_layout: WindowLayout = "BLC"


def repair_frame(
    frame: pd.DataFrame,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    mask_col: str = "available_mask",
) -> pd.DataFrame:
    """Return a repaired long frame that marks what was broken, so that no loss counts it.

    NeuralForecast reads the marks from the column `available_mask` by itself. For
    pytorch-forecasting name the column with `weight=` of its `TimeSeriesDataSet`.

    Args:
        frame: One row for each series (`id_col`) and time (`time_col`).
        id_col: The column that names the series.
        time_col: The column of times.
        target_col: The column to judge and repair.
        mask_col: The column to add: 1 where a value was normal and 0 where not.
    """
    columns = {id_col: "unique_id", time_col: "ds", target_col: "y"}
    present = list(getattr(frame, "columns", ()))
    if not hasattr(frame, "iloc") or not set(columns) <= set(present):
        raise ArgumentError(
            f"repair_frame needs a pandas frame with the columns {', '.join(columns)}; got "
            f"{type(frame).__name__} with {', '.join(map(str, present)) or 'none'}."
        )
    quality = inspect(frame[list(columns)].rename(columns=columns).reset_index(drop=True))
    marks = quality.recording.restore(np.full(quality.values.shape, np.nan), quality.changed)
    repaired = quality.repaired["y"].to_numpy() if quality.changed.any() else frame[target_col]
    normal = marks["y"].notna().to_numpy(np.float64)
    return frame.assign(**{target_col: repaired, mask_col: normal})
