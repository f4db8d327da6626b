"""Anomalous segments of rows in telemetry, and wrong labels of cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sacm.data.datasets import AnomalyData, AnyData, ClassificationData
from sacm.errors import ArgumentError
from sacm_lab.robust.faults.fault import Channel, SegmentChange
from sacm_lab.robust.faults.series import add_burst, drift_away, hold_first, shift_level

_SHORTEST, _LONGEST = 10, 100  # length of an anomaly in rows
_TRIES = 5000


def scale_segment(segment: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """Multiply distances from the mean by a factor between two and four."""
    return np.asarray(channel.centre + random.uniform(2, 4) * (segment - channel.centre))


CHANGES: dict[str, SegmentChange] = {
    "shift": shift_level,
    "burst": add_burst,
    "drift": drift_away,
    "stuck": hold_first,
    "scaling": scale_segment,
}


def add_anomalies(values: np.ndarray, ratio: float, seed: int) -> np.ndarray:
    """Put anomalies into a share `ratio` of the rows of `values` `[T, C]`.

    Each segment of 10 to 99 rows has one kind of `CHANGES`, in one to half of the channels.

    Raises:
        ArgumentError: If `values` is no series of numbers, or `ratio` no share.
    """
    if values.ndim != 2 or values.dtype.kind != "f" or not 0 <= ratio <= 1:
        raise ArgumentError(
            f"Anomalies need floating-point numbers [T, C] and a ratio between 0 and 1, got "
            f"{values.dtype} of shape {list(values.shape)} and {ratio}."
        )
    random = np.random.default_rng(seed)
    deviation, centre = values.std(axis=0), values.mean(axis=0)
    # A constant channel has no deviation to measure a fault by.
    moving = np.flatnonzero(deviation > 0)
    result, hit = values.astype(np.float64), np.zeros(values.shape, dtype=bool)
    taken, names = np.zeros(len(values), dtype=bool), list(CHANGES)
    for _ in range(_TRIES):
        if taken.mean() >= ratio or not len(moving):
            break
        rows = _draw_rows(len(values), random)
        if taken[rows].any():
            continue
        taken[rows] = True
        change = CHANGES[names[random.integers(len(names))]]
        count = int(random.integers(1, math.ceil(len(moving) / 2) + 1))
        for c in random.choice(moving, count, replace=False):
            kinds = np.zeros(len(values), np.uint8)
            channel = Channel(result[:, c], kinds, float(centre[c]), float(deviation[c]))
            result[rows, c] = change(result[rows, c], channel, random)
            hit[rows, c] = True
    return np.where(hit, result.astype(values.dtype), values)


def _draw_rows(count: int, random: np.random.Generator) -> slice:
    """A segment somewhere in `count` rows."""
    length = int(random.integers(min(_SHORTEST, count), min(_LONGEST, count) + 1))
    first = int(random.integers(0, count - length + 1))
    return slice(first, first + length)


def flip_to_any(
    codes: np.ndarray, classes: int, ratio: float, random: np.random.Generator
) -> np.ndarray:
    """Each label becomes, with probability `ratio`, one of the other classes, all alike."""
    hit = random.random(len(codes)) < ratio
    step = random.integers(1, max(2, classes), len(codes))
    return np.asarray(np.where(hit, (codes + step) % classes, codes))


def flip_to_next(
    codes: np.ndarray, classes: int, ratio: float, random: np.random.Generator
) -> np.ndarray:
    """Each label becomes, with probability `ratio`, the class that follows it."""
    hit = random.random(len(codes)) < ratio
    return np.asarray(np.where(hit, (codes + 1) % classes, codes))


def on_labels(
    change: Callable[[np.ndarray, int, float, np.random.Generator], np.ndarray],
) -> Callable[[AnyData, float, int], AnyData]:
    """Make a fault of training labels from a change of class numbers `[N]`."""

    def fault(data: AnyData, ratio: float, seed: int) -> AnyData:
        if not isinstance(data, ClassificationData):
            raise ArgumentError(f"{data.name} has no labels of cases to corrupt: use mix.")
        random = np.random.default_rng(seed)
        wrong = change(data.encode(data.y_train), len(data.classes), ratio, random)
        labels = np.asarray(data.classes)[wrong].astype(data.y_train.dtype)
        return replace(data, y_train=labels)

    return fault


def on_rows(
    change: Callable[[np.ndarray, float, int], np.ndarray],
) -> Callable[[AnyData, float, int], AnyData]:
    """Make a fault of the training rows of telemetry, each segment by itself."""

    def fault(data: AnyData, ratio: float, seed: int) -> AnyData:
        if not isinstance(data, AnomalyData):
            raise ArgumentError(f"{data.name} is no telemetry to corrupt row by row: use mix.")
        train = data.train.copy()
        for number, segment in enumerate(data.segments):
            rows = slice(segment.train.start, segment.train.stop)
            if len(segment.train) > 1:
                train[rows] = change(train[rows], ratio, seed + number)
        return replace(data, train=np.where(np.isnan(train), data.train, train))

    return fault
