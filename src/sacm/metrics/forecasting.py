"""Exact forecasting errors over all windows, whatever the batch size.

Sums of absolute and squared errors are kept in float64 for every horizon step and channel; all
means are taken once, at the end. Z-scoring is linear, so the error in raw units is the scaled error
times the scaler's standard deviation and needs no second pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, DataError, SACMError
from sacm.metrics.result import Record


@dataclass(frozen=True)
class ErrorTable(Record):
    """Means over windows, steps and channels; `step_*` [H] and `channel_*` [C] in part.

    A step or channel of which nothing was observed is None.
    """

    mae: float
    mse: float
    rmse: float
    step_mae: tuple[float | None, ...]
    step_mse: tuple[float | None, ...]
    channel_mae: tuple[float | None, ...]
    channel_mse: tuple[float | None, ...]


@dataclass(frozen=True)
class ForecastReport(Record):
    """Errors over `windows` windows; `raw` is None when the accumulator knew no scale."""

    windows: int
    horizon: int
    channels: int
    scaled: ErrorTable
    raw: ErrorTable | None


class ForecastAccumulator:
    """Collects errors batch by batch.

    `scale` [C] holds the standard deviation each channel was divided by; with it the report has
    errors in raw units too. [S, C] where every series was divided by its own.
    """

    def __init__(self, *, scale: Tensor | np.ndarray | Sequence[float] | None = None) -> None:
        self.windows = 0
        self._totals: Tensor | None = None  # count, absolute and squared errors [S, 3, H, C]
        self._scale = None if scale is None else _checked_scale(scale)  # [S, C]

    def update(
        self,
        prediction: Tensor,
        target: Tensor,
        *,
        observed: Tensor | None = None,
        series: Tensor | None = None,
    ) -> None:
        """Add predictions and targets, both [B, H, C]; a non-finite value is a failure.

        Targets where `observed` [B, H, C] is False were filled in and do not count. `series` [B]
        says which series each window is of, if there are several scales.
        """
        if prediction.shape != target.shape or prediction.ndim != 3:
            raise ArgumentError(
                "prediction and target must share one shape [B, H, C], got"
                f" {list(prediction.shape)} and {list(target.shape)}"
            )
        self._check_finite(prediction, what="prediction", error=SACMError)
        self._check_finite(target, what="target", error=DataError)
        # On the CPU, because not every accelerator has float64.
        difference = prediction.detach().cpu().double() - target.detach().cpu().double()
        counted = torch.ones_like(difference) if observed is None else observed.cpu().double()
        errors = difference.abs() * counted, difference.square() * counted
        parts = (counted, *errors)
        if series is None or self._scale is None:
            totals = torch.stack([part.sum(dim=0) for part in parts])[None]
        else:
            totals = sum_by_series(torch.stack(parts, dim=1), series, len(self._scale))
        self._add(totals, windows=len(prediction))

    def merge(self, other: ForecastAccumulator) -> None:
        """Add what another accumulator (another process, another part of the data) has seen."""
        if other._totals is not None:
            self._add(other._totals, windows=other.windows)

    def compute(self) -> ForecastReport:
        """The errors of everything seen so far."""
        if self._totals is None or not bool(self._totals[:, 0].any()):
            raise SACMError("no window was evaluated, so there is no forecasting error to report")
        *_, horizon, channels = self._totals.shape
        raw = None
        if self._scale is not None:
            raw = _table((self._totals * self._powers(self._scale)).sum(dim=0))
        scaled = _table(self._totals.sum(dim=0))
        return ForecastReport(self.windows, horizon, channels, scaled, raw)

    def by_series(self) -> list[tuple[float, float] | None]:
        """Mean absolute error of each series, scaled and raw; None of one without any target."""
        assert self._totals is not None
        assert self._scale is not None
        found: list[tuple[float, float] | None] = []
        for totals, raw in zip(self._totals, self._totals * self._powers(self._scale), strict=True):
            count = float(totals[0].sum())
            sums = float(totals[1].sum()), float(raw[1].sum())
            found.append((sums[0] / count, sums[1] / count) if count else None)
        return found

    @staticmethod
    def _powers(scale: Tensor) -> Tensor:
        """What counts, absolute and squared errors are multiplied by, [S, 3, 1, C]."""
        return torch.stack([torch.ones_like(scale), scale, scale.square()], dim=1)[:, :, None]

    def _add(self, totals: Tensor, *, windows: int) -> None:
        if self._totals is None:
            self._totals = torch.zeros_like(totals)
        if totals.shape != self._totals.shape:
            raise ArgumentError(
                f"horizon and channels changed from {list(self._totals.shape[2:])} to"
                f" {list(totals.shape[2:])} between batches"
            )
        if self._scale is not None and self._scale.shape[1] != totals.shape[3]:
            raise ArgumentError(
                f"scale has {self._scale.shape[1]} channels, the predictions have {totals.shape[3]}"
            )
        self._totals = self._totals + totals
        self.windows += windows

    def _check_finite(self, values: Tensor, *, what: str, error: type[SACMError]) -> None:
        finite = torch.isfinite(values)
        if bool(finite.all()):
            return
        window, step, channel = (~finite).nonzero()[0].tolist()
        raise error(
            f"{what} is {float(values[window, step, channel])} at window {self.windows + window},"
            f" step {step}, channel {channel} ({int((~finite).sum())} non-finite values in this"
            " batch); a metric over it would hide a failed run"
        )


def sum_by_series(parts: Tensor, series: Tensor, count: int) -> Tensor:
    """Sums [S, ...] over the windows [B, ...] of each of `count` series."""
    return parts.new_zeros(count, *parts.shape[1:]).index_add(0, series.cpu(), parts)


def _checked_scale(scale: Tensor | np.ndarray | Sequence[float]) -> Tensor:
    values = torch.as_tensor(scale).detach().cpu().double()
    if values.ndim not in (1, 2) or not bool((torch.isfinite(values) & (values > 0)).all()):
        raise ArgumentError("scale must hold one positive standard deviation per channel")
    return torch.atleast_2d(values)


def _table(totals: Tensor) -> ErrorTable:
    """Means of summed errors [3, H, C]: count, absolute, squared."""
    count, absolute, squared = totals
    mse = float(squared.sum() / count.sum())

    def means(errors: Tensor, dim: int) -> tuple[float | None, ...]:
        pairs = zip(errors.sum(dim=dim).tolist(), count.sum(dim=dim).tolist(), strict=True)
        return tuple(total / seen if seen else None for total, seen in pairs)

    return ErrorTable(
        mae=float(absolute.sum() / count.sum()),
        mse=mse,
        rmse=math.sqrt(mse),
        step_mae=means(absolute, 1),
        step_mse=means(squared, 1),
        channel_mae=means(absolute, 0),
        channel_mse=means(squared, 0),
    )
