"""The report on anomaly scores, and on random ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sacm.errors import ArgumentError, DataError
from sacm.metrics.affiliation import affiliation_precision_recall
from sacm.metrics.anomaly import DRAWS, evaluate_scores, random_baseline
from sacm.metrics.pointwise import adjusted_precision_recall, auc_pr, best_adjusted_f1
from sacm.metrics.vus import vus_pr

from .cases import random_series


@pytest.fixture(scope="module")
def series():
    scores, labels = random_series(0, length=600)
    return scores, labels, np.repeat(["m-1", "m-2", "m-3"], 200)


def test_the_report_holds_what_each_function_says(series):
    scores, labels, segments = series
    report = evaluate_scores(scores, labels, 1.0, segments=segments)
    alarms = scores >= 1.0
    assert report.points == 600
    assert report.alarms == alarms.sum()
    assert report.anomalous_points == labels.sum()
    assert report.adjusted == adjusted_precision_recall(alarms, labels, segments=segments)
    assert report.affiliation == affiliation_precision_recall(alarms, labels, segments=segments)
    assert report.auc_pr == auc_pr(scores, labels)
    assert report.vus_pr == vus_pr(scores, labels, segments=segments)
    assert report.random.alarms == report.alarms


def test_each_segment_is_a_report_of_its_own(series):
    scores, labels, segments = series
    report = evaluate_scores(scores, labels, 1.0, segments=segments, seed=5)
    assert list(report.segments) == ["m-1", "m-2", "m-3"]
    assert report.segments["m-2"] == evaluate_scores(scores[200:400], labels[200:400], 1.0, seed=5)
    assert sum(part.anomaly_intervals for part in report.segments.values()) == (
        report.anomaly_intervals
    )


def test_a_point_at_the_threshold_is_an_alarm():
    assert evaluate_scores([0.0, 1.0, 2.0], [0, 1, 0], 1.0).alarms == 2


def test_never_adjusted_alone(series):
    row = evaluate_scores(*series[:2], 1.0).row()
    assert {"f1_pa", "f1", "f1_best", "auc_pr", "vus_pr"} <= row.keys()
    assert {"f1_affiliation", "f1_pa_random", "f1_pa_random_std"} <= row.keys()
    assert row["f1_pa"] >= row["f1"]


def test_the_report_is_json_and_repeatable(series):
    scores, labels, segments = series
    report = evaluate_scores(scores, labels, 1.0, segments=segments)
    assert report == evaluate_scores(scores, labels, 1.0, segments=segments)
    loaded = json.loads(json.dumps(report.to_dict()))
    assert loaded["vus_pr"]["value"] == report.vus_pr.value
    assert loaded["segments"]["m-1"]["plain"]["f1"] == report.segments["m-1"].plain.f1


@pytest.mark.parametrize("label", [0, 1])
def test_degenerate_labels_give_reasons_and_no_number(label):
    report = evaluate_scores(np.linspace(0, 1, 50), np.full(50, label), 0.5)
    assert set(report.row().values()) == {None}
    for part in (
        report.adjusted,
        report.plain,
        report.best,
        report.best_adjusted,
        report.auc_pr,
        report.auc_roc,
        report.vus_pr,
        report.affiliation,
        report.random,
    ):
        assert "labelled anomalous" in str(part.reason)


def test_one_clean_segment_does_not_spoil_the_rest(series):
    scores, labels, segments = series
    labels = np.where(segments == "m-1", 0, labels)
    report = evaluate_scores(scores, labels, 1.0, segments=segments)
    assert report.segments["m-1"].vus_pr.value is None
    assert report.vus_pr.value is not None


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="nan at position 1"):
        evaluate_scores([0.0, np.nan], [0, 1], 0.5)
    with pytest.raises(ArgumentError, match="threshold"):
        evaluate_scores([0.0, 1.0], [0, 1], float("nan"))
    with pytest.raises(ArgumentError, match="one entry per time step"):
        evaluate_scores([0.0, 1.0], [0, 1, 0], 0.5)


def long_anomalies(length=4000):
    labels = np.zeros(length, dtype=int)
    labels[500:900] = labels[2500:3000] = 1
    return labels


def test_draws_equal_adjusting_each_one_by_hand():
    labels, segments = long_anomalies(), np.arange(4000) // 800
    result = random_baseline(labels, alarms=40, segments=segments, seed=7)
    generator = np.random.default_rng(7)
    f1, best, precision = [], [], []
    for _ in range(DRAWS):
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
