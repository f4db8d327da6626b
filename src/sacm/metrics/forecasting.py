"""Errors of forecasts, also relative to naive ones, and how good intervals are."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, DataError, SACMError

if TYPE_CHECKING:
    from sacm.data.scaling import ChannelScaler

_DAY = {"s": 86_400.0, "min": 1440.0, "h": 24.0}
_CALENDAR = {"D": 7, "B": 5, "W": 52, "M": 12, "Q": 4, "Y": 1, "A": 1}
_MOST_ROWS = 20_000  # a season shows in fewer
_LEAST_CORRELATION = 0.3  # from which a peak of the autocorrelation is a season
Row = dict[str, float | None]


def season_length(values: np.ndarray, frequency: str | None) -> int:
    """Find the length of a season of training rows `[T, C]` in steps, from a pandas alias.

    It is a day for time steps below a day, a week for days, a year for weeks, months and quarters.
    Where the time step is unknown or the rows hold fewer than three such seasons, it is the
    strongest peak of the autocorrelation; 1 where there is none.
    """
    season = calendar_season(frequency)
    if season is not None and len(values) >= 3 * season:
        return season
    return strongest_period(values)


def calendar_season(frequency: str | None) -> int | None:
    """The season of a time step; None where the alias is unknown or does not divide a day."""
    alias = re.fullmatch(r"(\d*)([A-Za-z]+)(-\w+)?", frequency or "")
    if alias is None:
        return None
    count, unit = int(alias[1] or 1), alias[2]
    if unit in _DAY:
        steps = _DAY[unit] / count
        return int(steps) if steps == int(steps) else None
    return _CALENDAR.get(unit[0]) if count == 1 else None


def strongest_period(values: np.ndarray) -> int:
    """The lag of the highest clear peak of the mean autocorrelation `[T, C]`; 1 without one."""
    rows = np.asarray(values[-_MOST_ROWS:], dtype=np.float64)
    longest = len(rows) // 3
    if longest < 3:
        return 1
    time = np.linspace(-1, 1, len(rows))[:, None]
    centred = rows - rows.mean(axis=0)
    centred = centred - time * (time * centred).sum(axis=0) / (time**2).sum()  # without its trend
    size = 1 << (2 * len(rows) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size, axis=0)) ** 2
    raw = np.fft.irfft(power, size, axis=0)[: longest + 1]
    varied = raw[0] > 0
    if not varied.any():
        return 1
    correlation = (raw[:, varied] / raw[0, varied]).mean(axis=1)
    inner = correlation[1:-1]
    peaks = np.flatnonzero((inner > correlation[:-2]) & (inner >= correlation[2:])) + 1
    peaks = peaks[(peaks > 1) & (correlation[peaks] > _LEAST_CORRELATION)]
    if not len(peaks):
        return 1
    # Multiples of a season have peaks of nearly the same height: the first one is the season.
    return int(peaks[correlation[peaks] >= 0.9 * correlation[peaks].max()][0])


def naive_training_error(pieces: Sequence[np.ndarray], season: int) -> np.ndarray:
    """Mean absolute change over one season `[C]` in training rows, pieces of `[T, C]` each.

    A channel that never changes has 0; pieces shorter than a season and NaN do not count.
    """
    channels = pieces[0].shape[1]
    total, count = np.zeros(channels), np.zeros(channels, dtype=np.int64)
    for piece in pieces:
        change = np.abs(np.subtract(piece[season:], piece[:-season], dtype=np.float64))
        total += np.nansum(change, axis=0)
        count += np.isfinite(change).sum(axis=0)
    return total / np.maximum(count, 1)


@dataclass(frozen=True)
class ErrorTable:
    """Mean errors, also by step [H] and by channel [C]; None where nothing was observed."""

    mae: float
    mse: float
    rmse: float
    step_mae: tuple[float | None, ...]
    channel_mae: tuple[float | None, ...]
    channel_mse: tuple[float | None, ...]

    @classmethod
    def of(cls, totals: Tensor) -> ErrorTable:
        """Means of sums [3, H, C]: count, absolute and squared errors."""
        count, absolute, squared = totals
        mse = float(squared.sum() / count.sum())

        def means(errors: Tensor, dim: int) -> tuple[float | None, ...]:
            pairs = zip(errors.sum(dim=dim).tolist(), count.sum(dim=dim).tolist(), strict=True)
            return tuple(total / seen if seen else None for total, seen in pairs)

        mae = float(absolute.sum() / count.sum())
        by_channel = means(absolute, 0), means(squared, 0)
        return cls(mae, mse, math.sqrt(mse), means(absolute, 1), *by_channel)


@dataclass(frozen=True)
class ForecastReport:
    """Errors over `windows` windows, scaled, and in raw units if the accumulator has a scaler.

    `relative` holds MASE, sMAPE and WAPE, the mean over channels (of each series, where these have
    their own scales).
    """

    windows: int
    horizon: int
    channels: int
    scaled: ErrorTable
    raw: ErrorTable | None = None
    relative: Row = field(default_factory=dict)


class ForecastAccumulator:
    """Collects errors of scaled forecasts batch by batch.

    Args:
        scaler: What windows were scaled by; with it the report has raw and relative errors.
        naive_error: Error of the naive forecast in the training rows, `[C]`, or `[S, C]` where
            every series has its own scale.
    """

    def __init__(
        self, scaler: ChannelScaler | None = None, naive_error: np.ndarray | None = None
    ) -> None:
        self.windows = 0
        self._totals: Tensor | float = 0.0  # sums [S, K, H, C] of the parts that `update` makes
        self._factor, self._scales = None, None
        if scaler is not None and naive_error is not None:
            if scaler.reference is not None:
                self._factor = torch.from_numpy(np.atleast_2d(scaler.std / scaler.reference))
            arrays = (scaler.mean, scaler.std, scaler.units, naive_error)
            self._scales = [  # [S, C] each
                torch.from_numpy(np.atleast_2d(np.asarray(each, np.float64))) for each in arrays
            ]

    def in_units(self, values: Tensor, series: Tensor | None) -> Tensor:
        """Scaled values `[B, H, C]` in the units that errors are stated in."""
        if self._factor is None:
            return values
        return values * _by_window(self._factor, series).to(values.device)

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
        pair = prediction.detach(), target.detach()
        self._check_finite(pair[0], "prediction", SACMError)
        self._check_finite(pair[1], "target", DataError)
        # On the CPU, because not every accelerator has float64.
        first, second = (self.in_units(each, series).cpu().double() for each in pair)
        difference = first - second
        counted = torch.ones_like(difference) if observed is None else observed.cpu().double()
        parts = [counted, difference.abs() * counted, difference.square() * counted]
        if self._scales is not None:
            mean, std = (_by_window(each, series) for each in self._scales[:2])
            forecast, truth = (each.cpu().double() * std + mean for each in pair)  # raw
            error, level = (forecast - truth).abs(), forecast.abs() + truth.abs()
            symmetric = torch.where(level > 0, 2 * error / level.clamp_min(1e-300), 0.0)
            parts += [error * counted, symmetric * counted, truth.abs() * counted]
        if series is None or self._scales is None:
            totals = torch.stack([part.sum(dim=0) for part in parts])[None]
        else:
            totals = torch.zeros(len(self._scales[0]), len(parts), *counted.shape[1:]).double()
            totals.index_add_(0, series.cpu(), torch.stack(parts, dim=1))
        self._totals = self._totals + totals
        self.windows += len(prediction)

    def compute(self) -> ForecastReport:
        """The errors of everything seen so far."""
        totals = self._totals
        if not isinstance(totals, Tensor) or not bool(totals[:, 0].any()):
            raise SACMError("no window was evaluated, so there is no forecasting error to report")
        *_, horizon, channels = totals.shape
        scaled, raw, relative = ErrorTable.of(totals[:, :3].sum(dim=0)), None, {}
        if self._scales is not None:
            units = self._scales[2]
            powers = torch.stack([torch.ones_like(units), units, units.square()], dim=1)
            raw = ErrorTable.of((totals[:, :3] * powers[:, :, None]).sum(dim=0))
            count, _, _, error, symmetric, level = totals.sum(dim=2).transpose(0, 1)  # [S, C] each
            relative = {
                "mase": _mean_ratio(error, count * self._scales[3]),
                "smape": _mean_ratio(symmetric, count),
                "wape": _mean_ratio(error, level),
            }
        return ForecastReport(self.windows, horizon, channels, scaled, raw, relative)

    def _check_finite(self, values: Tensor, what: str, error: type[SACMError]) -> None:
        bad = (~torch.isfinite(values)).nonzero()
        if len(bad):
            window, step, channel = bad[0].tolist()
            raise error(
                f"{what} is {float(values[window, step, channel])} at window "
                f"{self.windows + window}, step {step}, channel {channel} ({len(bad)} non-finite "
                "values in this batch); a metric over it would hide a failed run"
            )


def _by_window(scale: Tensor, series: Tensor | None) -> Tensor:
    """What to scale windows [B, H, C] by, from [S, C]."""
    return scale[0] if series is None else scale[series.cpu()][:, None]


def _mean_ratio(above: Tensor, below: Tensor) -> float | None:
    """Mean of the quotients whose divisor is not 0; None if there is none."""
    usable = below > 0
    return float((above[usable] / below[usable]).mean()) if bool(usable.any()) else None
