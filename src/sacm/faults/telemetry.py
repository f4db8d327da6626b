"""Anomalous stretches of rows in telemetry: several channels at once, as real anomalies are."""

from __future__ import annotations

import math

import numpy as np

from sacm.errors import ArgumentError
from sacm.faults.channel import Channel, StretchChange
from sacm.faults.series import BrokenSeries, series_kinds
from sacm.faults.series_operators import add_burst, drift_away, hold_first, shift_level

KIND = "anomalies"
_SHORTEST, _LONGEST = 10, 100
_TRIES = 5000


def scale_stretch(stretch: np.ndarray, channel: Channel, random: np.random.Generator) -> np.ndarray:
    """Multiply distances from the mean by a factor between two and four."""
    return np.asarray(channel.centre + random.uniform(2, 4) * (stretch - channel.centre))


CHANGES: dict[str, StretchChange] = {
    "shift": shift_level,
    "burst": add_burst,
    "drift": drift_away,
    "stuck": hold_first,
    "scaling": scale_stretch,
}


def break_rows(values: np.ndarray, ratio: float, *, seed: int = 0) -> BrokenSeries:
    """Put anomalies into rows.

    Args:
        values: Numbers `[T, C]`.
        ratio: Share of the rows to break, between 0 and 1.
        seed: Decides places, kinds and sizes.

    Returns:
        Values, mask and kinds `[T, C]`. Each stretch of 10 to 99 rows has one kind, in one
        to half of the channels.

    Raises:
        ArgumentError: If `values` is no series of numbers, or `ratio` no share.
    """
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind != "f" or not 0 <= ratio <= 1:
        raise ArgumentError(
            f"Anomalies need floating-point numbers [T, C] and a ratio between 0 and 1, got "
            f"{values.dtype} of shape {list(values.shape)} and {ratio}."
        )
    random = np.random.default_rng(seed)
    deviation, centre = values.std(axis=0), values.mean(axis=0)
    # A channel that never moved has no deviation to break it by.
    lively = np.flatnonzero(deviation > 0)
    result, kinds = values.astype(np.float64), np.zeros(values.shape, np.uint8)
    taken, names = np.zeros(len(values), dtype=bool), list(CHANGES)
    for _ in range(_TRIES):
        if taken.mean() >= ratio or not len(lively):
            break
        rows = _draw_rows(len(values), random)
        if taken[rows].any():
            continue
        taken[rows] = True
        name = names[random.integers(len(names))]
        count = int(random.integers(1, math.ceil(len(lively) / 2) + 1))
        for c in random.choice(lively, count, replace=False):
            channel = Channel(result[:, c], kinds[:, c], float(centre[c]), float(deviation[c]))
            result[rows, c] = CHANGES[name](result[rows, c], channel, random)
            kinds[rows, c] = series_kinds().index(name)
    broken = kinds > 0
    return BrokenSeries(np.where(broken, result.astype(values.dtype), values), broken, kinds)


def _draw_rows(count: int, random: np.random.Generator) -> slice:
    """A stretch somewhere in `count` rows."""
    length = int(random.integers(min(_SHORTEST, count), min(_LONGEST, count) + 1))
    first = int(random.integers(0, count - length + 1))
    return slice(first, first + length)
