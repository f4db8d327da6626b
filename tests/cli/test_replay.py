from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Example, with_other_data


@pytest.mark.parametrize("task", ["forecasting", "classification", "anomaly"])
def test_a_run_comes_out_the_same(sacm: Command, example: Example, task: str) -> None:
    outcome = sacm("replay", getattr(example, task), "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["same"]
    assert {"epochs", "best_epoch"} < set(found["results"])
    again = sacm("replay", getattr(example, task))
    assert again.code == 0
    assert "the same, to the last digit" in again.out


def test_another_result_is_exit_code_one_and_says_what_changed(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    run = tmp_path / example.forecasting.name
    shutil.copytree(example.forecasting, run)
    for name, change in (
        ("metrics.json", lambda record: record["test"].update(mse=0.0)),
        ("environment.json", lambda record: record["packages"].update(torch="1.0")),
    ):
        record = json.loads((run / name).read_text())
        change(record)
        (run / name).write_text(json.dumps(record))
    outcome = sacm("replay", run, "--into", tmp_path / "again")
    assert outcome.code == 1
    assert "not the same" in outcome.out
    assert "Changed: torch was 1.0, is 2" in outcome.err


def test_what_cannot_be_replayed_is_one_sentence(
    sacm: Command, example: Example, tmp_path: Path
) -> None:
    itself = sacm("replay", example.forecasting, "--into", example.forecasting.parent)
    assert (itself.code, itself.out) == (2, "")
    assert "holds the run itself" in itself.err
    run = with_other_data(example, tmp_path / "run")
    damaged = tmp_path / "damaged"
    shutil.copytree(example.forecasting, damaged)
    (damaged / "environment.json").write_text("{}")
    outcome = sacm("replay", damaged)
    assert (outcome.code, outcome.out) == (2, "")
    assert "environment.json is damaged" in outcome.err
    changed = sacm("replay", run)
    assert changed.code == 2
    assert "other.csv has changed since the run was trained" in changed.err


def test_a_second_replay_trains_too(sacm: Command, example: Example) -> None:
    """What the first one left is not what the run is compared with."""
    first = sacm("replay", example.forecasting, "--json")
    left = Path(json.loads(first.out)["run"]) / "metrics.json"
    record = json.loads(left.read_text())
    record["test"]["mse"] = 0.0
    left.write_text(json.dumps(record))
    second = sacm("replay", example.forecasting, "--json")
    assert second.code == 0, second.err
    assert json.loads(second.out)["same"]
    assert json.loads(left.read_text())["test"]["mse"] != 0.0


def test_a_run_in_the_way_is_not_removed(sacm: Command, example: Example, tmp_path: Path) -> None:
    kept = tmp_path / "kept" / example.forecasting.name
    shutil.copytree(example.forecasting, kept)
    outcome = sacm("replay", example.forecasting, "--into", kept.parent)
    assert outcome.code == 2
    assert "is a finished run but not a replay" in outcome.err
    assert (kept / "metrics.json").exists()
