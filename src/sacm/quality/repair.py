"""Repair broken values by their conditional mean in a Gaussian model of the table.

A channel in deviations, without its season's profile, is a weighted sum of related channels in the
same row plus an autoregression. Broken values take the place that makes all innovations smallest.
The deviation to expect of a repair is measured on stretches of good values that were hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sacm.quality import predictor
from sacm.quality.config import NORMAL, SMALL, Fixed
from sacm.quality.predictor import Array, Rows, interpolate

# First and last row of the means of the past that the autoregression sees: 1, 2-3, 4-7, ...
LAGS = tuple((2**k, 2 ** (k + 1) - 1) for k in range(Fixed.lags))
REACH = LAGS[-1][1]
# Rows to the nearest good value from which on a repair is another class of uncertainty.
DISTANCES = (1, *(2**k + 1 for k in range(Fixed.distances)))
HIDDEN = tuple(2**k for k in range(0, Fixed.distances, 2))  # rows of stretches hidden to measure it
INTERVAL = NORMAL((1 + Fixed.coverage) / 2)  # half of a 90 % interval, in normal deviations


@dataclass
class RepairModel:
    """The Gaussian model of C channels."""

    season: int  # rows; 1 for none
    centre: Array  # [C]
    scale: Array  # [C]: a deviation
    profile: Array  # [season, C]: what repeats in every season
    related: Array  # [C, C]: weights of the other channels in the same row
    past: Array  # [C, 5]: weights of the means over `LAGS`
    errors: Array  # [8, C]: deviation of a repair by its distance from good values

    @classmethod
    def learn(
        cls, values: Array, bad: Array, rows: Rows, season: int | None = None, errors: bool = True
    ) -> Self:
        """Fit to the good values of training rows `[T, C]`; without `season` it is looked for."""
        bad = bad | ~np.isfinite(values)
        full = interpolate(values, bad)
        centre, scale = predictor.quantiles(full, [1 / 2])[0], predictor.robust_scale(full)
        scaled, part = (full - centre) / scale, rows.longest
        season = predictor.find_season(scaled[part]) if season is None else season
        profile = _profile(scaled[part], rows.number[part], season)
        scaled = interpolate(scaled - profile[rows.number % max(season, 1)], bad)
        model = cls(max(season, 1), centre, scale, profile, *_fit_weights(scaled, bad), np.ones(0))
        if errors:
            model.errors = model._measure(values, bad, rows)
        return model

    def fill(self, values: Array, bad: Array, rows: Rows) -> Array:
        """Values `[T, C]` with what is bad or missing replaced by its conditional mean."""
        bad = bad | ~np.isfinite(values)
        profile = self.profile[rows.number % self.season]
        result = (values - self.centre) / self.scale - profile
        for at in (at for at in rows.slices if bad[at].any()):
            scaled = interpolate(result[at], bad[at])
            for _ in range(2):  # a second time with the other channels filled
                explained = scaled @ self.related.T
                rest = interpolate(scaled - explained, bad[at])
                scaled = self._least_innovations(rest, bad[at]) + explained
            result[at] = scaled
        return np.where(bad, (result + profile) * self.scale + self.centre, values)

    def residuals(self, values: Array, bad: Array, rows: Rows) -> Array:
        """Signed distance of values `[T, C]` from what all others but the bad ones predict."""
        bad = bad | ~np.isfinite(values)
        filled = self.fill(values, bad, rows)
        scaled = (filled - self.centre) / self.scale - self.profile[rows.number % self.season]
        left_out = np.zeros_like(scaled)
        for at in rows.slices:
            rest = scaled[at] - scaled[at] @ self.related.T
            for channel, precision in enumerate(self._precisions()):
                left_out[at, channel] = _weigh(rest[:, channel], precision) / precision[0]
        return np.where(bad, np.nan_to_num(values) - filled, left_out * self.scale)

    def uncertainty(self, bad: Array) -> Array:
        """Deviation to expect of repairs `[T, C]`, in the units of the data; 0 where not bad."""
        return np.take_along_axis(self.errors, _class(bad), 0) * self.scale * bad

    def errors_after(self, rows: Array) -> Array:
        """Deviation so many rows `[T, C]` after a good value: that amid a gap twice as long."""
        near = np.searchsorted(DISTANCES, 2 * np.maximum(rows, 1), "right") - 1
        return np.take_along_axis(self.errors, near, 0) * self.scale

    def _measure(self, values: Array, bad: Array, rows: Rows) -> Array:
        """Deviations `[8, C]` whose 90 % intervals hold 90 % of the repairs of hidden values."""
        part = rows.longest
        part = slice(max(part.start, part.stop - Fixed.fit_rows), part.stop)  # the latest rows
        bad, values = bad[part], np.where(bad, 0.0, values)[part]
        hidden = hide_stretches(bad.shape, HIDDEN) & ~bad
        error = np.abs(self.fill(values, bad | hidden, rows.alone(part)) - values) / self.scale
        result, near = np.ones((len(DISTANCES), bad.shape[1])), _class(bad | hidden)
        for channel, at in enumerate(hidden.T):
            distance = near[at, channel]
            classes, counts = np.unique(distance, return_counts=True)
            classes = classes[counts >= len(DISTANCES)]
            if len(classes):
                errors = [error[at, channel][distance == k] for k in classes]
                shares = [min(1.0, Fixed.coverage * (1 + 1 / len(each))) for each in errors]
                spread = np.array([*map(np.quantile, errors, shares)]) / INTERVAL
                spread = np.interp(np.arange(len(DISTANCES)), classes, spread)
                result[:, channel] = np.maximum.accumulate(spread)
        return result

    def _precisions(self) -> Array:
        """Each channel's precision of values so many rows apart, `[C, REACH + 1]`."""
        kernels = np.zeros((len(self.past), REACH + 1))  # from values to innovations
        kernels[:, 0] = 1
        for number, (near, far) in enumerate(LAGS):
            kernels[:, near : far + 1] = -self.past[:, number : number + 1] / (far - near + 1)
        return np.stack([np.correlate(kernel, kernel, "full")[REACH:] for kernel in kernels])

    def _least_innovations(self, rest: Array, bad: Array) -> Array:
        """Rows `[T, C]` whose bad values make innovations smallest."""
        from scipy.linalg import solveh_banded

        result, precisions = rest.copy(), self._precisions()
        for channel in np.flatnonzero(bad.any(0)):
            precision, at = precisions[channel], np.flatnonzero(bad[:, channel])
            bands = np.zeros((min(REACH + 1, len(at)), len(at)))  # the lower ones of bad values
            for band in range(len(bands)):
                apart = at[band:] - at[: len(at) - band]
                bands[band, : len(apart)] = np.append(precision, 0)[np.minimum(apart, REACH + 1)]
            bands[0] *= 1 + SMALL**2
            pull = _weigh(rest[:, channel], precision)[at]
            result[at, channel] -= solveh_banded(bands, pull, lower=True)
        return result


