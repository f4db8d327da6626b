"""VUS-PR: the area under the precision-recall curve, averaged over how blurred the labels are.

Paparrizos et al., PVLDB 2022. For a buffer of width `l` each anomaly gets a slope of `l // 2`
points on both sides, falling as `sqrt(1 - distance / l)`. Precision and recall use these soft
labels, recall is multiplied by the share of (blurred) anomalies hit at all, and the curve is read
at 250 thresholds. Averaging over `l = 0 … max_buffer` gives the volume. Same numbers as aeon's
`range_pr_vus_score`, but each buffer costs one pass over the points instead of 250.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import (
    Bools,
    Floats,
    Intervals,
    Ints,
    Measure,
    as_flags,
    as_scores,
    check_lengths,
    degenerate,
    find_intervals,
    segment_borders,
)

THRESHOLDS = 250


def vus_pr(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    segments: ArrayLike | None = None,
    max_buffer: int = 100,
) -> Measure:
    """Volume under the precision-recall surface for buffers 0 … `max_buffer` (one window)."""
    values, truth = as_scores(scores), as_flags(labels, name="labels")
    check_lengths(scores=values, labels=truth)
    if max_buffer < 0:
        raise ArgumentError(f"max_buffer must not be negative, got {max_buffer}")
    if reason := degenerate(truth):
        return Measure(None, reason)
    if values.min() == values.max():
        return Measure(None, "all scores are equal, so they have no precision-recall curve")
    borders = segment_borders(segments, length=len(truth))
    anomalies = find_intervals(truth, borders=borders)
    rank, alarms = _ranks(values)
    areas = [
        _area(_blur(truth, anomalies, borders=borders, buffer=buffer), truth, rank, alarms, borders)
        for buffer in range(max_buffer + 1)
    ]
    return Measure(float(np.mean(areas)))


def _ranks(values: Floats) -> tuple[Ints, Ints]:
    """Index of the first (highest) threshold each point passes, [T], and alarms at each, [250]."""
    ascending = np.sort(values)
    picks = np.linspace(0, len(values) - 1, THRESHOLDS, dtype=np.int64)
    thresholds = ascending[::-1][picks]
    rank = np.searchsorted(-thresholds, -values, side="left")
    return rank, len(values) - np.searchsorted(ascending, thresholds, side="left")


def _blur(truth: Bools, anomalies: Intervals, *, borders: Ints, buffer: int) -> Floats:
    """Soft labels [T]: 1 inside anomalies, slopes around them, never across a border."""
    soft = truth.astype(np.float64)
    before = np.arange(1, buffer // 2 + 1)
    after = before[:-1]  # the published slope counts the last anomalous point as its first
    segment = np.searchsorted(borders, anomalies.starts, side="right")
    for positions, distance in (
        (anomalies.starts[:, None] - before, before),
        (anomalies.stops[:, None] - 1 + after, after),
    ):
        inside = positions >= borders[segment - 1][:, None]
        inside &= positions < borders[segment][:, None]
        height = np.broadcast_to(np.sqrt(1 - distance / max(buffer, 1)), positions.shape)
        np.add.at(soft, positions[inside], height[inside])
    return np.minimum(soft, 1.0)


def _area(soft: Floats, truth: Bools, rank: Ints, alarms: Ints, borders: Ints) -> float:
    """Area under the precision-recall curve of one soft labelling."""
    hits = np.cumsum(np.bincount(rank, weights=soft, minlength=THRESHOLDS))
    positives = (truth.sum() + soft.sum()) / 2
    blurred = find_intervals(soft > 0, borders=borders)
    pairs = np.stack([blurred.starts, blurred.stops], axis=1).ravel()
    first_hit = np.minimum.reduceat(np.append(rank, THRESHOLDS), pairs)[::2]
    existence = np.cumsum(np.bincount(first_hit, minlength=THRESHOLDS)) / len(blurred)
    recall = np.append(0.0, np.minimum(hits / positives, 1.0) * existence)
    precision = np.append(1.0, hits / alarms)
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
