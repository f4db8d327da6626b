"""Labelled intervals: reading labels, precision and recall, and those of ranges."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sacm.errors import ArgumentError, DataError


@dataclass(frozen=True)
class Record:
    """Base of all reports; holds plain Python values only."""

    def to_dict(self) -> dict[str, Any]:
        """The report as nested dictionaries, lists and numbers that `json.dumps` accepts."""
        return asdict(self)


@dataclass(frozen=True)
class Measure(Record):
    """One number, or None and the reason why there is none."""

    value: float | None
    reason: str | None = None


@dataclass(frozen=True)
class PrecisionRecall(Record):
    """Precision, recall and F1 of one definition; a None among them is explained by `reason`."""

    precision: float | None
    recall: float | None
    f1: float | None
    reason: str | None = None

    @classmethod
    def undefined(cls, reason: str) -> PrecisionRecall:
        """Nothing can be said about these labels."""
        return cls(None, None, None, reason)

    @classmethod
    def silent(cls, reason: str = "no point is predicted anomalous") -> PrecisionRecall:
        """Nothing was found, and there is no alarm whose precision could be asked for."""
        return cls(None, 0.0, 0.0, f"{reason}, so precision is undefined")

    @classmethod
    def of(cls, precision: float, recall: float) -> PrecisionRecall:
        """F1 is the harmonic mean, 0 when both are 0."""
        total = precision + recall
        f1 = 2 * precision * recall / total if total > 0 else 0.0
        return cls(float(precision), float(recall), float(f1))


Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Intervals:
    """M half-open runs `[start, stop)` in time order."""

    starts: Ints  # [M]
    stops: Ints  # [M]

    @property
    def lengths(self) -> Ints:
        """Points in each run, [M]."""
        return self.stops - self.starts

    def __len__(self) -> int:
        return len(self.starts)

    def count(self, flags: Bools) -> Ints:
        """How many flags [T] are set inside each run, [M]."""
        running = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
        counts: Ints = running[self.stops] - running[self.starts]
        return counts

    def overlapping(self, other: Intervals) -> tuple[Ints, Ints]:
        """The slice `[first, last)` of `other` that shares points with each run, [M] each."""
        first = np.searchsorted(other.stops, self.starts, side="right")
        last = np.searchsorted(other.starts, self.stops, side="left")
        return first, np.maximum(first, last)


def as_flags(values: ArrayLike, *, name: str) -> Bools:
    """0/1 or boolean values [T] as booleans."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a non-empty 1-D array, got shape {array.shape}")
    if array.dtype == np.bool_:
        return array
    odd = np.flatnonzero((array != 0) & (array != 1))
    if odd.size:
        raise DataError(
            f"{name} must be 0 or 1, found {array[odd[0]]} at position {odd[0]}"
            f" ({odd.size} such values)"
        )
    return array.astype(np.bool_)


def as_scores(values: ArrayLike, *, name: str = "scores") -> Floats:
    """Anomaly scores [T] as finite float64."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a non-empty 1-D array, got shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(
            f"{name} must be finite, found {array[bad[0]]} at position {bad[0]}"
            f" ({bad.size} such values); a detector that returns it has failed"
        )
    return array


def check_lengths(**arrays: NDArray[np.generic]) -> None:
    """All arrays must describe the same points."""
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ArgumentError(f"one entry per time step is needed everywhere, but {found}")


def segment_borders(segments: ArrayLike | None, *, length: int) -> Ints:
    """First point of every segment, then `length`: [S + 1]; `segments` has one id a point."""
    if segments is None:
        return np.array([0, length], dtype=np.int64)
    ids = np.asarray(segments)
    if ids.shape != (length,):
        raise ArgumentError(
            f"segments must give one id for each of the {length} points, got shape {ids.shape}"
        )
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    names, counts = np.unique(ids[starts], return_counts=True)
    if counts.max() > 1:
        raise DataError(
            f"segment {names[counts.argmax()]!r} comes back after another one;"
            " sort the points so that each segment is one block"
        )
    return np.append(starts, length).astype(np.int64)


def find_intervals(flags: Bools, *, borders: Ints) -> Intervals:
    """Maximal runs of set flags [T]; a run that meets a border [S + 1] ends there."""
    edge = np.zeros(len(flags) + 1, dtype=np.bool_)
    edge[borders] = True
    edge[1:-1] |= flags[1:] != flags[:-1]
    points = np.flatnonzero(edge)
    inside = flags[points[:-1]]
    return Intervals(points[:-1][inside], points[1:][inside])


def degenerate(labels: Bools) -> str | None:
    """Why these labels cannot rank a detector, or None if they can."""
    if not labels.any():
        return "no point is labelled anomalous"
    if labels.all():
        return "every point is labelled anomalous"
    return None


def range_precision_recall(
    predictions: ArrayLike,
    labels: ArrayLike,
    *,
    segments: ArrayLike | None = None,
    existence_weight: float = 0.5,
) -> PrecisionRecall:
    """Range-based precision, recall and F1 of 0/1 predictions [T] (Tatbul et al., NeurIPS 2018).

    Every interval, true or predicted, counts once whatever its length. A true interval earns
    `w * [hit at all] + (1 - w) * share found / number of alarms it was found in`; a predicted one
    earns `share right / number of anomalies it covers`. Flat positional bias; w = 0.5 as in aeon.
    """
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
