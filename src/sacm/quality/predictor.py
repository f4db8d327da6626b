"""What a value should be: robust units, seasons, neighbours in time and related channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sacm.quality.config import NORMAL, Fixed, GuardConfig

Array = np.ndarray
TINY = np.finfo(np.float64).eps


class Rows:
    """Rows `[T]` of a table by segment; `starts` number the first ones in their series."""

    def __init__(self, segments: Sequence[range], starts: Any = 0) -> None:
        self.segments = tuple(segments)
        self.slices = [slice(rows.start, rows.stop) for rows in segments]
        lengths = [len(rows) for rows in segments]
        self.count, first = sum(lengths), np.array([rows.start for rows in segments])
        self.first = np.repeat(first, lengths)  # first row of the own segment
        self.stop = np.repeat(first + lengths, lengths)  # row after its last
        self.number = np.arange(self.count) - np.repeat(first - np.asarray(starts), lengths)

    def alone(self, at: slice) -> Rows:
        """A part of one segment as a table of its own."""
        return Rows([range(at.stop - at.start)], self.number[at.start])

    @property
    def longest(self) -> slice:
        """Rows of the longest segment."""
        return max(self.slices, key=lambda at: at.stop - at.start)


def running_median(values: Array, width: int) -> Array:
    """Running median of values `[T]` over an odd number of rows; the ends are repeated."""
    from scipy.ndimage import median_filter

    return median_filter(values, width, mode="nearest")


def moving_mean(values: Array, width: int) -> Array:
    """Mean of values `[T, C]` over the rows around each row."""
    total = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, 0)])
    rows = np.arange(len(values)) - width // 2
    first, last = (np.clip(rows + shift, 0, len(values)) for shift in (0, width))
    return (total[last] - total[first]) / (last - first)[:, None]


def interpolate(values: Array, bad: Array) -> Array:
    """Values `[T, C]` with straight lines across what is bad; 0 in channels without a value."""
    rows, result = np.arange(len(values)), np.where(bad, 0.0, values)
    for channel in np.flatnonzero(bad.any(0) & ~bad.all(0)):
        good = ~bad[:, channel]
        result[~good, channel] = np.interp(rows[~good], rows[good], values[good, channel])
    return result


def robust_scale(values: Array) -> Array:
    """Standard deviation of each channel of values `[T, C]`, from the central ones; never 0."""
    outer, spread = (1 - Fixed.central) / 2, values.std(axis=0)
    low, high = quantiles(values, (outer, 1 - outer))
    central = (high - low) / (-2 * NORMAL(outer))
    return np.where(high > low, central, np.where(spread > 0, spread, 1.0))


def quantiles(values: Array, probabilities: Sequence[float]) -> Array:
    """Quantiles `[q, ...]` of values `[T, ...]`, NaN left out; no column is empty."""
    ordered = np.sort(values, axis=0)  # quicker than a partition; NaN comes last
    position = np.multiply.outer(np.asarray(probabilities), (values == values).sum(0) - 1)
    low = np.floor(position).astype(int)
    below = np.take_along_axis(ordered, low, axis=0)
    above = np.take_along_axis(ordered, np.ceil(position).astype(int), axis=0)
    return below + (position - low) * (above - below)


def find_segments(mask: Array) -> tuple[Array, Array]:
    """First rows, and rows after the last, of the true stretches of a mask `[T]`."""
    edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def find_season(values: Array) -> int:
    """Rows of the shortest cycle that repeats best in values `[T, C]` in deviations; 0 for none."""
    from scipy.fft import irfft, next_fast_len, rfft

    rows, steady, shortest = len(values), remove_trend(values), Fixed.shortest_season
    lags = rows // (2 * shortest) + 1
    size = next_fast_len(rows + lags, real=True)
    spectrum = np.abs(rfft(steady, size, axis=0)) ** 2
    correlation = irfft(spectrum, size, axis=0)[:lags]
    correlation = correlation / np.maximum(correlation[0], TINY)
    shares: dict[int, float] = {}
    for curve in np.column_stack([correlation.mean(1), correlation[:, : Fixed.season_channels]]).T:
        inner = curve[1:-1]
        peak = (inner > curve[:-2]) & (inner >= curve[2:]) & (inner > Fixed.least_correlation)
        peaks = np.flatnonzero(peak) + 1
        for period in peaks[np.argsort(-curve[peaks])][:shortest].tolist():
            if shortest <= period <= rows // (2 * shortest) and period not in shares:
                shares[period] = float(repeating_share(steady, period).mean())
    best = max(shares.values(), default=0.0)
    near = [period for period, share in shares.items() if share >= Fixed.near_best * best]
    return 0 if best < Fixed.season_least else min(near)


def remove_trend(values: Array) -> Array:
    """Values `[T, C]` in deviations, clipped, without their slow moving mean."""
    clipped = np.clip(values, -Fixed.clip, Fixed.clip)
    return clipped - moving_mean(clipped, min(max(len(values) // 2, 1), Fixed.slow_rows))


def repeating_share(steady: Array, period: int) -> Array:
    """Share of each channel's variance `[C]` that repeats from even to odd cycles."""
    pairs, channels = len(steady) // (2 * period), steady.shape[1]
    even, odd = steady[: pairs * 2 * period].reshape(pairs, 2, period, channels).mean(0)
    return (even * odd).mean(0) / np.maximum(steady.var(0), TINY)


