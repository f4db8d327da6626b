"""Everything that is reported about anomaly scores, beside what random scores get.

Point adjustment marks a whole anomaly interval as found when one of its points is (Xu et al.,
WWW 2018). Measures need labels that hold both kinds of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sacm.errors import ArgumentError, DataError

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
DRAWS = 10  # of random scores
THRESHOLDS = 250  # of VUS-PR
NAMES = (
    *("precision_pa", "recall_pa", "f1_pa", "f1_pa_random", "f1_pa_random_std", "precision"),
    *("recall", "f1", "f1_best", "auc_pr", "auc_roc", "vus_pr"),
)


class Intervals(NamedTuple):
    """M half-open runs `[start, stop)` in time order."""

    starts: Ints  # [M]
    stops: Ints  # [M]

    def reduce(self, operation: np.ufunc, values: NDArray[Any], *, empty: float) -> NDArray[Any]:
        """An operation over the values [T] of each run, [M]."""
        # `reduceat` takes no index equal to the length, which the last stop may be.
        pairs = np.stack(self, axis=1).ravel()
        reduced: NDArray[Any] = operation.reduceat(np.append(values, empty), pairs)[::2]
        return reduced


class Labelled(NamedTuple):
    """Checked labels of one or more segments."""

    truth: Bools  # [T]
    borders: Ints  # [S + 1], the first point of every segment, then T
    anomalies: Intervals
    problem: str | None  # why these labels cannot rank a detector


class PrecisionRecall(NamedTuple):
    """Precision, recall and F1; without an alarm there is no precision."""

    precision: float | None
    recall: float
    f1: float


def read_labels(labels: ArrayLike, segments: ArrayLike | None = None) -> Labelled:
    """Check 0/1 labels [T], and segment ids [T] if there are several segments."""
    array = _one_dimensional(labels, "labels")
    odd = np.flatnonzero((array != 0) & (array != 1))
    if odd.size:
        raise DataError(f"labels must be 0 or 1, found {array[odd[0]]} at position {odd[0]}")
    truth = array.astype(np.bool_)
    borders = segment_borders(segments, length=len(truth))
    problem = None
    if truth.all() or not truth.any():
        problem = f"{'every' if truth.all() else 'no'} point is labelled anomalous"
    return Labelled(truth, borders, find_intervals(truth, borders), problem)


def read_scores(values: ArrayLike, *, name: str = "scores", length: int | None = None) -> Floats:
    """Check anomaly scores [T]: finite, and as many as there are labels."""
    array = _one_dimensional(values, name).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(
            f"{name} must be finite, found {array[bad[0]]} at position {bad[0]} ({bad.size} such)"
        )
    if length not in (None, len(array)):
        raise ArgumentError(f"{name} has {len(array)} entries but labels has {length}")
    return array


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a non-empty 1-D array, got shape {array.shape}")
    return array


def segment_borders(segments: ArrayLike | None, *, length: int) -> Ints:
    """First point of every segment, then `length`: [S + 1]; `segments` has one id a point."""
    ids = np.zeros(length) if segments is None else np.asarray(segments)
    if ids.shape != (length,):
        raise ArgumentError(
            f"segments must give one id for each of the {length} points, got shape {ids.shape}"
        )
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    if len(np.unique(ids[starts])) < len(starts):
        raise DataError("a segment comes back after another one: sort the points by segment")
    return np.append(starts, length).astype(np.int64)


def find_intervals(flags: Bools, borders: Ints) -> Intervals:
    """Maximal runs of set flags [T]; a run that meets a border [S + 1] ends there."""
    edge = np.zeros(len(flags) + 1, dtype=np.bool_)
    edge[borders] = True
    edge[1:-1] |= flags[1:] != flags[:-1]
    points = np.flatnonzero(edge)
    inside = flags[points[:-1]]
    return Intervals(points[:-1][inside], points[1:][inside])


def quantile_threshold(validation_scores: ArrayLike, *, quantile: float = 0.95) -> float:
    """Quantile of validation scores; points with `score >= threshold` are alarms."""
    if not 0 < quantile < 1:
        raise ArgumentError(f"quantile must lie between 0 and 1, got {quantile}")
    return float(np.quantile(read_scores(validation_scores, name="validation scores"), quantile))


def precision_recall(
    alarms: Bools, labelled: Labelled, *, adjusted: bool = False
) -> PrecisionRecall:
    """Precision, recall and F1 of alarms [T], point by point or `adjusted`."""
    right, raised = int((alarms & labelled.truth).sum()), int(alarms.sum())
    if raised == 0:
        return PrecisionRecall(None, 0.0, 0.0)
    if adjusted:
        hits = labelled.anomalies.reduce(np.add, alarms.astype(np.int64), empty=0)  # [M]
        lengths = labelled.anomalies.stops - labelled.anomalies.starts
        found = int(lengths[hits > 0].sum())
        right, raised = found, raised - right + found
    anomalies = int(labelled.truth.sum())
    return PrecisionRecall(right / raised, right / anomalies, 2 * right / (raised + anomalies))


def best_f1(values: Floats, truth: Bools) -> float:
    """The largest F1 that a threshold `score >= t` reaches."""
    # Between two anomalous scores a higher cut only sheds false alarms: no other can be best.
    cuts = np.unique(values[truth])
    hits, false_alarms = (
        len(scores) - np.searchsorted(np.sort(scores), cuts)  # how many reach each cut
        for scores in (values[truth], values[~truth])
    )
    return float((2 * hits / (hits + false_alarms + truth.sum())).max())


@dataclass(frozen=True)
class AnomalyReport:
    """All measures of one detector; `f1_best` is of a threshold that was chosen with the labels."""

    points: int
    anomalous_points: int
    anomaly_intervals: int  # cut at borders of segments
    alarms: int
    threshold: float  # points with `score >= threshold` are alarms
    measures: dict[str, float | None]  # by name, point-adjusted (`_pa`) beside others
    problems: tuple[str, ...] = ()  # why a measure is None


def evaluate_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    threshold: float,
    *,
    segments: ArrayLike | None = None,
    seed: int = 0,
) -> AnomalyReport:
    """Report on anomaly scores [T] against 0/1 labels [T].

    `segments` [T] gives each point the id of its machine or channel file, in blocks: no interval,
    adjustment or buffer crosses a border. `seed` drives the random scores.
    """
    # Imported here because it brings pandas, which answering a request does not need.
    from sklearn.metrics import average_precision_score, roc_auc_score

    labelled = read_labels(labels, segments)
    truth = labelled.truth
    values = read_scores(scores, length=len(truth))
    if not np.isfinite(threshold):
        raise ArgumentError(f"threshold must be a finite number, got {threshold}")
    alarms = int((values >= threshold).sum())
    measures: dict[str, float | None] = dict.fromkeys(NAMES)
    problems = [labelled.problem] if labelled.problem else []
    if not problems:
        plain, adjusted = (
            precision_recall(values >= threshold, labelled, adjusted=each) for each in (False, True)
        )
        measures |= {
            "precision": plain.precision,
            "recall": plain.recall,
            "f1": plain.f1,
            "f1_best": best_f1(values, truth),
            "precision_pa": adjusted.precision,
            "recall_pa": adjusted.recall,
            "f1_pa": adjusted.f1,
            **random_scores(labelled, alarms=alarms, seed=seed),
            "auc_pr": float(average_precision_score(truth, values)),
            "auc_roc": float(roc_auc_score(truth, values)),
            "vus_pr": vus_pr(values, labelled),
        }
        if not alarms:
            problems.append("no point is an alarm, so precision is undefined")
        if measures["vus_pr"] is None:
            problems.append("all scores are equal, so they have no precision-recall curve")
    return AnomalyReport(
        points=len(truth),
        anomalous_points=int(truth.sum()),
        anomaly_intervals=len(labelled.anomalies.starts),
        alarms=alarms,
        threshold=float(threshold),
        measures=measures,
        problems=tuple(problems),
    )


def random_scores(labelled: Labelled, *, alarms: int, seed: int = 0) -> dict[str, float]:
    """Point-adjusted F1 of uniform random scores: mean and sample deviation over ten draws.

    Each draw raises `alarms` alarms.
    """
    generator = np.random.default_rng(seed)
    f1 = []
    for _ in range(DRAWS):
        values = generator.random(len(labelled.truth))
        lowest = np.partition(values, -alarms)[-alarms] if alarms else np.inf
        f1.append(precision_recall(values >= lowest, labelled, adjusted=True).f1)
    return {"f1_pa_random": float(np.mean(f1)), "f1_pa_random_std": float(np.std(f1, ddof=1))}


def vus_pr(values: Floats, labelled: Labelled, *, max_buffer: int = 100) -> float | None:
    """VUS-PR (Paparrizos et al., PVLDB 2022): the area under the precision-recall curve, averaged.

    For a buffer of width `l` each anomaly gets a slope of `l // 2` points on both sides, falling as
    `sqrt(1 - distance / l)`. Recall is multiplied by the share of anomalies hit at all. The mean is
    over `l = 0 … max_buffer`; None for scores [T] that are all equal.
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
