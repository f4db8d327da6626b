"""Everything that is reported about anomaly scores, beside what random scores get."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.affiliation import affiliation_precision_recall
from sacm.metrics.intervals import Floats, Labelled, read_labels, read_scores
from sacm.metrics.pointwise import adjusted_precision_recall, best_cut, lift, precision_recall
from sacm.metrics.vus import vus_pr

DRAWS = 10  # of random scores
NAMES = (
    *("precision_pa", "recall_pa", "f1_pa", "f1_pa_random", "f1_pa_random_std", "f1_pa_best"),
    *("f1_pa_best_random", "precision", "recall", "f1", "f1_best", "auc_pr", "auc_roc", "vus_pr"),
    "f1_affiliation",
)


@dataclass(frozen=True)
class AnomalyReport:
    """All measures of one detector.

    Attributes:
        points, anomalous_points, anomaly_intervals, alarms: counts; borders cut intervals.
        threshold: points with `score >= threshold` are alarms.
        measures: by name, point-adjusted ones (`_pa`) beside all others; None if undefined.
            `f1_best` and `f1_pa_best` are of the best threshold, chosen with the labels;
            `f1_pa_random` has as many alarms as the detector, at random places.
        problems: why a measure is undefined.
    """

    points: int
    anomalous_points: int
    anomaly_intervals: int
    alarms: int
    threshold: float
    measures: dict[str, float | None]
    problems: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The report as nested dictionaries, lists and numbers that `json.dumps` accepts."""
        return asdict(self)


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
    adjustment, buffer or affiliation zone crosses a border. `seed` drives the random scores.
    """
    labelled = read_labels(labels, segments)
    truth = labelled.truth
    values = read_scores(scores, length=len(truth))
    if not np.isfinite(threshold):
        raise ArgumentError(f"threshold must be a finite number, got {threshold}")
    alarms = int((values >= threshold).sum())
    measures: dict[str, float | None] = dict.fromkeys(NAMES)
    problems = [labelled.problem] if labelled.problem else []
    if not problems:
        measures |= _measure(values, labelled, threshold, seed)
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


def _measure(
    values: Floats, labelled: Labelled, threshold: float, seed: int
) -> dict[str, float | None]:
    """Every measure that these labels define."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    truth, alarms = labelled.truth, values >= threshold
    plain, adjusted = (
        measure(alarms, labelled) for measure in (precision_recall, adjusted_precision_recall)
    )
    return {
        "precision": plain.precision,
        "recall": plain.recall,
        "f1": plain.f1,
        "f1_best": best_cut(values, truth)[0],
        "precision_pa": adjusted.precision,
        "recall_pa": adjusted.recall,
        "f1_pa": adjusted.f1,
        "f1_pa_best": best_cut(lift(values, labelled), truth)[0],
        **random_scores(labelled, alarms=int(alarms.sum()), seed=seed),
        "auc_pr": float(average_precision_score(truth, values)),
        "auc_roc": float(roc_auc_score(truth, values)),
        "vus_pr": vus_pr(values, labelled),
        "f1_affiliation": affiliation_precision_recall(alarms, labelled).f1,
    }


def random_scores(labelled: Labelled, *, alarms: int, seed: int = 0) -> dict[str, float]:
    """Point-adjusted F1 of uniform random scores: mean and sample deviation over ten draws.

    Each draw raises `alarms` alarms; `f1_pa_best_random` takes the best threshold of each draw.
    """
    generator = np.random.default_rng(seed)
    f1, best = [], []
    for _ in range(DRAWS):
        values = generator.random(len(labelled.truth))
        lowest = np.partition(values, -alarms)[-alarms] if alarms else np.inf
        f1.append(adjusted_precision_recall(values >= lowest, labelled).f1)
        best.append(best_cut(lift(values, labelled), labelled.truth)[0])
    return {
        "f1_pa_random": float(np.mean(f1)),
        "f1_pa_random_std": float(np.std(f1, ddof=1)),
        "f1_pa_best_random": float(np.mean(best)),
    }
