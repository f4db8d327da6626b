"""Tasks: presets, and numbers that do not depend on how the test set is cut into batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sacm.data import forecasting_data
from sacm.errors import ArgumentError
from sacm.tasks import RunSettings, get_task
from sacm.tasks.anomaly import fit_threshold, step_scores
from tests.training.cases import TASKS, make_data, make_settings, small_run, waves


@pytest.mark.parametrize("task", TASKS)
def test_every_window_is_tested_and_batch_size_changes_nothing(task: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path, epochs=1)
    data = make_data(task)
    windows = run.task.windows(run.settings, data)
    model = run.load_model(data)
    results = [
        run.task.evaluate(model, windows, data, run.settings, run.strategy, batch_size=size)
        for size in (1, 7, 64)
    ]
    for result in results:
        assert result.evaluated == len(windows.test)
        for key, value in result.row.items():
            expected = results[0].row[key]
            assert (value is None) == (expected is None)
            assert value is None or value == pytest.approx(expected, rel=1e-5, abs=1e-6), key


def test_forecast_errors_are_the_plain_means(tmp_path: Path) -> None:
    run = small_run("forecasting", tmp_path, epochs=1)
    data = make_data("forecasting")
    windows = run.task.windows(run.settings, data)
    model = run.load_model(data)
    batch = windows.test.batch(np.arange(len(windows.test)))
    with torch.no_grad():
        error = (model(batch.x) - batch.y).double()
    raw = error * torch.from_numpy(run.scaler.std).double()
    assert run.row["mae"] == pytest.approx(float(error.abs().mean()), rel=1e-6)
    assert run.row["mse"] == pytest.approx(float(error.square().mean()), rel=1e-6)
    assert run.row["mae_raw"] == pytest.approx(float(raw.abs().mean()), rel=1e-5)


def test_the_threshold_never_sees_the_test_part(tmp_path: Path) -> None:
    run = small_run("anomaly", tmp_path, epochs=1)
    data = make_data("anomaly")
    model = run.load_model(data)
    windows = run.task.windows(run.settings, data)
    threshold = fit_threshold(model, windows, run.settings, run.strategy)
    data.test[:] = 100.0
    changed = run.task.windows(run.settings, data)
    assert fit_threshold(model, changed, run.settings, run.strategy) == threshold
    assert run.metrics["report"]["threshold"] == pytest.approx(threshold)


def test_the_score_of_a_step_is_the_mean_over_the_windows_that_cover_it(tmp_path: Path) -> None:
    run = small_run("anomaly", tmp_path, epochs=1)
    data = make_data("anomaly")
    model = run.load_model(data)
    windows = run.task.windows(run.settings, data).test
    found = step_scores(model, windows, run.settings, run.strategy)
    total, count = np.zeros(len(data.test)), np.zeros(len(data.test))
    with torch.no_grad():
        for index, start in enumerate(windows.starts):
            total[start : start + 20] += model.anomaly_scores(windows.batch([index]).x)[0].numpy()
            count[start : start + 20] += 1
    assert (count > 0).all()
    np.testing.assert_allclose(found, total / count, rtol=1e-4, atol=1e-7)


def test_presets_of_the_paper() -> None:
    from sacm.data import synth12

    forecasting = get_task("forecasting")
    synth = synth12(0.5)
    settings = RunSettings.make(task="forecasting", data="Synth-12@0.5")
    done = forecasting.complete(settings, synth)
    assert (done.input_len, done.horizon, done.batch_size, done.select) == (96, 96, 32, "mae")
    long = RunSettings.make(task="forecasting", data="Synth-12@0.5", horizon=720)
    assert forecasting.complete(long, synth).batch_size == 16
    wide = RunSettings.make(task="forecasting", data="Synth-12", backbone="multipatchformer")
    assert wide.backbone == "MultiPatchFormer"
    assert forecasting.complete(wide, synth).batch_size == 16
    assert (done.learning_rate, done.weight_decay, done.epochs, done.patience) == (
        2e-4,
        5e-4,
        100,
        10,
    )


def test_a_short_series_of_the_users_own_gets_shorter_windows() -> None:
    data = forecasting_data(waves(200, 2), name="mine")
    settings = RunSettings.make(task="forecasting", data="mine.csv")
    done = get_task("forecasting").complete(settings, data)
    windows = get_task("forecasting").windows(done, data)
    assert min(len(part) for part in windows) > 0


def test_targets_that_were_missing_do_not_count(tmp_path: Path) -> None:
    values = waves(400, 1)
    values[350:380] = np.nan
    data = forecasting_data(values, name="gaps", missing="mask")
    settings = make_settings("forecasting", epochs=1)
    task = get_task("forecasting")
    windows = task.windows(settings, data)
    batch = windows.test.batch(np.arange(len(windows.test)))
    assert batch.observed is not None
    assert not bool(batch.observed.all())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": -1}, "learning_rate"),
        ({"epochs": 0}, "epochs"),
        ({"size": "huge"}, "size"),
        ({"backbone": "PatchTSTT"}, "Did you mean 'PatchTST'"),
        ({"backbone": "TranAD"}, "serves another task"),
        ({"strategy": "sacmm"}, "Did you mean 'sacm'"),
        ({"speed": 3}, "speed"),
        ({"seed": -1}, "seed"),
        ({"precision": "8-bit"}, "precision"),
    ],
)
def test_wrong_settings_are_one_sentence(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        make_settings("forecasting", **changes)
    assert "\n" not in str(caught.value)
