"""Stretches at another level that return: two opposite jumps around an unusual level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, find_stretches
from sacm.quality.series.running import five_medians
from sacm.quality.series.weibull_cut import weibull_cut

_LENGTHS = (6, 16, 40, 100)
_STRETCHES = 1500
_SIDE = 12
_FEWEST_ROWS = 2000
_SHORTEST = 4
_AHEAD = 4


@dataclass(frozen=True)
class ShiftCuts:
    """What jumps and levels of one channel look like by nature.

    Attributes:
        edge: Jump from which a row can be the edge of a shift.
        sure: Jump so large that two of them need no further evidence.
        bumps: Natural difference of a stretch from its two sides, for 6, 16, 40 and 100 rows.
        low: Lower end of the usual level.
        high: Upper end of the usual level.
    """

    edge: float
    sure: float
    bumps: tuple[float, ...]
    low: float
    high: float

    def is_unusual(self, level: float, difference: float, rows: int) -> bool:
        """Whether a stretch at this level differs from its sides as natural ones do not."""
        bump = float(np.interp(np.log(rows), np.log(_LENGTHS), self.bumps))
        outside = not self.low <= level <= self.high
        if not np.isfinite(bump):
            return outside
        return (outside and difference > 0.5 * bump) or difference > 1.5 * bump


def find_jumps(plain: Floats) -> Floats:
    """Median of the five rows from each row on less that of the five before it `[T]`."""
    medians = five_medians(np.pad(plain, 5, mode="edge"))
    return medians[5 : 5 + len(plain)] - medians[: len(plain)]


def fit_shifts(
    plain: list[Floats], jumps: Floats, levels: Floats, scale: float, sensitivity: float
) -> ShiftCuts:
    """Learn the natural jumps and bumps of one channel.

    Args:
        plain: Values `[T]` of each piece without season, interpolated where not good.
        jumps: Jumps of the good rows of all pieces `[n]`.
        levels: Good values of all pieces without season `[n]`.
        scale: Deviation of the channel.
        sensitivity: Above 1 lowers the cuts.
    """
    sizes = np.abs(jumps)
    low, high = np.quantile(levels, [0.05, 0.95])
    margin = 0.15 * (high - low)
    bumps = _natural_bumps(max(plain, key=len))
    return ShiftCuts(
        edge=max(weibull_cut(sizes, 0.02), 0.8 * scale) / sensitivity,
        sure=2 * weibull_cut(sizes, 1e-4) / sensitivity,
        bumps=tuple(bump / sensitivity for bump in bumps),
        low=float(low - margin),
        high=float(high + margin),
    )


def find_shifts(plain: Floats, cuts: ShiftCuts, period: int) -> Bools:
    """Find shifts that return in one piece.

    Args:
        plain: Values `[T]` without season; spikes, bursts and bad values are interpolated.
        cuts: Natural jumps and bumps of the channel.
        period: Rows of one cycle; 0 without a season.

    Returns:
        Mask of shifts `[T]`.
    """
    jumps = find_jumps(plain)
    shifts = np.zeros(len(plain), bool)
    starts, stops = find_stretches(np.abs(jumps) > cuts.edge, 2)
    edges = [a + int(np.argmax(np.abs(jumps[a:b]))) for a, b in zip(starts, stops, strict=True)]
    longest = min(max(200, 2 * period), len(plain) // 5)
    index = 0
    while index < len(edges) - 1:
        first = edges[index]
        for other in range(index + 1, min(index + _AHEAD, len(edges))):
            last = edges[other]
            if last - first > longest:
                break
            if (
                _opposite(jumps[first], jumps[last])
                and last - first >= _SHORTEST
                and _is_shift(plain, first, last, jumps, cuts)
            ):
                shifts[first:last] = True
                index = other
                break
        index += 1
    return shifts


def _opposite(first: float, last: float) -> bool:
    """Whether two jumps have opposite signs and sizes within a factor of two."""
    return first * last < 0 and 0.5 < abs(last / first) < 2


def _is_shift(plain: Floats, first: int, last: int, jumps: Floats, cuts: ShiftCuts) -> bool:
    """Whether the rows from one jump to the other lie at a level of their own."""
    smaller = min(abs(jumps[first]), abs(jumps[last]))
    if first < 2 or last > len(plain) - 2:
        return False
    before = float(np.median(plain[max(0, first - _SIDE) : first]))
    after = float(np.median(plain[last : last + _SIDE]))
    if abs(before - after) >= 0.6 * abs(jumps[first]):
        return False
    level = float(np.median(plain[first:last]))
    difference = level - (before + after) / 2
    if abs(difference) <= 0.6 * smaller or difference * jumps[first] <= 0:
        return False
    return smaller > cuts.sure or cuts.is_unusual(level, abs(difference), last - first)


def _natural_bumps(plain: Floats) -> list[float]:
    """How far stretches of several lengths differ from their two sides by nature."""
    generator = np.random.default_rng(0)
    cuts: list[float] = []
    for length in _LENGTHS:
        if len(plain) < max(20 * length, _FEWEST_ROWS):
            cuts.append(cuts[-1] if cuts else float("inf"))
            continue
        first = generator.integers(_SIDE, len(plain) - length - _SIDE, _STRETCHES)[:, None]
        inside = np.median(plain[first + np.arange(length)], axis=1)
        before = np.median(plain[first - 1 - np.arange(_SIDE)], axis=1)
        after = np.median(plain[first + length + np.arange(_SIDE)], axis=1)
        cuts.append(weibull_cut(np.abs(inside - (before + after) / 2), 2e-3))
    return cuts
