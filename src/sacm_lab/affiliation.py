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

from typing import NamedTuple

import numpy as np

from sacm.metrics.anomaly import (
    Bools,
    Floats,
    Ints,
    Labelled,
    PrecisionRecall,
    find_intervals,
    read_labels,
)


class _Zones(NamedTuple):
    """Anomaly `[start, stop)` inside its zone `[left, right)`, [M] each."""

    left: Floats
    start: Floats
    stop: Floats
    right: Floats


class _Alarms(NamedTuple):
    """Alarms cut at zone borders, in time order, [P] each."""

    zone: Ints
    start: Floats
    stop: Floats
    near_left: Floats  # first and last time that has this alarm as its nearest one
    near_right: Floats


def affiliation_precision_recall(flags: Bools, labelled: Labelled) -> PrecisionRecall:
    """Affiliation precision, recall and F1 of alarms [T]; F1 is 0 when both are."""
    zones = _find_zones(labelled)
    alarms = _cut_alarms(flags, labelled, zones)
    if not len(alarms.zone):
        return PrecisionRecall(None, 0.0, 0.0)
    zones_of_alarms = _Zones(*(each[alarms.zone] for each in zones))

    def by_zone(values: Floats) -> Floats:
        sums: Floats = np.bincount(alarms.zone, values, len(zones.left)).astype(np.float64)
        return sums

    predicted = by_zone(alarms.stop - alarms.start)
    near = by_zone(_precision_integral(alarms, zones_of_alarms))
    covered = by_zone(_recall_integral(alarms, zones_of_alarms))
    seen = predicted > 0
    precision = float((near[seen] / predicted[seen]).mean())
    recall = float((covered / (zones.stop - zones.start)).mean())
    total = precision + recall
    return PrecisionRecall(precision, recall, 2 * precision * recall / total if total > 0 else 0.0)


def affiliation_f1(
    scores: np.ndarray, labels: np.ndarray, threshold: float, segments: np.ndarray | None
) -> float | None:
    """Affiliation F1 of scores [T] at a threshold; None where labels are all alike."""
    labelled = read_labels(labels, segments)
    if labelled.problem:
        return None
    return affiliation_precision_recall(scores >= threshold, labelled).f1


def _find_zones(labelled: Labelled) -> _Zones:
    start, stop = (each.astype(np.float64) for each in labelled.anomalies)
    segment = np.searchsorted(labelled.borders, labelled.anomalies.starts, side="right")
    left = labelled.borders[segment - 1].astype(np.float64)
    right = labelled.borders[segment].astype(np.float64)
    _meet_halfway(left, right, start, stop, same=segment[1:] == segment[:-1])
    return _Zones(left, start, stop, right)


def _meet_halfway(
    left: Floats, right: Floats, start: Floats, stop: Floats, *, same: np.ndarray
) -> None:
    """Move the limits between neighbours, where they are of the `same` group, to the middle."""
    middle = (stop[:-1] + start[1:]) / 2
    left[1:] = np.where(same, middle, left[1:])
    right[:-1] = np.where(same, middle, right[:-1])


def _cut_alarms(flags: Bools, labelled: Labelled, zones: _Zones) -> _Alarms:
    intervals = find_intervals(flags, labelled.borders)
    first = np.searchsorted(intervals.stops, zones.left, side="right")
    last = np.maximum(first, np.searchsorted(intervals.starts, zones.right, side="left"))
    counts = last - first  # [M]
    zone = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + first[zone]
    start = np.maximum(intervals.starts[place], zones.left[zone])
    stop = np.minimum(intervals.stops[place], zones.right[zone])
    near_left, near_right = zones.left[zone], zones.right[zone]
    _meet_halfway(near_left, near_right, start, stop, same=zone[1:] == zone[:-1])
    return _Alarms(zone, start, stop, near_left, near_right)


def _precision_integral(alarms: _Alarms, zones: _Zones) -> Floats:
    """Integral over each alarm of P(distance of a random point >= distance of this point), [P]."""
    width = zones.right - zones.left
    room_left, room_right = zones.start - zones.left, zones.right - zones.stop

    def outside(low: Floats, high: Floats) -> Floats:
        """The part of an alarm at distances `low` to `high` from the anomaly."""
        closer = (high - low) * (zones.stop - zones.start)
        for room in (room_left, room_right):
            closer += _integral_capped(high, room) - _integral_capped(low, room)
        return high - low - closer / width

    before = outside(_positive(zones.start - alarms.stop), _positive(zones.start - alarms.start))
    after = outside(_positive(alarms.start - zones.stop), _positive(alarms.stop - zones.stop))
    return before + _shared(alarms, zones) + after


def _recall_integral(alarms: _Alarms, zones: _Zones) -> Floats:
    """Integral over the anomalous times nearest to each alarm of P(random point no closer), [P]."""
    width = zones.right - zones.left

    def outside(low: Floats, high: Floats, room: Floats) -> Floats:
        """Anomalous times `low` to `high` away from an alarm that is `room` from the border."""
        high = np.maximum(low, high)
        closer = (high**2 - low**2) / 2 + _integral_tent(high, room) - _integral_tent(low, room)
        return high - low - closer / width

    before = outside(
        _positive(alarms.start - zones.stop),
        alarms.start - np.maximum(zones.start, alarms.near_left),
        alarms.start - zones.left,
    )
    after = outside(
        _positive(zones.start - alarms.stop),
        np.minimum(zones.stop, alarms.near_right) - alarms.stop,
        zones.right - alarms.stop,
    )
    return before + _shared(alarms, zones) + after


def _shared(alarms: _Alarms, zones: _Zones) -> Floats:
    return _positive(np.minimum(alarms.stop, zones.stop) - np.maximum(alarms.start, zones.start))


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
