"""Random labelled series shared by the anomaly tests: runs of labels, runs of alarms, segments."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from sacm.metrics.anomaly import read_labels

Pairs = list[tuple[int, int]]


def on_labels(measure, values, labels, segments=None, **options):
    """A measure of alarms or scores [T], with the labels as it takes them."""
    return measure(np.asarray(values), read_labels(labels, segments), **options)


def alarms_on(measure, alarms, labels, segments=None, **options):
    """A measure of 0/1 alarms [T]."""
    return on_labels(measure, np.asarray(alarms, dtype=bool), labels, segments, **options)


@st.composite
def flags(draw: st.DrawFn, *, length: int) -> np.ndarray:
    """0/1 in runs of random lengths."""
    values: list[int] = []
    value = draw(st.integers(0, 1))
    while len(values) < length:
        values += [value] * draw(st.integers(1, 9))
        value = 1 - value
    return np.array(values[:length])


@st.composite
def labelled(draw: st.DrawFn, *, max_length: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, non-degenerate labels and segment ids, [T] each."""
    length = draw(st.integers(3, max_length))
    labels = draw(flags(length=length).filter(lambda f: 0 < f.sum() < len(f)))
    borders = sorted(draw(st.sets(st.integers(1, length - 1), max_size=3)))
    segments = np.searchsorted(borders, np.arange(length), side="right")
    return draw(flags(length=length)), labels, segments


def runs(values: np.ndarray, segments: np.ndarray | None = None) -> Pairs:
    """Half-open runs of ones, found point by point."""
    found: Pairs = []
    start = None
    for time, value in enumerate(values):
        crossed = segments is not None and time > 0 and segments[time] != segments[time - 1]
        if start is not None and (not value or crossed):
            found.append((start, time))
            start = None
        if value and start is None:
            start = time
    if start is not None:
        found.append((start, len(values)))
    return found


def random_series(seed: int, *, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Float scores that know a little about the integer labels, with ties."""
    generator = np.random.default_rng(seed)
    labels = np.zeros(length, dtype=int)
    for start in generator.integers(0, length, size=max(2, length // 40)):
        labels[start : start + generator.integers(1, 12)] = 1
    labels[0] = 0
    scores = np.round(generator.normal(size=length) + labels, 1)
    return scores, labels
