from __future__ import annotations

import pytest
from aeon.benchmarking.metrics.anomaly_detection import (
    range_f_score,
    range_precision,
    range_recall,
)
from hypothesis import assume, given, settings

from sacm.errors import ArgumentError
from sacm.metrics.range_based import range_precision_recall

from .cases import labelled


def test_hand_worked_ranges():
    labels = [1, 1, 1, 1, 0, 0, 1, 1, 0, 0]
    alarms = [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    # Alarms: two right points, one wrong. Anomalies: half found in two alarms, and none.
    result = range_precision_recall(alarms, labels)
    assert result.precision == pytest.approx(2 / 3)
    assert result.recall == pytest.approx((0.5 + 0.5 * 0.5 / 2 + 0) / 2)
    plain = range_precision_recall(alarms, labels, existence_weight=0.0)
    assert plain.recall == pytest.approx(0.5 / 2 / 2)


@settings(max_examples=80, deadline=None)
@given(labelled())
def test_agrees_with_aeon(case):
    predictions, labels, _ = case
    assume(0 < predictions.sum() < len(predictions))  # aeon calls constant predictions 0
    result = range_precision_recall(predictions, labels)
    assert result.precision == pytest.approx(range_precision(labels, predictions))
    assert result.recall == pytest.approx(range_recall(labels, predictions, alpha=0.5))
    assert result.f1 == pytest.approx(range_f_score(labels, predictions))


@settings(max_examples=40, deadline=None)
@given(labelled())
def test_segments_equal_gaps_between_them(case):
    """A gap of two normal points at every border keeps intervals apart without naming segments."""
    predictions, labels, segments = case
    spaced_predictions, spaced_labels = [], []
    for time in range(len(labels)):
        if time and segments[time] != segments[time - 1]:
            spaced_predictions += [0, 0]
            spaced_labels += [0, 0]
        spaced_predictions.append(predictions[time])
        spaced_labels.append(labels[time])
    here = range_precision_recall(predictions, labels, segments=segments)
    assert here == range_precision_recall(spaced_predictions, spaced_labels)


def test_undefined_cases():
    assert range_precision_recall([0, 1], [0, 0]).reason == "no point is labelled anomalous"
    silent = range_precision_recall([0, 0], [0, 1])
    assert (silent.precision, silent.recall, silent.f1) == (None, 0.0, 0.0)
    with pytest.raises(ArgumentError, match="existence_weight"):
        range_precision_recall([0, 1], [0, 1], existence_weight=2)
