"""Forecasting: presets, windows, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from sacm import tasks
from sacm.data import synth12
from sacm.tasks import get_task
from tests.training.cases import make_data, small_run


def test_forecast_errors_are_the_plain_means(tmp_path: Path) -> None:
    run = small_run("forecasting", tmp_path, epochs=1)
    data = make_data("forecasting")
    windows = run.task.windows(run.settings, data)
    model = run.load_model()
    batch = windows.test.batch(np.arange(len(windows.test)))
    with torch.no_grad():
        error = (model(batch.x) - batch.y).double()
    raw = error * torch.from_numpy(run.scaler.std).double()
    assert run.row["mae"] == pytest.approx(float(error.abs().mean()), rel=1e-6)
    assert run.row["mse"] == pytest.approx(float(error.square().mean()), rel=1e-6)
    assert run.row["mae_raw"] == pytest.approx(float(raw.abs().mean()), rel=1e-5)


@pytest.mark.lab
def test_presets_of_the_paper() -> None:
    forecasting = get_task("forecasting")
    synth = synth12(0.5)
    settings = tasks.make_settings(task="forecasting", data="Synth-12@0.5")
    done = forecasting.resolve(settings, synth)
    assert (done.input_len, done.horizon, done.batch_size, done.select) == (96, 96, 32, "mae")
    long = tasks.make_settings(task="forecasting", data="Synth-12@0.5", horizon=720)
    assert forecasting.resolve(long, synth).batch_size == 16
    wide = tasks.make_settings(task="forecasting", data="Synth-12", backbone="multipatchformer")
    assert wide.backbone == "MultiPatchFormer"
    assert forecasting.resolve(wide, synth).batch_size == 16
    assert (done.learning_rate, done.weight_decay, done.epochs, done.patience) == (
        2e-4,
        5e-4,
        100,
        10,
    )
