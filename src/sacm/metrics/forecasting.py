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
from sacm.metrics.record import Record


@dataclass(frozen=True)
class ErrorTable(Record):
    """Means over windows, steps and channels; `step_*` [H] and `channel_*` [C] in part."""

    mae: float
    mse: float
    rmse: float
    step_mae: tuple[float, ...]
    step_mse: tuple[float, ...]
    channel_mae: tuple[float, ...]
    channel_mse: tuple[float, ...]


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
    errors in raw units too.
    """

    def __init__(self, *, scale: Tensor | np.ndarray | Sequence[float] | None = None) -> None:
        self.windows = 0
        self._absolute: Tensor | None = None  # [H, C]
        self._squared: Tensor | None = None  # [H, C]
        self._scale = None if scale is None else _checked_scale(scale)

    def update(self, prediction: Tensor, target: Tensor) -> None:
        """Add predictions and targets, both [B, H, C]; a non-finite value is a failure."""
        if prediction.shape != target.shape or prediction.ndim != 3:
            raise ArgumentError(
                "prediction and target must share one shape [B, H, C], got"
                f" {list(prediction.shape)} and {list(target.shape)}"
            )
        self._check_finite(prediction, what="prediction", error=SACMError)
        self._check_finite(target, what="target", error=DataError)
        # On the CPU, because not every accelerator has float64.
        difference = prediction.detach().cpu().double() - target.detach().cpu().double()
        self._add(
            difference.abs().sum(dim=0), difference.square().sum(dim=0), windows=len(prediction)
        )

    def merge(self, other: ForecastAccumulator) -> None:
        """Add what another accumulator (another process, another part of the data) has seen."""
        if other._absolute is not None and other._squared is not None:
            self._add(other._absolute, other._squared, windows=other.windows)

    def compute(self) -> ForecastReport:
        """The errors of everything seen so far."""
        if self._absolute is None or self._squared is None or self.windows == 0:
            raise SACMError("no window was evaluated, so there is no forecasting error to report")
        horizon, channels = self._absolute.shape
        absolute, squared = self._absolute / self.windows, self._squared / self.windows
        raw = None
        if self._scale is not None:
            raw = _table(absolute * self._scale, squared * self._scale.square())
        return ForecastReport(self.windows, horizon, channels, _table(absolute, squared), raw)

    def _add(self, absolute: Tensor, squared: Tensor, *, windows: int) -> None:
        if self._absolute is None or self._squared is None:
            self._absolute, self._squared = torch.zeros_like(absolute), torch.zeros_like(squared)
        if absolute.shape != self._absolute.shape:
            raise ArgumentError(
                f"horizon and channels changed from {list(self._absolute.shape)} to"
                f" {list(absolute.shape)} between batches"
            )
        if self._scale is not None and len(self._scale) != absolute.shape[1]:
            raise ArgumentError(
                f"scale has {len(self._scale)} channels, the predictions have {absolute.shape[1]}"
            )
        self._absolute = self._absolute + absolute
        self._squared = self._squared + squared
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


def _checked_scale(scale: Tensor | np.ndarray | Sequence[float]) -> Tensor:
    values = torch.as_tensor(scale).detach().cpu().double()
    if values.ndim != 1 or not bool((torch.isfinite(values) & (values > 0)).all()):
        raise ArgumentError("scale must hold one positive standard deviation per channel")
    return values


def _table(absolute: Tensor, squared: Tensor) -> ErrorTable:
    """Means of the per-step, per-channel errors [H, C]."""
    mse = float(squared.mean())
    return ErrorTable(
        mae=float(absolute.mean()),
        mse=mse,
        rmse=math.sqrt(mse),
        step_mae=tuple(absolute.mean(dim=1).tolist()),
        step_mse=tuple(squared.mean(dim=1).tolist()),
        channel_mae=tuple(absolute.mean(dim=0).tolist()),
        channel_mse=tuple(squared.mean(dim=0).tolist()),
    )
