"""The three data sets as subjects to inspect."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from sacm.data.datasets import AnomalyData, ClassificationData, ForecastingData
from sacm.quality.subject import Subject

TEST_KEPT = (
    "Test rows stay as they are in `repaired`: their anomalies are to be found, not repaired."
)


def from_forecasting(data: ForecastingData) -> Subject:
    """Rows of a forecasting data set; filled gaps are gaps again."""
    values = data.values
    if data.observed is not None:
        values = np.where(data.observed, values, np.float32(np.nan))
    segments = [segment for segment in data.segments if segment.stop > segment.start]
    seen: dict[str, int] = {}
    starts = []
    for segment in segments:
        starts.append(seen.get(segment.name, 0))
        seen[segment.name] = starts[-1] + segment.stop - segment.start
    train = data.splits.train

    def restore(new: np.ndarray, changed: np.ndarray) -> ForecastingData:
        return replace(data, values=_replace(data.values, new, changed))

    return Subject(
        name=data.name,
        values=values,
        columns=data.columns,
        pieces=tuple(range(segment.start, segment.stop) for segment in segments),
        labels=tuple(segment.name for segment in segments),
        starts=tuple(starts),
        train=tuple(_overlap(range(s.start, s.stop), train) for s in segments),
        times=data.timestamps,
        restore=restore,
        borders=tuple(end for rows in data.splits for end in (rows.start, rows.stop)),
        numbered=True,
        notes=data.notes,
    )


def from_anomaly(data: AnomalyData) -> Subject:
    """Training rows, then test rows; a machine's test rows follow its training rows."""
    count = len(data.train)
    parts = [(s.name, s.train, 0, s.train) for s in data.segments]
    for segment in data.segments:
        test = range(segment.test.start + count, segment.test.stop + count)
        parts.append((segment.name, test, len(segment.train), range(test.start, test.start)))
    labels, pieces, starts, train = zip(*(part for part in parts if len(part[1])), strict=True)

    def restore(new: np.ndarray, changed: np.ndarray) -> AnomalyData:
        return replace(data, train=_replace(data.train, new[:count], changed[:count]))

    return Subject(
        name=data.name,
        values=np.concatenate([data.train, data.test]),
        columns=data.columns or tuple(str(place) for place in range(data.channels)),
        pieces=pieces,
        labels=labels,
        starts=starts,
        train=train,
        times=None,
        restore=restore,
        numbered=True,
        notes=(*data.notes, TEST_KEPT),
    )


def from_classification(data: ClassificationData) -> Subject:
    """Cases end to end, each a series of its own."""
    arrays, lengths = (data.X_train, data.X_test), (data.lengths_train, data.lengths_test)
    places = [
        (part, case, int(length))
        for part in (0, 1)
        for case, length in enumerate(lengths[part])
        if length
    ]
    ends = np.cumsum([0, *(length for *_, length in places)])
    pieces = tuple(range(int(a), int(b)) for a, b in pairwise(ends))

    def restore(new: np.ndarray, changed: np.ndarray) -> ClassificationData:
        results = [array.copy() for array in arrays]
        for (part, case, length), rows in zip(places, pieces, strict=True):
            own = slice(rows.start, rows.stop)
            old = results[part][case, :, :length]
            results[part][case, :, :length] = _replace(old, new[own].T, changed[own].T)
        return replace(data, X_train=results[0], X_test=results[1])

    return Subject(
        name=data.name,
        values=np.concatenate([arrays[part][case, :, :length].T for part, case, length in places]),
        columns=tuple(str(place) for place in range(data.channels)),
        pieces=pieces,
        labels=tuple(f"{('training', 'test')[part]} case {case + 1}" for part, case, _ in places),
        starts=(0,) * len(pieces),
        train=tuple(
            rows if part == 0 else range(rows.start, rows.start)
            for (part, *_), rows in zip(places, pieces, strict=True)
        ),
        times=None,
        restore=restore,
        numbered=True,
        notes=data.notes,
    )


def _replace(old: np.ndarray, new: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Changed values in the precision of the others, which stay as they are."""
    return np.where(changed, new.astype(old.dtype), old)


def _overlap(rows: range, others: range) -> range:
    """Rows in both; empty at the first of `rows` if there are none."""
    first, last = max(rows.start, others.start), min(rows.stop, others.stop)
    return range(first, last) if first < last else range(rows.start, rows.start)
