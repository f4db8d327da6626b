"""One predictor for commands, estimators and services."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sacm import AnomalyDetector, Classifier, Forecaster, Predictor
from sacm.errors import ArgumentError, DataError, SACMError
from sacm.training import Run
from tests.training.cases import TASKS, make_data, small_run, waves

LENGTH, HORIZON = 24, 8
# Sums over a batch are added up in another order than those over one window: float32 rounds them
# differently, in the last digits.
CLOSE: dict[str, float] = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {task: small_run(task, folder, epochs=1) for task in TASKS}


@pytest.fixture(scope="module")
def windows() -> np.ndarray:
    rows = waves(1100, 3, seed=3).astype(np.float32)
    return np.stack([rows[start : start + LENGTH] for start in range(1000)])


def test_requests_of_several_threads_get_what_one_batch_gets(
    runs: dict[str, Run], windows: np.ndarray
) -> None:
    predictor = Predictor.load(runs["forecasting"])
    expected = predictor.predict(windows)
    with ThreadPoolExecutor(4) as pool:
        found = np.stack(list(pool.map(predictor.predict, windows)))
    assert found.shape == (1000, HORIZON, 3)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_a_forecast_is_the_networks_in_raw_units(runs: dict[str, Run], windows: np.ndarray) -> None:
    run = runs["forecasting"]
    predictor, some = Predictor.load(run.folder), windows[:3]
    scaled = torch.from_numpy((some - run.scaler.mean) / run.scaler.std)
    with torch.no_grad():
        expected = run.load_model()(scaled).numpy() * run.scaler.std + run.scaler.mean
    np.testing.assert_allclose(predictor.predict(some), expected, **CLOSE)
    given = predictor.predict(torch.from_numpy(some).double())
    assert isinstance(given, torch.Tensor)
    assert not given.is_inference()
    np.testing.assert_allclose(given.numpy(), expected, **CLOSE)


def test_a_long_history_is_forecast_from_its_end(runs: dict[str, Run]) -> None:
    predictor = Predictor.load(runs["forecasting"])
    rows = waves(200, 3, seed=5).astype(np.float32)
    expected = predictor.predict(rows[None, -LENGTH:])[0]
    assert np.array_equal(predictor.predict(rows), expected)
    times = pd.date_range("2024-01-01", periods=200, freq="h")
    frame = pd.DataFrame(rows, index=times, columns=["0", "1", "2"])
    found = predictor.predict(frame)
    assert found.index[0] == times[-1] + pd.Timedelta("1h")
    np.testing.assert_allclose(found.to_numpy(), expected, **CLOSE)


def test_classes_have_labels_and_probabilities(runs: dict[str, Run]) -> None:
    run, data = runs["classification"], make_data("classification")
    predictor = Predictor.load(run)
    cases = data.X_test
    labels, table = predictor.predict(cases), predictor.tabulate(cases).frame
    probabilities = table[["p_0", "p_1", "p_2"]].to_numpy()
    assert probabilities.shape == (12, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (labels == np.asarray(data.classes)[probabilities.argmax(axis=1)]).all()
    assert predictor.predict(cases[4:5]) == labels[4]
    assert (predictor.predict(torch.from_numpy(cases)) == labels).all()
    assert (predictor.predict(data) == labels).all()
    assert (labels == data.y_test).mean() == run.row["accuracy"]


def test_rows_have_scores_and_alarms(runs: dict[str, Run]) -> None:
    run, data = runs["anomaly"], make_data("anomaly")
    predictor = Predictor.load(run)
    rows = data.test
    found = predictor.predict(rows)
    assert found.score.shape == (300,)
    assert ((found.score >= run.metrics["report"]["threshold"]) == (found.alarm == 1)).all()
    frame = pd.DataFrame(rows, index=np.arange(300) + 7)
    table = predictor.predict(frame)
    assert list(table.columns) == ["score", "alarm"]
    assert table.index.equals(frame.index)
    np.testing.assert_allclose(table["score"], found.score)
    np.testing.assert_allclose(predictor.predict(data)["score"], found.score)


@pytest.mark.parametrize("task", TASKS)
def test_evaluation_is_the_runs(runs: dict[str, Run], task: str) -> None:
    assert Predictor.load(runs[task]).evaluate(make_data(task)).row == runs[task].row


def test_a_saved_estimator_is_loaded_too(tmp_path: Path) -> None:
    small: dict[str, Any] = {"size": "small", "epochs": 1}
    rows = waves(200, 2).astype(np.float32)
    forecaster = Forecaster(input_len=12, horizon=4, **small).fit(rows)
    forecaster.save(tmp_path / "f")
    assert np.array_equal(Predictor.load(tmp_path / "f").predict(rows), forecaster.predict())
    cases, labels = make_data("classification").X_train, np.array(["a", "b", "c"] * 12)
    classifier = Classifier(**small).fit(cases, labels)
    classifier.save(tmp_path / "c")
    found = Predictor.load(tmp_path / "c").predict(cases)
    assert (found == classifier.predict(cases)).all()
    detector = AnomalyDetector(input_len=20, **small).fit(rows)
    detector.save(tmp_path / "a")
    predictor = Predictor.load(tmp_path / "a")
    assert predictor.threshold == detector.threshold_
    assert np.array_equal(predictor.predict(rows)["alarm"] == 1, detector.alarms(rows))


def test_arrays_need_no_pandas(runs: dict[str, Run], windows: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "windows.npy", windows[:2])
    code = f"""
