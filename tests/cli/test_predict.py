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


def moved(run: Path, folder: Path) -> Path:
    """A run whose training data are not at hand."""
    shutil.copytree(run, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "data": "far/away.csv"}))
    return folder


@pytest.mark.parametrize("task", ["forecasting", "anomaly"])
def test_run_from_elsewhere(sacm: Command, example: Example, tmp_path: Path, task: str) -> None:
    """The training file is not needed to predict from another."""
    original = getattr(example, task)
    data = {"forecasting": example.series, "anomaly": example.telemetry}[task]
    run = moved(original, tmp_path / "run")
    assert sacm("predict", run, "--data", data).out == sacm("predict", original).out


@pytest.mark.parametrize("task", ["forecasting", "anomaly"])
def test_columns_are_known_by_name_far_from_the_training_file(
    sacm: Command, example: Example, tmp_path: Path, task: str
) -> None:
    original = getattr(example, task)
    run = moved(original, tmp_path / "run")
    table = pd.read_csv(example.series)
    table[["heat", "date", "load"]].to_csv("swapped.csv", index=False)
    assert sacm("predict", run, "--data", "swapped.csv").out == sacm("predict", original).out
    table.rename(columns={"heat": "head"}).to_csv("renamed.csv", index=False)
    outcome = sacm("predict", run, "--data", "renamed.csv")
    assert outcome.code == 2
    assert "renamed.csv has no column 'heat'; it has load, head" in outcome.err


def test_another_time_step_is_refused_far_from_the_training_file(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    run = moved(example.forecasting, tmp_path / "run")
    pd.read_csv(example.series)[::2].to_csv("coarse.csv", index=False)
    outcome = sacm("predict", run, "--data", "coarse.csv")
    assert outcome.code == 2
    assert "has a time step of '2h' but 'h' was trained on" in outcome.err


def test_cases_are_classified_far_from_the_training_file(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    run = moved(example.classification, tmp_path / "run")
    outcome = sacm("predict", run, "--data", example.cases)
    assert outcome.code == 0, outcome.err
    assert outcome.out == sacm("predict", example.classification).out


def test_a_calendar_is_used_as_in_training(sacm: Command, example: Example) -> None:
    values = pd.read_csv(example.series)[["load", "heat"]].to_numpy()
    np.save("series.npy", values)
    sizes = ("--input-len", 12, "--horizon", 4, "--size", "small", "--epochs", 1)
    runs = {}
    for data in (example.series, Path("series.npy")):
        trained = sacm("train", "forecasting", "--backbone", "TimesNet", "--data", data, *sizes)
        assert trained.code == 0, trained.err
        runs[data.suffix] = trained.out.split("run: ")[1].strip()
    stamped = sacm("predict", runs[".npy"], "--data", example.series)
    assert stamped.code == 0, stamped.err
    assert "2024-01-13 12:00" in stamped.out
    refused = sacm("predict", runs[".csv"], "--data", "series.npy")
    assert refused.code == 2
    assert "series.npy has no timestamps" in refused.err


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
