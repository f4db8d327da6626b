"""What a channel would be by its season: level, profile, and the cycles around."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, fill_linear
from sacm.quality.series.phases import phase_median, phase_of, sorted_median
from sacm.quality.series.running import running_median

_A_CYCLE = 4
_CYCLES = 4
_FADE = 0.8
_DOUBT = 2.0
_CLIP = 3.0


@dataclass(frozen=True)
class SeasonBase:
    """Season of one channel for repairs.

    Attributes:
        period: Rows of one cycle; 0 for no season, where the base is the centre alone.
        profile: Season around the level `[period]`.
        centre: Median of the channel.
        spread: Robust deviation of what level and profile leave over.
    """

    period: int
    profile: Floats
    centre: float
    spread: float

    def predict(self, values: Floats, good: Bools, start: int, *, causal: bool = False) -> Floats:
        """What each row of a piece would be by its season.

        Args:
            values: Values `[T]`.
            good: Values that are known `[T]`.
            start: Row number of the first row.
            causal: Use earlier rows alone.

        Returns:
            The base `[T]`; at a row it never uses the value of that row itself.
        """
        if not self.period:
            return np.full(len(values), self.centre)
        season = self.profile[phase_of(len(values), start, self.period)]
        level = self._level(values - season, good, causal=causal)
        rest = np.where(good, values - season - level, 0.0)
        limit = _CLIP * self.spread
        rest = np.clip(rest, -limit, limit)
        return level + season + self._cycles_around(rest, good, causal=causal)

    def _level(self, values: Floats, good: Bools, *, causal: bool) -> Floats:
        """Slow level: running median over many cycles of the medians of quarter cycles."""
        from scipy.ndimage import uniform_filter1d

        size = max(1, self.period // _A_CYCLE)
        blocks = -(-len(values) // size)
        table = np.full(blocks * size, np.nan)
        table[: len(values)] = np.where(good, values, np.nan)
        medians, count = sorted_median(table.reshape(blocks, size).T)
        if causal:
            return np.repeat(self._levels_so_far(medians), size)[: len(values)]
        if not count.any():
            return np.full(len(values), self.centre)
        filled = fill_linear(medians, count > 0)
        if blocks > 2:
            reach = int(np.clip(len(values) // (2 * self.period), 2, 21))
            filled = running_median(filled, (_A_CYCLE * reach) | 1)
        filled = uniform_filter1d(filled, _A_CYCLE + 1, mode="nearest")
        return np.interp(np.arange(len(values)), (np.arange(blocks) + 0.5) * size, filled)

    def _levels_so_far(self, medians: Floats) -> Floats:
        """Median of the blocks before each block, over two cycles; the centre before any."""
        width = 2 * _A_CYCLE
        padded = np.concatenate((np.full(width, np.nan), medians[:-1]))
        windows = np.lib.stride_tricks.sliding_window_view(padded, width)
        levels, count = sorted_median(windows.T)
        return np.where(count > 0, levels, self.centre)

    def _cycles_around(self, rest: Floats, good: Bools, *, causal: bool) -> Floats:
        """Mean of the same phase in the four cycles before and after, drawn towards 0."""
        total, weight = np.zeros(len(rest)), np.full(len(rest), _DOUBT)
        for cycle in range(1, _CYCLES + 1):
            lag, factor = cycle * self.period, _FADE ** (cycle - 1)
            if lag >= len(rest):
                break
            total[lag:] += factor * rest[:-lag]
            weight[lag:] += factor * good[:-lag]
            if not causal:
                total[:-lag] += factor * rest[lag:]
                weight[:-lag] += factor * good[lag:]
        return total / weight


def fit_season_base(
    parts: list[Floats], good: list[Bools], starts: list[int], period: int
) -> SeasonBase:
    """Learn centre and season of one channel.

    Args:
        parts: Values `[T]` of each piece.
        good: Values that are known, of each piece.
        starts: Row number of each piece's first row.
        period: Rows of one cycle; 0 for the centre alone.
    """
    known = np.concatenate([part[ok] for part, ok in zip(parts, good, strict=True)])
    centre = float(np.median(known)) if len(known) else 0.0
    spread = 1.4826 * float(np.median(np.abs(known - centre))) if len(known) else 0.0
    if not period:
        return SeasonBase(0, np.zeros(0), centre, spread)
    filled = [fill_linear(*one) for one in zip(parts, good, strict=True)]
    less = [part - running_median(part, period | 1) for part in filled]
    profile = phase_median(less, good, starts, period)
    draft = SeasonBase(period, profile, centre, spread)
    rests = []
    for part, ok, start in zip(filled, good, starts, strict=True):
        seasonless = part - profile[phase_of(len(part), start, period)]
        rests.append(np.abs(seasonless - draft._level(seasonless, ok, causal=False))[ok])
    spread = 1.4826 * float(np.median(np.concatenate(rests))) if len(known) else 0.0
    return SeasonBase(period, profile, centre, spread)
