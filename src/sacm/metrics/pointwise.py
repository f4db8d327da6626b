"""Alarms and scores against labels point by point, plain and point-adjusted.

Point adjustment marks a whole anomaly interval as found when one of its points is (Xu et al.,
WWW 2018). Labels must hold both kinds of points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import Bools, Floats, Ints, Labelled, read_scores


class PrecisionRecall(NamedTuple):
    """Precision, recall and F1; without an alarm there is no precision."""

    precision: float | None
    recall: float
    f1: float


NO_ALARM = PrecisionRecall(None, 0.0, 0.0)


def quantile_threshold(validation_scores: ArrayLike, *, quantile: float = 0.95) -> float:
    """Quantile of validation scores; points with `score >= threshold` are alarms."""
    if not 0 < quantile < 1:
        raise ArgumentError(f"quantile must lie between 0 and 1, got {quantile}")
    return float(np.quantile(read_scores(validation_scores, name="validation scores"), quantile))


def precision_recall(alarms: Bools, labelled: Labelled) -> PrecisionRecall:
    """Plain point-wise precision, recall and F1 of alarms [T]."""
    return _from_counts(int((alarms & labelled.truth).sum()), int(alarms.sum()), labelled)


def adjusted_precision_recall(alarms: Bools, labelled: Labelled) -> PrecisionRecall:
    """Point-adjusted precision, recall and F1 of alarms [T]."""
    hits = labelled.anomalies.reduce(np.add, alarms.astype(np.int64), empty=0)  # [M]
    right = int(labelled.anomalies.lengths[hits > 0].sum())
    return _from_counts(right, int(alarms.sum() - hits.sum()) + right, labelled)


def _from_counts(hits: int, alarms: int, labelled: Labelled) -> PrecisionRecall:
    """Precision, recall and F1 of `hits` right alarms among `alarms`."""
    if alarms == 0:
        return NO_ALARM
    anomalies = int(labelled.truth.sum())
    return PrecisionRecall(hits / alarms, hits / anomalies, 2 * hits / (alarms + anomalies))


def best_cut(values: Floats, truth: Bools) -> tuple[float, float]:
    """The largest F1 that a threshold `score >= t` reaches, and the highest such threshold."""
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
    """Scores with each anomaly raised to its maximum: thresholding them is point adjustment."""
    peaks = labelled.anomalies.reduce(np.maximum, values, empty=-np.inf)
    lifted = values.copy()
    lifted[labelled.truth] = np.repeat(peaks, labelled.anomalies.lengths)
    return lifted
