"""Range-based precision and recall (Tatbul et al., NeurIPS 2018).

Every interval, true or predicted, counts once whatever its length. A true interval earns
`w * [hit at all] + (1 - w) * share found / number of alarms it was found in`; a predicted one earns
`share right / number of anomalies it covers`. Flat positional bias; w = 0.5 as in aeon.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sacm.errors import ArgumentError
from sacm.metrics.intervals import (
    Bools,
    Floats,
    Intervals,
    as_flags,
    check_lengths,
    degenerate,
    find_intervals,
    segment_borders,
)
from sacm.metrics.result import PrecisionRecall


def range_precision_recall(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    segments: ArrayLike | None = None,
    existence_weight: float = 0.5,
) -> PrecisionRecall:
    """Range-based precision, recall and F1 of 0/1 predictions [T]."""
    alarms, truth = as_flags(predictions, name="predictions"), as_flags(labels, name="labels")
    check_lengths(predictions=alarms, labels=truth)
    if not 0 <= existence_weight <= 1:
        raise ArgumentError(f"existence_weight must lie in [0, 1], got {existence_weight}")
    if reason := degenerate(truth):
        return PrecisionRecall.undefined(reason)
    if not alarms.any():
        return PrecisionRecall.silent()
    borders = segment_borders(segments, length=len(truth))
    predicted = find_intervals(alarms, borders=borders)
    actual = find_intervals(truth, borders=borders)
    both = alarms & truth
    precision = _overlap_reward(predicted, actual, both).mean()
    found = actual.count(both) > 0
    overlap = _overlap_reward(actual, predicted, both)
    recall = (existence_weight * found + (1 - existence_weight) * overlap).mean()
    return PrecisionRecall.of(precision, recall)


def _overlap_reward(own: Intervals, other: Intervals, both: Bools) -> Floats:
    """Covered share of each run, divided by the number of runs that cover it, [M]."""
    first, last = own.overlapping(other)
    pieces = np.maximum(last - first, 1)
    reward: Floats = own.count(both) / own.lengths / pieces
    return reward
