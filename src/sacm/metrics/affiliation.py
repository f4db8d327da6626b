"""Affiliation precision and recall (Huet et al., KDD 2022).

Time is cut half-way between neighbouring anomalies, so that each anomaly owns a zone. In its zone

- precision asks, for each predicted point: how likely is a random point of the zone to lie at least
  as far from the anomaly?
- recall asks, for each anomalous point: how likely is a random point of the zone to lie at least as
  far from it as the nearest prediction does?

1 is perfect; scattered random alarms get a precision of 0.5 and, if there are many, a recall near
1. Both average over zones: precision over zones with a prediction, recall over all. A point t is
the time span [t, t + 1); the integrals are closed forms. Segments without an anomaly own no zone:
alarms in them are not seen by this measure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sacm.metrics.intervals import (
    Floats,
    Intervals,
    Ints,
    PrecisionRecall,
    as_flags,
    check_lengths,
    degenerate,
    find_intervals,
    segment_borders,
)


@dataclass(frozen=True)
class _Zones:
    """Anomaly `[start, stop)` inside its zone `[left, right)`, [M] each."""

    left: Floats
    start: Floats
    stop: Floats
    right: Floats

    def take(self, index: Ints) -> _Zones:
        return _Zones(self.left[index], self.start[index], self.stop[index], self.right[index])


@dataclass(frozen=True)
class _Pieces:
    """Predicted intervals cut at zone borders, in time order, [P] each.

    `near_left` and `near_right` bound the times that have this piece as their nearest one.
    """

    zone: Ints
    start: Floats
    stop: Floats
    near_left: Floats
    near_right: Floats


def affiliation_precision_recall(
    predictions: ArrayLike, labels: ArrayLike, *, segments: ArrayLike | None = None
) -> PrecisionRecall:
    """Affiliation precision, recall and F1 of 0/1 predictions [T]."""
    alarms, truth = as_flags(predictions, name="predictions"), as_flags(labels, name="labels")
    check_lengths(predictions=alarms, labels=truth)
    if reason := degenerate(truth):
        return PrecisionRecall.undefined(reason)
    borders = segment_borders(segments, length=len(truth))
    zones = _find_zones(find_intervals(truth, borders=borders), borders=borders)
    pieces = _cut(find_intervals(alarms, borders=borders), zones)
    if not alarms.any():
        return PrecisionRecall.silent()
    if not len(pieces.zone):
        return PrecisionRecall.silent("no alarm lies in a segment that has an anomaly")
    own = zones.take(pieces.zone)
    count = len(zones.left)
    predicted = np.bincount(pieces.zone, weights=pieces.stop - pieces.start, minlength=count)
    near = np.bincount(pieces.zone, weights=_precision_integral(pieces, own), minlength=count)
    covered = np.bincount(pieces.zone, weights=_recall_integral(pieces, own), minlength=count)
    seen = predicted > 0
    return PrecisionRecall.of(
        (near[seen] / predicted[seen]).mean(), (covered / (zones.stop - zones.start)).mean()
    )


def _find_zones(anomalies: Intervals, *, borders: Ints) -> _Zones:
    start, stop = anomalies.starts.astype(np.float64), anomalies.stops.astype(np.float64)
    segment = np.searchsorted(borders, anomalies.starts, side="right")
    middle = (stop[:-1] + start[1:]) / 2
    same = segment[1:] == segment[:-1]
    left, right = borders[segment - 1].astype(np.float64), borders[segment].astype(np.float64)
    left[1:] = np.where(same, middle, left[1:])
    right[:-1] = np.where(same, middle, right[:-1])
    return _Zones(left, start, stop, right)


def _cut(alarms: Intervals, zones: _Zones) -> _Pieces:
    first = np.searchsorted(alarms.stops, zones.left, side="right")
    last = np.maximum(first, np.searchsorted(alarms.starts, zones.right, side="left"))
    pieces = last - first  # [M]
    zone = np.repeat(np.arange(len(pieces)), pieces)
    alarm = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces) + first[zone]
    start = np.maximum(alarms.starts[alarm], zones.left[zone])
    stop = np.minimum(alarms.stops[alarm], zones.right[zone])
    near_left, near_right = zones.left[zone], zones.right[zone]
    same = zone[1:] == zone[:-1]
    middle = (stop[:-1] + start[1:]) / 2
    near_left[1:] = np.where(same, middle, near_left[1:])
    near_right[:-1] = np.where(same, middle, near_right[:-1])
    return _Pieces(zone, start, stop, near_left, near_right)


def _precision_integral(pieces: _Pieces, own: _Zones) -> Floats:
    """Integral over each piece of P(distance of a random point >= distance of this point), [P]."""
    width = own.right - own.left
    room_left, room_right = own.start - own.left, own.right - own.stop

    def outside(low: Floats, high: Floats) -> Floats:
        """The part of a piece at distances `low` to `high` from the anomaly."""
        closer = (high - low) * (own.stop - own.start)
        for room in (room_left, room_right):
            closer += _integral_capped(high, room) - _integral_capped(low, room)
        return high - low - closer / width

    before = outside(_positive(own.start - pieces.stop), _positive(own.start - pieces.start))
    after = outside(_positive(pieces.start - own.stop), _positive(pieces.stop - own.stop))
    return before + _shared(pieces, own) + after


def _recall_integral(pieces: _Pieces, own: _Zones) -> Floats:
    """Integral over the anomalous times nearest to each piece of P(random point no closer), [P]."""
    width = own.right - own.left

    def outside(low: Floats, high: Floats, room: Floats) -> Floats:
        """Anomalous times `low` to `high` away from a piece that is `room` from the border."""
        high = np.maximum(low, high)
        closer = (high**2 - low**2) / 2 + _integral_tent(high, room) - _integral_tent(low, room)
        return high - low - closer / width

    before = outside(
        _positive(pieces.start - own.stop),
        pieces.start - np.maximum(own.start, pieces.near_left),
        pieces.start - own.left,
    )
    after = outside(
        _positive(own.start - pieces.stop),
        np.minimum(own.stop, pieces.near_right) - pieces.stop,
        own.right - pieces.stop,
    )
    return before + _shared(pieces, own) + after


def _shared(pieces: _Pieces, own: _Zones) -> Floats:
    return _positive(np.minimum(pieces.stop, own.stop) - np.maximum(pieces.start, own.start))


def _positive(values: Floats) -> Floats:
    return np.maximum(values, 0.0)


def _integral_capped(distance: Floats, cap: Floats) -> Floats:
    """Integral of min(u, cap) from 0 to `distance`."""
    low: Floats = np.minimum(distance, cap)
    area: Floats = low**2 / 2 + cap * (distance - low)
    return area


def _integral_tent(distance: Floats, width: Floats) -> Floats:
    """Integral of min(u, width - u) from 0 to `distance`, for distances up to `width`."""
    rising = np.minimum(distance, width / 2)
    falling = width - np.maximum(distance, width / 2)
    area: Floats = (rising**2 + width**2 / 4 - falling**2) / 2
    return area
