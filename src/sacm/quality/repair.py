"""Repair broken values by their conditional mean in a Gaussian model of the table.

A channel in deviations, without its season's profile, is a weighted sum of related channels in the
same row and of its own values a season before and after, plus an autoregression. Broken values take
the place that makes all innovations smallest. The deviation to expect of a repair is measured on
stretches of good values that were hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np

from sacm.quality.config import MODELS, NORMAL, NORMAL_MEDIAN, SMALL
from sacm.quality.predictor import (
    TINY,
    Array,
    Rows,
    find_season,
    find_segments,
    interpolate,
    moving_mean,
    robust_scale,
)

LAGS = tuple((2**k, 2 ** (k + 1) - 1) for k in range(5))
"""First and last row of the means of the past that the autoregression sees: 1, 2-3, 4-7, ..."""
REACH = LAGS[-1][1]
DISTANCES = (1, *(2**k + 1 for k in range(7)))
"""Rows to the nearest good value from which on a repair is another class of uncertainty."""
INTERVAL = NORMAL((1 + MODELS.coverage) / 2)
"""Half the width of a 90 % interval, in standard deviations of a normal variable."""


class Repair(NamedTuple):
    """Repaired values and the deviation to expect of them, `[T, C]`; 0 where nothing changed."""

    values: Array
    uncertainty: Array


@dataclass
class RepairModel:
    """The Gaussian model of C channels.

    Attributes:
        centre, scale: `[C]` units of a deviation.
        season: Rows of a season; 0 for none.
        profile: `[season, C]` what repeats in every season.
        related: `[C, C]` weights of the other channels in the same row.
        own: `[C, 2]` weights of the own values one and two seasons before and after.
        past: `[C, 5]` weights of the means over `LAGS`.
        errors: `[8, C]` deviation of a repair by its distance from good values.
    """

    centre: Array
    scale: Array
    season: int
    profile: Array
    related: Array
    own: Array
    past: Array
    errors: Array

    @classmethod
    def learn(cls, values: Array, bad: Array, rows: Rows) -> Self:
        """Fit the model to training rows `[T, C]` without what is bad, and measure its errors."""
        model = cls.fit(values, bad, rows)
        model.errors = model._measure(values, bad, rows)
        return model

    @classmethod
    def fit(cls, values: Array, bad: Array, rows: Rows) -> Self:
        bad = bad | ~np.isfinite(values)
        full = interpolate(np.where(bad, 0.0, values), bad)
        centre, scale = np.median(full, axis=0), robust_scale(full)
        scaled = (full - centre) / scale
        part = rows.longest
        season, power = find_season(scaled[part], MODELS.season_least)
        profile = _profile(scaled[part], rows.number[part], season, power)
        scaled = scaled - profile[rows.number % max(season, 1)]
        related, own, past = _fit_weights(interpolate(scaled, bad), bad, season)
        errors = np.ones((len(DISTANCES), values.shape[1]))
        return cls(centre, scale, season, profile, related, own, past, errors)

    def fill(self, values: Array, bad: Array, rows: Rows) -> Array:
        """Values `[T, C]` with what is bad or missing replaced by its conditional mean."""
        bad = bad | ~np.isfinite(values)
        result = np.array(values, np.float64)
        if not bad.any():
            return result
        for own, part in rows.apart():
            if bad[own].any():
                result[own] = self._fill(result[own], bad[own], part.number)
        return result

    def _fill(self, values: Array, bad: Array, number: Array) -> Array:
        profile = self.profile[number % max(self.season, 1)]
        scaled = (np.where(bad, 0.0, values) - self.centre) / self.scale - profile
        scaled = interpolate(scaled, bad)
        near = rows_near(np.asarray(bad.any(1)), REACH + 1)  # no other row changes what is smallest
        for _ in range(MODELS.sweeps):
            known = _explained(scaled, self.related, self.own, self.season)
            rest = interpolate(scaled - known, bad)
            rest[near] = _least_innovations(rest[near], bad[near], self.past)
            scaled = np.where(bad, rest + known, scaled)
        return np.where(bad, (scaled + profile) * self.scale + self.centre, values)

    def repair(self, values: Array, bad: Array, rows: Rows) -> Repair:
        """Repair rows `[T, C]`; what is not bad stays bit by bit as it is."""
        filled = self.fill(values, bad, rows)
        bad = bad | ~np.isfinite(values)
        return Repair(np.where(bad, filled, values), self.uncertainty(bad))

    def uncertainty(self, bad: Array) -> Array:
        """Deviation to expect of repairs `[T, C]`, in the units of the data."""
        spread = np.zeros(bad.shape)
        for channel in np.flatnonzero(bad.any(0)):
            distance = distance_to_good(bad[:, channel])
            place = np.searchsorted(DISTANCES, distance, "right") - 1
            spread[:, channel] = np.where(bad[:, channel], self.errors[place, channel], 0.0)
        return spread * self.scale

    def _measure(self, values: Array, bad: Array, rows: Rows) -> Array:
        """Deviations `[8, C]` of repairs of hidden values, in deviations of the channel.

        They are scaled so that 90 % of the errors lie within a normal 90 % interval.
        """
        part = rows.longest
        part = slice(part.start, min(part.stop, part.start + MODELS.hidden_most))
        values, bad = values[part], bad[part] | ~np.isfinite(values[part])
        hidden = hide_stretches(bad.shape, MODELS.hidden_rows, MODELS.hidden_share) & ~bad
        filled = self.fill(
            values, bad | hidden, Rows([range(len(bad))], [int(rows.number[part.start])])
        )
        error = np.abs(filled - values) / self.scale
        result = np.ones((len(DISTANCES), bad.shape[1]))
        for channel in range(bad.shape[1]):
            own = hidden[:, channel]
            distance = distance_to_good(bad[:, channel] | own)
            place = np.searchsorted(DISTANCES, distance, "right") - 1
            result[:, channel] = _quantiles_by_class(error[own, channel], place[own])
        return result

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {f.name: np.asarray(getattr(self, f.name)).tolist() for f in fields(self)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """The model that `to_dict` described."""
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in record.items()}
        return cls(**{**arrays, "season": int(record["season"])})


def hide_stretches(
    shape: tuple[int, ...], lengths: tuple[int, ...], share: float, seed: int = 0
) -> Array:
    """A mask `[T, C]` of random stretches of each length, each filling its part of `share`."""
    generator = np.random.default_rng(seed)
    rows, channels = shape
    mask = np.zeros(shape, bool)
    for length in lengths:
        if length > rows // 4:
            continue
        count = max(1, int(share * rows / len(lengths) / length))
        starts = generator.integers(0, rows - length, (count, channels))
        for channel in range(channels):
            mask[(starts[:, channel, None] + np.arange(length)).ravel(), channel] = True
    return mask


def rows_near(mask: Array, margin: int) -> Array:
    """Rows `[T]` at most `margin` rows from a marked one."""
    total = np.concatenate([[0], np.cumsum(mask)])
    rows = np.arange(len(mask))
    low, high = np.maximum(rows - margin, 0), np.minimum(rows + margin + 1, len(mask))
    return total[high] > total[low]


def distance_to_good(bad: Array) -> Array:
    """Rows `[T]` from each bad value to the nearest good one; 0 for good values."""
    distance = np.zeros(len(bad), int)
    for first, stop in zip(*find_segments(bad), strict=True):
        inside = np.arange(stop - first)
        left = inside + 1 if first else np.full(stop - first, len(bad))
        right = inside[::-1] + 1 if stop < len(bad) else np.full(stop - first, len(bad))
        distance[first:stop] = np.minimum(left, right)
    return distance


def _quantiles_by_class(errors: Array, place: Array) -> Array:
    """90 % quantile of errors over half a 90 % interval, by class; never falls with distance."""
    fewest = 20
    result = np.full(len(DISTANCES), np.nan)
    for number in range(len(DISTANCES)):
        own = errors[place == number]
        if len(own) >= fewest:
            result[number] = np.quantile(own, MODELS.coverage) / INTERVAL
    known = np.flatnonzero(np.isfinite(result))
    if not len(known):
        return np.ones(len(DISTANCES))
    result = np.interp(np.arange(len(DISTANCES)), known, result[known])
    return np.maximum.accumulate(result)


def _profile(scaled: Array, number: Array, season: int, power: Array) -> Array:
    """Median of each phase around the moving mean `[season, C]`; shrunk if there are few cycles."""
    if not season:
        return np.zeros((1, scaled.shape[1]))
    prior = 2  # cycles
    cycles = len(scaled) // season
    around = (scaled - moving_mean(scaled, season))[: cycles * season]
    profile = np.median(around.reshape(cycles, season, -1), axis=0)
    profile = np.where(power > MODELS.season_least, profile - profile.mean(0), 0.0)
    return np.roll(profile * cycles / (cycles + prior), int(number[0]) % season, axis=0)


def _beside(scaled: Array, shift: int) -> Array:
    """Mean of the values `shift` rows before and after; at the ends twice the one there is."""
    if len(scaled) < 2 * shift:
        return np.zeros_like(scaled)
    before = np.concatenate([scaled[shift : 2 * shift], scaled[:-shift]])
    after = np.concatenate([scaled[shift:], scaled[-2 * shift : -shift]])
    return (before + after) / 2


def _explained(scaled: Array, related: Array, own: Array, season: int) -> Array:
    """What related channels and the own season explain of rows `[T, C]` in deviations."""
    result = scaled @ related.T
    for place, turns in enumerate((1, 2) if season else ()):
        result = result + _beside(scaled, turns * season) * own[:, place]
    return result


def _past_means(rest: Array) -> Array:
    """Means over `LAGS` of the rows before each row, `[T, C, 5]`."""
    total = np.concatenate([np.zeros((1, rest.shape[1])), np.cumsum(rest, 0)])
    rows = np.arange(len(rest))
    means = [
        (total[np.maximum(rows - near + 1, 0)] - total[np.maximum(rows - far, 0)])
        / (far - near + 1)
        for near, far in LAGS
    ]
    return np.stack(means, -1)


def _fit_weights(scaled: Array, bad: Array, season: int) -> tuple[Array, Array, Array]:
    """Weights of related channels, of the own season and of the past."""
    rows, channels = scaled.shape
    if rows <= REACH:
        return (
            np.zeros((channels, channels)),
            np.zeros((channels, 2)),
            np.zeros((channels, len(LAGS))),
        )
    whole = ~bad
    for lag in (1, 2):
        whole[lag:] &= ~bad[:-lag]
    whole[:REACH] = False
    chosen = slice(0, rows, max(1, rows // MODELS.fit_rows))
    earlier = np.vstack([scaled[:1], scaled[:-1]])
    with np.errstate(all="ignore"):
        steps = np.abs(np.corrcoef(scaled - earlier, rowvar=False)).reshape(channels, channels)
        levels = np.abs(np.corrcoef(scaled, rowvar=False)).reshape(channels, channels)
    strength = np.nan_to_num(np.maximum(steps, MODELS.level_share * levels))
    strength *= 1 - np.eye(channels)
    sides = [_beside(scaled, season), _beside(scaled, 2 * season)] if season else []
    related, own = np.zeros((channels, channels)), np.zeros((channels, 2))
    past = np.zeros((channels, len(LAGS)))
    for channel in range(channels):
        weight = whole[chosen, channel].astype(float)
        before = earlier[chosen, channel : channel + 1]
        carry = float(_ridge(before, scaled[chosen, channel], weight, 0.0)[0])
        carry = min(max(carry, 0.0), MODELS.largest_carry)
        picked = np.argsort(-strength[channel])[: MODELS.most_related]
        picked = picked[strength[channel, picked] > MODELS.least_correlation]
        columns = [scaled[:, p] for p in picked] + [side[:, channel] for side in sides]
        columns.append(scaled[:, channel])
        # Differences with the carry have white residuals, so that least squares is efficient.
        white = np.stack([(c - carry * np.append(c[:1], c[:-1]))[chosen] for c in columns], 1)
        weights = _ridge(white[:, :-1], white[:, -1], weight, MODELS.penalty)
        related[channel, picked] = weights[: len(picked)]
        own[channel, : len(sides)] = weights[len(picked) :]
    rest = scaled - _explained(scaled, related, own, season)
    means = _past_means(rest)
    for channel in range(channels):
        weight = whole[chosen, channel].astype(float)
        past[channel] = _ridge(means[chosen, channel], rest[chosen, channel], weight, 0.0)
        past[channel] /= max(1.0, past[channel].sum())
    return related, own, past


def _ridge(x: Array, y: Array, weight: Array, penalty: float) -> Array:
    """Weighted ridge regression, then once more with less weight on large residuals."""
    freedom = 4  # of the t distribution that the weights are made for
    if not x.shape[1] or weight.sum() < freedom * (x.shape[1] + 1):
        return np.zeros(x.shape[1])
    current = weight
    for _ in range(2):
        product = (x * current[:, None]).T @ x
        diagonal = np.diag(product)
        product = product + np.diag(penalty * diagonal + SMALL * (diagonal.max() + SMALL))
        result = np.linalg.solve(product, x.T @ (current * y))
        error = y - x @ result
        size = np.median(np.abs(error[weight > 0])) / NORMAL_MEDIAN + SMALL
        current = weight * (freedom + 1) / (freedom + (error / size) ** 2)
    return result


def _least_innovations(rest: Array, bad: Array, past: Array) -> Array:
    """Rows `[T, C]` whose bad values make `rest - past . means` smallest: conjugate gradients."""
    rows, channels = rest.shape
    length = 1 << int(np.ceil(np.log2(rows + 2 * REACH)))
    kernel = np.zeros((length, channels))
    kernel[0] = 1
    for place, (near, far) in enumerate(LAGS):
        kernel[near : far + 1] -= past[:, place] / (far - near + 1)
    power = np.abs(np.fft.rfft(kernel, axis=0)) ** 2
    padding = ((REACH, length - rows - REACH), (0, 0))
    mask = np.pad(bad, padding)

    def gradient(values: Array) -> Array:
        turned = np.fft.irfft(np.fft.rfft(values, axis=0) * power, length, axis=0)
        return np.where(mask, turned, 0.0)

    result = np.pad(rest, padding, "edge")
    residual = -gradient(result)
    direction, square = residual.copy(), (residual * residual).sum(0)
    goal = SMALL * square
    for _ in range(MODELS.steps):
        image = gradient(direction)
        step = square / np.maximum((direction * image).sum(0), TINY)
        result, residual = result + step * direction, residual - step * image
        before, square = square, (residual * residual).sum(0)
        if (square <= goal).all():
            break
        direction = residual + direction * square / np.maximum(before, TINY)
    return result[REACH : rows + REACH]
