"""Scores against labels point by point, plain and point-adjusted.

Point adjustment marks a whole anomaly interval as found when one of its points is (Xu et al.,
WWW 2018).
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
    Labelled,
    Measure,
    PrecisionRecall,
    Record,
    as_scores,
    read_alarms,
    read_scores,
)


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
    return float(np.quantile(as_scores(validation_scores, name="validation scores"), quantile))


def precision_recall(predictions: ArrayLike, labels: ArrayLike) -> PrecisionRecall:
    """Plain point-wise precision, recall and F1 of 0/1 predictions [T]."""
    alarms, labelled = read_alarms(predictions, labels)
    hits = int((alarms & labelled.truth).sum())
    return _from_counts(labelled, hits=hits, alarms=int(alarms.sum()))


def adjusted_precision_recall(
    predictions: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> PrecisionRecall:
    """Point-adjusted precision, recall and F1."""
    alarms, labelled = read_alarms(predictions, labels, segments)
    hits, raised = adjusted_counts(alarms, labelled.anomalies)
    return _from_counts(labelled, hits=hits, alarms=raised)


def _from_counts(labelled: Labelled, *, hits: int, alarms: int) -> PrecisionRecall:
    """Precision, recall and F1 of `hits` right alarms among `alarms`."""
    if labelled.problem:
        return PrecisionRecall.undefined(labelled.problem)
    if alarms == 0:
        return PrecisionRecall.silent()
    anomalies = int(labelled.truth.sum())
    return PrecisionRecall(hits / alarms, hits / anomalies, 2 * hits / (alarms + anomalies))


def adjusted_counts(alarms: Bools, anomalies: Intervals) -> tuple[int, int]:
    """(right alarms, all alarms) after adjustment."""
    hits = anomalies.count_flags(alarms)
    right = int(anomalies.lengths[hits > 0].sum())
    return right, int(alarms.sum() - hits.sum()) + right


def best_f1(scores: ArrayLike, labels: ArrayLike) -> BestThreshold:
    """Largest plain F1 over all thresholds `score >= t`; ties go to the higher threshold."""
    values, labelled = read_scores(scores, labels)
    if labelled.problem:
        return BestThreshold(None, None, labelled.problem)
    return BestThreshold(*best_cut(values, labelled.truth))


def best_adjusted_f1(
    scores: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> BestThreshold:
    """Largest point-adjusted F1 over all thresholds `score >= t`."""
    values, labelled = read_scores(scores, labels, segments)
    if labelled.problem:
        return BestThreshold(None, None, labelled.problem)
    return BestThreshold(*best_cut(lift(values, labelled), labelled.truth))


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


def lift(values: Floats, labelled: Labelled) -> Floats:
    """Scores with each anomaly interval raised to its maximum: thresholding them is PA."""
    pairs = np.stack(labelled.anomalies, axis=1).ravel()
    # `reduceat` takes no index equal to the length, which the last stop may be.
    peaks = np.maximum.reduceat(np.append(values, -np.inf), pairs)[::2]
    lifted = values.copy()
    lifted[labelled.truth] = np.repeat(peaks, labelled.anomalies.lengths)
    return lifted


def auc_pr(scores: ArrayLike, labels: ArrayLike) -> Measure:
    """Average precision: the precision-recall curve summed in steps, without interpolation."""
    from sklearn.metrics import average_precision_score

    values, labelled = read_scores(scores, labels)
    if labelled.problem:
        return Measure(None, labelled.problem)
    return Measure(float(average_precision_score(labelled.truth, values)))


def auc_roc(scores: ArrayLike, labels: ArrayLike) -> Measure:
    """Probability that an anomalous point outranks a normal one, ties counting half."""
    from sklearn.metrics import roc_auc_score

    values, labelled = read_scores(scores, labels)
    if labelled.problem:
        return Measure(None, labelled.problem)
    return Measure(float(roc_auc_score(labelled.truth, values)))
