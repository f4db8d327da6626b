from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from sacm.training import Run
from tests.cli.conftest import Command, Example


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
    run = tmp_path / "run"
    shutil.copytree(example.forecasting, run)
    table = pd.read_csv(example.series)
    table["load"] += 1
    table.to_csv("other.csv", index=False)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "data": "other.csv"}))
    outcome = sacm("evaluate", run)
    assert outcome.code == 0
    assert "other.csv has changed since the run was trained" in outcome.err
