from __future__ import annotations

import pytest

from sacm.experiments.compare import compare_runs
from sacm.reports.compare_headline import compare_headline
from tests.experiments.cases import write_pairs, write_run


def said(folder, raw, sacm):
    return compare_headline(compare_runs(write_pairs(folder, "mse", raw, sacm)))[0]


def test_a_significant_gain(tmp_path):
    assert said(tmp_path, [1.0, 1.1, 1.2], [0.90, 0.99, 1.09]) == (
        "Over 3 seeds, sacm lowers the MSE of PatchTST on waves from 1.100 (raw) to 0.9933, "
        "a gain of 9.7 % (better in 3 of 3). "
        "The difference is significant (paired t-test, p < 0.001, n = 3), "
        "but 3 seeds are few to conclude from."
    )


def test_a_gain_that_chance_can_explain(tmp_path):
    sentence = said(tmp_path, [2.0, 4.0, 3.0], [1.0, 3.0, 3.5])
    assert "lowers the MSE" in sentence
    assert "better in 2 of 3" in sentence
    assert sentence.endswith("The difference is not significant (paired t-test, p = 0.423, n = 3).")


def test_a_loss_is_called_a_loss(tmp_path):
    sentence = said(tmp_path, [0.90, 0.99, 1.09], [1.0, 1.1, 1.2])
    assert "raises the MSE" in sentence
    assert "a loss of 10.7 % (better in 0 of 3)" in sentence
    assert "It is significantly worse (paired t-test, p < 0.001, n = 3), but" in sentence


def test_five_seeds_may_conclude(tmp_path):
    raw = [1.0, 1.1, 1.2, 1.3, 1.4]
    sentence = said(tmp_path, raw, [0.9, 0.99, 1.09, 1.21, 1.3])
    assert sentence.endswith("The difference is significant (paired t-test, p < 0.001, n = 5).")


def test_a_difference_too_small_to_print(tmp_path):
    sentence = said(tmp_path, [1.0, 1.0], [1.0001, 1.0])
    assert "to 1.000, less than 0.1 % (better in 0 of 2, equal in 1)" in sentence


def test_one_seed_claims_nothing(tmp_path):
    sentence = said(tmp_path, [1.0], [0.5])
    assert sentence.startswith("Over 1 seed, sacm lowers")
    assert sentence.endswith("One seed cannot tell a difference from chance.")


def test_no_difference_at_all(tmp_path):
    sentence = said(tmp_path, [1.0, 2.0], [1.0, 2.0])
    assert "sacm leaves the MSE of PatchTST on waves at 1.500, that of raw (" in sentence
    assert "(better in 0 of 2, equal in 2)" in sentence
    assert sentence.endswith("There is no t-test: all differences are zero.")


def test_a_score_that_rises_is_a_gain(tmp_path):
    options = {"task": "classification", "backbone": "InceptionTime"}
    runs = write_pairs(tmp_path, "accuracy", [0.5, 0.6], [0.7, 0.7], **options)
    sentence = compare_headline(compare_runs(runs))[0]
    assert "raises the accuracy" in sentence
    assert "a gain of 15.0 percentage points" in sentence


def test_point_adjustment_is_never_said_alone(tmp_path):
    rows = {
        "raw": {"f1_pa": 0.8, "f1_pa_random": 0.75, "f1": 0.2, "vus_pr": None},
        "sacm": {"f1_pa": 0.9, "f1_pa_random": 0.85, "f1": 0.1, "vus_pr": None},
    }
    runs = [
        write_run(tmp_path, strategy=s, seed=1, row=row, task="anomaly", backbone="TranAD")
        for s, row in rows.items()
    ]
    first, second = compare_headline(compare_runs(runs))
    assert "raises the point-adjusted F1 of TranAD on waves" in first
    assert "Random scores that raise as many alarms reach 0.7500 (raw) and 0.8500" in first
    assert second == (
        "Other measures: F1 0.2000 → 0.1000 (−10.00 pp); VUS-PR undefined for every pair of runs."
    )


@pytest.mark.parametrize("strategies", [("raw", "sacm", "learned_global")])
def test_every_strategy_is_spoken_of(tmp_path, strategies):
    runs = [
        write_run(tmp_path, strategy=s, seed=1, row={"mse": 1.0, "mae": 1.0}) for s in strategies
    ]
    sentences = " ".join(compare_headline(compare_runs(runs)))
    assert "sacm leaves" in sentences
    assert "learned_global leaves" in sentences
