from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sacm.training import Run
from tests.cli.conftest import Command, Example

QUICK = ("--size", "small", "--epochs", "1")


def test_a_file_is_enough(sacm: Command, example: Example, tmp_path: Path) -> None:
    outcome = sacm("train", "forecasting", "--data", example.series, *QUICK)
    assert outcome.code == 0
    folder = Path(outcome.out.split("run: ")[1].strip())
    run = Run.load(folder)
    assert folder.parent == Path("runs")
    assert run.settings.backbone == "PatchTST"
    for error in run.metrics["report"]["raw"]["channel_mae"]:  # a row a channel, in its own units
        assert f"{error:.4g}" in outcome.out
    assert f"{run.metrics['report']['scaled']['mae']:.4g}" in outcome.out
    assert "all channels, z-scored" in outcome.out
    assert f"over {run.metrics['test_windows']} windows" in outcome.out
    assert f"sacm predict {folder}" in outcome.err


@pytest.mark.parametrize("task", ["classification", "anomaly"])
def test_files_of_other_tasks(sacm: Command, example: Example, task: str) -> None:
    data = example.cases if task == "classification" else example.telemetry
    sizes = () if task == "classification" else ("--input-len", 16, "--stride", 4)
    arguments = ("--data", data, "--backbone", "itransformer", *sizes, *QUICK)
    outcome = sacm("train", task, *arguments)
    assert outcome.code == 0
    expected = {
        "classification": ["balanced accuracy", "macro F1"],
        "anomaly": ["F1 (PA)", "F1 (PA), random scores", "VUS-PR"],
    }
    assert all(word in outcome.out for word in expected[task])


def test_json_holds_everything(sacm: Command, example: Example) -> None:
    arguments = ("--data", example.series, "--backbone", "iTransformer", *QUICK, "--json")
    outcome = sacm("train", "forecasting", *arguments, "--set", "layers=2", "--set", "dropout=0.2")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["settings"]["overrides"] == {"layers": 2, "dropout": 0.2}
    assert found["test"] == Run.load(found["run"]).row
    again = json.loads(
        sacm("train", "forecasting", *arguments, "--set", "dropout=0.2", "--set", "layers=2").out
    )
    assert again["run"] == found["run"]
    assert again["train_seconds"] == found["train_seconds"]


def test_short_telemetry_without_labels(sacm: Command, example: Example) -> None:
    arguments = ("--data", example.series, "--backbone", "iTransformer", *QUICK)
    outcome = sacm("train", "anomaly", *arguments)
    assert outcome.code == 0
    assert "There are no labels" in outcome.err
    assert re.search(r"\d+ alarms in 150 test rows", outcome.err)
    run = Run.load(outcome.out.removeprefix("run: ").strip())
    assert run.settings.input_len == 15


def test_a_time_limit_a_column_of_times_and_both(sacm: Command, example: Example) -> None:
    outcome = sacm("train", "forecasting", "--data", example.series, "--time", "1s", "--horizon", 4)
    assert outcome.code == 0, outcome.err
    assert "Plan, 1 s (--time)" in outcome.err
    assert "candidates by validation MAE" in outcome.out
    wrong = sacm("train", "forecasting", "--data", example.series, "--time", "nowhen")
    assert wrong.code == 2
    assert "no column 'nowhen'" in wrong.err
    both = sacm("train", "forecasting", "--data", example.series, "--time", "9s", "--epochs", 2)
    assert both.code == 2
    assert "--epochs" in both.err
    timed = sacm(
        *("train", "forecasting", "--data", example.series, "--time", "1s"),
        *("--backbone", "iTransformer", "--input-len", 8, "--horizon", 4, "--size", "small"),
    )
    assert timed.code == 0, timed.err
