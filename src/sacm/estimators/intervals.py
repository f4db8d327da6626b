"""Prediction intervals by split conformal calibration."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sacm.backbones.quantiles import take_median
from sacm.data.batches import ForecastWindows, beside_windows
from sacm.errors import ArgumentError
from sacm.estimators.base import check_share
from sacm.inference.trained import TrainedNetwork
from sacm.tasks.base import EVALUATION_BATCH

_LARGEST = 1 << 26  # residuals kept at once; neighbouring windows say almost the same


class Interval(NamedTuple):
    """Two forecasts that should enclose the truth, each in the form of the data."""

    lower: Any
    upper: Any


def absolute_residuals(trained: TrainedNetwork, windows: ForecastWindows) -> np.ndarray:
    """|target - forecast| `[N, H, C]`, scaled; NaN where the target was not observed.

    All windows, or evenly spaced ones if they are too many to hold.
    """
    first = windows.batch([0])
    step = math.ceil(len(windows) * first.y.numel() / _LARGEST)
    chosen = np.arange(0, len(windows), step)
    parts = []
    for start in range(0, len(chosen), EVALUATION_BATCH):
        batch = windows.batch(chosen[start : start + EVALUATION_BATCH])
        forecast = take_median(trained.answer(trained.network, batch.x, *beside_windows(batch)))
        residuals = (batch.y - forecast).abs().numpy()
        if batch.observed is not None:
            residuals[batch.observed.numpy() < 1] = np.nan
        parts.append(residuals)
    return np.concatenate(parts)


def conformal_radius(residuals: np.ndarray, coverage: float) -> np.ndarray:
    """Half widths `[H, C]` that enclose a new target with probability `coverage`.

    The `ceil((n + 1) coverage)`-th smallest of n residuals of each step and channel: exact for
    exchangeable windows (Lei et al., "Distribution-free predictive inference for regression",
    JASA 2018).
    """
    check_share("coverage", coverage)
    ordered = np.sort(residuals, axis=0)  # NaN last
    counts = np.isfinite(residuals).sum(axis=0)  # [H, C]
    ranks = np.ceil((counts + 1) * coverage - 1e-9).astype(np.int64)
    if (ranks > counts).any():
        raise ArgumentError(
            f"a coverage of {coverage} needs {math.ceil(coverage / (1 - coverage) - 1e-9)} "
            f"validation windows but there are {counts.min()}: lower it, or give validation a "
            "larger share."
        )
    radius: np.ndarray = np.take_along_axis(ordered, ranks[None] - 1, axis=0)[0]
    return radius
