from __future__ import annotations

import numpy as np
import pytest

from sacm.errors import ArgumentError
from sacm.metrics.point_adjust import adjusted_precision_recall, best_adjusted_f1
from sacm.metrics.random_scores import random_baseline


def long_anomalies(length=4000):
    labels = np.zeros(length, dtype=int)
    labels[500:900] = labels[2500:3000] = 1
    return labels


def test_draws_equal_adjusting_each_one_by_hand():
    labels, segments = long_anomalies(), np.arange(4000) // 800
    result = random_baseline(labels, alarms=40, segments=segments, draws=3, seed=7)
    generator = np.random.default_rng(7)
    f1, best, precision = [], [], []
    for _ in range(3):
        scores = generator.random(4000)
        alarms = scores >= np.sort(scores)[-40]
        adjusted = adjusted_precision_recall(alarms, labels, segments=segments)
        f1.append(adjusted.f1)
        precision.append(adjusted.precision)
        best.append(best_adjusted_f1(scores, labels, segments=segments).f1)
    assert result.f1 == pytest.approx(np.mean(f1))
    assert result.f1_std == pytest.approx(np.std(f1, ddof=1))
    assert result.precision == pytest.approx(np.mean(precision))
    assert result.best_f1 == pytest.approx(np.mean(best))
    assert result.best_f1_std == pytest.approx(np.std(best, ddof=1))


def test_chance_looks_excellent_when_anomalies_are_long():
    result = random_baseline(long_anomalies(), alarms=80)
    assert result.recall == 1.0
    assert result.f1 > 0.9


def test_the_seed_decides():
    labels = long_anomalies()
    first, again = (random_baseline(labels, alarms=9, seed=1) for _ in range(2))
    assert first == again
    assert first != random_baseline(labels, alarms=9, seed=2)


def test_no_alarm_and_degenerate_labels():
    silent = random_baseline(long_anomalies(), alarms=0)
    assert (silent.precision, silent.recall, silent.f1) == (None, 0.0, 0.0)
    assert silent.best_f1 > 0.5
    assert silent.reason is not None
    nothing = random_baseline(np.zeros(10, dtype=int), alarms=2)
    assert (nothing.f1, nothing.best_f1) == (None, None)
    assert "no point is labelled" in str(nothing.reason)
    with pytest.raises(ArgumentError, match="alarms"):
        random_baseline([0, 1], alarms=3)
    with pytest.raises(ArgumentError, match="draws"):
        random_baseline([0, 1], alarms=1, draws=1)
