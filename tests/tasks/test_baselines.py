from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.data.batches import WindowBatches
from sacm.data.datasets import ClassificationData
from sacm.data.windows import forecasting_windows
from sacm.metrics.anomaly import evaluate_scores
from sacm.metrics.classification import measure_classes
from sacm.metrics.forecasting import ForecastAccumulator, ForecastReport
from sacm.tasks.baselines import alarm_baselines, class_baselines, forecast_baselines


def series(rows: int = 300, season: int = 12) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(rows, 2))
    wave = np.sin(2 * np.pi * np.arange(rows) / season)
    return 5 + wave[:, None] * [1, 3] + 0.2 * noise


def off_by(error: float, batches: WindowBatches[Any]) -> Callable[..., ForecastReport]:
    """A model that is wrong by as much everywhere."""

    def measure(accumulator: ForecastAccumulator) -> ForecastReport:
        for batch in batches:
            accumulator.update(batch.y + error, batch.y)
        return accumulator.compute()

    return measure


def test_naive_rows_are_the_plain_loops_over_every_test_window() -> None:
    data = forecasting_data(series(), name="waves")
    windows = forecasting_windows(data, input_len=8, horizon=15)  # shorter than a season
    batches = WindowBatches(windows.test, 7)
    _, found = forecast_baselines(data, windows.test.scaler, batches, off_by(1, batches))
    assert found["rows"]["model"]["mae"] == pytest.approx(1.0)
    assert found["season"] == 12
    scaled = windows.test.scaler.transform(data.values.astype(np.float64))
    errors: dict[int, list[np.ndarray]] = {1: [], 12: []}
    for start in windows.test.starts:
        for season, own in errors.items():
            for step in range(15):
                row = start + 8 + step
                before = row - season * (step // season + 1)
                own.append(scaled[row] - scaled[before])
    for name, season in (("naive", 1), ("seasonal naive", 12)):
        assert found["rows"][name]["mae"] == pytest.approx(np.abs(errors[season]).mean(), rel=1e-5)
        assert found["rows"][name]["mse"] == pytest.approx(
            np.square(errors[season]).mean(), rel=1e-5
        )
    assert "loses to repeating the last season of 12 steps" in found["sentences"][0]
    json.dumps(found, allow_nan=False)


def test_a_model_that_is_right_is_not_blamed() -> None:
    data = forecasting_data(series(), name="waves")
    windows = forecasting_windows(data, input_len=24, horizon=6)
    batches = WindowBatches(windows.test, 64)
    _, found = forecast_baselines(data, windows.test.scaler, batches, off_by(0, batches))
    assert found["sentences"] == []
    assert found["rows"]["model"]["mase"] == 0


def test_an_alarm_on_every_row_and_random_alarms() -> None:
    generator = np.random.default_rng(0)
    labels = (generator.random(4000) < 0.7).astype(int)
    scores = generator.random(4000)
    found = alarm_baselines(evaluate_scores(scores, labels, 0.8))
    always = evaluate_scores(np.ones(4000), labels, 0.5)
    row = found["rows"]["always alarm"]
    assert row["f1"] == pytest.approx(always.measures["f1"])
    assert row["f1_pa"] == pytest.approx(always.measures["f1_pa"])
    # The scores are random: what the row expects of such is near what these reached.
    for name in ("precision", "recall", "f1", "auc_pr", "auc_roc"):
        assert found["rows"]["random alarms"][name] == pytest.approx(
            found["rows"]["model"][name], abs=0.03
        )
    assert any("does not beat an alarm on every row" in each for each in found["sentences"])


def test_a_good_detector_is_not_blamed_and_labels_of_one_kind_say_nothing() -> None:
    labels = np.r_[np.zeros(90), np.ones(10)]
    assert alarm_baselines(evaluate_scores(labels, labels, 0.5))["sentences"] == []
    alone = alarm_baselines(evaluate_scores(labels, np.zeros(100), 0.5))
    assert list(alone["rows"]) == ["model"]


def test_the_majority_class_is_that_of_the_training_cases() -> None:
    train = np.array(["a", "b", "b", "b"])
    test = np.array(["a", "a", "b", "a"])
    cases = np.zeros((2, 4, 1, 3), dtype=np.float32)
    lengths = np.full(4, 3)
    data = ClassificationData("d", cases[0], train, cases[1], test, lengths, lengths, ("a", "b"))
    report = measure_classes(torch.tensor([[0.0, 1.0]] * 4), torch.tensor([0, 0, 1, 0]))
    found = class_baselines(data, report)
    assert found["rows"]["majority class"]["accuracy"] == 0.25
    assert found["rows"]["majority class"]["balanced_accuracy"] == 0.5
    assert "does not beat always answering b" in found["sentences"][0]


def test_a_network_is_told_that_a_ridge_is_better() -> None:
    codes = np.arange(40) % 2
    waves = np.sin((1 + 2 * codes[:, None, None]) * np.linspace(0, 6, 30)).astype(np.float32)
    waves += 0.1 * np.random.default_rng(0).normal(size=waves.shape).astype(np.float32)
    labels, lengths = np.array(["a", "b"])[codes], np.full(20, 30)
    data = ClassificationData(
        "d", waves[:20], labels[:20], waves[20:], labels[20:], lengths, lengths, ("a", "b")
    )
    logits = torch.eye(2)[torch.zeros(20, dtype=torch.long)]
    found = class_baselines(data, measure_classes(logits, torch.tensor(codes[20:])))
    assert found["rows"]["ridge"]["accuracy"] == 1
    assert found["rows"]["ridge"]["nll"] is None
    assert "ridge regression on MiniROCKET's features" in found["sentences"][-1]
