"""VUS-PR, which every detector's run has: precision and recall with blurred labels."""

from __future__ import annotations

import numpy as np

from sacm.metrics.anomaly import Floats, Ints, Labelled, find_intervals, read_labels

THRESHOLDS = 250


def vus_pr_of_scores(
    scores: np.ndarray, labels: np.ndarray, threshold: float, segments: np.ndarray | None
) -> float | None:
    """VUS-PR of scores [T], which needs no threshold; None where labels are all alike."""
    labelled = read_labels(labels, segments)
    return None if labelled.problem else vus_pr(np.asarray(scores), labelled)


def vus_pr(values: Floats, labelled: Labelled, *, max_buffer: int = 100) -> float | None:
    """VUS-PR: the area under the precision-recall curve, averaged over how blurred the labels are.

    Paparrizos et al., PVLDB 2022. For a buffer of width `l` each anomaly gets a slope of `l // 2`
    points on both sides, falling as `sqrt(1 - distance / l)`. Precision and recall use these soft
    labels, recall is multiplied by the share of (blurred) anomalies hit at all, and the curve is
    read at 250 thresholds. Averaging over `l = 0 … max_buffer` gives the volume; None for scores
    [T] that are all equal. Same numbers as aeon's `range_pr_vus_score`.
    """
    ascending = np.sort(values)
    if ascending[0] == ascending[-1]:
        return None
    picks = np.linspace(0, len(values) - 1, THRESHOLDS, dtype=np.int64)
    thresholds = ascending[::-1][picks]
    rank = np.searchsorted(-thresholds, -values, side="left")  # [T] first threshold that is passed
    alarms = len(values) - np.searchsorted(ascending, thresholds, side="left")  # [250]
    areas = [_area(labelled, buffer, rank, alarms) for buffer in range(max_buffer + 1)]
    return float(np.mean(areas))


def _blur(labelled: Labelled, buffer: int) -> Floats:
    """Soft labels [T]: 1 inside anomalies, slopes around them, never across a border."""
    anomalies, borders = labelled.anomalies, labelled.borders
    soft = labelled.truth.astype(np.float64)
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


def _area(labelled: Labelled, buffer: int, rank: Ints, alarms: Ints) -> float:
    """Area under the precision-recall curve of the labels blurred by one buffer."""
    soft = _blur(labelled, buffer)
    hits = np.cumsum(np.bincount(rank, weights=soft, minlength=THRESHOLDS))
    positives = (labelled.truth.sum() + soft.sum()) / 2
    blurred = find_intervals(soft > 0, labelled.borders)
    first_hit = blurred.reduce(np.minimum, rank, empty=THRESHOLDS)
    existence = np.cumsum(np.bincount(first_hit, minlength=THRESHOLDS)) / len(blurred.starts)
    recall = np.append(0.0, np.minimum(hits / positives, 1.0) * existence)
    precision = np.append(1.0, hits / alarms)
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))
