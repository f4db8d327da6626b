"""Training: paired, resumable, identified by what decides its result."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.fabric import Fabric
from lightning.fabric.plugins import MixedPrecision
from safetensors.torch import load_file

from sacm import strip_state_dict
from sacm.data import forecasting_data
from sacm.errors import SACMError
from sacm.tasks import get_task
from sacm.training import Run, train
from sacm.training.progress import TrainingProgress
from sacm.training.trainer import Training
from tests.training.cases import (
    QUIET,
    TASKS,
    make_data,
    make_settings,
    small_run,
    waves,
)


def _training(task: str, folder: Path, **changes: object) -> Training:
    data = make_data(task)
    settings = get_task(task).resolve(make_settings(task, **changes), data)
    fabric = Fabric(accelerator="cpu", devices=1)
    return Training(folder, settings, data, fabric)


@pytest.mark.parametrize("task", TASKS)
def test_raw_and_sacm_start_from_the_same_weights_and_see_the_same_batches(
    task: str, tmp_path: Path
) -> None:
    raw = _training(task, tmp_path, strategy="raw")
    sacm = _training(task, tmp_path, strategy="sacm")
    expected, found = raw.model.state_dict(), strip_state_dict(sacm.model.state_dict())
    assert list(expected) == list(found)
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    for epoch in range(3):
        raw.train_batches.set_epoch(epoch)
        sacm.train_batches.set_epoch(epoch)
        for ours, theirs in zip(raw.train_batches, sacm.train_batches, strict=True):
            assert torch.equal(ours.x, theirs.x)


@pytest.mark.parametrize("task", TASKS)
def test_a_run_leaves_everything_needed_to_know_and_repeat_it(task: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path)
    names = {path.name for path in run.folder.iterdir()}
    assert names == {
        "config.json",
        "fingerprint.json",
        "model.json",
        "environment.json",
        "history.csv",
        "best.safetensors",
        "last.safetensors",
        "scaler.json",
        "metrics.json",
        *(() if task == "classification" else ("calibration.safetensors",)),
    }
    assert run.metrics["evaluated_windows"] == run.metrics["test_windows"]
    assert len(run.history) == run.metrics["epochs"] == 3
    assert 0.05 <= float(run.history[0]["rate_mean"]) <= 0.5
    environment = json.loads((run.folder / "environment.json").read_text())
    assert environment["fingerprint"]
    assert environment["packages"]["torch"]


def test_a_finished_run_is_not_run_twice_and_settings_make_the_identity(tmp_path: Path) -> None:
    run = small_run("forecasting", tmp_path)
    written = (run.folder / "metrics.json").stat().st_mtime_ns
    assert small_run("forecasting", tmp_path).folder == run.folder
    assert (run.folder / "metrics.json").stat().st_mtime_ns == written
    assert small_run("forecasting", tmp_path, seed=8, epochs=1).folder != run.folder
    other = forecasting_data(waves(401, 3), name="waves")
    assert train(
        make_settings("forecasting", epochs=1), folder=tmp_path, data=other, hardware=QUIET
    )
    assert len(list(tmp_path.iterdir())) == 3


def _facts(run: Run) -> tuple[dict[str, object], dict[str, torch.Tensor]]:
    """Metrics without timings, and weights."""
    metrics = {key: value for key, value in run.metrics.items() if "seconds" not in key}
    return metrics, load_file(run.folder / "best.safetensors")


def _assert_same(first: Run, second: Run) -> None:
    (metrics, weights), (other_metrics, other_weights) = _facts(first), _facts(second)
    assert metrics == other_metrics
    assert weights.keys() == other_weights.keys()
    assert all(torch.equal(weights[key], other_weights[key]) for key in weights)


class _StopError(Exception):
    """Stands in for whatever ends a process."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy",
    [
        "sacm",
        pytest.param("learned_global", marks=pytest.mark.lab),
        pytest.param("selective+sacm", marks=pytest.mark.lab),
        pytest.param("ensemble(k=2)", marks=pytest.mark.lab),
    ],
)
def test_an_interrupted_run_ends_like_one_that_was_not(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = small_run("forecasting", tmp_path / "whole", strategy=strategy)
    steps = 0
    original = Training.step

    def fail_at_step_20(self: Training, *batches: object) -> torch.Tensor:
        nonlocal steps
        steps += 1
        if steps == 20:
            raise _StopError
        return original(self, *batches)

    monkeypatch.setattr(Training, "step", fail_at_step_20)
    with pytest.raises(_StopError):
        small_run("forecasting", tmp_path / "cut", strategy=strategy)
    monkeypatch.setattr(Training, "step", original)
    _assert_same(whole, small_run("forecasting", tmp_path / "cut", strategy=strategy))


def _assert_readable(folder: Path) -> None:
    """No half-written file is visible under its own name."""
    for path in folder.rglob("*"):
        if path.name.endswith(".tmp") or path.is_dir():
            continue
        if path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".safetensors":
            load_file(path)
        elif path.suffix == ".pt":
            torch.load(path, weights_only=True)
        elif path.suffix == ".csv":
            with path.open() as file:
                assert list(csv.DictReader(file))


KILLS = int(os.environ.get("SACM_TEST_KILLS", "4"))
KILLED = {
    "forecasting": {},
    "classification": {"backbone": "iTransformer"},
    "anomaly": {"stride": 6},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [pytest.param(t, marks=() if t == "forecasting" else pytest.mark.nightly) for t in TASKS],
)
def test_a_killed_run_ends_like_one_that_was_not(task: str, tmp_path: Path) -> None:
    changes = {"epochs": 10, "patience": 10, **KILLED[task]}
    whole = small_run(task, tmp_path / "whole", **changes)
    patience = max(0.05, whole.metrics["train_seconds"] / 6)
    random = np.random.default_rng(3)
    context = multiprocessing.get_context("fork")
    kills, folder = 0, tmp_path / "killed-0"
    while kills < KILLS:
        child = context.Process(target=small_run, args=(task, folder), kwargs=changes, daemon=True)
        child.start()
        time.sleep(0.2 + random.uniform(0, patience))
        if child.is_alive():
            os.kill(child.pid or 0, signal.SIGKILL)
            kills += 1
        child.join()
        _assert_readable(folder)
        if child.exitcode == 0:  # it got to its end between two kills: begin another
            _assert_same(whole, small_run(task, folder, **changes))
            folder = tmp_path / f"killed-{kills}"
    _assert_same(whole, small_run(task, folder, **changes))


def test_a_loss_that_is_not_a_number_stops_the_run_and_says_where(tmp_path: Path) -> None:
    settings = make_settings("forecasting", learning_rate=1e30)
    with pytest.raises(SACMError, match=r"loss is (nan|inf) at epoch \d+, step \d+") as caught:
        train(settings, folder=tmp_path, data=make_data("forecasting"), hardware=QUIET)
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / "failure.json").read_text())["reason"] == str(caught.value)
    assert not Run(folder).finished


