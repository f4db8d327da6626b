"""What a set of paired results allows to say.

Every function works on *improvements*: `raw - treated` for an error, `treated - raw` for a score,
so that positive is better everywhere. Two values closer than `tolerance` times the larger magnitude
are one value: such a pair is a tie for wins and losses and a zero for the signed-rank test, which
drops zeros (Wilcoxon's rule). What the data cannot tell is None with a reason; everything says n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from sacm.errors import ArgumentError
from sacm.metrics.intervals import Record

TIE_TOLERANCE = 1e-9
EXACT_UP_TO = 50
FEWEST_RESAMPLED = 5  # the interval of fewer is little more than their range

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary(Record):
    """Mean and sample standard deviation (n - 1) of n values."""

    n: int
    mean: float
    std: float | None
    reason: str | None = None


@dataclass(frozen=True)
class WinTieLoss(Record):
    """How many of n pairs got better, stayed the same (within `tolerance`), got worse."""

    n: int
    wins: int
    ties: int
    losses: int
    tolerance: float


@dataclass(frozen=True)
class PairedTest(Record):
    """A two-sided test over n pairs, of which `zeros` did not take part."""

    n: int
    statistic: float | None
    p_value: float | None
    zeros: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class EffectSize(Record):
    """Matched-pairs rank-biserial correlation in [-1, 1]; 1: every pair got better."""

    n: int
    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class ConfidenceInterval(Record):
    """Percentile bootstrap interval of a mean over n values."""

    n: int
    mean: float
    low: float | None
    high: float | None
    confidence: float
    resamples: int
    seed: int
    reason: str | None = None


@dataclass(frozen=True)
class Holm(Record):
    """Adjusted p-values in the given order; n counts the defined ones, None stays None."""

    n: int
    p_values: tuple[float | None, ...]


@dataclass(frozen=True)
class PairedComparison(Record):
    """Raw against treated over n pairs.

    `gain_of_means` compares the two means, `mean_gain` averages the pairs' own relative gains (both
    in percent); `gain_interval` is the bootstrap interval of the latter.
    """

    n: int
    higher_is_better: bool
    raw: Summary
    treated: Summary
    improvement: Summary
    gain_of_means: float | None
    mean_gain: float | None
    gain_interval: ConfidenceInterval | None
    win_tie_loss: WinTieLoss
    t_test: PairedTest
    wilcoxon: PairedTest
    effect_size: EffectSize
    reason: str | None = None


def relative_gain(raw: float, treated: float, *, higher_is_better: bool = False) -> float | None:
    """Improvement in percent of the raw value; None when the raw value is 0."""
    if raw == 0:
        return None
    gain = 100 * (treated - raw) / raw
    return float(gain if higher_is_better else -gain)


def mean_and_deviation(values: ArrayLike) -> Summary:
    """Unweighted (macro) mean and sample standard deviation."""
    array = _checked(values, name="values")
    mean = math.fsum(array) / len(array)
    if len(array) == 1:
        return Summary(1, mean, None, "one value has no spread")
    return Summary(len(array), mean, float(np.std(array, ddof=1)))


def improvements(
    raw: ArrayLike,
    treated: ArrayLike,
    *,
    higher_is_better: bool = False,
    tolerance: float = TIE_TOLERANCE,
) -> Floats:
    """Signed improvements [n], exactly 0 for ties."""
    before, after = _checked(raw, name="raw"), _checked(treated, name="treated")
    if len(before) != len(after):
        raise ArgumentError(
            f"pairs are needed, got {len(before)} raw and {len(after)} treated values"
        )
    if tolerance < 0:
        raise ArgumentError(f"tolerance must not be negative, got {tolerance}")
    difference = after - before if higher_is_better else before - after
    tie = np.abs(difference) <= tolerance * np.maximum(np.abs(before), np.abs(after))
    return np.where(tie, 0.0, difference)


def win_tie_loss(
    raw: ArrayLike,
    treated: ArrayLike,
    *,
    higher_is_better: bool = False,
    tolerance: float = TIE_TOLERANCE,
) -> WinTieLoss:
    """Count better, equal and worse pairs."""
    gained = improvements(raw, treated, higher_is_better=higher_is_better, tolerance=tolerance)
    wins, losses = int((gained > 0).sum()), int((gained < 0).sum())
    return WinTieLoss(len(gained), wins, len(gained) - wins - losses, losses, tolerance)


def paired_t_test(improvement: ArrayLike) -> PairedTest:
    """Two-sided test of mean improvement 0; t > 0 means better."""
    gained = _checked(improvement, name="improvement")
    n = len(gained)
    if n < 2:
        return PairedTest(n, None, None, reason="a t-test needs at least two pairs")
    mean, std = float(gained.mean()), float(gained.std(ddof=1))
    if not gained.any():
        return PairedTest(n, None, None, reason="all differences are zero")
    if std <= 1e-12 * abs(mean):
        return PairedTest(n, None, None, reason="all differences are equal, so t is unbounded")
    statistic = mean / (std / math.sqrt(n))
    return PairedTest(n, statistic, float(2 * stats.t.sf(abs(statistic), n - 1)))


def wilcoxon_signed_rank(improvement: ArrayLike) -> PairedTest:
    """Two-sided signed-rank test; zeros are dropped, the statistic is the smaller rank sum.

    Exact (also with tied ranks) up to 50 non-zero differences, the normal approximation above. With
    five pairs the smallest possible p-value is 0.0625.
    """
    gained = _checked(improvement, name="improvement")
    moved = gained[gained != 0]
    zeros = len(gained) - len(moved)
    if not len(moved):
        return PairedTest(len(gained), None, None, zeros, "all differences are zero")
    if len(moved) == 1:
        return PairedTest(len(gained), None, None, zeros, "one non-zero difference has no ranks")
    ranks = _ranks(moved)
    smaller = min(ranks[moved > 0].sum(), ranks[moved < 0].sum())
    if len(moved) <= EXACT_UP_TO:
        p_value = _exact_p_value(ranks, float(smaller))
    else:
        signed = np.sign(moved) * ranks
        p_value = float(stats.wilcoxon(signed, zero_method="wilcox", correction=False).pvalue)
    return PairedTest(len(gained), float(smaller), p_value, zeros)


def rank_biserial(improvement: ArrayLike) -> EffectSize:
    """Share of the rank sum for the treatment minus the share against it; zeros dropped."""
    gained = _checked(improvement, name="improvement")
    moved = gained[gained != 0]
    if not len(moved):
        return EffectSize(len(gained), None, "all differences are zero")
    ranks = _ranks(moved)
    return EffectSize(len(gained), float((np.sign(moved) * ranks).sum() / ranks.sum()))


def bootstrap_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> ConfidenceInterval:
    """Percentile bootstrap interval of the mean of five or more values, in whatever order."""
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie between 0 and 1, got {confidence}")
    if resamples < 1:
        raise ArgumentError(f"resamples must be positive, got {resamples}")
    ordered = np.sort(_checked(values, name="values"))
    n, mean = len(ordered), math.fsum(ordered) / len(ordered)
    if n < FEWEST_RESAMPLED:
        reason = f"fewer than {FEWEST_RESAMPLED} values are too few to resample"
        return ConfidenceInterval(n, mean, None, None, confidence, resamples, seed, reason)
    picks = np.random.default_rng(seed).integers(n, size=(resamples, n))
    tail = (1 - confidence) / 2
    low, high = np.quantile(ordered[picks].mean(axis=1), [tail, 1 - tail])
    return ConfidenceInterval(n, mean, float(low), float(high), confidence, resamples, seed)


def holm(p_values: Sequence[float | None]) -> Holm:
    """Step-down correction over all defined p-values."""
    defined = [(p, index) for index, p in enumerate(p_values) if p is not None]
    adjusted: list[float | None] = [None] * len(p_values)
    running = 0.0
    for rank, (p, index) in enumerate(sorted(defined)):
        if not 0 <= p <= 1:
            raise ArgumentError(f"p-value {p} at position {index} does not lie in [0, 1]")
        running = max(running, min(1.0, (len(defined) - rank) * p))
        adjusted[index] = running
    return Holm(len(defined), tuple(adjusted))


def compare_pairs(
    raw: ArrayLike,
    treated: ArrayLike,
    *,
    higher_is_better: bool = False,
    relative: bool = False,
    tolerance: float = TIE_TOLERANCE,
    seed: int = 0,
) -> PairedComparison:
    """Everything above for one set of pairs (seeds of one cell, or cells of one table).

    relative: test relative gains, for errors of several data sets, which have scales of their own.
    """
    gained = improvements(raw, treated, higher_is_better=higher_is_better, tolerance=tolerance)
    before, after = _checked(raw, name="raw"), _checked(treated, name="treated")
    raw_summary, treated_summary = mean_and_deviation(before), mean_and_deviation(after)
    gains: list[float] | None = None
    tested = gained
    if before.all():
        percents = 100 * gained / before
        gains = percents.tolist()
        tested = percents if relative else gained
    return PairedComparison(
        n=len(gained),
        higher_is_better=higher_is_better,
        raw=raw_summary,
        treated=treated_summary,
        improvement=mean_and_deviation(gained),
        gain_of_means=relative_gain(
            raw_summary.mean, treated_summary.mean, higher_is_better=higher_is_better
        ),
        mean_gain=None if gains is None else mean_and_deviation(gains).mean,
        gain_interval=None if gains is None else bootstrap_mean(gains, seed=seed),
        win_tie_loss=win_tie_loss(
            raw, treated, higher_is_better=higher_is_better, tolerance=tolerance
        ),
        t_test=paired_t_test(tested),
        wilcoxon=wilcoxon_signed_rank(tested),
        effect_size=rank_biserial(tested),
        reason=None if gains is not None else "a raw value is 0, so it has no relative gain",
    )


def _checked(values: ArrayLike, *, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a non-empty 1-D sequence, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise ArgumentError(
            f"{name} holds {array[bad[0]]} at position {bad[0]}; leave out pairs with a failed run"
        )
    return array


def _ranks(moved: Floats) -> Floats:
    """Ranks of the magnitudes; rounding makes 0.3 - 0.2 tie with 0.2 - 0.1."""
    magnitude = np.abs(moved)
    ranks: Floats = stats.rankdata(np.round(magnitude / magnitude.max(), 12))
    return ranks


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
