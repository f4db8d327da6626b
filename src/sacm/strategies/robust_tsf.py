"""RobustTSF: windows whose last input lies off the trend are not learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sacm.data.datasets import ForecastingData
from sacm.data.scaling import scale_training_rows
from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy, StrategyRun, TrainingContext
from sacm.strategies.registry import register
from sacm.strategies.trend_filter import filter_trend
from sacm.types import TaskName


@register("robust_tsf")
@dataclass(frozen=True)
class RobustTSF(Strategy):
    """Learn from windows whose last input lies near the trend of the series (forecasting).

    Source: H. Cheng, Q. Wen, Y. Liu and L. Sun, RobustTSF: towards theory and design of robust time
    series forecasting with anomalies, ICLR 2024, arXiv:2402.02032.

    limit: How far from the trend the last input may lie, in training deviations.
    penalty: What a bend of the trend costs.
    """

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
        """Find the rows that lie near the trend of the training rows; the data stay as they are."""
        near = find_near_rows(data, self.limit, self.penalty)
        share = 1 - near[data.splits.train.start : data.splits.train.stop].mean()
        note = f"{share:.2%} of the training values lie off the trend; no window may end there."
        return Prepared(data, _FittedRobustTSF(self.limit, self.penalty, near), (note,))


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

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Choose windows by their last inputs."""
        assert self.near is not None
        return _NearRun(torch.from_numpy(self.near).to(next(model.parameters()).device))


class _NearRun(StrategyRun):
    """Windows and channels that count."""

    def __init__(self, near: Tensor) -> None:
        self.near = near

    def keep(self, batch: Any, prediction: Tensor) -> Tensor:
        last = batch.positions.to(self.near.device) + batch.x.shape[1] - 1
        kept = self.near[last].unsqueeze(1)  # [B, 1, C]
        return kept.expand(prediction.shape)
