"""Intervals and tests of paired results. What the values cannot tell is None.

Improvements are positive where a result got better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

EXACT_UP_TO = 50  # non-zero differences; above, the signed-rank test uses the normal approximation
FEWEST_RESAMPLED = 5  # the bootstrap of fewer is little more than their range


class Interval(NamedTuple):
    """Both ends of an interval of a mean; None where there are too few values."""

    low: float | None
    high: float | None


def t_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean of two or more values; for few, such as seeds.

    Example:
        >>> t_interval([1.0]).low is None
        True
    """
    array = np.asarray(values, dtype=np.float64)
    n = len(array)
    if n < 2:
        return Interval(None, None)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * array.std(ddof=1) / math.sqrt(n)
    return Interval(float(array.mean() - half), float(array.mean() + half))


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of the mean of five or more values, in whatever order."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    if n < FEWEST_RESAMPLED:
        return Interval(None, None)
    picks = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(ordered[picks].mean(axis=1), [tail, 1 - tail])
    return Interval(float(low), float(high))


def paired_t_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of a mean improvement of 0; None of one value, or of equal ones."""
    gained = np.asarray(improvement, dtype=np.float64)
    if len(gained) < 2 or gained.std(ddof=1) <= 1e-12 * abs(gained.mean()):
        return None
    return float(stats.ttest_1samp(gained, 0).pvalue)


def wilcoxon_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of the signed-rank test; zeros are dropped (Wilcoxon's rule).

    Exact, also with tied ranks, up to 50 non-zero differences. With five pairs the smallest
    possible p-value is 0.0625.
    """
    gained = np.asarray(improvement, dtype=np.float64)
    moved = gained[gained != 0]
    if len(moved) < 2:
        return None
    # Rounding makes 0.3 - 0.2 tie with 0.2 - 0.1.
    ranks = stats.rankdata(np.round(np.abs(moved) / np.abs(moved).max(), 12))
    if len(moved) > EXACT_UP_TO:
        return float(stats.wilcoxon(np.sign(moved) * ranks, zero_method="wilcox").pvalue)
    # SciPy is exact without ties only. The distribution of the positive rank sum over all 2^n sign
    # patterns; tied ranks are multiples of one half, so ranks are doubled.
    smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    doubled = np.rint(2 * ranks).astype(int)
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        chance[rank:] += chance[:-rank].copy()  # the rank counts, or it does not
        chance /= 2
    return float(min(1.0, 2 * chance[: round(2 * smaller) + 1].sum()))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Step-down correction over all defined p-values, in the given order; None stays None.

    Example:
        >>> holm([0.01, None, 0.04])
        [0.02, None, 0.04]
    """
    defined = [(p, at) for at, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, at) in enumerate(sorted(defined)):
        running = max(running, min(1.0, (len(defined) - rank) * p))
        adjusted[at] = running
    return adjusted
