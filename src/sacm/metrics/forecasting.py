"""Errors of forecasts, also relative to naive ones, and how good intervals are."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.errors import ArgumentError, DataError, SACMError

_DAY = {"s": 86_400.0, "min": 1440.0, "h": 24.0}
_CALENDAR = {"D": 7, "B": 5, "W": 52, "M": 12, "Q": 4, "Y": 1, "A": 1}
_MOST_ROWS = 20_000  # a season shows in fewer
_LEAST_CORRELATION = 0.3  # from which a peak of the autocorrelation is a season
Row = dict[str, float | None]


def season_length(values: np.ndarray, frequency: str | None) -> int:
    """Find the length of a season of training rows `[T, C]` in steps.

    It is a day for time steps below a day (pandas aliases such as "h", "15min"), a week for days, a
    year for weeks, months and quarters. Where the time step is unknown or the rows hold fewer than
    three such seasons, it is the strongest peak of the autocorrelation; 1 where there is none.

    Example:
        >>> season_length(np.zeros((1000, 1)), "15min")
        96
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
        if len(piece) > season:
            change = np.abs(np.subtract(piece[season:], piece[:-season], dtype=np.float64))
            total += np.nansum(change, axis=0)
            count += np.isfinite(change).sum(axis=0)
    return total / np.maximum(count, 1)


@dataclass(frozen=True)
class ErrorTable:
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
class ForecastReport:
    """Errors over `windows` windows, in parts that the accumulator was given what they need for.

    `relative` holds errors without units. MASE is the mean absolute error over that of the seasonal
    naive forecast on the training rows (Hyndman & Koehler, "Another look at measures of forecast
    accuracy", 2006). sMAPE is the mean of 2 |y - f| / (|y| + |f|), from 0 to 2, and 0 where both
    are 0. WAPE is the sum of the errors over the sum of the values. They are made for each channel,
    or each channel of each series if these have scales of their own, then averaged over those that
    have one; None where none has.
    """

    windows: int
    horizon: int
    channels: int
    scaled: ErrorTable
    raw: ErrorTable | None = None
    relative: Row = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a run's record."""
        return asdict(self)


class ForecastAccumulator:
    """Collects errors of scaled forecasts batch by batch.

    Args:
        mean, std: What windows were scaled by, `[C]`, or `[S, C]` where every series has its own
            scale. With them the report has errors in raw units.
        units: Deviations in which scaled errors are stated, if not `std`; of the same shape.
        naive_error: Error of the naive forecast in the training rows, of the same shape. With it
            the report has relative errors.
    """

    def __init__(
        self,
        *,
        mean: np.ndarray | None = None,
        std: np.ndarray | None = None,
        units: np.ndarray | None = None,
        naive_error: np.ndarray | None = None,
    ) -> None:
        self.windows = 0
        self._totals: Tensor | float = 0.0  # sums [S, K, H, C] of the parts that `update` makes
        self._factor = None
        if std is not None and units is not None:
            self._factor = torch.from_numpy(np.atleast_2d(std / units))
        self._mean, self._std, self._naive = (
            None if each is None else torch.from_numpy(np.atleast_2d(np.asarray(each, np.float64)))
            for each in (mean, std, naive_error)
        )  # [S, C]
        self._scale = (
            self._std if units is None else torch.from_numpy(np.atleast_2d(units)).double()
        )

    def in_units(self, values: Tensor, series: Tensor | None) -> Tensor:
        """Scaled values `[B, H, C]` in the units that errors are stated in."""
        if self._factor is None:
            return values
        return values * _of_windows(self._factor, series).to(values.device)

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
        pair = prediction.detach(), target.detach()
        # On the CPU, because not every accelerator has float64.
        first, second = (self.in_units(each, series).cpu().double() for each in pair)
        difference = first - second
        counted = torch.ones_like(difference) if observed is None else observed.cpu().double()
        parts = [counted, difference.abs() * counted, difference.square() * counted]
        if self._mean is not None and self._std is not None and self._naive is not None:
            mean, std = (_of_windows(each, series) for each in (self._mean, self._std))
            forecast, truth = (each.cpu().double() * std + mean for each in pair)  # raw
            error, level = (forecast - truth).abs(), forecast.abs() + truth.abs()
            symmetric = torch.where(level > 0, 2 * error / level.clamp_min(1e-300), 0.0)
            parts += [error * counted, symmetric * counted, truth.abs() * counted]
        if series is None or self._scale is None:
            totals = torch.stack([part.sum(dim=0) for part in parts])[None]
        else:
            totals = torch.zeros(len(self._scale), len(parts), *counted.shape[1:]).double()
            totals.index_add_(0, series.cpu(), torch.stack(parts, dim=1))
        self._totals = self._totals + totals
        self.windows += len(prediction)

    def compute(self) -> ForecastReport:
        """The errors of everything seen so far."""
        totals = self._totals
        if not isinstance(totals, Tensor) or not bool(totals[:, 0].any()):
            raise SACMError("no window was evaluated, so there is no forecasting error to report")
        *_, horizon, channels = totals.shape
        scaled = _table(totals[:, :3].sum(dim=0))
        raw = None if self._scale is None else _table(self._raw_totals().sum(dim=0))
        relative: Row = {}
        if self._naive is not None:
            count, _, _, error, symmetric, level = totals.sum(dim=2).transpose(0, 1)  # [S, C] each
            relative = {
                "mase": _mean_ratio(error, count * self._naive),
                "smape": _mean_ratio(symmetric, count),
                "wape": _mean_ratio(error, level),
            }
        return ForecastReport(self.windows, horizon, channels, scaled, raw, relative)

    def by_series(self) -> list[tuple[float, float] | None]:
        """Mean absolute error of each series, scaled and raw; None of one without any target."""
        assert isinstance(self._totals, Tensor)
        count = self._totals[:, 0].sum(dim=(1, 2)).tolist()
        errors, raw = (
            totals[:, 1].sum(dim=(1, 2)).tolist() for totals in (self._totals, self._raw_totals())
        )
        triples = zip(errors, raw, count, strict=True)
        return [(own / seen, other / seen) if seen else None for own, other, seen in triples]

    def _raw_totals(self) -> Tensor:
        """Counts, absolute and squared errors in raw units, [S, 3, H, C]."""
        assert isinstance(self._totals, Tensor)
        assert self._scale is not None
        powers = [torch.ones_like(self._scale), self._scale, self._scale.square()]
        return self._totals[:, :3] * torch.stack(powers, dim=1)[:, :, None]

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


