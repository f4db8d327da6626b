"""Candidates compete for a user's own series, within a time limit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm import Predictor
from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.tasks import let_compete, make_settings
from sacm.training import Hardware, Run, contest, train
from sacm.training.trainer import Training

STATISTICAL = {
    "seasonal naive",
    "exponential smoothing",
    "Theta",
    "linear regression",
}


def passengers() -> pd.DataFrame:
    """Twelve years of months that grow, with a season that grows with them."""
    months = np.arange(144)
    random = np.random.default_rng(0)
    values = np.exp(4.8 + 0.01 * months) * (1 + 0.25 * np.sin(2 * np.pi * months / 12))
    values = values * (1 + 0.02 * random.normal(size=144))
    times = pd.date_range("1949-01", periods=144, freq="MS")
    return pd.DataFrame({"month": times, "passengers": values})


def compete(folder: Path, *, show: bool = False, **changes: Any) -> Run:
    asked = {"task": "forecasting", "data": "passengers.csv", "horizon": 12, "time_limit": 3}
    settings = make_settings(**let_compete({**asked, **changes}))
    data = forecasting_data(passengers(), name="passengers")
    return train(settings, folder=folder, data=data, hardware=Hardware(show_progress=show))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return compete(tmp_path_factory.mktemp("runs"))


def test_the_run_is_what_validation_prefers(run: Run) -> None:
    table = run.metrics["race"]["table"]
    assert {row["candidate"] for row in table} == STATISTICAL  # windows are few for networks
    assert [row["validation_mae"] for row in table] == sorted(
        row["validation_mae"] for row in table
    )
    assert sum(row["weight"] for row in table) == pytest.approx(1, abs=1e-3)
    assert run.metrics["best_val_mae"] <= 1.05 * table[0]["validation_mae"]
    assert run.metrics["race"]["sentence"] in run.metrics["notes"]
    assert set(run.metrics["race"]["scores"]) == {"guard", "raw"}
    rows = run.metrics["baselines"]["rows"]
    assert rows["model"]["mase"] < 0.7 * rows["seasonal naive"]["mase"]


def test_a_finished_run_predicts_and_tests_like_any_other(run: Run) -> None:
    predictor = Predictor.load(run)
    data = run.task.divide(run.settings, forecasting_data(passengers(), name="passengers"))
    assert predictor.evaluate(data).row == pytest.approx(run.row)
    forecast = predictor.predict(passengers(), intervals=[0.8])
    assert len(forecast) == 12
    assert (forecast["passengers_lower_80"] <= forecast["passengers"]).all()
    assert compete(run.folder.parent).folder == run.folder  # found, not trained again


def test_candidates_that_could_not_be_tested_in_time_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contest, "_TEST_SHARE", 1e-9)  # of the time: only the fastest remains
    run = compete(tmp_path)
    weights = {row["candidate"]: row["weight"] for row in run.metrics["race"]["table"]}
    assert sorted(weights.values()) == [0, 0, 0, 1]
    slow = run.metrics["race"]["sentence"].split("test windows: ")[1].split(". ")[0]
    assert set(slow.split(", ")) == {name for name, weight in weights.items() if not weight}


def test_a_stopped_contest_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, calls = Training._record, 0

    def stop(self: Training, *arguments: Any) -> None:
        nonlocal calls
        original(self, *arguments)
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    # CPU time, so that other processes do not use up the limit.
    monkeypatch.setattr(time, "monotonic", time.process_time)
    monkeypatch.setattr(contest, "_ENOUGH", 1)
    monkeypatch.setattr(Training, "_record", stop)
    with pytest.raises(KeyboardInterrupt):
        compete(tmp_path)
    monkeypatch.setattr(Training, "_record", original)
    run = compete(tmp_path, show=True)
    assert run.finished
    said = capsys.readouterr().err
    assert "resumed from epoch 2" in said
    assert said.startswith("Plan, 3 s (--time): seasonal naive")
    assert not (run.folder / "race").exists()


def test_counts_are_never_forecast_below_zero(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    counts = random.poisson(np.linspace(6, 0.2, 200)).astype(float)
    forecaster = sacm.Forecaster(horizon=10, time_limit=2, folder=tmp_path).fit(counts)
    lower, upper = forecaster.predict_interval(coverage=0.9)
    assert np.min(forecaster.predict()) >= 0
    assert np.min(lower) >= 0
    assert np.max(upper) > 0
    below = sacm.Forecaster("PatchTST", size="small", epochs=1, input_len=12, horizon=4, minimum=3)
    assert np.min(below.fit(counts).predict()) >= 3


def test_who_describes_a_network_gets_it() -> None:
    asked = {"task": "forecasting", "data": "my.csv"}
    both = {"backbone": "auto", "time_limit": 60.0, "strategy": "race(guard,raw)"}
    assert let_compete(asked) == {**asked, **both}
    assert let_compete({**asked, "strategy": "guard"})["strategy"] == "guard"
    assert let_compete({**asked, "time_limit": "none"})["time_limit"] == "none"
    changes = {"backbone": "iTransformer", "epochs": 3, "strategy": "sacm", "future": "price"}
    for change in ({name: value} for name, value in changes.items()):
        assert let_compete({**asked, **change}) == {**asked, **change}
    assert let_compete({**asked, "data": "ETTh1"}) == {**asked, "data": "ETTh1"}
    with pytest.raises(ArgumentError, match=r"--epochs.*--backbone"):
        let_compete({**asked, "epochs": 3, "time_limit": 60})
