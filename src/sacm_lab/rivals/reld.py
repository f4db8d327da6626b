"""ReLD: targets with abrupt changes, which are rare, count less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sacm.data.datasets import ForecastingData
from sacm.errors import ArgumentError
from sacm.strategies.base import Prepared, Strategy, StrategyRun, TrainingContext
from sacm.types import TaskName

_BINS = 100
_RANGE = 0.99  # the largest discrepancies share the last bin


@dataclass(frozen=True)
class ReLD(Strategy):
    """Weigh target spans by how common their abruptness is in training (forecasting).

    Source: J. Park, J. Lee, Y. Cho, W. Shin, D. Kim, J. Choo and E. Choi, Deep imbalanced
    time-series forecasting via local discrepancy density, ECML PKDD 2023, arXiv:2302.13563.

    window: Steps on either side of a step whose means are compared, 2 or more.
    smoothing: Width of the kernel that smooths the density, in hundredths of its range.
    """

    name: ClassVar[str] = "reld"
    tasks: ClassVar[tuple[TaskName, ...]] = ("forecasting",)

    window: int = 4
    smoothing: float = 2.0

    def __post_init__(self) -> None:
        if self.window < 2:
            raise ArgumentError(f"reld(window=…) must be 2 or more, got {self.window}.")
        if not self.smoothing > 0:
            raise ArgumentError(f"reld(smoothing=…) must be positive, got {self.smoothing}.")

    def prepare(self, data: Any, *, window: int) -> Prepared:
        """Compute the discrepancy of every training row; only gaps are filled."""
        filled = super().prepare(data, window=window)
        found = find_discrepancies(filled.data, self.window)
        return filled._replace(strategy=_FittedReLD(self.window, self.smoothing, found))


def local_discrepancy(values: np.ndarray, window: int) -> np.ndarray:
    """How abruptly the mean changes at each row of `[T, C]`: Welch's t without its sign.

    The `window` rows that end before a row are compared with those that begin with it; 0 where
    there are fewer.
    """
    found = np.zeros(values.shape)
    if len(values) < 2 * window:
        return found
    spans = np.lib.stride_tricks.sliding_window_view(values, window, axis=0)  # [T - w + 1, C, w]
    mean, variance = spans.mean(axis=-1), spans.var(axis=-1, ddof=1)
    gap = np.abs(mean[window:] - mean[:-window])
    error = np.sqrt((variance[window:] + variance[:-window]) / window)
    found[window : len(values) - window + 1] = gap / np.maximum(error, 1e-8)
    return found


def find_discrepancies(data: ForecastingData, window: int) -> np.ndarray:
    """Local discrepancies `[rows, C]` of the training rows, series by series; 0 elsewhere."""
    found = np.zeros(data.values.shape)
    for rows in data.ranges("train"):
        values = np.nan_to_num(np.asarray(data.values[rows.start : rows.stop], dtype=np.float64))
        found[rows.start : rows.stop] = np.log1p(local_discrepancy(values, window))
    return found


@dataclass(frozen=True)
class _FittedReLD(ReLD):
    """The strategy with the discrepancy of every row."""

    discrepancy: np.ndarray | None = None

    prepare = Strategy.prepare

    def begin(self, model: nn.Module, context: TrainingContext) -> StrategyRun:
        """Estimate the density of the training windows' spans."""
        assert self.discrepancy is not None
        rows = torch.from_numpy(self.discrepancy).float().to(next(model.parameters()).device)
        spans = [span_means(rows, batch) for batch in context.train]
        return _DensityRun(rows, Density(torch.cat(spans), self.smoothing))


def span_means(rows: Tensor, batch: Any) -> Tensor:
    """Mean discrepancy `[B, C]` of each window's targets, from that of rows `[rows, C]`."""
    first = batch.positions.to(rows.device) + batch.x.shape[1]
    steps = first[:, None] + torch.arange(batch.y.shape[1], device=rows.device)
    return rows[steps].mean(dim=1)


class Density:
    """A histogram for each channel, smoothed by a Gaussian; its peak is 1."""

    def __init__(self, values: Tensor, smoothing: float) -> None:
        """`values` `[N, C]`; `smoothing` in bins."""
        self.top = values.quantile(_RANGE, dim=0).clamp_min(1e-8)  # [C]
        channels = values.shape[1]
        counts = torch.zeros(_BINS, channels, device=values.device)
        counts.scatter_add_(0, self._bins(values), torch.ones_like(values))
        places = torch.arange(_BINS, device=values.device)
        kernel = (-0.5 * ((places[:, None] - places) / smoothing).square()).exp()
        smooth = (kernel / kernel.sum(dim=1, keepdim=True)) @ counts
        self.density = smooth / smooth.amax(dim=0).clamp_min(1e-8)

    def _bins(self, values: Tensor) -> Tensor:
        return (values / self.top * (_BINS - 1)).long().clamp(0, _BINS - 1)

    def __call__(self, values: Tensor) -> Tensor:
        """The density at values `[B, C]`, between 0 and 1."""
        return self.density.gather(0, self._bins(values))


class _DensityRun(StrategyRun):
    """Weighs target segments by how common their abruptness is."""

    def __init__(self, rows: Tensor, density: Density) -> None:
        self.rows, self.density = rows, density

    def weights(self, batch: Any, prediction: Tensor) -> Tensor:
        weights = self.density(span_means(self.rows, batch)).unsqueeze(1)  # [B, 1, C]
        return weights.expand(prediction.shape)
