"""Everything that is reported about anomaly scores, beside what random scores get."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.affiliation import affiliation_precision_recall
from sacm.metrics.intervals import (
    Measure,
    PrecisionRecall,
    Record,
    read_labels,
    read_scores,
)
from sacm.metrics.pointwise import (
    BestThreshold,
    adjusted_counts,
    adjusted_precision_recall,
    auc_pr,
    auc_roc,
    best_adjusted_f1,
    best_cut,
    best_f1,
    lift,
    precision_recall,
)
from sacm.metrics.vus import vus_pr

DRAWS = 10  # of random scores


@dataclass(frozen=True)
class RandomBaseline(Record):
    """Point-adjusted results of uniform random scores: mean and sample std over `draws` draws.

    `precision`, `recall`, `f1`: as many alarms as the detector raised, at random places.
    `best_f1`: the best threshold of each draw, chosen with the labels.
    """

    draws: int
    seed: int
    alarms: int
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    f1_std: float | None = None
    best_f1: float | None = None
    best_f1_std: float | None = None
    reason: str | None = None


def random_baseline(
    labels: ArrayLike, *, alarms: int, segments: ArrayLike | None = None, seed: int = 0
) -> RandomBaseline:
    """Draw random scores, raise `alarms` alarms with them, adjust, and measure."""
    labelled = read_labels(labels, segments)
    if labelled.problem:
        return RandomBaseline(DRAWS, seed, alarms, reason=labelled.problem)
    truth = labelled.truth
    generator = np.random.default_rng(seed)
    counts, best = [], []
    for _ in range(DRAWS):
        values = generator.random(len(truth))
        lowest = np.partition(values, -alarms)[-alarms] if alarms else np.inf
        counts.append(adjusted_counts(values >= lowest, labelled.anomalies))
        best.append(best_cut(lift(values, labelled), truth)[0])
    hits, raised = np.array(counts).T  # [draws] each
    f1 = 2 * hits / (raised + truth.sum())
    return RandomBaseline(
        DRAWS,
        seed,
        alarms,
        precision=float(np.mean(hits / raised)) if alarms else None,
        recall=float(np.mean(hits / truth.sum())),
        f1=float(np.mean(f1)),
        f1_std=float(np.std(f1, ddof=1)),
        best_f1=float(np.mean(best)),
        best_f1_std=float(np.std(best, ddof=1)),
        reason=None if alarms else PrecisionRecall.silent().reason,
    )


@dataclass(frozen=True)
class AnomalyReport(Record):
    """All measures of one detector; `segments` holds the same report for each machine or channel.

    Attributes:
        points, anomalous_points, anomaly_intervals, alarms: counts; borders cut intervals.
        threshold: points with `score >= threshold` are alarms.
        adjusted: point-adjusted precision, recall, F1 (the published tables).
        plain: point-wise precision, recall, F1.
        best, best_adjusted: F1 of the best threshold, chosen with the labels.
        auc_pr, auc_roc, vus_pr: threshold-free measures.
        affiliation: interval-aware precision, recall, F1.
        random: point-adjusted results of random scores.
    """

    points: int
    anomalous_points: int
    anomaly_intervals: int
    alarms: int
    threshold: float
    adjusted: PrecisionRecall
    plain: PrecisionRecall
    best: BestThreshold
    best_adjusted: BestThreshold
    auc_pr: Measure
    auc_roc: Measure
    vus_pr: Measure
    affiliation: PrecisionRecall
    random: RandomBaseline
    segments: dict[str, AnomalyReport] = field(default_factory=dict)

    def row(self) -> dict[str, float | None]:
        """The numbers of one table row, adjusted and unadjusted together."""
        return {
            "precision_pa": self.adjusted.precision,
            "recall_pa": self.adjusted.recall,
            "f1_pa": self.adjusted.f1,
            "f1_pa_random": self.random.f1,
            "f1_pa_random_std": self.random.f1_std,
            "f1_pa_best": self.best_adjusted.f1,
            "f1_pa_best_random": self.random.best_f1,
            "precision": self.plain.precision,
            "recall": self.plain.recall,
            "f1": self.plain.f1,
            "f1_best": self.best.f1,
            "auc_pr": self.auc_pr.value,
            "auc_roc": self.auc_roc.value,
            "vus_pr": self.vus_pr.value,
            "f1_affiliation": self.affiliation.f1,
        }


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
    adjustment, buffer or affiliation zone crosses a border. `seed` drives the random baseline.
    """
    values, labelled = read_scores(scores, labels, segments)
    if not np.isfinite(threshold):
        raise ArgumentError(f"threshold must be a finite number, got {threshold}")
    truth, alarms = labelled.truth, values >= threshold
    parts = {}
    if segments is not None:
        ids = np.asarray(segments)
        for start, stop in pairwise(labelled.borders):
            part = values[start:stop], truth[start:stop]
            parts[str(ids[start])] = evaluate_scores(*part, threshold, seed=seed)
    return AnomalyReport(
        points=len(truth),
        anomalous_points=int(truth.sum()),
        anomaly_intervals=len(labelled.anomalies.starts),
        alarms=int(alarms.sum()),
        threshold=float(threshold),
        adjusted=adjusted_precision_recall(alarms, truth, segments=segments),
        plain=precision_recall(alarms, truth),
        best=best_f1(values, truth),
        best_adjusted=best_adjusted_f1(values, truth, segments=segments),
        auc_pr=auc_pr(values, truth),
        auc_roc=auc_roc(values, truth),
        vus_pr=vus_pr(values, truth, segments=segments),
        affiliation=affiliation_precision_recall(alarms, truth, segments=segments),
        random=random_baseline(truth, alarms=int(alarms.sum()), segments=segments, seed=seed),
        segments=parts,
    )
