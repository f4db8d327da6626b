from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.training import Run
from tests.cli.conftest import Command, Example


def test_forecast_follows_the_training_file(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.forecasting)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out), parse_dates=["date"])
    assert list(table.columns) == ["date", "load", "heat", "repaired_share"]
    assert list(table["date"]) == list(pd.date_range("2024-01-13 12:00", periods=4, freq="h"))
    records = json.loads(sacm("predict", example.forecasting, "--json").out)
    np.testing.assert_allclose([row["load"] for row in records], table["load"], rtol=1e-6)
    assert pd.Timestamp(records[0]["date"]) == table["date"][0]


def test_new_history_and_a_file(sacm: Command, example: Example) -> None:
    shuffled = pd.read_csv(example.series)[["heat", "date", "load"]][:100]
    shuffled.to_csv("new.csv", index=False)
    outcome = sacm("predict", example.forecasting, "--data", "new.csv", "--out", "next.csv")
    assert outcome.code == 0
    assert outcome.out == ""
    assert "4 rows written" in outcome.err
    table = pd.read_csv("next.csv")
    assert list(table.columns) == ["date", "load", "heat", "repaired_share"]
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


def test_classes_of_cases(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.classification)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out))
    assert list(table.columns) == ["case", "class", "p_down", "p_up"]
    assert len(table) == 6  # the test cases
    assert set(table["class"]) <= {"up", "down"}
    accuracy = (table["class"] == ["up", "down"] * 3).mean()
    assert accuracy == Run.load(example.classification).row["accuracy"]
    again = sacm("predict", example.classification, "--data", example.cases)
    assert again.out == outcome.out


def test_scores_of_rows(sacm: Command, example: Example) -> None:
    outcome = sacm("predict", example.anomaly)
    assert outcome.code == 0
    table = pd.read_csv(io.StringIO(outcome.out))
    assert list(table.columns) == ["row", "date", "score", "threshold", "alarm"]
    assert len(table) == 300
    assert table["date"][0] == "2024-01-01 00:00:00"
    assert (table["alarm"] == (table["score"] >= table["threshold"])).all()
    pd.read_csv(example.telemetry)[["heat", "load", "date"]].to_csv("new.csv", index=False)
    assert sacm("predict", example.anomaly, "--data", "new.csv").out == outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--coverage", "80"), "--coverage '80': expected numbers between 0 and 1"),
        (("--coverage", "0.99"), "needs 199 calibration windows but the run has"),
        (("--plot", "next.gif"), "figures are written to .png, .svg, .pdf files"),
        (("--threshold", "3"), "a threshold is for anomaly detection"),
    ],
)
def test_what_a_forecast_cannot_have_is_refused(
    sacm: Command, example: Example, arguments: tuple[str, str], message: str
) -> None:
    outcome = sacm("predict", example.forecasting, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_forecasts_and_alarms_have_a_picture(sacm: Command, example: Example) -> None:
    for run in (example.forecasting, example.anomaly):
        outcome = sacm("predict", run, "--plot", "seen.png", "--out", "seen.csv")
        assert outcome.code == 0, outcome.err
        assert Path("seen.png").read_bytes()[1:4] == b"PNG"
        Path("seen.png").unlink()
    outcome = sacm("predict", example.classification, "--plot", "seen.png")
    assert outcome.code == 2
    assert "classes have no picture" in outcome.err


def alarm_table(sacm: Command, run: Path, threshold: str) -> tuple[pd.DataFrame, str]:
    outcome = sacm("predict", run, "--threshold", threshold)
    assert outcome.code == 0, outcome.err
    return pd.read_csv(io.StringIO(outcome.out)), outcome.err


def test_thresholds_by_number_and_quantile(sacm: Command, example: Example) -> None:
    run = example.anomaly
    table, _ = alarm_table(sacm, run, "0.5")
    assert (table["threshold"] == 0.5).all()
    low, _ = alarm_table(sacm, run, "quantile=0.5")
    high, said = alarm_table(sacm, run, "quantile=0.9")
    assert low["alarm"].sum() > high["alarm"].sum()
    assert "(quantile=0.9)" in said
    for wrong in ("luck", "quantile=2", "nan", "rate=0.5"):
        assert sacm("predict", run, "--threshold", wrong).code == 2
