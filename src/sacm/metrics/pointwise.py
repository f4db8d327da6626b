"""Point-wise measures, with no notion of time: precision, recall, F1 and the two areas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import (
    Bools,
    Floats,
    Ints,
    as_flags,
    as_scores,
    check_lengths,
    degenerate,
)
from sacm.metrics.result import Measure, PrecisionRecall, Record


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
