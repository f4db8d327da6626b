"""Point-wise and point-adjusted measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import f1_score, precision_recall_curve, precision_recall_fscore_support

from sacm.errors import ArgumentError, DataError
from sacm.metrics.pointwise import (
    adjusted_precision_recall,
    best_cut,
    lift,
    precision_recall,
    quantile_threshold,
)

from .cases import alarms_on, labelled, on_labels, random_series, runs


@pytest.mark.parametrize("seed", range(5))
def test_precision_recall_and_best_f1_agree_with_scikit_learn(seed):
    scores, labels = random_series(seed, length=200)
    alarms = scores >= 0.5
    expected = precision_recall_fscore_support(labels, alarms, average="binary")[:3]
    result = alarms_on(precision_recall, alarms, labels)
    assert (result.precision, result.recall, result.f1) == pytest.approx(expected)

    precision, recall, _ = precision_recall_curve(labels, scores)
    curve = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    best, threshold = best_cut(scores, labels == 1)
    assert best == pytest.approx(curve.max())
    assert f1_score(labels, scores >= threshold) == pytest.approx(best)


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
    result = alarms_on(adjusted_precision_recall, alarms, labels)
    assert (result.precision, result.recall) == (3 / 4, 3 / 5)
    assert result.f1 == pytest.approx(2 / 3)


def test_an_interval_does_not_cross_a_border():
    labels, alarms = [0, 1, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0]
    assert alarms_on(adjusted_precision_recall, alarms, labels).recall == 1.0
    assert alarms_on(adjusted_precision_recall, alarms, labels, [0, 0, 0, 1, 1, 1]).recall == 0.5


@settings(max_examples=80, deadline=None)
@given(labelled())
def test_adjustment_equals_the_loop(case):
    predictions, labels, segments = case
    expected = adjust_by_loop(predictions, labels, segments)
    result = alarms_on(adjusted_precision_recall, predictions, labels, segments)
    if predictions.any():
        assert (result.precision, result.recall, result.f1) == pytest.approx(
            precision_recall_fscore_support(labels, expected, average="binary", zero_division=0)[:3]
        )
    else:
        assert (result.precision, result.recall, result.f1) == (None, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_best_adjusted_f1_is_the_maximum_over_all_thresholds(seed):
    scores, labels = random_series(seed, length=150)
    segments = np.arange(150) // 50
    best, threshold = best_cut(on_labels(lift, scores, labels, segments), labels == 1)
    tried = {
        t: f1_score(labels, adjust_by_loop(scores >= t, labels, segments))
        for t in np.unique(scores)
    }
    assert best == pytest.approx(max(tried.values()))
    assert tried[threshold] == pytest.approx(best)
