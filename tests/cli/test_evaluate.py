from __future__ import annotations

import json
from pathlib import Path

import pytest

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
