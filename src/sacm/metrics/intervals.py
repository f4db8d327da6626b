"""Labelled intervals, and what the reports on them hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sacm.errors import ArgumentError, DataError

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
        """These labels define none of the three."""
        return cls(None, None, None, reason)

    @classmethod
    def silent(cls, reason: str = "no point is predicted anomalous") -> PrecisionRecall:
        """Nothing was found, and there is no alarm that could have a precision."""
        return cls(None, 0.0, 0.0, f"{reason}, so precision is undefined")

    @classmethod
    def of(cls, precision: float, recall: float) -> PrecisionRecall:
        """F1 is the harmonic mean, 0 when both are 0."""
        total = precision + recall
        f1 = 2 * precision * recall / total if total > 0 else 0.0
        return cls(float(precision), float(recall), float(f1))


class Intervals(NamedTuple):
    """M half-open runs `[start, stop)` in time order."""

    starts: Ints  # [M]
    stops: Ints  # [M]

    @property
    def lengths(self) -> Ints:
        """Points in each run, [M]."""
        return self.stops - self.starts

    def count_flags(self, flags: Bools) -> Ints:
        """How many flags [T] are set inside each run, [M]."""
        running = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
        counts: Ints = running[self.stops] - running[self.starts]
        return counts


class Labelled(NamedTuple):
    """Checked labels [T] of one or more segments.

    `borders` [S + 1] are the first points of the segments, then T; `problem` says why the labels
    cannot rank a detector, None if they can.
    """

    truth: Bools
    borders: Ints
    anomalies: Intervals
    problem: str | None


def read_labels(labels: ArrayLike, segments: ArrayLike | None = None) -> Labelled:
    """Check labels [T], and segment ids [T] if there are several segments."""
    truth = as_flags(labels, name="labels")
    borders = segment_borders(segments, length=len(truth))
    problem = None
    if truth.all() or not truth.any():
        problem = f"{'every' if truth.all() else 'no'} point is labelled anomalous"
    return Labelled(truth, borders, find_intervals(truth, borders=borders), problem)


def read_alarms(
    predictions: ArrayLike, labels: ArrayLike, segments: ArrayLike | None = None
) -> tuple[Bools, Labelled]:
    """Check 0/1 predictions [T] and their labels."""
    alarms, labelled = as_flags(predictions, name="predictions"), read_labels(labels, segments)
    _check_lengths("predictions", alarms, labelled.truth)
    return alarms, labelled


def read_scores(
    scores: ArrayLike, labels: ArrayLike, segments: ArrayLike | None = None
) -> tuple[Floats, Labelled]:
    """Check scores [T] and their labels."""
    values, labelled = as_scores(scores), read_labels(labels, segments)
    _check_lengths("scores", values, labelled.truth)
    return values, labelled


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


def _check_lengths(name: str, values: NDArray[Any], truth: Bools) -> None:
    if len(values) != len(truth):
        raise ArgumentError(
            f"one entry per time step is needed everywhere, but {name} has {len(values)}, "
            f"labels has {len(truth)}"
        )


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