import sys, numpy as np, sacm
windows = np.load({str(tmp_path / "windows.npy")!r})
forecaster = sacm.Predictor.load({str(runs["forecasting"].folder)!r})
forecaster.predict(windows), forecaster.predict(windows[0])
cases = np.zeros((2, 2, 32), dtype=np.float32)
sacm.Predictor.load({str(runs["classification"].folder)!r}).predict(cases)
assert not {{"pandas", "lightning", "sklearn", "scipy"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_wrong_data_are_one_sentence(runs: dict[str, Run], tmp_path: Path) -> None:
    predictor = Predictor.load(runs["forecasting"])
    with pytest.raises(DataError, match="has 23 rows but a forecast starts from the last 24"):
        predictor.predict(np.zeros((2, 23, 3)))
    with pytest.raises(ArgumentError, match="on 2 channels but a case has 23"):
        Predictor.load(runs["classification"]).predict(np.zeros((2, 23, 2)))
    with pytest.raises(SACMError, match=r"\[2, 20, 3\]"):
        Predictor.load(runs["anomaly"]).predict(np.zeros((2, 20, 3)))
    with pytest.raises(ArgumentError, match="trained on 3 channels but data has 2"):
        predictor.predict(waves(30, 2).astype(np.float32))
    with pytest.raises(DataError, match="has 5 rows"):
        predictor.predict(waves(5, 3).astype(np.float32))
    extreme = np.zeros((3, 24, 3), dtype=np.float32)
    extreme[1, 4, 0] = np.inf
    with pytest.raises(SACMError, match="the forecast of window 2 is not finite"):
        predictor.predict(extreme)
    with pytest.raises(SACMError, match="is not a run folder"):
        Predictor.load(tmp_path)


def test_calendar_features_are_asked_for(tmp_path: Path) -> None:
    times = pd.date_range("2024-01-01", periods=200, freq="h")
    frame = pd.DataFrame(waves(200, 2), columns=["a", "b"], dtype="float32").assign(date=times)
    forecaster = Forecaster("Informer", size="small", epochs=1, input_len=12, horizon=4).fit(frame)
    window = frame[["a", "b"]].to_numpy()[None, -12:]
    predictor = forecaster.predictor_
    for rows in (window, window[0]):
        with pytest.raises(ArgumentError, match="trained with calendar features"):
            predictor.predict(rows)