def _weigh(column: Array, precision: Array) -> Array:
    """The product of a precision matrix with a column `[T]` between repeated ends."""
    whole = np.concatenate([precision[:0:-1], precision])
    return np.convolve(np.pad(column, REACH, "edge"), whole, "valid")


def hide_stretches(shape: tuple[int, ...], lengths: Sequence[int], seed: int = 0) -> Array:
    """A mask `[T, C]` of random stretches of each length, `hidden_share` of the values in all."""
    rows, channels = shape
    generator, mask = np.random.default_rng(seed), np.zeros(shape, bool)
    for length in lengths:
        if length <= rows // len(lengths):
            count = max(1, int(Fixed.hidden_share * rows / len(lengths) / length))
            starts = generator.integers(0, rows - length, (count, channels))
            at = starts[:, None] + np.arange(length)[:, None]
            mask[at, np.arange(channels)] = True
    return mask


def _class(bad: Array) -> Array:
    """Class `[T, C]` of the distance from each bad value to the nearest good one."""
    steps, distance = np.arange(1, len(bad) + 1)[:, None], np.full(bad.shape, len(bad))
    for way in (slice(None), slice(None, None, -1)):
        good = np.maximum.accumulate(np.where(bad[way], -len(bad), steps), 0)
        distance = np.minimum(distance, (steps - good)[way])
    return np.searchsorted(DISTANCES, distance, "right") - 1


def _profile(scaled: Array, number: Array, season: int) -> Array:
    """Median of each phase around the moving mean `[season, C]`."""
    if not season:
        return np.zeros((1, scaled.shape[1]))
    cycles = len(scaled) // season
    around = (scaled - predictor.moving_mean(scaled, season))[: cycles * season]
    profile = predictor.quantiles(around.reshape(cycles, season, -1), [1 / 2])[0]
    share = predictor.repeating_share(predictor.remove_trend(scaled), season)
    profile = np.where(share > Fixed.season_least, profile - profile.mean(0), 0.0)
    return np.roll(profile, int(number[0]) % season, axis=0)


def _fit_weights(scaled: Array, bad: Array) -> tuple[Array, Array]:
    """Weights of related channels and of the past."""
    rows, channels = scaled.shape
    related, past = np.zeros((channels, channels)), np.zeros((channels, len(LAGS)))
    if rows <= REACH:
        return related, past
    whole = ~bad
    for lag in (1, 2):
        whole[lag:] &= ~bad[:-lag]
    whole[:REACH] = False
    chosen = slice(0, rows, max(1, rows // Fixed.fit_rows))
    weights = whole[chosen].astype(float)
    # Steps have nearly white residuals, so that least squares is efficient.
    steps = np.diff(scaled, axis=0, prepend=scaled[:1])
    with np.errstate(all="ignore"):
        correlation = np.corrcoef(steps, rowvar=False).reshape(channels, channels)
    strength = np.nan_to_num(np.abs(correlation)) * (1 - np.eye(channels))
    for channel in range(channels):
        picked = np.argsort(-strength[channel])[: Fixed.most_related]
        picked = picked[strength[channel, picked] > Fixed.least_correlation]
        x, y = steps[chosen][:, picked], steps[chosen, channel]
        related[channel, picked] = _ridge(x, y, weights[:, channel], Fixed.penalty)
    rest = scaled - scaled @ related.T
    total = np.concatenate([np.zeros((1, channels)), np.cumsum(rest, 0)])
    at = np.arange(rows)[chosen]
    ends = [(np.maximum(at - near + 1, 0), np.maximum(at - far, 0)) for near, far in LAGS]
    widths = [far - near + 1 for near, far in LAGS]
    means = np.stack([total[last] - total[first] for last, first in ends], -1) / widths
    for channel in range(channels):
        past[channel] = _ridge(means[:, channel], rest[chosen, channel], weights[:, channel])
        past[channel] /= max(1.0, past[channel].sum())
    return related, past


def _ridge(x: Array, y: Array, weight: Array, penalty: float = 0.0) -> Array:
    """Weighted ridge regression of `y` on the columns of `x`; zeros if there are too few rows."""
    if weight.sum() <= 2 * x.shape[1]:
        return np.zeros(x.shape[1])
    product = (x * weight[:, None]).T @ x
    diagonal = np.diag(product)
    least = SMALL * (diagonal.max(initial=0.0) + SMALL)
    return np.linalg.solve(product + np.diag(penalty * diagonal + least), x.T @ (weight * y))
