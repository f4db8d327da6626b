from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch

from sacm.inference import Predictor
from sacm.training import Run
from tests.cli.conftest import Command, Example, with_other_data


@pytest.mark.parametrize("task", ["forecasting", "classification", "anomaly"])
def test_the_same_numbers_again(sacm: Command, example: Example, task: str) -> None:
    folder = getattr(example, task)
    outcome = sacm("evaluate", folder, "--json")
    assert outcome.code == 0
    found, stored = json.loads(outcome.out), Run.load(folder).metrics
    assert found["test"] == stored["test"]
    assert found["report"] == json.loads(json.dumps(stored["report"]))
    assert found["evaluated_windows"] == stored["test_windows"]
    assert found["same_data"]
    assert "test results over" in sacm("evaluate", folder).out


def test_changed_data_are_scaled_as_the_run_was(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    """Doubled in all rows, a channel looks the same to a scaler that is fitted to them."""
    folder = with_other_data(example, tmp_path / "run")
    assert "other.csv has changed since the run was trained" in sacm("evaluate", folder).err
    found = json.loads(sacm("evaluate", folder, "--json").out)
    assert not found["same_data"]
    run = Run.load(folder)
    data = run.load_data()
    windows = run.task.windows(run.settings, data, scaler=run.scaler).test
    batch = windows.batch(range(len(windows)))
    with torch.no_grad():
        error = run.load_model()(run.strategy.inputs(batch.x)) - batch.y
    assert found["test"]["mae"] == pytest.approx(float(error.abs().mean()), rel=1e-5)
    assert found["test"]["mae"] > 1.2 * run.row["mae"]


def test_every_task_stands_beside_its_baselines(sacm: Command, example: Example) -> None:
    rows = {
        "forecasting": ["naive", "seasonal naive"],
        "classification": ["majority class", "ridge"],
        "anomaly": ["always alarm", "random alarms"],
    }
    for task, names in rows.items():
        outcome = sacm("evaluate", getattr(example, task))
        assert outcome.code == 0, outcome.err
        assert all(f"\n {name}  " in outcome.out for name in ["model", *names])
        record = Run.load(getattr(example, task)).metrics["baselines"]
        assert list(record["rows"]) == ["model", *names]
        for sentence in record["sentences"]:
            assert sentence[1:] in outcome.err  # with a capital letter


def test_other_data_are_tested_as_a_whole(sacm: Command, example: Example) -> None:
    later = pd.read_csv(example.series).iloc[-72:]
    later.to_csv("later.csv", index=False)
    outcome = sacm("evaluate", example.forecasting, "--data", "later.csv", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    # The last 60 rows are the test part; inputs reach back into the 12 rows before.
    assert record["evaluated_windows"] == 72 - 12 - 4 + 1
    assert record["test"]["mae"] == pytest.approx(Run.load(example.forecasting).row["mae"])
    cases = json.loads(
        sacm("evaluate", example.classification, "--data", example.cases, "--json").out
    )
    assert cases["test"]["accuracy"] == Run.load(example.classification).row["accuracy"]
    rows = json.loads(sacm("evaluate", example.anomaly, "--data", example.telemetry, "--json").out)
    assert rows["report"]["points"] == 300
    assert rows["report"]["threshold"] == Predictor.load(example.anomaly).threshold


def test_data_that_cannot_be_tested_are_refused(sacm: Command, example: Example) -> None:
    pd.read_csv(example.series).iloc[:14].to_csv("short.csv", index=False)
    outcome = sacm("evaluate", example.forecasting, "--data", "short.csv")
    assert (outcome.code, outcome.out) == (2, "")
    assert "14 rows but a window to test needs 16" in outcome.err
    outcome = sacm("evaluate", example.anomaly, "--data", example.series)
    assert outcome.code == 2
    assert "has no column of labels to test by" in outcome.err
