"""The library works without the laboratory, which it knows only as a plug-in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sacm

LIBRARY = Path(sacm.__file__).parent
LAB_COMMANDS = ("demo", "paper", "robust", "data", "corrupt")
HIDES_THE_LAB = Path(__file__).parent / "without_lab"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process without the laboratory."""
    path = os.pathsep.join([str(HIDES_THE_LAB), str(LIBRARY.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    environment.pop("SACM_DATA", None)
    command = [sys.executable, "-m", "sacm", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_no_file_of_the_library_names_the_laboratory() -> None:
    naming = [
        path.relative_to(LIBRARY).as_posix()
        for path in LIBRARY.rglob("*.py")
        if "sacm_lab" in path.read_text(encoding="utf-8")
    ]
    assert naming == []


def test_its_commands_are_gone_without_it_and_the_others_are_not(tmp_path: Path) -> None:
    listed = run(tmp_path, "--help").stdout
    commands = {line.strip("│ ").split(" ")[0] for line in listed.splitlines()}
    assert {"train", "predict", "compare"} <= commands
    assert commands.isdisjoint(LAB_COMMANDS)
    refused = run(tmp_path, "paper", "list")
    assert refused.returncode == 2
    assert "there is no command 'paper'" in refused.stderr


@pytest.mark.slow
def test_a_table_is_trained_on_and_forecast_without_it(tmp_path: Path) -> None:
    time = np.arange(400)
    table = pd.DataFrame(
        {
            "date": pd.date_range("2024-01-01", periods=len(time), freq="h"),
            "load": 50 + 10 * np.sin(2 * np.pi * time / 24),
        }
    )
    table.to_csv(tmp_path / "my.csv", index=False)
    settings = ("--backbone", "iTransformer", "--size", "small", "--epochs", "1")
    trained = run(tmp_path, "train", "forecasting", "--data", "my.csv", *settings)
    assert trained.returncode == 0, trained.stderr
    assert "run: " in trained.stdout
    named = run(tmp_path, "train", "forecasting", "--data", "ETTh1")
    assert named.returncode == 2
    assert "there is no file and no data set 'ETTh1'" in named.stderr
