"""`sacm runs`, and the names that stand for a run."""

from __future__ import annotations

import json
import os
import shutil
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


def test_a_run_is_shown_and_two_are_compared(sacm: Command, kept: Path, example: Example) -> None:
    shown = sacm("runs", "show")
    assert shown.code == 0
    assert "iTransformer" in shown.out
    assert "seasonal naive" in shown.out
    pair = ("series", "cases")
    record = json.loads(sacm("runs", "compare", *pair, "--json").out)
    assert record["settings"]["task"] == ["forecasting", "classification"]
    assert "seed" not in record["settings"]
    assert record["results"]["mae"][1] is None
    assert sacm("runs", "compare", *pair).code == 0
    assert sacm("runs", "compare", "series").code == 2


def test_a_page_tells_of_one_run(sacm: Command, kept: Path) -> None:
    for name in ("series", "cases"):
        outcome = sacm("runs", "report", name, "--out", "run.html")
        assert outcome.code == 0, outcome.err
        text = Path("run.html").read_text()
        for heading in ("Results", "Model card", "Training", "How to use it"):
            assert f"<h2>{heading}</h2>" in text
    assert "majority class" in text
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_a_run_is_removed_when_that_is_meant(sacm: Command, kept: Path) -> None:
    assert sacm("runs", "remove", "begun", "--yes").code == 0
    assert not (kept / "begun").exists()
    (kept / "mine").mkdir()
    outcome = sacm("runs", "remove", kept / "mine", "--yes")
    assert outcome.code == 2
    assert "is not a run folder" in outcome.err
    assert (kept / "mine").exists()
