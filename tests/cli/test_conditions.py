"""Odd names, terminals, machines and interruptions: commands go on, or say what is wrong."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from sacm.cli.main import explain
from tests.cli.conftest import Command, Example

TRAIN = ("train", "forecasting", "--size", "small", "--backbone", "iTransformer", "--epochs", "1")
WAVE = np.sin(np.arange(400) / 4)


def hourly(rows: int = 120, **columns: object) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "v": WAVE[:rows], **columns})


def panel(**lengths: int) -> pd.DataFrame:
    parts = [hourly(rows, shop=name) for name, rows in lengths.items()]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def panel_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on series of which one is too short to forecast."""
    from sacm.tasks import make_settings
    from sacm.training import Hardware, train

    folder = tmp_path_factory.mktemp("panel")
    panel(north=120, south=130, tiny=3).to_csv(folder / "panel.csv", index=False)
    settings = make_settings(
        task="forecasting",
        data=str(folder / "panel.csv"),
        backbone="iTransformer",
        size="small",
        epochs=1,
    )
    return train(settings, folder=folder / "runs", hardware=Hardware(show_progress=False)).folder


def test_a_short_series_does_not_stop_the_others(sacm: Command, panel_run: Path) -> None:
    outcome = sacm("predict", panel_run)
    assert outcome.code == 0
    assert re.search(
        r"No forecast for series with fewer than \d+ rows: 'tiny' \(3\)\.", outcome.err
    )
    assert "Not trained on" not in outcome.err
    found = pd.read_csv(io.StringIO(outcome.out))
    assert list(found.columns) == ["shop", "date", "v", "repaired_share"]
    assert sorted(set(found["shop"])) == ["north", "south"]


def test_data_that_cannot_be_trained_on_leave_no_folder(sacm: Command, tmp_path: Path) -> None:
    hourly(40).to_csv("x.csv", index=False)
    outcome = sacm(*TRAIN, "--data", "x.csv", "--input-len", 90)
    assert outcome.code == 2
    assert list((tmp_path / "runs").iterdir()) == []


def test_square_brackets_are_part_of_a_name(sacm: Command) -> None:
    hourly().to_csv("Power [kW].csv", index=False)
    assert "windows of Power [kW].csv" in sacm("score", "Power [kW].csv", "--window", 24).out
    marked = panel(**{"[/x]": 60, "[red]": 50}).rename(columns={"shop": "unique_id"})
    marked.rename(columns={"date": "ds", "v": "y"}).to_csv("marked.csv", index=False)
    outcome = sacm("score", "marked.csv", "--window", 24)
    assert outcome.code == 0
    assert "[/x]" in outcome.out


def test_no_memory_is_a_sentence() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    for error in (caught.value, MemoryError(), np.exceptions.AxisError("x")):
        said, _ = explain(error)
        expected = not isinstance(error, np.exceptions.AxisError)
        assert (said is not None and "not enough memory" in said) == expected


def test_a_name_of_240_letters(sacm: Command, tmp_path: Path) -> None:
    name = "x" * 240 + ".csv"
    hourly().to_csv(name, index=False)
    outcome = sacm(*TRAIN, "--data", name, "--input-len", 8, "--horizon", 2)
    assert outcome.code == 0
    assert sacm("score", name, "--window", 24, "--out", "y" * 240 + ".csv").code == 0
    missing = sacm("score", "z" * 300 + ".csv")
    assert missing.code != 0
    assert missing.err.startswith("Error: ")


@pytest.mark.slow
def test_a_terminal_without_utf_8(example: Example) -> None:
    code = "from sacm.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "score", str(example.series), "--window", "24"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert done.returncode == 0
    assert b"rank" in done.stdout


@pytest.mark.lab
def test_names_of_data_sets_in_any_letter_case_are_one_run(sacm: Command) -> None:
    options = ("--stride", 400, "--input-len", 12, "--horizon", 4, "--json")
    runs = [
        json.loads(sacm(*TRAIN, "--data", name, *options).out)["run"] for name in ("Plant", "PLANT")
    ]
    assert runs[0] == runs[1]


def test_what_a_killed_process_left_half_written_goes_with_the_next(sacm: Command) -> None:
    hourly(200).to_csv("x.csv", index=False)
    command = (*TRAIN, "--data", "x.csv", "--input-len", 12, "--horizon", 4, "--json")
    folder = Path(json.loads(sacm(*command).out)["run"])
    (folder / "metrics.json").unlink()
    left = folder / ".last.pt.0123abcd.tmp"
    left.touch()
    sacm(*command)
    assert not left.exists()