def neighbour_residual(values: Array, kept: Array, rows: Rows) -> Array:
    """Signed distance of each value `[T]` from its kept neighbours.

    The prediction is the median of the two kept values on either side, or the line between the
    inner two, whichever is nearer to the value.
    """
    here, good = np.arange(len(values)), np.flatnonzero(kept)
    before = np.concatenate([[0], np.cumsum(kept)])  # kept values before each row
    low, high = before[rows.first], before[rows.stop] - 1
    last = np.minimum(np.maximum(high, low), len(good) - 1)
    first = np.minimum(low, last)
    near_rows = before[:-1] - 2, before[:-1] - 1, before[1:], before[1:] + 1
    index = np.stack([np.minimum(np.maximum(rows, first), last) for rows in near_rows])
    near, left, right = values[good][index], good[index[1]], good[index[2]]
    way = np.where(right > left, (here - left) / np.maximum(right - left, 1), 1 / 2)
    line = near[1] * (1 - way) + near[2] * way
    middle = (near.sum(0) - near.max(0) - near.min(0)) / 2
    nearer = np.where(np.abs(values - middle) < np.abs(values - line), middle, line)
    return np.where(high < low, 0.0, values - nearer)


def related_channels(scores: Array, known: Array, config: GuardConfig) -> Array:
    """Channels `[C, C]` whose large scores coincide beyond chance; `known` are faults `[T, C]`."""
    big, good = (scores > config.together).astype(float), (~known).astype(float)
    both, count = big.T @ big, big.sum(0)
    chance = np.outer(count, count) / np.maximum(good.T @ good, 1)
    least = np.minimum.outer(count, count)
    related = (both >= config.shortest) & (both - chance > config.related * (least - chance))
    return related & ~np.eye(len(count), dtype=bool)


def shared_score(scores: Array, related: Array, least: float = 1.0) -> Array:
    """Middle score of related channels `[T, C]`, in rows -1 to +1; `[1, C]` if none is related."""
    if not related.any():
        return np.full((1, scores.shape[1]), least)
    result = np.full_like(scores, least)
    for channel in np.flatnonzero(related.any(1)):
        others = related[channel]
        middle = (others.sum() - 1) // 2
        near = np.pad(np.partition(scores[:, others], middle, axis=1)[:, middle], 1)
        result[:, channel] = np.maximum.reduce([near[:-2], near[1:-1], near[2:]])
    return np.maximum(result, least)


def nearby_score(scores: Array) -> Array:
    """Second smallest score of the two values before and the two after, at least 1."""
    padded, count = np.pad(scores, ((2, 2), (0, 0))), len(scores)
    first, second, _, third, fourth = (padded[shift : shift + count] for shift in range(5))
    low = np.minimum(first, second), np.minimum(third, fourth)
    high = np.minimum(np.maximum(first, second), np.maximum(third, fourth))
    return np.maximum(1.0, np.minimum(np.maximum(*low), high))


def usual_size(residuals: Array, tied: float = 1.0) -> float:
    """Standard deviation of residuals `[T]`, from the median of those that are not 0.

    Where more than a share `tied` is 0 the lower quartile counts: the others may be faults.
    """
    moving = residuals[residuals > 0]
    if not len(moving):
        return 1.0
    share = 1 / 2 if len(moving) >= (1 - tied) * len(residuals) else 1 / 2**2
    return float(quantiles(moving, [share])[0]) / NORMAL((1 + share) / 2)  # quantile of |normal|
