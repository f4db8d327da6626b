"""How far a value is from what its neighbours say, and how far that is expected to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import (
    Bools,
    Floats,
    Ints,
    apply_to_good,
    fill_linear,
    join_parts,
)
from sacm.quality.series.phases import phase_median, phase_of
from sacm.quality.series.running import running_median, slow_level
from sacm.quality.series.weibull_cut import FEWEST

QUICK = 51
"""Good rows over which the size of residuals is followed."""

_LEAST = 0.5
_CALM = 0.7
_FLAT = 0.3


@dataclass(frozen=True)
class Noise:
    """Season of one channel and the size that its residuals have by nature.

    Attributes:
        period: Rows of one cycle; 0 without a season.
        profile: Season `[period]`, empty without one.
        sizes: Median size of a residual by phase `[period]`, or one number `[1]`.
        typical: Median size of a residual.
        quick: Median of the running size in units of `sizes`.
        slow: Median of the slow level in units of `sizes`.
        width: Rows of the slow level.
    """

    period: int
    profile: Floats
    sizes: Floats
    typical: float
    quick: float
    slow: float
    width: int

    def remove_season(self, values: Floats, start: int) -> Floats:
        """Values `[T]` without the season; the first row has the number `start`."""
        if not self.period:
            return values
        return values - self.profile[phase_of(len(values), start, self.period)]

    def usual_sizes(self, rows: int, start: int) -> Floats:
        """Median size of a residual at each row, by phase alone."""
        if not self.period:
            return np.full(rows, self.typical)
        return self.sizes[phase_of(rows, start, self.period)]

    def expect(self, sizes: Floats, good: Bools, start: int, *, slowly: bool = False) -> Floats:
        """Size that a residual is expected to have at each row.

        Args:
            sizes: Sizes of the residuals `[T]`.
            good: Values that may be used `[T]`.
            start: Row number of the first row.
            slowly: Follow the level over the slow width instead of 51 good rows.
        """
        usual = self.usual_sizes(len(sizes), start)
        seen = good & (sizes > 0)
        if seen.sum() > 20:
            if slowly:
                level = apply_to_good(sizes / usual, seen, lambda z: slow_level(z, self.width))
                usual = usual * np.maximum(level / self.slow, _CALM)
            else:
                level = apply_to_good(sizes / usual, seen, lambda z: running_median(z, QUICK))
                usual = usual * np.maximum(level / self.quick, _CALM)
        return np.maximum(usual, _LEAST * self.typical)


def neighbour_residual(values: Floats, rows: Ints | None = None) -> Floats:
    """Signed distance of each value from its four neighbours.

    The smaller of the distances from the neighbours' median and from the cubic through them:
    the cubic keeps sharp natural peaks from looking like spikes.

    Args:
        values: Values `[T]` with `T >= 3`, all finite.
        rows: Rows to judge; all of them if not given.
    """
    padded = np.pad(values, 2, mode="reflect")
    if rows is None:
        a, b, c, d = padded[:-4], padded[1:-3], padded[3:-1], padded[4:]
    else:
        values = values[rows]
        a, b, c, d = (padded[rows + step] for step in (0, 1, 3, 4))
    low, high = np.minimum(a, b), np.maximum(a, b)
    low2, high2 = np.minimum(c, d), np.maximum(c, d)
    median = (np.maximum(low, low2) + np.minimum(high, high2)) / 2
    flat, curved = values - median, values - (4 * (b + c) - a - d) / 6
    return np.where(np.abs(flat) < np.abs(curved), flat, curved)


def fit_noise(
    parts: list[Floats], good: list[Bools], starts: list[int], period: int
) -> Noise | None:
    """Learn season and residual sizes of one channel.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that may be used, of each piece.
        starts: Row number of each piece's first row.
        period: Rows of one cycle; 0 without a season.

    Returns:
        The noise; None if there are too few residuals to judge.
    """
    profile = np.zeros(0)
    if period:
        filled = [fill_linear(*one) for one in zip(parts, good, strict=True)]
        levels = [running_median(part, period | 1) for part in filled]
        less = [part - level for part, level in zip(filled, levels, strict=True)]
        profile = phase_median(less, good, starts, period)
    noise = Noise(period, profile, np.ones(1), 1.0, 1.0, 1.0, 0)
    sizes = [
        np.abs(neighbour_residual(fill_linear(noise.remove_season(part, start), ok)))
        for part, ok, start in zip(parts, good, starts, strict=True)
    ]
    seen = [ok & (size > 0) for ok, size in zip(good, sizes, strict=True)]
    pooled = join_parts([size[mask] for size, mask in zip(sizes, seen, strict=True)])
    if len(pooled) < FEWEST:
        return None
    typical = float(np.median(pooled))
    width = int(np.clip(sum(map(len, parts)) // 8, 201, 2001)) | 1
    if not period:
        slow = float(np.median(slow_level(pooled, width))) / typical
        return Noise(0, profile, np.array([typical]), typical, 1.0, slow, width)
    by_phase = _smooth_round(phase_median(sizes, seen, starts, period), period // 24)
    by_phase = np.maximum(by_phase, _FLAT * typical)
    ratios = join_parts(
        [
            (size / by_phase[phase_of(len(size), start, period)])[mask]
            for size, mask, start in zip(sizes, seen, starts, strict=True)
        ]
    )
    slow = float(np.median(slow_level(ratios, width)))
    return Noise(period, profile, by_phase, typical, float(np.median(ratios)), slow, width)


def _smooth_round(values: Floats, reach: int) -> Floats:
    """Running median over a cycle that begins again at its end."""
    reach = min(max(1, reach), len(values))
    padded = np.concatenate((values[-reach:], values, values[:reach]))
    return running_median(padded, 2 * reach + 1)[reach:-reach]
