from __future__ import annotations

import numpy as np
import pytest
from aeon.benchmarking.metrics.anomaly_detection import range_pr_vus_score
from hypothesis import given, settings
from hypothesis import strategies as st

from sacm.metrics.anomaly import vus_pr

from .cases import labelled, on_labels, random_series, runs


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "length", "buffer"), [(0, 90, 20), (1, 400, 31), (2, 700, 8)])
def test_agrees_with_aeon(seed, length, buffer):
    scores, labels = random_series(seed, length=length)
    expected = range_pr_vus_score(labels, scores, max_buffer_size=buffer)
    assert on_labels(vus_pr, scores, labels, max_buffer=buffer) == pytest.approx(expected)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(labelled(max_length=30), st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_agrees_with_aeon_on_crowded_labels(case, seed, buffer):
    labels = case[1]
    scores = np.random.default_rng(seed).normal(size=len(labels)).round(1)
    if np.ptp(scores) == 0:
        scores[0] += 1
    expected = range_pr_vus_score(labels, scores, max_buffer_size=buffer)
    assert on_labels(vus_pr, scores, labels, max_buffer=buffer) == pytest.approx(expected)


def by_loops(scores, labels, segments, buffer):
    """One buffer's area, point by point; points of another segment are out of reach."""
    soft = labels.astype(float)
    for start, stop in runs(labels, segments):
        slope = [(start - step, step) for step in range(1, buffer // 2 + 1)]
        slope += [(stop - 1 + step, step) for step in range(1, buffer // 2)]
        for time, step in slope:
            if 0 <= time < len(labels) and segments[time] == segments[start]:
                soft[time] += np.sqrt(1 - step / buffer)
    soft = np.minimum(soft, 1)
    blurred = runs(soft > 0, segments)
    positives = (labels.sum() + soft.sum()) / 2
    area, recall, precision = 0.0, 0.0, 1.0
    for pick in np.linspace(0, len(scores) - 1, 250).astype(int):
        alarms = scores >= np.sort(scores)[::-1][pick]
        hits = soft[alarms].sum()
        existence = np.mean([alarms[start:stop].any() for start, stop in blurred])
        new_recall, new_precision = min(hits / positives, 1) * existence, hits / alarms.sum()
        area += (new_recall - recall) * (new_precision + precision) / 2
        recall, precision = new_recall, new_precision
    return area


@settings(max_examples=6, deadline=None)
@given(labelled(max_length=30), st.integers(0, 2**32 - 1))
def test_segments_agree_with_the_loops(case, seed):
    _, labels, segments = case
    scores = np.random.default_rng(seed).permutation(len(labels)).astype(float)
    expected = np.mean([by_loops(scores, labels, segments, buffer) for buffer in range(9)])
    assert on_labels(vus_pr, scores, labels, segments, max_buffer=8) == pytest.approx(expected)


def test_hand_worked_area_without_buffer():
    # One anomaly at the top of four points; thresholds pass 1, 2, 3, 4 points.
    assert on_labels(vus_pr, [4.0, 3.0, 2.0, 1.0], [1, 0, 0, 0], max_buffer=0) == pytest.approx(1.0)
    # Second place: recall jumps from 0 to 1 while precision goes from 0 to 1/2.
    assert on_labels(vus_pr, [3.0, 4.0, 2.0, 1.0], [1, 0, 0, 0], max_buffer=0) == pytest.approx(
        0.25
    )


def test_a_near_miss_earns_more_with_a_wider_buffer():
    labels, scores = np.zeros(200, dtype=int), np.linspace(0, 0.1, 200)
    labels[100:110] = 1
    scores[112:118] = 1.0
    narrow = on_labels(vus_pr, scores, labels, max_buffer=0)
    assert on_labels(vus_pr, scores, labels, max_buffer=40) > narrow + 0.1


def test_equal_scores_have_no_curve():
    assert on_labels(vus_pr, [1.0, 1.0], [0, 1]) is None
