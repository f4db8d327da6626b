from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from sacm_lab.affiliation import affiliation_precision_recall
from tests.metrics.cases import alarms_on, labelled, runs

CELL = 1 / 8  # every corner of the integrands lies on a multiple of it, so midpoints are exact


def by_integration(predictions, labels, segments):
    """The published definition, integrated numerically in each affiliation zone."""
    precisions, recalls = [], []
    for segment in np.unique(segments):
        here = segments == segment
        for anomaly, zone in affiliation_zones(runs(labels[here]), length=here.sum()):
            alarms = [
                (max(start, zone[0]), min(stop, zone[1]))
                for start, stop in runs(predictions[here])
                if start < zone[1] and stop > zone[0]
            ]
            recalls.append(zone_recall(alarms, anomaly, zone))
            if alarms:
                precisions.append(zone_precision(alarms, anomaly, zone))
    return np.mean(precisions) if precisions else None, np.mean(recalls)


def affiliation_zones(anomalies, *, length):
    """Each anomaly with the stretch of time nearer to it than to any other."""
    cuts = [(before[1] + after[0]) / 2 for before, after in pairwise(anomalies)]
    return list(zip(anomalies, pairwise([0, *cuts, length]), strict=bool(anomalies)))


def midpoints(start, stop):
    return np.arange(start, stop, CELL) + CELL / 2


def distance(times, intervals):
    each = [np.maximum(np.maximum(a - times, times - b), 0) for a, b in intervals]
    return np.min(each, axis=0)


def zone_precision(alarms, anomaly, zone):
    times = np.concatenate([midpoints(*alarm) for alarm in alarms])
    left, right = anomaly[0] - zone[0], zone[1] - anomaly[1]
    gap = distance(times, [anomaly])
    closer = anomaly[1] - anomaly[0] + np.minimum(gap, left) + np.minimum(gap, right)
    return np.where(gap == 0, 1, 1 - closer / (zone[1] - zone[0])).mean()


def zone_recall(alarms, anomaly, zone):
    if not alarms:
        return 0.0
    times = midpoints(*anomaly)
    gap = distance(times, alarms)
    closer = np.minimum(gap, times - zone[0]) + np.minimum(gap, zone[1] - times)
    return (1 - closer / (zone[1] - zone[0])).mean()


def test_hand_worked_single_zone():
    # Zone [0, 10), anomaly [4, 6), alarm [7, 8). A random time is farther from the anomaly than
    # d with probability 1 - (2 + 2 d) / 10 for d <= 4; d runs from 1 to 2: mean 0.5.
    labels, alarms = [0, 0, 0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    result = alarms_on(affiliation_precision_recall, alarms, labels)
    assert result.precision == pytest.approx(0.5)
    # From a time y in [4, 6) the alarm is 7 - y away, and 2 (7 - y) of the 10 steps are closer to
    # y than that: 4 on average.
    assert result.recall == pytest.approx(0.6)
    assert result.f1 == pytest.approx(2 * 0.5 * 0.6 / 1.1)


def test_published_two_zone_numbers():
    labels, alarms = [0, 0, 0, 1, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 0, 0, 0, 1, 0]
    result = alarms_on(affiliation_precision_recall, alarms, labels)
    assert (result.precision, result.recall) == pytest.approx((9 / 11, 0.8442760942760943))


@settings(max_examples=150, deadline=None)
@given(labelled())
def test_equals_numerical_integration(case):
    predictions, labels, segments = case
    result = alarms_on(affiliation_precision_recall, predictions, labels, segments)
    precision, recall = by_integration(predictions, labels, segments)
    assert result.recall == pytest.approx(recall, abs=1e-12)
    if precision is None:
        assert result.precision is None
    else:
        assert result.precision == pytest.approx(precision, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(labelled())
def test_time_can_run_backwards(case):
    predictions, labels, segments = case
    forward = alarms_on(affiliation_precision_recall, predictions, labels, segments)
    backward = alarms_on(
        affiliation_precision_recall, predictions[::-1], labels[::-1], segments[::-1]
    )
    assert forward.f1 == pytest.approx(backward.f1)
    assert forward.recall == pytest.approx(backward.recall)


def test_no_alarm_in_a_segment_with_an_anomaly_leaves_precision_undefined():
    assert alarms_on(affiliation_precision_recall, [0, 0], [0, 1]) == (None, 0.0, 0.0)
    elsewhere = alarms_on(affiliation_precision_recall, [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1])
    assert elsewhere == (None, 0.0, 0.0)
