"""Labels and scores of anomaly detection, checked, and the intervals that labels form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sacm.errors import ArgumentError, DataError

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Intervals(NamedTuple):
    """M half-open runs `[start, stop)` in time order."""

    starts: Ints  # [M]
    stops: Ints  # [M]

    @property
    def lengths(self) -> Ints:
        """Points in each run, [M]."""
        return self.stops - self.starts

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


def read_labels(labels: ArrayLike, segments: ArrayLike | None = None) -> Labelled:
    """Check 0/1 labels [T], and segment ids [T] if there are several segments."""
    array = _one_dimensional(labels, "labels")
    odd = np.flatnonzero((array != 0) & (array != 1))
    if odd.size:
        raise DataError(
            f"labels must be 0 or 1, found {array[odd[0]]} at position {odd[0]}"
            f" ({odd.size} such values)"
        )
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
            f"{name} must be finite, found {array[bad[0]]} at position {bad[0]}"
            f" ({bad.size} such values); a detector that returns it has failed"
        )
    if length not in (None, len(array)):
        raise ArgumentError(
            f"one entry per time step is needed everywhere, but {name} has {len(array)}, "
            f"labels has {length}"
        )
    return array


def _one_dimensional(values: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"{name} must be a non-empty 1-D array, got shape {array.shape}")
    return array


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


def find_intervals(flags: Bools, borders: Ints) -> Intervals:
    """Maximal runs of set flags [T]; a run that meets a border [S + 1] ends there."""
    edge = np.zeros(len(flags) + 1, dtype=np.bool_)
    edge[borders] = True
    edge[1:-1] |= flags[1:] != flags[:-1]
    points = np.flatnonzero(edge)
    inside = flags[points[:-1]]
    return Intervals(points[:-1][inside], points[1:][inside])
