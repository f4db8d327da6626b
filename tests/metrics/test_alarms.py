"""Intervals of labels; point-wise and point-adjusted measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import precision_recall_curve, precision_recall_fscore_support

from sacm.errors import ArgumentError, DataError
from sacm.metrics.anomaly import (
    best_f1,
    find_intervals,
    precision_recall,
    quantile_threshold,
    read_labels,
    read_scores,
    segment_borders,
)

from .cases import alarms_on, labelled, random_series, runs


@pytest.mark.parametrize("seed", range(5))
def test_precision_recall_and_best_f1_agree_with_scikit_learn(seed):
    scores, labels = random_series(seed, length=200)
    alarms = scores >= 0.5
    expected = precision_recall_fscore_support(labels, alarms, average="binary")[:3]
    result = alarms_on(precision_recall, alarms, labels)
    assert (result.precision, result.recall, result.f1) == pytest.approx(expected)

    precision, recall, _ = precision_recall_curve(labels, scores)
    curve = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    assert best_f1(scores, labels == 1) == pytest.approx(curve.max())


def test_no_alarm_leaves_precision_undefined_but_not_f1():
    assert alarms_on(precision_recall, [0, 0, 0], [0, 1, 0]) == (None, 0.0, 0.0)


def test_quantile_threshold():
    assert quantile_threshold(np.arange(101.0)) == pytest.approx(95.0)
    with pytest.raises(ArgumentError, match="quantile"):
        quantile_threshold([1.0, 2.0], quantile=1.0)
    with pytest.raises(DataError, match="validation scores must be finite"):
        quantile_threshold([1.0, np.inf])


def adjust_by_loop(predictions, labels, segments):
    """Point adjustment as published: fill an interval when a point of it is predicted."""
    adjusted = np.array(predictions, dtype=int)
    for start, stop in runs(labels, segments):
        if predictions[start:stop].any():
            adjusted[start:stop] = 1
    return adjusted


def test_hand_worked_adjustment():
    labels = [0, 1, 1, 1, 0, 0, 1, 1, 0]
    alarms = [1, 0, 1, 0, 0, 0, 0, 0, 0]
    result = alarms_on(precision_recall, alarms, labels, adjusted=True)
    assert (result.precision, result.recall) == (3 / 4, 3 / 5)
    assert result.f1 == pytest.approx(2 / 3)


def test_an_interval_does_not_cross_a_border():
    labels, alarms = [0, 1, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0]
    assert alarms_on(precision_recall, alarms, labels, adjusted=True).recall == 1.0
    segments = [0, 0, 0, 1, 1, 1]
    assert alarms_on(precision_recall, alarms, labels, segments, adjusted=True).recall == 0.5


@settings(max_examples=80, deadline=None)
@given(labelled())
def test_adjustment_equals_the_loop(case):
    predictions, labels, segments = case
    expected = adjust_by_loop(predictions, labels, segments)
    result = alarms_on(precision_recall, predictions, labels, segments, adjusted=True)
    if predictions.any():
        assert (result.precision, result.recall, result.f1) == pytest.approx(
            precision_recall_fscore_support(labels, expected, average="binary", zero_division=0)[:3]
        )
    else:
        assert (result.precision, result.recall, result.f1) == (None, 0.0, 0.0)


@settings(max_examples=60, deadline=None)
@given(labelled())
def test_intervals_equal_a_point_by_point_search(case):
    predictions, labels, segments = case
    borders = segment_borders(segments, length=len(labels))
    found = find_intervals(labels.astype(bool), borders)
    assert list(zip(found.starts, found.stops, strict=True)) == runs(labels, segments)
    assert found.reduce(np.add, predictions, empty=0).tolist() == [
        predictions[start:stop].sum() for start, stop in runs(labels, segments)
    ]


def test_a_border_cuts_an_interval_in_two():
    borders = segment_borders(["a", "a", "b", "b"], length=4)
    assert borders.tolist() == [0, 2, 4]
    cut = find_intervals(np.array([False, True, True, False]), borders)
    assert (cut.starts.tolist(), cut.stops.tolist()) == ([1, 2], [2, 3])


def test_bad_input_is_named():
    with pytest.raises(DataError, match="found 2 at position 1"):
        read_labels([0, 2, 1])
    with pytest.raises(DataError, match="found nan at position 2"):
        read_scores([0.0, 1.0, np.nan])
    with pytest.raises(ArgumentError, match="1-D"):
        read_scores(np.zeros((2, 2)))
    with pytest.raises(ArgumentError, match="non-empty"):
        read_labels([])
    with pytest.raises(ArgumentError, match="scores has 2 entries but labels has 3"):
        read_scores(np.zeros(2), length=3)
    with pytest.raises(DataError, match="comes back"):
        segment_borders([0, 1, 0], length=3)
    with pytest.raises(ArgumentError, match="each of the 3 points"):
        segment_borders([0, 1], length=3)
