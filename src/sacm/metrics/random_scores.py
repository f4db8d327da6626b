"""The row every point-adjusted table needs: what scores without any information reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import as_flags, degenerate, find_intervals, segment_borders
from sacm.metrics.point_adjust import adjusted_counts, lift
from sacm.metrics.pointwise import best_cut
from sacm.metrics.result import PrecisionRecall, Record


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
    labels: ArrayLike,
    *,
    alarms: int,
    segments: ArrayLike | None = None,
    draws: int = 10,
    seed: int = 0,
) -> RandomBaseline:
    """Draw random scores, raise `alarms` alarms with them, adjust, and measure."""
    truth = as_flags(labels, name="labels")
    if not 0 <= alarms <= len(truth):
        raise ArgumentError(f"alarms must lie in 0 … {len(truth)}, got {alarms}")
    if draws < 2:
        raise ArgumentError(f"the spread needs at least 2 draws, got {draws}")
    if reason := degenerate(truth):
        return RandomBaseline(draws, seed, alarms, reason=reason)
    anomalies = find_intervals(truth, borders=segment_borders(segments, length=len(truth)))
    generator = np.random.default_rng(seed)
    counts, best = [], []
    for _ in range(draws):
        values = generator.random(len(truth))
        lowest = np.partition(values, -alarms)[-alarms] if alarms else np.inf
        counts.append(adjusted_counts(values >= lowest, anomalies))
        best.append(best_cut(lift(values, truth, anomalies), truth)[0])
    hits, raised = np.array(counts).T  # [draws] each
    f1 = 2 * hits / (raised + truth.sum())
    return RandomBaseline(
        draws,
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
