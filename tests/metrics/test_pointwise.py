"""Point-wise and point-adjusted measures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import f1_score, precision_recall_curve, precision_recall_fscore_support

from sacm.errors import ArgumentError, DataError
from sacm.metrics.pointwise import (
    adjusted_precision_recall,
    auc_pr,
    auc_roc,
    best_adjusted_f1,
    best_f1,
    precision_recall,
    quantile_threshold,
)

from .cases import labelled, random_series, runs


@pytest.mark.parametrize("seed", range(5))
def test_precision_recall_and_best_f1_agree_with_scikit_learn(seed):
    scores, labels = random_series(seed, length=200)
    alarms = scores >= 0.5
    expected = precision_recall_fscore_support(labels, alarms, average="binary")[:3]
    result = precision_recall(alarms, labels)
    assert (result.precision, result.recall, result.f1) == pytest.approx(expected)

    precision, recall, _ = precision_recall_curve(labels, scores)
    curve = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    best = best_f1(scores, labels)
    assert best.f1 == pytest.approx(curve.max())
    assert f1_score(labels, scores >= best.threshold) == pytest.approx(best.f1)


def test_areas_of_a_hand_worked_ranking():
    # From the top: anomaly, normal, anomaly, normal.
    scores, labels = [0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]
    assert auc_pr(scores, labels).value == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert auc_roc(scores, labels).value == pytest.approx(3 / 4)


def test_no_alarm_leaves_precision_undefined_but_not_f1():
    result = precision_recall([0, 0, 0], [0, 1, 0])
    assert (result.precision, result.recall, result.f1) == (None, 0.0, 0.0)
    assert "no point is predicted" in str(result.reason)


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
    result = adjusted_precision_recall(alarms, labels)
    assert (result.precision, result.recall) == (3 / 4, 3 / 5)
    assert result.f1 == pytest.approx(2 / 3)


def test_an_interval_does_not_cross_a_border():
    labels, alarms = [0, 1, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0]
    assert adjusted_precision_recall(alarms, labels).recall == 1.0
    assert adjusted_precision_recall(alarms, labels, segments=[0, 0, 0, 1, 1, 1]).recall == 0.5


@settings(max_examples=80, deadline=None)
@given(labelled())
def test_adjustment_equals_the_loop(case):
    predictions, labels, segments = case
    expected = adjust_by_loop(predictions, labels, segments)
    result = adjusted_precision_recall(predictions, labels, segments=segments)
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
    best = best_adjusted_f1(scores, labels, segments=segments)
    tried = {
        t: f1_score(labels, adjust_by_loop(scores >= t, labels, segments))
        for t in np.unique(scores)
    }
    assert best.f1 == pytest.approx(max(tried.values()))
    assert tried[best.threshold] == pytest.approx(best.f1)
