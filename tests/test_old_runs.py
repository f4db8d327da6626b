"""Run folders and saved estimators of earlier versions go on loading, evaluating and predicting.

The folders under tests/fixtures/finished_runs and tests/fixtures/estimators are never written
again: a new version must read them. Those of a further format go beside them; `python -m
tests.test_old_runs FOLDER` writes them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacm import AnomalyDetector, Classifier, Forecaster, Predictor
from sacm.training import Run
from tests.training.cases import TASKS, make_data, small_run, waves

FIXTURES = Path(__file__).parent / "fixtures"
TINY: dict[str, dict[str, Any]] = {
    "forecasting": {"backbone": "iTransformer", "overrides": {"width": 8, "hidden": 8}},
    "classification": {"backbone": "iTransformer", "overrides": {"width": 8, "hidden": 8}},
    "anomaly": {"backbone": "iTransformer", "overrides": {"width": 8, "hidden": 8}},
}
# Another processor rounds sums differently, in the last digits.
CLOSE: dict[str, float] = {"rtol": 1e-4, "atol": 1e-6}
ROWS = waves(60, 3, seed=9).astype(np.float32)
CASES = np.sin(np.arange(4 * 2 * 32).reshape(4, 2, 32) / 7).astype(np.float32)  # [N, C, L]


def answer(predictor: Predictor) -> Any:
    """What a predictor says to rows or cases that are always the same."""
    if predictor.settings.task == "classification":
        return predictor.probabilities(CASES.transpose(0, 2, 1)).tolist()
    found = predictor.predict(ROWS)
    return found.tolist() if predictor.settings.task == "forecasting" else found.score.tolist()


def fit(task: str) -> Any:
    """A small estimator."""
    common: dict[str, Any] = {"size": "small", "epochs": 1, **TINY[task]}
    rows = waves(200, 3).astype(np.float32)
    if task == "forecasting":
        return Forecaster(input_len=24, horizon=8, **common).fit(rows)
    if task == "anomaly":
        return AnomalyDetector(input_len=20, **common).fit(rows)
    data = make_data(task)
    return Classifier(**common).fit(data.X_train, np.array(["a", "b", "c"])[data.y_train])


ESTIMATORS = {
    "forecasting": Forecaster,
    "classification": Classifier,
    "anomaly": AnomalyDetector,
}


def write(folder: Path) -> None:
    """Write a run and a saved estimator of each task, and what they say."""
    for task in TASKS:
        run = small_run(task, folder / "made", epochs=1, **TINY[task])
        (run.folder / "last.safetensors").unlink()
        (folder / "finished_runs").mkdir(exist_ok=True)
        run.folder.rename(folder / "finished_runs" / task)
        fit(task).save(folder / "estimators" / task)
        for kind in ("finished_runs", "estimators"):
            place = folder / kind / task
            (place / "expected.json").write_text(json.dumps(answer(Predictor.load(place))))
    (folder / "made").rmdir()


@pytest.mark.parametrize("kind", ["finished_runs", "estimators"])
@pytest.mark.parametrize("task", TASKS)
def test_they_say_what_they_said(kind: str, task: str) -> None:
    folder = FIXTURES / kind / task
    expected = json.loads((folder / "expected.json").read_text())
    np.testing.assert_allclose(answer(Predictor.load(folder)), expected, **CLOSE)


@pytest.mark.parametrize("task", TASKS)
def test_a_run_evaluates_to_its_record(task: str) -> None:
    run = Run.load(FIXTURES / "finished_runs" / task)
    assert run.finished
    found = Predictor.load(run).evaluate(make_data(task)).row
    assert found == pytest.approx(run.row, rel=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_an_estimator_loads_and_predicts(task: str) -> None:
    folder = FIXTURES / "estimators" / task
    estimator: Any = ESTIMATORS[task].load(folder)
    expected = np.array(json.loads((folder / "expected.json").read_text()))
    if task == "forecasting":
        np.testing.assert_allclose(estimator.predict(ROWS), expected, **CLOSE)
        assert estimator.predict().shape == (8, 3)
    elif task == "classification":
        np.testing.assert_allclose(estimator.predict_proba(CASES), expected, **CLOSE)
        assert estimator.classes_.tolist() == ["a", "b", "c"]
    else:
        np.testing.assert_allclose(estimator.anomaly_scores(ROWS), expected, **CLOSE)
        assert set(estimator.predict(ROWS)) <= {0, 1}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
