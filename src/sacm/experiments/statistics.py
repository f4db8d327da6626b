"""What a set of paired results allows to say.

Every function works on *improvements*: `before - after` for an error, `after - before` for a score,
so that positive is better everywhere. What the data cannot tell is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sacm.errors import ArgumentError

TIE_TOLERANCE = 1e-9  # of the larger magnitude: closer values are one value
EXACT_UP_TO = 50  # non-zero differences; above, the signed-rank test uses the normal approximation
FEWEST_RESAMPLED = 5  # the bootstrap of fewer is little more than their range

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Both ends of an interval of a mean; None where there are too few values."""

    low: float | None
    high: float | None


def improvements(before: ArrayLike, after: ArrayLike, *, higher_is_better: bool = False) -> Floats:
    """Differences `[n]`, positive where it got better; values that are almost equal differ by 0.

    Raises:
        ArgumentError: The lengths differ, there is no value, or one is not finite.
    """
    old, new = _checked(before), _checked(after)
    if len(old) != len(new):
        raise ArgumentError(f"pairs are needed, got {len(old)} and {len(new)} values.")
    found: Floats = new - old if higher_is_better else old - new
    found[np.abs(found) <= TIE_TOLERANCE * np.maximum(np.abs(old), np.abs(new))] = 0.0
    return found


def relative_gain(before: float, after: float, *, higher_is_better: bool = False) -> float | None:
    """Improvement in percent of `before`; None where that is 0.

    Example:
        >>> relative_gain(4.0, 3.0)
        25.0
    """
    if before == 0:
        return None
    change = after - before if higher_is_better else before - after
    return 100 * change / abs(before)


def t_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean of two or more values; for few, such as seeds."""
    array = _checked(values)
    n = len(array)
    if n < 2:
        return Interval(None, None)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * array.std(ddof=1) / math.sqrt(n)
    return Interval(float(array.mean() - half), float(array.mean() + half))


def bootstrap_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of the mean of five or more values, in whatever order."""
    ordered = np.sort(_checked(values))
    n = len(ordered)
    if n < FEWEST_RESAMPLED:
        return Interval(None, None)
    picks = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(ordered[picks].mean(axis=1), [tail, 1 - tail])
    return Interval(float(low), float(high))


def paired_t_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of a mean improvement of 0; None of one value, or of equal ones."""
    gained = _checked(improvement)
    n = len(gained)
    if n < 2:
        return None
    mean, deviation = float(gained.mean()), float(gained.std(ddof=1))
    if deviation <= 1e-12 * abs(mean):
        return None
    return float(2 * stats.t.sf(abs(mean) / (deviation / math.sqrt(n)), n - 1))


def wilcoxon_test(improvement: ArrayLike) -> float | None:
    """Two-sided p-value of the signed-rank test; zeros are dropped (Wilcoxon's rule).

    Exact, also with tied ranks, up to 50 non-zero differences. With five pairs the smallest
    possible p-value is 0.0625.
    """
    gained = _checked(improvement)
    moved = gained[gained != 0]
    if len(moved) < 2:
        return None
    # Rounding makes 0.3 - 0.2 tie with 0.2 - 0.1.
    ranks = stats.rankdata(np.round(np.abs(moved) / np.abs(moved).max(), 12))
    smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    if len(moved) <= EXACT_UP_TO:
        return _exact_p_value(ranks, float(smaller))
    signed = np.sign(moved) * ranks
    return float(stats.wilcoxon(signed, zero_method="wilcox", correction=False).pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Step-down correction over all defined p-values, in the given order; None stays None."""
    defined = [(p, at) for at, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, at) in enumerate(sorted(defined)):
        running = max(running, min(1.0, (len(defined) - rank) * p))
        adjusted[at] = running
    return adjusted


def _checked(values: ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"one or more values in a row are needed, got shape {array.shape}.")
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ArgumentError(f"value {at} is {array[at]}: leave out pairs with a failed run.")
    return array


def _exact_p_value(ranks: Floats, smaller: float) -> float:
    """P-value over all 2^n sign patterns, by the distribution of the positive rank sum."""
    doubled = np.rint(2 * ranks).astype(int)  # tied ranks are multiples of one half
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(chance)
        shifted[rank:] = chance[:-rank]
        chance = (chance + shifted) / 2
    return float(min(1.0, 2 * chance[: round(2 * smaller) + 1].sum()))
