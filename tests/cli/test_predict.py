from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm import Forecaster
from sacm.training import Run
from tests.cli.conftest import Command, Example


def test_forecast_follows_the_training_file(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.forecasting)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out), parse_dates=["date"])
    assert list(table.columns) == ["date", "load", "heat"]
    assert list(table["date"]) == list(pd.date_range("2024-01-13 12:00", periods=4, freq="h"))
    records = json.loads(sacm("predict", example.forecasting, "--json").out)
    np.testing.assert_allclose([row["load"] for row in records], table["load"], rtol=1e-6)
    assert pd.Timestamp(records[0]["date"]) == table["date"][0]


def test_forecast_is_the_estimators(sacm: Command, example: Example) -> None:
    """The same settings and splits make the same forecast on both roads."""
    table = pd.read_csv(example.series)
    outcome = sacm("predict", example.forecasting, "--data", example.series)
    forecaster = Forecaster(
        "iTransformer", size="small", epochs=1, input_len=12, horizon=4, seed=42
    )
    from sacm.data import forecasting_data

    expected = forecaster.fit(forecasting_data(table)).predict()
    found = pd.read_csv(io.StringIO(outcome.out))
    np.testing.assert_allclose(found["heat"], expected["heat"], rtol=1e-4)


@pytest.mark.parametrize("name", ["next.csv", "next.parquet"])
def test_new_history_and_a_file(sacm: Command, example: Example, name: str) -> None:
    shuffled = pd.read_csv(example.series)[["heat", "date", "load"]][:100]
    shuffled.to_csv("new.csv", index=False)
    outcome = sacm("predict", example.forecasting, "--data", "new.csv", "--out", name)
    assert outcome.code == 0
    assert outcome.out == ""
    assert "4 rows written" in outcome.err
    table = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    assert list(table.columns) == ["date", "load", "heat"]
    assert pd.Timestamp(table["date"][0]) == pd.Timestamp("2024-01-05 04:00")
    assert table["load"].between(30, 70).all()


def test_run_from_elsewhere(sacm: Command, example: Example, tmp_path: Path) -> None:
    """The training file is not needed to forecast from another."""
    run = tmp_path / "run"
    shutil.copytree(example.forecasting, run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "data": "far/away.csv"}))
    expected = sacm("predict", example.forecasting).out
    assert sacm("predict", run, "--data", example.series).out == expected


def test_classes_of_cases(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.classification)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out))
    assert list(table.columns) == ["case", "class", "p_down", "p_up"]
    assert len(table) == 6  # the test cases
    assert set(table["class"]) <= {"up", "down"}
    accuracy = (table["class"] == ["up", "down"] * 3).mean()
    assert accuracy == Run.open(example.classification).row["accuracy"]
    again = sacm("predict", example.classification, "--data", example.cases)
    assert again.out == outcome.out


def test_scores_of_rows(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.anomaly)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out))
    assert list(table.columns) == ["row", "score", "threshold", "alarm"]
    assert len(table) == 300
    assert (table["alarm"] == (table["score"] >= table["threshold"])).all()
    pd.read_csv(example.telemetry)[["heat", "load", "date"]].to_csv("new.csv", index=False)
    assert sacm("predict", example.anomaly, "--data", "new.csv").out == outcome.out


def test_answers_that_are_not_finite_are_refused(sacm: Command, example: Example) -> None:
    telemetry = pd.read_csv(example.telemetry)
    telemetry.loc[30, "heat"] = 1e38
    telemetry.to_csv("extreme.csv", index=False)
    outcome = sacm("predict", example.anomaly, "--data", "extreme.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert "the anomaly score of row 20 is not finite" in outcome.err
    with np.load(example.cases) as archive:
        arrays = dict(archive)
    arrays["X_test"][2] = 1e38
    np.savez("extreme.npz", **arrays)
    outcome = sacm("predict", example.classification, "--data", "extreme.npz")
    assert (outcome.code, outcome.out) == (2, "")
    assert "the class of case 3 is undecided" in outcome.err
