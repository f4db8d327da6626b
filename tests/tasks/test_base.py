"""Every task: numbers that do not depend on how the test set is cut into batches."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from sacm import Predictor
from sacm.data import ChannelScaler
from sacm.tasks import get_task
from sacm.tasks.base import answers
from tests.training.cases import TASKS, make_data, make_settings, small_run


@pytest.mark.parametrize("task", TASKS)
def test_every_window_is_tested_and_batch_size_changes_nothing(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run(task, tmp_path, epochs=1)
    data = make_data(task)
    windows = run.task.windows(run.settings, data)
    trained = Predictor.load(run).trained
    results = []
    for size in (1, 7, 64):
        monkeypatch.setattr(sys.modules[type(run.task).__module__], "EVALUATION_BATCH", size)
        results.append(run.task.evaluate(trained, windows, data))
    for result in results:
        assert result.evaluated == len(windows.test)
        for key, value in result.row.items():
            expected = results[0].row[key]
            assert (value is None) == (expected is None)
            assert value is None or value == pytest.approx(expected, rel=1e-5, abs=1e-6), key


@pytest.mark.parametrize("task", TASKS)
def test_windows_take_the_scaler_they_are_given(task: str) -> None:
    data, settings = make_data(task), make_settings(task)
    own = get_task(task).windows(settings, data)
    doubled = ChannelScaler(own.scaler.mean, 2 * own.scaler.std)
    windows = get_task(task).windows(settings, data, scaler=doubled)
    for part, other in zip(windows, own, strict=True):
        assert part.scaler is doubled
        torch.testing.assert_close(part.batch([0, 3]).x * 2, other.batch([0, 3]).x)


def test_an_error_between_batches_leaves_gradients_on_and_the_mode(tmp_path: Path) -> None:
    run, data = small_run("forecasting", tmp_path, epochs=1), make_data("forecasting")
    trained = Predictor.load(run).trained
    trained.model.train()
    windows = run.task.windows(run.settings, data).test
    held = answers(trained, [windows.batch([0]), windows.batch([1])])
    _, answer = next(held)  # the caller stops here, as an error stops it
    assert not torch.is_inference_mode_enabled()
    assert trained.model.training
    assert not answer.is_inference()