def _of_windows(scale: Tensor, series: Tensor | None) -> Tensor:
    """What to scale windows [B, H, C] by, from [S, C]."""
    return scale[0] if series is None else scale[series.cpu()][:, None]


def _mean_ratio(above: Tensor, below: Tensor) -> float | None:
    """Mean of the quotients whose divisor is not 0; None if there is none."""
    usable = below > 0
    return float((above[usable] / below[usable]).mean()) if bool(usable.any()) else None


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


def measure_intervals(
    truth: np.ndarray, lower: np.ndarray, upper: np.ndarray, nominal: float
) -> dict[str, Any]:
    """Count how often targets `[N, H, C]` lie in their intervals; NaN targets do not count.

    Returns:
        `nominal`, the share of targets they should enclose; `coverage`, the share they enclosed;
        `width`, the mean width in the units of the targets; `step_coverage` `[H]` and
        `channel_coverage` `[C]`, None where nothing was observed.

    Raises:
        ArgumentError: No target was observed.
    """
    seen = np.isfinite(truth)
    if not seen.any():
        raise ArgumentError("no target was observed, so there is no coverage to report.")
    inside = seen & (truth >= lower) & (truth <= upper)

    def shares(axes: tuple[int, int]) -> list[float | None]:
        pairs = zip(inside.sum(axis=axes).tolist(), seen.sum(axis=axes).tolist(), strict=True)
        return [hits / count if count else None for hits, count in pairs]

    return {
        "nominal": float(nominal),
        "coverage": float(inside.sum() / seen.sum()),
        "width": float((upper - lower)[seen].mean()),
        "step_coverage": shares((0, 2)),
        "channel_coverage": shares((0, 1)),
    }


def crps(truth: np.ndarray, quantiles: np.ndarray, levels: Sequence[float]) -> float:
    """Continuous ranked probability score from quantiles: twice the mean pinball loss.

    Args:
        truth: Targets of any shape; NaN do not count.
        quantiles: Forecast quantiles `[Q, *truth.shape]`.
        levels: The Q levels, evenly spaced between 0 and 1.

    Returns:
        The mean over targets, in their units; lower is better. With a single level of 0.5 it is
        the mean absolute error.
    """
    losses = []
    for quantile, level in zip(quantiles, levels, strict=True):
        error = truth - quantile
        losses.append(np.nanmean(np.maximum(level * error, (level - 1) * error)))
    return float(2 * np.mean(losses))
