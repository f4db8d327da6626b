"""RobustTSF: windows whose last input lies off the trend are not learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sacm.data.datasets import ForecastingData
from sacm.data.scaling import scale_training_rows
from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName

Array = NDArray[np.float64]
_ROUNDS = 60
_LARGEST, _SMALLEST = 1.0, 1e-5  # how far the absolute values are rounded off, first and last


@dataclass(frozen=True)
class RobustTSF(Strategy):
    """Learn from windows whose last input lies near the trend of the series (forecasting).

    Source: H. Cheng, Q. Wen, Y. Liu and L. Sun, RobustTSF: towards theory and design of robust time
    series forecasting with anomalies, ICLR 2024, arXiv:2402.02032.

    limit: How far from the trend the last input may lie, in training deviations.
    penalty: What a bend of the trend costs.
    """

    name: ClassVar[str] = "robust_tsf"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    limit: float = 0.3
    penalty: float = 0.3

    def __post_init__(self) -> None:
        for name in ("limit", "penalty"):
            if not getattr(self, name) > 0:
                raise ArgumentError(
                    f"robust_tsf({name}=…) must be positive, got {getattr(self, name)}."
                )

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Find the rows that lie near the trend of the training rows; only gaps are filled."""
        filled = super().prepare(data, window=window)
        near = find_near_rows(filled.data, self.limit, self.penalty)
        share = 1 - near[data.splits.train.start : data.splits.train.stop].mean()
        note = f"{share:.2%} of the training values lie off the trend; no window may end there."
        fitted = _FittedRobustTSF(self.limit, self.penalty, near)
        return filled._replace(strategy=fitted, notes=(*filled.notes, note))


def find_near_rows(data: ForecastingData, limit: float, penalty: float) -> np.ndarray:
    """True `[rows, C]` where a training row lies within `limit` deviations of the trend.

    Rows of other parts are True: nothing is known about them, and nothing is learnt from them.
    """
    pieces = data.ranges("train")
    scaled = scale_training_rows(data)
    near = np.ones(data.values.shape, dtype=bool)
    for rows in pieces:
        values = np.nan_to_num(scaled[rows.start : rows.stop].astype(np.float64))
        for channel in range(values.shape[1]):
            trend = filter_trend(values[:, channel], penalty)
            away = np.abs(values[:, channel] - trend)
            near[rows.start : rows.stop, channel] = away <= limit
    return near


@dataclass(frozen=True)
class _FittedRobustTSF(RobustTSF):
    """The strategy with the rows that lie near the trend."""

    near: np.ndarray | None = None

    prepare = Strategy.prepare

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Choose windows by their last inputs."""
        assert self.near is not None
        return _NearRun(torch.from_numpy(self.near).to(next(model.parameters()).device))


class _NearRun(StrategyRun):
    """Weighs windows and channels: 1 near the trend, 0 elsewhere."""

    def __init__(self, near: Tensor) -> None:
        self.near = near

    def weights(self, batch: Any, prediction: Tensor) -> Tensor:
        last = batch.positions.to(self.near.device) + batch.x.shape[1] - 1
        kept = self.near[last].unsqueeze(1)  # [B, 1, C]
        return kept.expand(prediction.shape)


def filter_trend(values: Array, penalty: float = 0.3) -> Array:
    """The trend `s` that minimises `sum |s - z| + penalty sum |s[t-1] - 2 s[t] + s[t+1]|`.

    Iteratively reweighted least squares: absolute values are rounded off, less in every round, and
    each round solves a system of five diagonals.
    `values` is the series `z` `[T]`.

    Example:
        >>> import numpy as np
        >>> line = np.arange(20.0)
        >>> spiked = line.copy()
        >>> spiked[7] += 5
        >>> bool(np.abs(filter_trend(spiked) - line).max() < 1e-3)
        True
    """
    from scipy.linalg import solveh_banded

    trend = values.astype(np.float64)
    if len(values) < 3:
        return trend
    observed = trend.copy()
    for width in np.geomspace(_LARGEST, _SMALLEST, _ROUNDS):
        near = 1 / np.maximum(np.abs(trend - observed), width)
        bend = penalty / np.maximum(np.abs(np.diff(trend, 2)), width)
        trend = solveh_banded(_bands(near, bend), near * observed)
    return trend


def _bands(near: Array, bend: Array) -> Array:
    """The upper diagonals of `diag(near) + D' diag(bend) D`, D the second differences."""
    bands = np.zeros((3, len(near)))
    bands[2] = near
    bands[2, :-2] += bend
    bands[2, 1:-1] += 4 * bend
    bands[2, 2:] += bend
    bands[1, 1:-1] -= 2 * bend
    bands[1, 2:] -= 2 * bend
    bands[0, 2:] = bend
    return bands
