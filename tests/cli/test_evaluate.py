from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

from sacm.training import Run
from tests.cli.conftest import Command, Example, with_other_data


@pytest.mark.parametrize("task", ["forecasting", "classification", "anomaly"])
def test_the_same_numbers_again(sacm: Command, example: Example, task: str) -> None:
    folder = getattr(example, task)
    outcome = sacm("evaluate", folder, "--json")
    assert outcome.code == 0
    found, stored = json.loads(outcome.out), Run.open(folder).metrics
    assert found["test"] == stored["test"]
    assert found["report"] == json.loads(json.dumps(stored["report"]))
    assert found["evaluated_windows"] == found["test_windows"] == stored["test_windows"]
    assert found["same_data"]
    assert "test results over" in sacm("evaluate", folder).out


def test_changed_data_are_noted(sacm: Command, example: Example, tmp_path: Path) -> None:
    run = with_other_data(example, tmp_path / "run")
    outcome = sacm("evaluate", run)
    assert outcome.code == 0
    assert "other.csv has changed since the run was trained" in outcome.err


def test_changed_data_are_scaled_as_the_run_was(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    """Doubled in all rows, a channel looks the same to a scaler that is fitted to them."""
    folder = with_other_data(example, tmp_path / "run")
    found = json.loads(sacm("evaluate", folder, "--json").out)
    run = Run.open(folder)
    data = run.load_data()
    windows = run.task.windows(run.settings, data, scaler=run.scaler).test
    batch = windows.batch(range(len(windows)))
    with torch.no_grad():
        error = run.load_model()(batch.x) - batch.y
    assert found["test"]["mae"] == pytest.approx(float(error.abs().mean()), rel=1e-5)
    assert found["test"]["mae"] > 1.2 * run.row["mae"]


def test_columns_in_another_order_are_refused(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    run = with_other_data(example, tmp_path / "run")
    pd.read_csv("other.csv")[["date", "heat", "load"]].to_csv("other.csv", index=False)
    outcome = sacm("evaluate", run)
    assert outcome.code == 2
    assert "other.csv has the columns heat, load but load, heat were trained on" in outcome.err


def test_results_that_differ_from_the_recorded_ones_are_noted(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(example.forecasting, run)
    assert "but the run recorded" not in sacm("evaluate", run).err
    record = json.loads((run / "metrics.json").read_text())
    record["test"]["mse"] += 0.5
    (run / "metrics.json").write_text(json.dumps(record))
    assert f"but the run recorded {record['test']['mse']}" in sacm("evaluate", run).err
    assert not json.loads(sacm("evaluate", run, "--json").out)["same_results"]


def test_every_task_stands_beside_its_yardsticks(sacm: Command, example: Example) -> None:
    rows = {
        "forecasting": ["naive", "seasonal naive"],
        "classification": ["majority class"],
        "anomaly": ["always alarm", "random alarms"],
    }
    for task, names in rows.items():
        outcome = sacm("evaluate", getattr(example, task))
        assert outcome.code == 0, outcome.err
        assert all(f"\n  {name}  " in outcome.out for name in ["model", *names])
        record = Run.open(getattr(example, task)).metrics["yardsticks"]
        assert list(record["rows"]) == ["model", *names]
        for sentence in record["sentences"]:
            assert sentence in outcome.err
