"""Forecasting errors without units: MASE, sMAPE and WAPE, exact over all windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sacm.metrics.forecasting import sum_by_series

Row = dict[str, float | None]


class RelativeErrors:
    """Collects scaled forecasts batch by batch and measures them in raw units.

    MASE is the mean absolute error over that of the seasonal naive forecast on the training rows
    (Hyndman & Koehler, "Another look at measures of forecast accuracy", 2006). sMAPE is the mean of
    2 |y - f| / (|y| + |f|), from 0 to 2, and 0 where both are 0. WAPE is the sum of the errors over
    the sum of the values. All are made for each channel, or each channel of each series if these
    have scales of their own, then averaged over those that have one.
    """

    def __init__(self, *, mean: np.ndarray, std: np.ndarray, naive_error: np.ndarray) -> None:
        """Take mean and deviation of the scaler and the naive training error in raw units.

        They are `[C]`, or `[S, C]` if every series has its own.
        """
        self._mean, self._std = (torch.from_numpy(np.asarray(a, np.float64)) for a in (mean, std))
        self._naive = naive_error
        self._totals = torch.zeros(4, *naive_error.shape, dtype=torch.float64)

    def update(
        self,
        prediction: Tensor,
        target: Tensor,
        *,
        observed: Tensor | None = None,
        series: Tensor | None = None,
    ) -> None:
        """Add scaled forecasts and targets, both `[B, H, C]`; None observed everything.

        `series` `[B]` says which series each window is of, if there are several scales.
        """
        mean, std = self._mean, self._std
        if series is not None:
            mean, std = (each[series.cpu()][:, None] for each in (mean, std))  # [B, 1, C]
        forecast = prediction.detach().cpu().double() * std + mean
        truth = target.detach().cpu().double() * std + mean
        seen = torch.ones_like(truth) if observed is None else observed.cpu().double()
        error = (forecast - truth).abs()
        level = forecast.abs() + truth.abs()
        symmetric = torch.where(level > 0, 2 * error / level.clamp_min(1e-300), 0.0)
        parts = (seen, error * seen, symmetric * seen, truth.abs() * seen)
        if series is None:
            self._totals += torch.stack([part.sum(dim=(0, 1)) for part in parts])
        else:
            sums = torch.stack([part.sum(dim=1) for part in parts], dim=1)  # [B, 4, C]
            self._totals += sum_by_series(sums, series, len(self._mean)).transpose(0, 1)

    def compute(self) -> Row:
        """Give `mase`, `smape` and `wape`; None where no channel has one."""
        count, error, symmetric, level = self._totals.numpy()
        return {
            "mase": mean_ratio(error, count * self._naive),
            "smape": mean_ratio(symmetric, count),
            "wape": mean_ratio(error, level),
        }


def mean_ratio(above: np.ndarray, below: np.ndarray) -> float | None:
    """Mean of the quotients `[C]` whose divisor is not 0; None if there is none."""
    usable = below > 0
    return float((above[usable] / below[usable]).mean()) if usable.any() else None


def naive_training_error(pieces: Sequence[np.ndarray], season: int) -> np.ndarray:
    """Mean absolute change over one season `[C]` in training rows, pieces of `[T, C]` each.

    A channel that never changes has 0; pieces shorter than a season do not count.
    """
    channels = pieces[0].shape[1]
    total, count = np.zeros(channels), 0
    for piece in pieces:
        if len(piece) > season:
            change = np.abs(np.subtract(piece[season:], piece[:-season], dtype=np.float64))
            total += change.sum(axis=0)
            count += len(change)
    return total / count if count else total
