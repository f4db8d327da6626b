from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sacm.cli.main import main
from sacm.tasks import make_settings
from sacm.training import Hardware, Run, train


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def sacm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """The command line, called in an empty folder without data of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SACM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("SACM_DATA", raising=False)

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["sacm", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Outcome(int(left.value.code or 0), printed.out, printed.err)

    return call


@dataclass(frozen=True)
class Example:
    """Data of every kind in files, and a finished run of each task."""

    folder: Path
    series: Path
    cases: Path
    telemetry: Path
    forecasting: Path
    classification: Path
    anomaly: Path


def with_other_data(example: Example, folder: Path) -> Path:
    """A copy of the forecasting run that was made, it says, from what is now another file."""
    shutil.copytree(example.forecasting, folder)
    table = pd.read_csv(example.series)
    table["load"] *= 2
    table.to_csv("other.csv", index=False)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "data": "other.csv"}))
    return folder


def write_data(folder: Path) -> tuple[Path, Path, Path]:
    generator = np.random.default_rng(0)
    time = np.arange(300)
    noise = 0.3 * generator.normal(size=(2, 300))
    waves = np.sin(2 * np.pi * time / 24) + noise
    stamps = pd.date_range("2024-01-01", periods=300, freq="h")
    series = pd.DataFrame({"date": stamps, "load": 50 + 10 * waves[0], "heat": waves[1]})
    series.to_csv(folder / "series.csv", index=False)
    telemetry = series.assign(label=(time > 280).astype(int))
    telemetry.to_csv(folder / "telemetry.csv", index=False)
    labels = np.array(["up", "down"])[np.arange(20) % 2]
    cases = generator.normal(size=(20, 2, 16)) + (labels == "up")[:, None, None]
    lengths = np.full(20, 16)
    np.savez(
        folder / "cases.npz",
        X_train=cases,
        y_train=labels,
        len_train=lengths,
        X_test=cases[:6],
        y_test=labels[:6],
        len_test=lengths[:6],
    )
    return folder / "series.csv", folder / "cases.npz", folder / "telemetry.csv"


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    folder = tmp_path_factory.mktemp("example")
    series, cases, telemetry = write_data(folder)

    def trained(task: str, data: Path) -> Path:
        settings = make_settings(
            task=task,
            data=str(data),
            backbone="iTransformer",
            size="small",
            epochs=1,
            input_len=None if task == "classification" else 12,
            horizon=4 if task == "forecasting" else None,
        )
        run: Run = train(settings, folder=folder / "runs", hardware=Hardware(show_progress=False))
        return run.folder

    return Example(
        folder,
        series,
        cases,
        telemetry,
        trained("forecasting", series),
        trained("classification", cases),
        trained("anomaly", telemetry),
    )
