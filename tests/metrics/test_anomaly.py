"""The report on anomaly scores, and on random ones."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from sacm.errors import ArgumentError, DataError
from sacm.metrics.anomaly import (
    DRAWS,
    evaluate_scores,
    precision_recall,
    random_scores,
    read_labels,
    vus_pr,
)

from .cases import alarms_on, on_labels, random_series


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
    adjusted = alarms_on(precision_recall, alarms, labels, segments, adjusted=True)
    measures = report.measures
    assert (measures["precision_pa"], measures["recall_pa"], measures["f1_pa"]) == adjusted
    assert measures["vus_pr"] == on_labels(vus_pr, scores, labels, segments)
    assert report.problems == ()


def test_areas_of_a_hand_worked_ranking():
    # From the top: anomaly, normal, anomaly, normal.
    measures = evaluate_scores([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0], 0.5).measures
    assert measures["auc_pr"] == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert measures["auc_roc"] == pytest.approx(3 / 4)


def test_a_point_at_the_threshold_is_an_alarm():
    assert evaluate_scores([0.0, 1.0, 2.0], [0, 1, 0], 1.0).alarms == 2


def test_never_adjusted_alone(series):
    row = evaluate_scores(*series[:2], 1.0).measures
    assert {"f1_pa", "f1", "f1_best", "auc_pr", "vus_pr"} <= row.keys()
    assert {"f1_pa_random", "f1_pa_random_std"} <= row.keys()
    assert row["f1_pa"] >= row["f1"]


def test_the_report_is_json_and_repeatable(series):
    scores, labels, segments = series
    report = evaluate_scores(scores, labels, 1.0, segments=segments)
    assert report == evaluate_scores(scores, labels, 1.0, segments=segments)
    loaded = json.loads(json.dumps(asdict(report)))
    assert loaded["measures"] == report.measures


@pytest.mark.parametrize("label", [0, 1])
def test_degenerate_labels_give_reasons_and_no_number(label):
    report = evaluate_scores(np.linspace(0, 1, 50), np.full(50, label), 0.5)
    assert set(report.measures.values()) == {None}
    assert "labelled anomalous" in report.problems[0]


def test_no_alarm_and_equal_scores_give_reasons():
    report = evaluate_scores([1.0, 1.0], [0, 1], 2.0)
    assert (report.measures["precision"], report.measures["f1"]) == (None, 0.0)
    assert report.measures["vus_pr"] is None
    assert ["no point is an alarm" in text or "equal" in text for text in report.problems] == [
        True
    ] * 2


def test_one_clean_segment_does_not_spoil_the_rest(series):
    scores, labels, segments = series
    labels = np.where(segments == "m-1", 0, labels)
    report = evaluate_scores(scores, labels, 1.0, segments=segments)
    assert report.measures["vus_pr"] is not None


def test_bad_input_is_refused():
    with pytest.raises(DataError, match="nan at position 1"):
        evaluate_scores([0.0, np.nan], [0, 1], 0.5)
    with pytest.raises(ArgumentError, match="threshold"):
        evaluate_scores([0.0, 1.0], [0, 1], float("nan"))
    with pytest.raises(ArgumentError, match="2 entries but labels has 3"):
        evaluate_scores([0.0, 1.0], [0, 1, 0], 0.5)


def long_anomalies(length=4000):
    labels = np.zeros(length, dtype=int)
    labels[500:900] = labels[2500:3000] = 1
    return labels


def test_draws_equal_adjusting_each_one_by_hand():
    labelled = read_labels(long_anomalies(), np.arange(4000) // 800)
    result = random_scores(labelled, alarms=40, seed=7)
    generator = np.random.default_rng(7)
    f1 = []
    for _ in range(DRAWS):
        scores = generator.random(4000)
        f1.append(precision_recall(scores >= np.sort(scores)[-40], labelled, adjusted=True).f1)
    assert result["f1_pa_random"] == pytest.approx(np.mean(f1))
    assert result["f1_pa_random_std"] == pytest.approx(np.std(f1, ddof=1))


def test_chance_looks_excellent_when_anomalies_are_long():
    assert random_scores(read_labels(long_anomalies()), alarms=80)["f1_pa_random"] > 0.9


def test_the_seed_decides():
    labelled = read_labels(long_anomalies())
    first, again = (random_scores(labelled, alarms=9, seed=1) for _ in range(2))
    assert first == again
    assert first != random_scores(labelled, alarms=9, seed=2)


def test_no_random_alarm():
    silent = random_scores(read_labels(long_anomalies()), alarms=0)
    assert silent["f1_pa_random"] == 0.0