def _seconds_beforehand(run: Run) -> float:
    """Training time that belongs to no epoch."""
    epochs = sum(float(row["train_seconds"]) for row in run.history)
    return float(run.metrics["train_seconds"]) - epochs


@pytest.mark.lab
@pytest.mark.slow
def test_what_a_strategy_trains_beforehand_counts_as_training(tmp_path: Path) -> None:
    with_estimator, without = (
        small_run("forecasting", tmp_path, strategy=strategy) for strategy in ("selective", "raw")
    )
    assert _seconds_beforehand(with_estimator) > 5 * _seconds_beforehand(without)


@pytest.mark.lab
@pytest.mark.slow
def test_a_resumed_run_counts_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = _training("forecasting", tmp_path, strategy="selective")
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_finish", lambda _: None)  # killed just before
        first.run()
    again = _training("forecasting", tmp_path, strategy="selective")
    again.run()
    assert again.progress.seconds == first.progress.seconds


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose validation error soon stops improving."""
    folder = tmp_path_factory.mktemp("stopped")
    return small_run("forecasting", folder, epochs=40, patience=2, learning_rate=5e-2)


def test_best_and_last_weights_are_both_kept(stopped_run: Run) -> None:
    best, last = (
        load_file(stopped_run.folder / f"{name}.safetensors") for name in ("best", "last")
    )
    assert stopped_run.metrics["best_epoch"] < stopped_run.metrics["epochs"]
    assert best.keys() == last.keys()
    assert any(not torch.equal(best[key], last[key]) for key in best)


def test_the_scale_of_half_precision_losses_is_resumed(tmp_path: Path) -> None:
    def half_precision() -> Training:
        data, task = make_data("forecasting"), get_task("forecasting")
        settings = task.resolve(make_settings("forecasting", precision="16-mixed"), data)
        scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
        fabric = Fabric(
            accelerator="cpu",
            devices=1,
            plugins=MixedPrecision(precision="16-mixed", device="cpu", scaler=scaler),
        )
        return Training(tmp_path, settings, data, fabric)

    first = half_precision()
    first._epoch(1, TrainingProgress("", 1, False))
    state = first.fabric.strategy.precision.state_dict()
    second = half_precision()
    assert second.fabric.strategy.precision.state_dict() != state
    second._resume()
    assert second.fabric.strategy.precision.state_dict() == state


def test_early_stopping_keeps_the_best_epoch(stopped_run: Run) -> None:
    errors = [float(row["val_mae"]) for row in stopped_run.history]
    assert stopped_run.metrics["best_epoch"] == 1 + int(np.argmin(errors))
    assert stopped_run.metrics["epochs"] in (40, stopped_run.metrics["best_epoch"] + 2)
    assert math.isclose(stopped_run.metrics["best_val_mae"], min(errors))


def test_the_modulators_scalars_carry_no_weight_decay(tmp_path: Path) -> None:
    groups = _training("forecasting", tmp_path).optimizer.param_groups
    assert [group["weight_decay"] for group in groups] == [5e-4, 0.0]
    assert sum(p.numel() for p in groups[1]["params"]) == 2 * 3 + 2


def test_small_archives_take_several_passes_an_epoch(tmp_path: Path) -> None:
    training = _training("classification", tmp_path)
    assert training.passes * len(training.train_batches) >= 20


def test_bf16_autocast_trains(tmp_path: Path) -> None:
    assert small_run("forecasting", tmp_path, precision="bf16-mixed", epochs=1).finished


def test_gradients_are_clipped_on_request(tmp_path: Path) -> None:
    task, data = get_task("forecasting"), make_data("forecasting")
    norms = []
    for limit in (0.0, 1e-3):
        settings = task.resolve(make_settings("forecasting", gradient_clip=limit), data)
        fabric = Fabric(accelerator="cpu", devices=1)
        training = Training(tmp_path, settings, data, fabric)
        training.step(next(iter(training.train_batches)))
        gradients = [p.grad for p in training.model.parameters() if p.grad is not None]
        norms.append(float(torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))))
    assert norms[0] > 1e-2
    assert norms[1] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("state", [{}, {"progress": {"epok": 1}}], ids=["empty", "other"])
def test_a_checkpoint_of_another_version_is_one_sentence(
    state: dict[str, object], tmp_path: Path
) -> None:
    training = _training("forecasting", tmp_path)
    torch.save(state, tmp_path / "last.pt")
    with pytest.raises(SACMError, match=r"last\.pt was written by another version or is damaged"):
        training.run()


def test_a_run_without_its_weights_is_trained_again(tmp_path: Path) -> None:
    run = small_run("forecasting", tmp_path, epochs=1)
    expected = run.row
    (run.folder / "best.safetensors").unlink()
    assert not run.finished
    again = small_run("forecasting", tmp_path, epochs=1)
    assert again.finished
    assert again.row == expected


@pytest.mark.parametrize("strategy", ["raw", "sacm", "guard"])
def test_what_was_not_measured_counts_nowhere(strategy: str, tmp_path: Path) -> None:
    """A tenth of a channel is missing, in long stretches of every split."""
    data = forecasting_data(waves(600, 2), name="gaps")
    values = data.values.copy()
    for start in range(40, 600, 130):
        values[start : start + 20, 0] = np.nan
    gaps = dataclasses.replace(data, values=values)
    settings = make_settings("forecasting", strategy=strategy, epochs=1)
    resolved = get_task("forecasting").resolve(settings, gaps)
    training = Training(tmp_path, resolved, gaps, Fabric(accelerator="cpu", devices=1))
    missing = np.isnan(values)
    for windows in training.windows:
        batch = windows.batch(np.arange(len(windows)))
        assert bool(batch.x.isfinite().all())
        rows = batch.positions[:, None].numpy() + 24 + np.arange(8)
        np.testing.assert_array_equal(batch.observed.numpy() == 0, missing[rows])
    if strategy != "guard":  # which also leaves values out that look broken
        train_rows = values[: data.splits.train.stop]
        scaler = training.windows.train.scaler
        np.testing.assert_allclose(scaler.mean, np.nanmean(train_rows, axis=0), atol=1e-5)
        np.testing.assert_allclose(scaler.std, np.nanstd(train_rows, axis=0), atol=1e-5)
    training.run()
    said = "neither measured nor repaired" if strategy == "guard" else "not measured"
    assert any(said in note for note in Run(tmp_path).metrics["notes"])
    assert math.isfinite(Run(tmp_path).row["mae"] or math.nan)
