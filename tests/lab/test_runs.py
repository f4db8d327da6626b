"""Runs as one frame, from folders and from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sacm.errors import DataError
from sacm.files import read_json, write_csv, write_json
from sacm_lab.runs import collect_runs
from tests.experiments.cases import write_run


def test_a_run_is_a_row(tmp_path: Path) -> None:
    run = write_run(
        tmp_path,
        strategy="sacm",
        seed=3,
        row={"mse": 1.5, "mae": None},
        rates=(0.2, 0.1),
        epochs=4,
        seconds=8.0,
        stride=5,
        overrides={"width": 8},
    )
    history = [{"epoch": e, "train_loss": 1.0, "val_mse": float(e)} for e in (1, 2, 3, 4)]
    write_csv(
        run.folder / "history.csv", [row | {"rate_mean": row["epoch"] / 16} for row in history]
    )
    record = read_json(run.folder / "metrics.json")
    write_json(run.folder / "metrics.json", {**record, "best_val_mse": 0.9})
    (row,) = collect_runs(tmp_path).to_dict("records")
    expected = {
        "run": run.folder.name,
        "state": "done",
        "task": "forecasting",
        "data": "waves",
        "backbone": "PatchTST",
        "size": "paper",
        "horizon": 24,
        "strategy": "sacm",
        "seed": 3,
        "stride": 5,
        "overrides": '{"width": 8}',
        "select": "mse",
        "mse": 1.5,
        "epochs": 4,
        "seconds": 8.0,
        "seconds_per_epoch": 2.0,
        "rate_mean": 0.25,
        "validation": 0.9,
        "early_validation": 3.0,  # the mean of epochs 2, 3 and 4
    }
    assert {name: row[name] for name in expected} == expected
    assert "patience" not in row  # at its default in every run


def test_every_state_has_a_row(tmp_path: Path) -> None:
    done = write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0})
    for name, files in {
        "begun": {},
        "failed": {"failure.json": {"reason": "the loss is nan."}},
        "torn": {"metrics.json": {"test": {}}},
    }.items():
        (tmp_path / name).mkdir()
        config = read_json(done.folder / "config.json")
        for file, record in {"config.json": config, **files}.items():
            write_json(tmp_path / name / file, record)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "config.json").write_text("{")
    frame = collect_runs(tmp_path).set_index("run")
    states = frame["state"].to_dict()
    assert states == {
        "begun": "begun",
        "cut": "damaged",
        "failed": "failed",
        "torn": "damaged",
        done.folder.name: "done",
    }
    assert frame.loc["failed", "reason"] == "the loss is nan."
    assert "holds no 'epochs'" in frame.loc["torn", "reason"]


def test_settings_that_this_version_does_not_know_are_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0})
    config = read_json(run.folder / "config.json")
    write_json(run.folder / "config.json", {**config, "gone_by_now": "mask"})
    frame = collect_runs(tmp_path)
    assert frame["state"].tolist() == ["done"]
    assert "gone_by_now" not in frame


def test_checks_transfers_and_tests_of_every_epoch(tmp_path: Path) -> None:
    run = write_run(tmp_path, strategy="raw", seed=1, row={"mse": 1.0})
    write_json(run.folder / "on_Exchange_Rate.json", {"test": {"mse": 2.0}})
    write_json(run.folder / "check_faults.json", {"test": {"clean_mse": 3.0}})
    history = [{"epoch": e, "val_mse": 1.0, "test_accuracy": e / 100} for e in range(1, 13)]
    write_csv(run.folder / "history.csv", history)
    (row,) = collect_runs(tmp_path).to_dict("records")
    assert (row["mse"], row["mse@Exchange_Rate"], row["clean_mse@faults"]) == (1.0, 2.0, 3.0)
    assert row["accuracy_last_ten"] == pytest.approx(0.075)  # epochs 3 to 12


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder of runs"):
        collect_runs(tmp_path / "nowhere")
