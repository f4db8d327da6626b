"""Stretches where the noise is far higher than it ever is by nature."""

from __future__ import annotations

import numpy as np

from sacm.quality.series.arrays import Bools, Floats, apply_to_good, find_stretches
from sacm.quality.series.running import running_median

WIDTH = 11
"""Good rows over which the noise of a burst is measured."""

_JOIN = 6
_SHORTEST = 6
_TIMES = 3.3
_LEAST = 3.5


def noise_ratio(sizes: Floats, expected: Floats, good: Bools) -> Floats:
    """Running median of the residuals' sizes over what is expected `[T]`."""
    return apply_to_good(sizes / expected, good, lambda z: running_median(z, WIDTH))


def burst_cut(ratios: Floats) -> float:
    """Noise ratio from which a stretch is a burst.

    It is drawn from the lower half of the ratios alone, so that 30 % bursts do not move it; a
    channel whose noise varies by nature gets a high cut by itself.

    Args:
        ratios: Noise ratios of good rows `[n]`.
    """
    positive = ratios[ratios > 0]
    if not len(positive):
        return float("inf")
    logs = np.log(positive)
    logs = np.maximum(logs, np.median(logs) - np.log(2))
    low, middle, upper = np.quantile(logs, [0.10, 0.35, 0.55])
    spread = max(middle - low, 1.76 * (upper - middle))
    return float(np.exp(middle + max(_TIMES * spread, np.log(_LEAST))))


def find_bursts(sizes: Floats, ratios: Floats, good: Bools, cut: float, floor: float) -> Bools:
    """Find bursts in one piece.

    Args:
        sizes: Sizes of the residuals `[T]`, isolated spikes taken out.
        ratios: Noise ratios `[T]`.
        good: Values that may be flagged `[T]`.
        cut: Noise ratio from which a stretch is a burst.
        floor: Smallest median size of a residual that matters.

    Returns:
        Mask of bursts `[T]`.
    """
    hot = good & (ratios > cut)
    bursts = np.zeros(len(sizes), bool)
    if not hot.any():
        return bursts
    hot &= apply_to_good(sizes, good, lambda z: running_median(z, WIDTH)) > floor
    for start, stop in zip(*find_stretches(hot, _JOIN), strict=True):
        if stop - start < _SHORTEST:
            continue
        # The running median blurs the ends: they lie at the first and last large residual.
        first = max(0, start - WIDTH // 2)
        least = max(floor, 0.5 * float(np.median(sizes[start:stop])))
        rows = np.flatnonzero(sizes[first : stop + WIDTH // 2] > least)
        if len(rows):
            bursts[first + rows[0] : first + rows[-1] + 1] = True
    return bursts & good
