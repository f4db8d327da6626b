"""Scores against labels point by point: plain, point-adjusted, and PA%K.

Point adjustment marks a whole anomaly interval as found when one of its points is (Xu et al.,
WWW 2018). PA%K asks for more than K percent of the interval first (Kim et al., AAAI 2022): K = 0
is point adjustment, K = 100 is the plain F1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import (
    Bools,
    Floats,
    Intervals,
    Ints,
    Measure,
    PrecisionRecall,
    Record,
    as_flags,
    as_scores,
    check_lengths,
    degenerate,
    find_intervals,
    segment_borders,
)

PERCENTS = np.arange(101)


@dataclass(frozen=True)
class BestThreshold(Record):
    """The largest F1 any single threshold reaches; an upper bound, chosen with the test labels."""

    f1: float | None
    threshold: float | None
    reason: str | None = None


def quantile_threshold(validation_scores: ArrayLike, *, quantile: float = 0.95) -> float:
    """Quantile of validation scores; points with `score >= threshold` are alarms."""
    if not 0 < quantile < 1:
        raise ArgumentError(f"quantile must lie between 0 and 1, got {quantile}")
    scores = as_scores(validation_scores, name="validation scores")
    return float(np.quantile(scores, quantile))


def from_counts(*, hits: int, alarms: int, anomalies: int) -> PrecisionRecall:
    """Precision, recall and F1 of `hits` right alarms among `alarms`, with `anomalies` to find."""
    if alarms == 0:
        return PrecisionRecall.silent()
    return PrecisionRecall(hits / alarms, hits / anomalies, 2 * hits / (alarms + anomalies))


def precision_recall(predictions: ArrayLike, labels: ArrayLike) -> PrecisionRecall:
    """Plain point-wise precision, recall and F1 of 0/1 predictions [T]."""
    alarms, truth = as_flags(predictions, name="predictions"), as_flags(labels, name="labels")
    check_lengths(predictions=alarms, labels=truth)
    if reason := degenerate(truth):
        return PrecisionRecall.undefined(reason)
    return from_counts(
        hits=int((alarms & truth).sum()), alarms=int(alarms.sum()), anomalies=int(truth.sum())
    )


def best_f1(scores: ArrayLike, labels: ArrayLike) -> BestThreshold:
    """Largest plain F1 over all thresholds `score >= t`; ties go to the higher threshold."""
    values, truth = as_scores(scores), as_flags(labels, name="labels")
    check_lengths(scores=values, labels=truth)
    if reason := degenerate(truth):
        return BestThreshold(None, None, reason)
    return BestThreshold(*best_cut(values, truth))


def best_cut(values: Floats, truth: Bools) -> tuple[float, float]:
    """(F1, threshold) of the best cut through checked scores [T]."""
    # Between two anomalous scores a higher cut only sheds false alarms: no other can be best.
    cuts = np.unique(values[truth])[::-1]

    def passing(scores: Floats) -> Ints:
        """How many scores reach each cut."""
        highest = np.searchsorted(-cuts, -scores, side="left")
        return np.cumsum(np.bincount(highest, minlength=len(cuts)))[: len(cuts)]

    hits = passing(values[truth])
    f1 = 2 * hits / (hits + passing(values[~truth]) + truth.sum())
    best = int(f1.argmax())
    return float(f1[best]), float(cuts[best])


def auc_pr(scores: ArrayLike, labels: ArrayLike) -> Measure:
    """Average precision: the precision-recall curve summed in steps, without interpolation."""
    values, truth = as_scores(scores), as_flags(labels, name="labels")
    check_lengths(scores=values, labels=truth)
    if reason := degenerate(truth):
        return Measure(None, reason)
    from sklearn.metrics import average_precision_score

    return Measure(float(average_precision_score(truth, values)))


def auc_roc(scores: ArrayLike, labels: ArrayLike) -> Measure:
    """Probability that an anomalous point outranks a normal one, ties counting half."""
    values, truth = as_scores(scores), as_flags(labels, name="labels")
    check_lengths(scores=values, labels=truth)
    if reason := degenerate(truth):
        return Measure(None, reason)
    from sklearn.metrics import roc_auc_score

    return Measure(float(roc_auc_score(truth, values)))


@dataclass(frozen=True)
class AdjustmentCurve(Record):
    """F1 under PA%K for K = 0, 1, …, 100, and its area over K in [0, 1] by the trapezoid rule."""

    f1: tuple[float, ...] | None
    area: float | None
    reason: str | None = None

    def at(self, percent: int) -> float | None:
        """F1 when more than `percent` of an interval must be hit."""
        return None if self.f1 is None else self.f1[percent]


def point_adjust(
    predictions: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> Bools:
    """Predictions [T] with every hit anomaly interval filled in."""
    alarms, truth, anomalies = _prepare(predictions, labels, segments)
    hit = anomalies.count(alarms) > 0
    adjusted = alarms.copy()
    adjusted[truth] |= np.repeat(hit, anomalies.lengths)
    return adjusted


def adjusted_precision_recall(
    predictions: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> PrecisionRecall:
    """Point-adjusted precision, recall and F1."""
    alarms, truth, anomalies = _prepare(predictions, labels, segments)
    if reason := degenerate(truth):
        return PrecisionRecall.undefined(reason)
    hits, raised = adjusted_counts(alarms, anomalies)
    return from_counts(hits=hits, alarms=raised, anomalies=int(truth.sum()))


def adjustment_curve(
    predictions: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> AdjustmentCurve:
    """F1 under PA%K as a function of K."""
    alarms, truth, anomalies = _prepare(predictions, labels, segments)
    if reason := degenerate(truth):
        return AdjustmentCurve(None, None, reason)
    hits, lengths = anomalies.count(alarms), anomalies.lengths  # [M]
    enough = 100 * hits > PERCENTS[:, None] * lengths  # [101, M], in integers: no rounding at K
    found = np.where(enough, lengths, hits).sum(axis=1)
    false_alarms = alarms.sum() - hits.sum()
    f1 = 2 * found / (found + false_alarms + truth.sum())
    return AdjustmentCurve(tuple(f1.tolist()), float((f1[1:] + f1[:-1]).mean() / 2))


def best_adjusted_f1(
    scores: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> BestThreshold:
    """Largest point-adjusted F1 over all thresholds `score >= t`."""
    values = as_scores(scores)
    truth = as_flags(labels, name="labels")
    check_lengths(scores=values, labels=truth)
    if reason := degenerate(truth):
        return BestThreshold(None, None, reason)
    anomalies = find_intervals(truth, borders=segment_borders(segments, length=len(truth)))
    return BestThreshold(*best_cut(lift(values, truth, anomalies), truth))


def adjusted_counts(alarms: Bools, anomalies: Intervals) -> tuple[int, int]:
    """(right alarms, all alarms) after adjustment."""
    hits = anomalies.count(alarms)
    found = int(anomalies.lengths[hits > 0].sum())
    return found, int(alarms.sum() - hits.sum()) + found


def lift(values: Floats, truth: Bools, anomalies: Intervals) -> Floats:
    """Scores with each anomaly interval raised to its maximum: thresholding them is PA."""
    pairs = np.stack([anomalies.starts, anomalies.stops], axis=1).ravel()
    # `reduceat` takes no index equal to the length, which the last stop may be.
    peaks = np.maximum.reduceat(np.append(values, -np.inf), pairs)[::2]
    lifted = values.copy()
    lifted[truth] = np.repeat(peaks, anomalies.lengths)
    return lifted


def _prepare(
    predictions: ArrayLike, labels: ArrayLike, segments: ArrayLike | None
) -> tuple[Bools, Bools, Intervals]:
    alarms, truth = as_flags(predictions, name="predictions"), as_flags(labels, name="labels")
    check_lengths(predictions=alarms, labels=truth)
    borders = segment_borders(segments, length=len(truth))
    return alarms, truth, find_intervals(truth, borders=borders)
