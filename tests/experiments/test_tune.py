"""The search for settings: it never sees test rows, and goes on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacm.data import forecasting_data
from sacm.tasks import make_settings
from tests.training.cases import make_data, waves

pytest.importorskip("optuna", reason="needs the `tune` extra")
from sacm.experiments.tune import input_lengths, tune, without_test

TINY: dict[str, Any] = {
    "backbone": "iTransformer",
    "overrides": {"width": 8, "hidden": 8},
    "size": "small",
    "epochs": 2,
    "input_len": 12,
    "stride": 8,
}
FIXED = ("size", "input_len", "batch_size")


def settings(**others: Any) -> Any:
    named = {"task": "forecasting", "data": "waves", "horizon": 4}
    return make_settings(**{**named, **TINY, **others})


def test_trials_never_see_test_rows_and_the_best_is_a_run_like_any_other(tmp_path: Path) -> None:
    data = forecasting_data(waves(300, 2), name="waves")
    search: dict[str, Any] = {"trials": 3, "strategies": ("raw", "sacm"), "fixed": FIXED}
    found = tune(settings(), data, **search, folder=tmp_path)
    assert found.run.finished
    assert found.run.folder.parent == tmp_path
    assert "mae" in found.run.row
    assert found.run.settings.learning_rate == found.chosen["learning_rate"]
    assert found.run.metrics["best_val_mae"] == pytest.approx(found.value)
    values = [trial["value"] for trial in found.trials if trial["state"] == "complete"]
    assert values == sorted(values)
    assert values[0] == found.value
    for folder in found.folder.glob("*/metrics.json"):
        assert "test" not in json.loads(folder.read_text())
    # Other test rows change nothing in the search, and a finished search is not repeated.
    other = data.values.copy()
    other[data.splits.test.start :] = 7.0
    again = tune(settings(), replace(data, values=other), **search, folder=tmp_path / "b")
    assert again.chosen == found.chosen
    assert tune(settings(), data, **search, folder=tmp_path).trials == found.trials


@pytest.mark.parametrize("task", ["forecasting", "classification", "anomaly"])
def test_data_without_their_test_part_hold_nothing_of_it(task: str) -> None:
    data = make_data(task)
    seen: Any = without_test(data)
    if task == "forecasting":
        assert len(seen.splits.test) == 0
    else:
        assert len(seen.X_test if task == "classification" else seen.test) == 0


def test_input_lengths_leave_validation_windows() -> None:
    data = forecasting_data(waves(1000, 1), name="waves")
    base: Any = settings()
    assert input_lengths(base, data) == [12, 24, 48]


@pytest.mark.nightly
def test_killed_twice_it_goes_on_and_tries_no_more_than_it_was_asked_to(tmp_path: Path) -> None:
    values = waves(400, 2)
    np.save(tmp_path / "waves.npy", values)
    command = ["tune", "forecasting", "--data", "waves.npy", "--trials", "3", "--size", "small"]
    command += ["--backbone", "iTransformer", "--set", "width=8", "--set", "hidden=8"]
    command += ["--input-len", "12", "--horizon", "4", "--batch-size", "32", "--epochs", "4"]
    command += ["--stride", "4"]
    code = "import sys; from sacm.cli.main import main; sys.argv[0] = 'sacm'; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *command],
            cwd=tmp_path,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    for kill in range(2):
        process = start()
        deadline = time.monotonic() + 300
        # In the middle of a trial: one that has begun an epoch and is not finished.
        while time.monotonic() < deadline and process.poll() is None:
            begun = list(tmp_path.glob("runs/tuning/*/*/last.pt"))
            done = list(tmp_path.glob("runs/tuning/*/*/metrics.json"))
            if begun and len(done) >= kill:
                break
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    process = start()
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "run: runs" in out
    done = list(tmp_path.glob("runs/tuning/*/*/metrics.json"))
    assert 1 <= len(done) <= 3  # the others were stopped early
    assert len(list(tmp_path.glob("runs/*/metrics.json"))) == 1
