"""`sacm runs`, and the names that stand for a run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Example


@pytest.fixture
def kept(sacm: Command, example: Example) -> Path:
    """A folder of two finished runs, the forecasting one newer, and one that is not finished."""
    for place, run in enumerate((example.classification, example.forecasting)):
        copy = Path("runs") / run.name
        shutil.copytree(run, copy)
        for name in ("metrics.json", "config.json"):
            os.utime(copy / name, (place, place))
    begun = Path("runs/begun")
    begun.mkdir()
    shutil.copy(example.forecasting / "config.json", begun)
    os.utime(begun / "config.json", (9, 9))
    return Path("runs")


def newest_first(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda run: -(run / "config.json").stat().st_mtime_ns)


def test_latest_is_the_newest_finished_run(sacm: Command, kept: Path, example: Example) -> None:
    assert sacm("runs", "latest").out.strip() == str(kept / example.forecasting.name)
    assert sacm("predict", "latest").out == sacm("predict", example.forecasting).out
    assert sacm("evaluate", kept / "latest", "--json").code == 0
    outcome = sacm("predict", "nowhere/latest")
    assert outcome.code == 2
    assert "there is no finished run in nowhere" in outcome.err


def test_the_beginning_of_a_name_is_enough(sacm: Command, kept: Path, example: Example) -> None:
    assert sacm("predict", "series").out == sacm("predict", "latest").out
    shutil.copytree(kept / example.forecasting.name, kept / f"{example.forecasting.name}b")
    outcome = sacm("predict", "series")
    assert outcome.code == 2
    assert "could be any of 2 runs" in outcome.err


def test_the_list_names_every_run_and_its_state(
    sacm: Command, kept: Path, example: Example
) -> None:
    (kept / example.classification.name / "metrics.json").write_text("{")
    records = json.loads(sacm("runs", "list", "--json").out)
    states = {each["run"]: each["state"] for each in records}
    assert states == {
        "begun": "unfinished",
        example.forecasting.name: "finished",
        example.classification.name: "damaged",
    }
    own = next(each for each in records if each["state"] == "finished")
    assert own["measure"] == "mae"
    assert own["beats_baselines"] in (True, False)
    assert "finished" in sacm("runs", "list").out
    assert sacm("runs", "list", "--runs", "nowhere").code == 2


def test_a_run_is_shown(sacm: Command, kept: Path) -> None:
    shown = sacm("runs", "show")
    assert shown.code == 0
    assert "iTransformer" in shown.out
    assert "seasonal naive" in shown.out


def test_a_page_tells_of_one_run(sacm: Command, kept: Path) -> None:
    for name in ("series", "cases"):
        outcome = sacm("runs", "report", name, "--out", "run.html")
        assert outcome.code == 0, outcome.err
        text = Path("run.html").read_text()
        assert "<h2>Details</h2>" in text
        for folded in ("Settings", "Environment"):
            assert f"<details><summary>{folded}</summary>" in text
        if name == "series":
            for heading in ("Forecast", "Forecasts and truth", "Errors by channel and by step"):
                assert f"<h2>{heading}</h2>" in text
            assert text.index("<h2>Forecast</h2>") < text.index("<h2>Errors by channel")
    assert "majority class" in text
    assert "http://" not in text


def test_a_page_needs_no_data(sacm: Command, kept: Path) -> None:
    config = next(kept.glob("series*")) / "config.json"
    record = json.loads(config.read_text())
    config.write_text(json.dumps({**record, "data": "gone.csv"}))
    assert sacm("runs", "report", "series", "--out", "run.html").code == 0
    text = Path("run.html").read_text()
    assert "The data of the run give no answer now" in text
    assert "<h2>Forecasts and truth</h2>" in text


def test_candidates_have_a_table(sacm: Command, kept: Path) -> None:
    results = next(kept.glob("series*")) / "metrics.json"
    record = json.loads(results.read_text())
    first = {"candidate": "ridge", "validation_mae": 0.4, "weight": 1.0, "steps": 1, "seconds": 1.2}
    second = {**first, "candidate": "seasonal naive", "weight": 0.0}
    record["race"] = {"table": [first, second]}
    results.write_text(json.dumps(record))
    shown = sacm("runs", "show", "series").out
    assert "candidates by validation MAE, z-scored" in shown
    assert " ridge " in shown


def test_a_changed_scaler_is_noticed(sacm: Command, kept: Path) -> None:
    scaler = next(kept.glob("series*")) / "scaler.json"
    record = json.loads(scaler.read_text())
    record["mean"] = [2 * mean for mean in record["mean"]]
    scaler.write_text(json.dumps(record))
    outcome = sacm("predict", "series")
    assert outcome.code == 2
    assert "scaler.json was changed since the training" in outcome.err


def test_a_run_that_another_version_trained_is_one_sentence(sacm: Command, kept: Path) -> None:
    config = next(kept.glob("series*")) / "config.json"
    record = json.loads(config.read_text())
    overrides = {"members": [{"name": "gone"}]}
    config.write_text(json.dumps({**record, "backbone": "auto", "overrides": overrides}))
    outcome = sacm("predict", "series")
    assert outcome.code == 2
    assert "another version of sacm trained this run" in outcome.err


def test_a_list_has_one_line_a_run_and_needs_no_torch(kept: Path) -> None:
    code = (
        "import sys; sys.argv = ['sacm', 'runs', 'list']\n"
        "from sacm.cli.main import main\n"
        "try:\n    main()\nfinally:\n    assert 'torch' not in sys.modules"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    _, rule, *lines = found.stdout.strip().split("\n")
    assert set(rule.strip()) == {"─"}
    assert [line.split()[0] for line in lines] == [path.name for path in newest_first(kept)]


def test_a_run_is_removed_when_that_is_meant(sacm: Command, kept: Path) -> None:
    assert sacm("runs", "remove", "begun", "--yes").code == 0
    assert not (kept / "begun").exists()
    (kept / "mine").mkdir()
    outcome = sacm("runs", "remove", kept / "mine", "--yes")
    assert outcome.code == 2
    assert "is not a run folder" in outcome.err
    assert (kept / "mine").exists()
